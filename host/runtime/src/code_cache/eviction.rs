//! Which compiled code is given up: what nobody has used for long, what another release compiled, and the least recently
//! used where all of it is too much. Never what a process has mapped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::artifact::seal_path;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How much may stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// Bytes in all.
    pub(super) bytes: u64,
    /// Time without use.
    pub(super) idle: Duration,
    /// Time without use of what another release or compiler made: it may still be in use on this home.
    pub(super) outdated: Duration,
    /// Time after which a file that was never finished is nobody's any more.
    pub(super) unfinished: Duration,
}

impl Allowance {
    /// 1 GiB, about thirty of the largest components; two months; a week; a day.
    pub(super) fn standard() -> Self {
        Self { bytes: 1 << 30, idle: 60 * DAY, outdated: 7 * DAY, unfinished: DAY }
    }
}

struct Kept {
    path: PathBuf,
    bytes: u64,
    idle: Duration,
    outdated: bool,
}

/// Gives up what is beyond the allowance. `current` is what names of this engine's code end in.
pub(super) fn sweep(folder: &Path, current: &str, allowance: &Allowance, now: SystemTime) {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let touched = |path: &Path| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
        let idle = |at: Option<SystemTime>| at.and_then(|at| now.duration_since(at).ok()).unwrap_or_default();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".cwasm") {
            let used = touched(&path).max(touched(&seal_path(&path)));
            kept.push(Kept { bytes: found.len(), idle: idle(used), outdated: !name.ends_with(current), path });
        } else if name.starts_with(".tmp") && idle(touched(&path)) > allowance.unfinished {
            give_up(&path);
        }
    }
    // The least recently used goes first.
    kept.sort_by(|a, b| b.idle.cmp(&a.idle).then_with(|| a.path.cmp(&b.path)));
    let mut total: u64 = kept.iter().map(|kept| kept.bytes).sum();
    for Kept { path, bytes, idle, outdated } in kept {
        let long = idle > allowance.idle || (outdated && idle > allowance.outdated);
        if (long || total > allowance.bytes) && give_up(&path) {
            let _ = fs::remove_file(seal_path(&path));
            total -= bytes;
        }
    }
}

/// Removes a file unless some process has it in use.
fn give_up(path: &Path) -> bool {
    // Held until it is removed: whoever opens it meanwhile has it, and whoever comes later compiles it anew.
    let lock = match super::open_plainly(path) {
        Ok(file) => match File::try_lock(&file) {
            Ok(()) => Some(file),
            Err(_) => return false,
        },
        // A link, or not ours to read.
        Err(_) => None,
    };
    let removed = fs::remove_file(path).is_ok();
    drop(lock);
    removed
}
