//! The search of the writable folders for what must not change in them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::entry::{Identity, identity};
use super::repository;
use crate::files::Listed;

/// How deep folders are searched, and how many entries below the first level. A search takes a few milliseconds.
const DEEPEST: usize = 3;
const MOST: usize = 5_000;
/// The limit is higher after a run, because the run may have created entries to use up the search.
pub(super) const MOST_AFTER: usize = 8 * MOST;
/// Folders with dependencies and build results, which users do not open as projects. They are not searched.
const PASSED: [&str; 8] = ["node_modules", "target", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".cache"];
/// A folder of git that was renamed still looks like one.
const RENAMED: &str = ".git.denied";

/// What was found in the writable folders.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// `.git`, and folders that git would take for its own.
    pub(super) git: BTreeSet<PathBuf>,
    /// Files and folders that start programs or instruct agents.
    pub(super) listed: BTreeSet<PathBuf>,
    /// The identities of both.
    pub(super) files: HashSet<Identity>,
    /// Links at places where a folder would contain listed files.
    pub(super) linked: BTreeSet<PathBuf>,
    /// The entries of these sets that are links, with their targets.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
    /// The folders around all of them, with their identities.
    pub(super) around: HashMap<PathBuf, Identity>,
    /// Folders that can be entered, but not listed.
    pub(super) unlistable: BTreeSet<PathBuf>,
    /// There were too many entries to search them all.
    pub(super) is_partial: bool,
    /// The first folder that could not be searched although this user may, and why: something ran out.
    pub(super) failed: Option<String>,
}

impl Search {
    /// Searches each root, but not the folders that programs do not see.
    pub(super) fn of(roots: &[PathBuf], unseen: &[PathBuf], listed: &Listed) -> Self {
        Self::within(MOST, roots, unseen, listed)
    }

    /// The same with at most so many entries below the first level.
    pub(super) fn within(most: usize, roots: &[PathBuf], unseen: &[PathBuf], listed: &Listed) -> Self {
        let mut found = Self::default();
        roots.iter().for_each(|root| found.search(root, most, unseen, listed));
        for path in found.git.iter().chain(&found.listed).chain(&found.linked).chain(&found.unlistable) {
            // The number of a removed link can be given to another file.
            found.files.extend(identity(path).filter(|(_, is_link)| !is_link).map(|(file, _)| file));
            found.links.extend(fs::read_link(path).ok().map(|target| (path.clone(), target)));
            for folder in folders_around(path, roots) {
                found.around.extend(identity(folder).map(|(own, _)| (folder.to_owned(), own)));
            }
        }
        found
    }

    fn search(&mut self, root: &Path, most: usize, unseen: &[PathBuf], listed: &Listed) {
        let mut queue = VecDeque::from([(root.to_owned(), 0)]);
        let mut seen = 0;
        while let Some((folder, depth)) = queue.pop_front() {
            // A folder can be one of git itself, also the workspace.
            if repository::is_repository(&folder) {
                self.git.insert(folder.clone());
                if depth > 0 {
                    continue;
                }
            }
            // However many files are beside it.
            let git = folder.join(".git");
            if git.symlink_metadata().is_ok() {
                self.git.insert(git);
            }
            let entries = fs::read_dir(&folder);
            if let Err(error) = &entries
                && !matches!(
                    error.kind(),
                    std::io::ErrorKind::PermissionDenied
                        | std::io::ErrorKind::NotFound
                        | std::io::ErrorKind::NotADirectory
                )
            {
                self.failed.get_or_insert_with(|| format!("{}: {error}", folder.display()));
            }
            // Programs find a file in it by its name.
            if entries.is_err() && folder.join(".").metadata().is_ok() {
                self.unlistable.insert(folder.clone());
            }
            for entry in entries.into_iter().flatten().flatten() {
                seen += usize::from(depth > 0);
                if seen > most {
                    self.is_partial = true;
                    return;
                }
                let (path, name) = (entry.path(), entry.file_name());
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if crate::files::is_git(&name) {
                    self.git.insert(path);
                } else if unseen.contains(&path) || name.to_string_lossy().starts_with(RENAMED) {
                    // Nothing in it can change, or it was found before.
                } else if listed.of_file(&path).is_some() || listed.of_file(&path.join("file")).is_some() {
                    self.listed.insert(path);
                } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && listed.of_link(&path).is_some() {
                    self.linked.insert(path);
                } else if is_folder && depth < DEEPEST && !PASSED.iter().any(|passed| name == *passed) {
                    queue.push_back((path, depth + 1));
                }
            }
        }
    }
}

/// The folders around an entry, up to the writable one, which cannot move.
pub(super) fn folders_around<'a>(path: &'a Path, roots: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    let is_inside = |folder: &&Path| roots.iter().any(|root| folder.starts_with(root) && *folder != root);
    path.ancestors().skip(1).take_while(is_inside)
}
