//! Eviction: removes code that was not used for long, code of other releases and, if the cache is too large, the least
//! recently used code. It never removes code that a process has mapped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::artifact::seal_path;

/// The ending of a file of compiled functions.
pub(super) const FUNCTIONS: &str = ".functions";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How much code the cache keeps, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// Total size in bytes.
    pub(super) bytes: u64,
    /// Time without use.
    pub(super) idle: Duration,
    /// Time without use for code of another release or compiler, which may still be in use on this home.
    pub(super) outdated: Duration,
    /// Age at which an unfinished file counts as abandoned.
    pub(super) unfinished: Duration,
}

impl Allowance {
    /// 1 GiB, about thirty of the largest components; two months; a week; a day.
    pub(super) fn standard() -> Self {
        Self { bytes: 1 << 30, idle: 60 * DAY, outdated: 7 * DAY, unfinished: DAY }
    }
}

struct CodeFile {
    path: PathBuf,
    bytes: u64,
    idle: Duration,
    outdated: bool,
}

/// Removes what exceeds the allowance. `current` is the file name suffix of this engine's code.
pub(super) fn sweep(folder: &Path, current: &str, allowance: &Allowance, now: SystemTime) {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let touched = |path: &Path| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
        let idle = |at: Option<SystemTime>| at.and_then(|at| now.duration_since(at).ok()).unwrap_or_default();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".cwasm") {
            let used = touched(&path).max(touched(&seal_path(&path)));
            files.push(CodeFile { bytes: found.len(), idle: idle(used), outdated: !name.ends_with(current), path });
        } else if name.ends_with(FUNCTIONS) && idle(touched(&path)) > allowance.outdated && remove_unused(&path) {
            let _ = fs::remove_file(seal_path(&path));
        } else if name.starts_with(".tmp") && idle(touched(&path)) > allowance.unfinished {
            remove_unused(&path);
        }
    }
    // The least recently used file goes first.
    files.sort_by(|a, b| b.idle.cmp(&a.idle).then_with(|| a.path.cmp(&b.path)));
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    for CodeFile { path, bytes, idle, outdated } in files {
        let expired = idle > allowance.idle || (outdated && idle > allowance.outdated);
        if (expired || total > allowance.bytes) && remove_unused(&path) {
            let _ = fs::remove_file(seal_path(&path));
            total -= bytes;
        }
    }
}

/// Removes a file unless a process has it in use. Returns whether it was removed.
pub(super) fn remove_unused(path: &Path) -> bool {
    // The lock is held until the file is removed: a process that opens it meanwhile can still map it, and a later one
    // compiles it again.
    let lock = match super::open_plainly(path) {
        Ok(file) => match File::try_lock(&file) {
            Ok(()) => Some(file),
            Err(_) => return false,
        },
        // A link, or a file that this user cannot read.
        Err(_) => None,
    };
    let removed = fs::remove_file(path).is_ok();
    drop(lock);
    removed
}
