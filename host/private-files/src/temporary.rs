//! Temporary folders that are removed with everything in them, also after their process was killed.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// The process of a folder holds this lock as long as it uses it.
const LOCK: &str = "lock";
/// Where the files are. It is made last and removed first: a folder without it is about to be made, or was not completed.
const FILES: &str = "files";
/// After this time, nobody is about to complete a folder.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// A folder in the system's temporary folder that only its owner may read. Dropping it removes it; what a killed process left is
/// removed when the next folder of the same purpose is made.
#[derive(Debug)]
pub struct TemporaryFolder {
    files: PathBuf,
    // The fields are dropped in this order.
    folder: TempDir,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes a folder for a purpose, which its name begins with, after removing those of the same purpose that nobody uses.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new(purpose: &str) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), purpose)
    }

    /// The same in another folder than the system's temporary one.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn within(root: &Path, purpose: &str) -> io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        folder.prefix(purpose);
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir_in(root)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.lock()?;
        let files = folder.path().join(FILES);
        fs::create_dir(&files)?;
        remove_abandoned(root, purpose, &folder.path().symlink_metadata()?);
        Ok(Self { files, folder, _lock: lock })
    }

    /// Where the files go.
    pub fn path(&self) -> &Path {
        &self.files
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = remove(self.folder.path());
    }
}

/// Removes such a folder with everything in it, also folders that a program made read-only or nested deeper than paths can be long. The
/// lock goes last, so that the next process completes what is interrupted.
fn remove(folder: &Path) -> io::Result<()> {
    let files = folder.join(FILES);
    match fs::remove_dir_all(&files) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            make_removable(&files);
            fs::remove_dir_all(&files)?;
        }
        _ => {}
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

/// Removes the folders of this user that nobody uses. Those that cannot be removed stay, as any temporary file.
fn remove_abandoned(root: &Path, purpose: &str, own: &Metadata) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_of_purpose = entry.file_name().to_string_lossy().starts_with(purpose);
        // Another user could put anything into a folder.
        let is_own = |data: Metadata| data.is_dir() && has_same_owner(&data, own);
        let path = entry.path();
        if is_of_purpose && path.symlink_metadata().is_ok_and(is_own) && is_abandoned(&path) {
            let _ = remove(&path);
        }
    }
}

/// Whether no process uses a folder, and none is about to complete it.
fn is_abandoned(folder: &Path) -> bool {
    match crate::open_regular(&folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok() && (folder.join(FILES).is_dir() || is_old(folder)),
        Err(error) => error.kind() == io::ErrorKind::NotFound && is_old(folder),
    }
}

/// Whether a folder was last changed long ago.
fn is_old(folder: &Path) -> bool {
    let changed = fs::metadata(folder).and_then(|data| data.modified());
    changed.is_ok_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age > FRESH))
}

fn has_same_owner(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        one.uid() == other.uid()
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PURPOSE: &str = "hermes-test-";

    #[cfg(unix)]
    #[test]
    fn a_temporary_folder_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let root = tempfile::tempdir().unwrap();
        let folder = TemporaryFolder::within(root.path(), PURPOSE).unwrap();
        let mode = fs::metadata(folder.folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[cfg(unix)]
    #[test]
    fn folders_that_are_nested_deeper_than_a_path_can_be_are_removed() {
        use std::os::unix::fs::PermissionsExt as _;

        let temporary = TemporaryFolder::new(PURPOSE).unwrap();
        let (top, files) = (temporary.folder.path().to_owned(), temporary.path());
        let nested = |name: &str, depth: usize| {
            let top = files.join(name);
            let bottom = top.join("d/".repeat(depth));
            fs::create_dir_all(&bottom).unwrap();
            (top, bottom)
        };
        let ((lower, _), (_, bottom)) = (nested("lower", 1_500), nested("upper", 1_500));
        for depth in [1_000, 500] {
            let closed = lower.join("d/".repeat(depth));
            fs::set_permissions(closed, fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Below both, a path has more than 6,000 bytes.
        fs::rename(lower, bottom.join("d")).unwrap();
        drop(temporary);
        assert!(!top.exists());
    }

    #[test]
    fn the_next_process_removes_what_a_killed_one_left_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let used = TemporaryFolder::within(root.path(), PURPOSE).unwrap();
        let make = |name: &str, parts: &[&str], age: u64| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            for part in parts {
                match *part {
                    FILES => fs::create_dir(path.join(FILES)).unwrap(),
                    file => fs::write(path.join(file), "").unwrap(),
                }
            }
            let time = SystemTime::now() - Duration::from_secs(age);
            File::open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let left = [
            make("hermes-test-whole", &[LOCK, FILES], 0),
            make("hermes-test-begun", &[LOCK], 7_200),
            make("hermes-test-empty", &[], 7_200),
        ];
        let kept = [
            make("hermes-test-about-to-be-locked", &[], 0),
            make("hermes-test-about-to-be-completed", &[LOCK], 0),
            make("other", &[LOCK, FILES], 7_200),
            used.path().to_owned(),
        ];
        let next = TemporaryFolder::within(root.path(), PURPOSE).unwrap();
        assert_eq!(left.map(|path| path.exists()), [false; 3]);
        assert_eq!(kept.map(|path| path.exists()), [true; 4]);
        let path = next.folder.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_a_lock_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("hermes-test-pipe");
        fs::create_dir_all(folder.join(FILES)).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(folder.join(LOCK)).status().unwrap().success());
        TemporaryFolder::within(root.path(), PURPOSE).unwrap();
        assert!(folder.exists());
    }
}
