//! Recognises the folders of git. A change of one can choose the programs that the next `git status` runs.
//!
//! A folder named `.git` is one by its name. Others are recognised as git itself does: `git init --separate-git-dir`, `git
//! worktree` and submodules give such a folder any name, a bare repository has no `.git`, and git runs hooks and
//! commands of all of them.

use std::ffi::OsStr;
use std::path::Path;

use cap_std::fs::Dir;

use super::is_git;

/// The entries that make a folder one of git: `HEAD` with objects and refs of its own, or with those of another.
const HEAD: &str = "HEAD";
const OWN: [&str; 2] = ["objects", "refs"];
const COMMON: &str = "commondir";

/// Whether these entries make a folder one of git.
fn is_git_folder(has: impl Fn(&str) -> bool) -> bool {
    has(HEAD) && (OWN.iter().all(|name| has(name)) || has(COMMON))
}

fn there(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok()
}

/// Whether entries of `dir` belong to git, if those of its parent do or do not. The work trees of a bare repository often lie
/// inside of it; each has a `.git` of its own.
pub(in crate::files) fn covers(dir: &Dir, parent: bool) -> bool {
    if there(dir, ".git") {
        return false;
    }
    parent || is_git_folder(|name| there(dir, name))
}

fn part(name: &OsStr) -> Option<&'static str> {
    let name = super::name::folded(name);
    [HEAD, OWN[0], OWN[1], COMMON].into_iter().find(|part| part.to_lowercase() == name)
}

/// Whether an entry of this name is one of those that make a folder one of git.
pub(in crate::files) fn is_part(name: &OsStr) -> bool {
    part(name).is_some()
}

/// Whether a new entry of this name makes `dir` a folder of git. The caller holds the lock of `dir` until the entry exists.
pub(in crate::files) fn would_become(dir: &Dir, name: &OsStr) -> bool {
    part(name).is_some_and(|new| !there(dir, ".git") && is_git_folder(|name| name == new || there(dir, name)))
}

/// Whether the folder at `path`, with links resolved, lies in a folder of git.
pub(in crate::files) fn surrounds(path: &Path) -> bool {
    let folders: Vec<&Path> = path.ancestors().collect();
    folders.into_iter().rev().fold(false, |inside, folder| {
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        !has(".git") && (inside || folder.file_name().is_some_and(is_git) || is_git_folder(has))
    })
}
