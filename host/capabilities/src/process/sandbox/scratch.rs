//! The folder that confined programs of a session have for temporary files, in the place of `/tmp`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "hermes-scratch-";
/// Its process holds this lock as long as it lives.
const LOCK: &str = "lock";
const FILES: &str = "files";

/// A folder of the system's temporary folder. Dropping the last reference removes it; what a killed process left is removed with
/// the next one.
#[derive(Debug)]
pub(in crate::process) struct Scratch {
    files: PathBuf,
    // The fields are dropped in this order.
    _folder: TempDir,
    _lock: File,
}

impl Scratch {
    pub(in crate::process) fn new() -> io::Result<Self> {
        remove_abandoned(&std::env::temp_dir());
        let mut folder = tempfile::Builder::new();
        folder.prefix(PREFIX);
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir()?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.lock()?;
        let files = folder.path().join(FILES);
        fs::create_dir(&files)?;
        Ok(Self { files, _folder: folder, _lock: lock })
    }

    pub(in crate::process) fn path(&self) -> &Path {
        &self.files
    }
}

/// Removes the folders of processes that were killed. Those of other users cannot be locked.
fn remove_abandoned(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let path = entry.path();
        // A folder that is about to be made has no files yet.
        let is_scratch = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && path.join(FILES).is_dir();
        if !is_scratch || !is_own(&path) {
            continue;
        }
        let lock = hermes_private_files::open_regular(&path.join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // What cannot be removed stays, as any temporary file.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether this user made a folder. Another one could put anything into it.
fn is_own(path: &Path) -> bool {
    #[cfg(unix)]
    let own = |data: fs::Metadata| std::os::unix::fs::MetadataExt::uid(&data) == rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    let own = |_: fs::Metadata| true;
    path.symlink_metadata().is_ok_and(own)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_stays() {
        let top = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = top.path().join(name);
            fs::create_dir_all(folder.join(FILES)).unwrap();
            let lock = File::create(folder.join(LOCK)).unwrap();
            (folder, lock)
        };
        let (dead, lock) = folder("hermes-scratch-dead");
        drop(lock);
        let (alive, lock) = folder("hermes-scratch-alive");
        lock.lock().unwrap();
        let (other, _) = folder("hermes-other");
        // A pipe would stop whoever opens it.
        let pipe = top.path().join("hermes-scratch-pipe");
        fs::create_dir_all(pipe.join(FILES)).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(pipe.join(LOCK)).status().unwrap().success());
        remove_abandoned(top.path());
        assert_eq!([dead, alive, other, pipe].map(|path| path.exists()), [false, true, true, true]);
    }
}
