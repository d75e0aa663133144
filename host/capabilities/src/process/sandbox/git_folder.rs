//! What programs may write in a folder of git, and could use to make git write elsewhere: links, and the index.
//!
//! git follows a link in the place of a log or a message, and writes every entry of its index at a checkout.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};

use super::entry::{Identity, changed_at, identity};
use super::index::{self, Entry, Fault};
use super::repository;
use crate::files::Listed;

/// The folders in a folder of git that git writes to. Submodules and work trees have folders of git of their own.
const WRITTEN: [&str; 10] = [
    "logs",
    "refs",
    "info",
    "worktrees",
    "modules",
    "objects",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "reftable",
];
/// How many entries of a folder of git are looked at.
const MOST: usize = 50_000;
/// How many changed entries of the index are named.
const MOST_NAMED: usize = 5;
/// How many changed entries of the index are compared with the list.
const MOST_COMPARED: usize = 200_000;

/// The folders of git before a run.
#[derive(Debug, Default)]
pub(super) struct GitFolders {
    known: HashMap<Identity, Known>,
    keys: RandomState,
}

#[derive(Debug, Default)]
struct Known {
    links: HashMap<PathBuf, PathBuf>,
    is_partial: bool,
    stamps: Vec<Stamp>,
    /// A hash of each entry of the index. None if it could not be read.
    entries: Option<HashSet<u64>>,
}

/// What a program left in a folder of git.
#[derive(Debug)]
pub(super) enum Left {
    /// A link that was not there.
    Link(PathBuf),
    /// An index with a fault.
    Index(PathBuf, Fault),
    /// Entries of an index that start programs or instruct agents, and were not there.
    Entries(PathBuf, Vec<String>),
    /// A folder with too many entries to look at them all.
    Many(PathBuf),
}

impl GitFolders {
    pub(super) fn of(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut all = Self::default();
        for folder in folders {
            let Some((own, _)) = identity(&folder) else { continue };
            let (links, is_partial) = links(&folder);
            // Before the entries: what changes in between changes the stamp, too.
            let stamps = stamps(&folder);
            let mut entries = HashSet::new();
            let found = entries_of(&folder, &mut |entry| {
                entries.insert(all.keys.hash_one((entry.path, entry.hash)));
            });
            let entries = found.is_ok().then_some(entries);
            all.known.insert(own, Known { links, is_partial, stamps, entries });
        }
        all
    }

    /// What is in a folder now that was not there before, which began at `since`.
    pub(super) fn left(&self, folder: &Path, since: i64, listed: &Listed) -> Vec<Left> {
        let Some((own, _)) = identity(folder) else { return Vec::new() };
        let none = Known { entries: Some(HashSet::new()), ..Known::default() };
        let known = self.known.get(&own).unwrap_or(&none);
        let (links, is_partial) = links(folder);
        let mut left = Vec::new();
        for (path, target) in links {
            let is_older = known.is_partial && changed_at(&folder.join(&path)).is_some_and(|at| at < since);
            if known.links.get(&path) != Some(&target) && !is_older {
                left.push(Left::Link(folder.join(path)));
            }
        }
        if is_partial && !known.is_partial {
            left.push(Left::Many(folder.to_owned()));
        }
        let stamps = stamps(folder);
        // The clock of files is coarse, so a recent stamp may hide a change.
        let is_complete = !is_partial && !known.is_partial;
        if is_complete && stamps == known.stamps && stamps.iter().all(|stamp| stamp.changed.0 + 1 < since) {
            return left;
        }
        let (mut named, mut compared) = (BTreeSet::new(), 0);
        let was_there = |entry: &Entry<'_>| {
            known.entries.as_ref().is_some_and(|known| known.contains(&self.keys.hash_one((entry.path, entry.hash))))
        };
        let found = entries_of(folder, &mut |entry| {
            if named.len() > MOST_NAMED || was_there(entry) {
                return;
            }
            compared += 1;
            let path = Path::new("/-").join(index::readable(entry.path));
            if compared > MOST_COMPARED {
                named.insert("more new entries than Hermes looks at".to_owned());
            } else if listed.of_file(&path).is_some() {
                named.insert(format!("{:?}", String::from_utf8_lossy(entry.path)));
            }
        });
        match found {
            Ok(()) if named.is_empty() => {}
            Ok(()) => left.push(Left::Entries(folder.to_owned(), named.into_iter().collect())),
            // Nobody forged it: git and Hermes disagree about an index that was there.
            Err(Fault::TooLarge | Fault::Unreadable) if known.entries.is_none() => {}
            Err(fault) => left.push(Left::Index(folder.join("index"), fault)),
        }
        left
    }
}

/// Hands over each entry of the index of a folder, and of the one that it shares entries with.
fn entries_of(folder: &Path, each: &mut dyn FnMut(&Entry<'_>)) -> Result<(), Fault> {
    let index = folder.join("index");
    if index.symlink_metadata().is_err() {
        return Ok(());
    }
    for hash in hashes(folder) {
        if let Some(base) = index::read(&index, hash, &mut *each)? {
            let shared = folder.join(format!("sharedindex.{base}"));
            if shared.symlink_metadata().is_ok() {
                index::read(&shared, hash, &mut *each)?;
            }
        }
    }
    Ok(())
}

/// The lengths of hashes that the configuration names: one, unless it contradicts itself.
fn hashes(folder: &Path) -> Vec<usize> {
    const SHA1: usize = 20;
    const SHA256: usize = 32;
    let common = repository::text(&folder.join("commondir")).map(|common| folder.join(common.trim()));
    let config = repository::text(&common.unwrap_or_else(|| folder.to_owned()).join("config")).unwrap_or_default();
    let named = config.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        name.trim().eq_ignore_ascii_case("objectformat").then(|| value.to_ascii_lowercase())
    });
    let all: BTreeSet<usize> = named.map(|value| if value.contains("sha256") { SHA256 } else { SHA1 }).collect();
    if all.is_empty() { vec![SHA1] } else { all.into_iter().collect() }
}

/// What changes when a file changes.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    name: std::ffi::OsString,
    file: Identity,
    size: u64,
    changed: (i64, i64),
}

/// The stamps of the index and of those that it may share entries with.
fn stamps(folder: &Path) -> Vec<Stamp> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST);
    let shared =
        entries.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("sharedindex."));
    let mut stamps: Vec<Stamp> = shared.chain(["index".into()]).filter_map(|name| stamp(folder, name)).collect();
    stamps.sort_by(|left, right| left.name.cmp(&right.name));
    stamps
}

#[cfg(unix)]
fn stamp(folder: &Path, name: std::ffi::OsString) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let data = folder.join(&name).metadata().ok()?;
    Some(Stamp { name, file: (data.dev(), data.ino()), size: data.size(), changed: (data.ctime(), data.ctime_nsec()) })
}

#[cfg(not(unix))]
fn stamp(_: &Path, _: std::ffi::OsString) -> Option<Stamp> {
    None
}

/// The links in a folder of git where git writes, with their targets, and whether there were too many entries.
fn links(folder: &Path) -> (HashMap<PathBuf, PathBuf>, bool) {
    let mut found = HashMap::new();
    let mut queue = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(own) = queue.pop() {
        for entry in fs::read_dir(folder.join(&own)).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST {
                return (found, true);
            }
            let (path, kind) = (own.join(entry.file_name()), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_symlink) {
                let target = fs::read_link(entry.path()).unwrap_or_default();
                found.insert(path, target);
            } else if kind.is_ok_and(|kind| kind.is_dir()) && is_searched(folder, &path) {
                queue.push(path);
            }
        }
    }
    (found, false)
}

/// Whether links are looked for in a folder. Folders of objects only have files whose names are hashes.
fn is_searched(folder: &Path, path: &Path) -> bool {
    let depth = path.components().count();
    let Some(top) = path.components().next().and_then(|name| name.as_os_str().to_str()) else { return false };
    match top {
        "objects" => depth == 1 || path.ends_with("info") || path.ends_with("pack"),
        "worktrees" => depth == 1,
        // The folder of a submodule is a folder of git of its own.
        "modules" => !repository::has_signs(&folder.join(path)),
        _ => WRITTEN.contains(&top),
    }
}
