//! Links at the places of listed files: who changes what such a link leads to changes the listed file.
//!
//! Links are looked up at the places that the list names without wildcards, in the folders above the changed entry, also above the
//! workspace: `~/.bashrc` often leads into a folder of dotfiles. A link at another place is not found.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::name::readable;

/// The most links in a row that are followed to a file that does not exist.
const MAX_LINKS: usize = 40;

/// A tree of names: `.github`, with `workflows` below it.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(BTreeMap<OsString, Places>);

impl Places {
    /// Adds a place and the folders that lead to it.
    pub(super) fn add(&mut self, parts: impl IntoIterator<Item = OsString>) {
        let mut here = self;
        for part in parts {
            here = here.0.entry(part).or_default();
        }
    }

    /// The links at these places below a folder.
    fn links(&self, folder: &Path, found: &mut Vec<PathBuf>) {
        for (name, below) in &self.0 {
            let path = folder.join(name);
            match path.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => found.push(path),
                Ok(meta) if meta.is_dir() => below.links(&path, found),
                _ => {}
            }
        }
    }
}

/// The links at listed places that have to do with an entry.
#[derive(Debug, Default)]
pub(in crate::files) struct Linked {
    /// Further paths of the entry: the link leads to it, or to a folder above it.
    pub(in crate::files) names: Vec<PathBuf>,
    /// Links to something below the entry.
    pub(in crate::files) below: Vec<PathBuf>,
}

impl Linked {
    /// The links to the entry at `path`, whose links are resolved. `anywhere` has places below every folder, `fixed` those
    /// below the root of the file system.
    pub(super) fn to(path: &Path, anywhere: &Places, fixed: &Places) -> Self {
        let mut links = Vec::new();
        fixed.links(Path::new("/"), &mut links);
        for folder in path.ancestors().skip(1) {
            anywhere.links(folder, &mut links);
        }
        let mut linked = Self::default();
        let caseless = PathBuf::from(readable(path));
        for link in links {
            let Some(target) = target(&link) else { continue };
            let caseless_target = PathBuf::from(readable(&target));
            if caseless.starts_with(&caseless_target) {
                linked
                    .names
                    .push(link.components().chain(path.components().skip(target.components().count())).collect());
            } else if caseless_target.starts_with(&caseless) {
                linked.below.push(link);
            }
        }
        linked
    }
}

/// Where a link leads, also if there is nothing yet.
fn target(link: &Path) -> Option<PathBuf> {
    if let Ok(target) = link.canonicalize() {
        return Some(target);
    }
    let mut target = link.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent()?.join(next);
    }
    let mut missing = Vec::new();
    loop {
        if let Ok(real) = target.canonicalize() {
            return Some(missing.into_iter().rev().fold(real, |path, name| path.join(name)));
        }
        missing.push(target.file_name()?.to_owned());
        target.pop();
    }
}
