//! Reads the branch of the user's repository and its commit. Git is not run, and its files are not changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What `HEAD` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The branch; `None` if a commit is checked out without one.
    pub branch: Option<String>,
    /// The commit; `None` before the first.
    pub commit: Option<String>,
}

/// The most bytes of a file of git that is read here.
const MOST: u64 = 64 << 20;

impl Head {
    /// The head of the repository that a folder belongs to.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let git = folder.ancestors().find_map(|folder| repository(&folder.join(".git")))?;
        // Branches of a worktree are those of the repository that it belongs to.
        let common = read(&git.join("commondir")).map_or_else(|| git.clone(), |common| git.join(common.trim()));
        let head = read(&git.join("HEAD"))?;
        let head = head.trim();
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            return Some(Self { branch: None, commit: Some(head.to_owned()) });
        };
        // A name that leads elsewhere is no branch.
        let is_plain = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let loose = is_plain.then(|| read(&git.join(name)).or_else(|| read(&common.join(name)))).flatten();
        let commit = loose.map(|commit| commit.trim().to_owned()).or_else(|| packed(&common, name));
        Some(Self { branch: Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()), commit })
    }
}

fn read(path: &Path) -> Option<String> {
    hermes_private_files::read_text(path, MOST).ok()
}

fn repository(path: &Path) -> Option<PathBuf> {
    if fs::symlink_metadata(path).ok()?.is_dir() {
        return Some(path.to_owned());
    }
    let text = read(path)?;
    let target = text.strip_prefix("gitdir:")?.trim();
    Some(path.parent()?.join(target))
}

fn packed(git: &Path, name: &str) -> Option<String> {
    let refs = read(&git.join("packed-refs"))?;
    refs.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ')).map(str::to_owned)
}
