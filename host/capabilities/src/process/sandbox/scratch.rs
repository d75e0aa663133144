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
    folder: TempDir,
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
        Ok(Self { files, folder, _lock: lock })
    }

    pub(in crate::process) fn path(&self) -> &Path {
        &self.files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove(self.folder.path());
    }
}

/// Removes such a folder with everything in it, also folders that a program made read-only or nested deeper than paths can be long. The
/// lock goes last, so that the next session completes what is interrupted.
fn remove(folder: &Path) -> io::Result<()> {
    let files = folder.join(FILES);
    if fs::remove_dir_all(&files).is_err() {
        make_removable(&files);
        fs::remove_dir_all(&files)?;
    }
    fs::remove_dir_all(folder)
}

/// Gives this user the right to remove what is in a folder, and moves what is nested deeply to its top.
fn make_removable(top: &Path) {
    /// Well below the longest path of the system, and the most open files of a process.
    const LONGEST: usize = 2_000;
    const DEEPEST: usize = 100;
    // No program could foresee the names.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut moved = 0;
    open(top);
    let mut waiting = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            open(&path);
            if depth < DEEPEST && path.as_os_str().len() < LONGEST {
                waiting.push((path, depth + 1));
                continue;
            }
            let new = top.join(format!("{now}-{moved}"));
            moved += 1;
            if fs::rename(&path, &new).is_ok() {
                waiting.push((new, 1));
            }
        }
    }
}

/// Gives this user all rights to a folder.
fn open(folder: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = folder.symlink_metadata().map_or(0, |data| data.permissions().mode());
        if mode & 0o700 != 0o700 {
            // If this fails, so does the removal.
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
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
            let _ = remove(&path);
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

    #[cfg(unix)]
    #[test]
    fn folders_that_are_nested_deeper_than_a_path_can_be_are_removed() {
        use rustix::fs::{Mode, OFlags};
        let scratch = Scratch::new().unwrap();
        let top = scratch.folder.path().to_owned();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(scratch.path(), flags, Mode::empty()).unwrap();
        for depth in 0..2_500 {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            let next = rustix::fs::openat(&folder, "d", flags, Mode::empty()).unwrap();
            if depth % 500 == 0 {
                rustix::fs::fchmod(&folder, Mode::empty()).unwrap();
            }
            folder = next;
        }
        drop(folder);
        drop(scratch);
        assert!(!top.exists());
    }

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
