//! Temporary folders with conversations. Each is its owner's alone and locked while an import uses it: what a killed import left
//! has no lock any more, and the next import removes it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const PREFIX: &str = "hermes-import-";
/// The file in a folder that is locked.
const LOCK: &str = "lock";
/// After this time, a folder without a lock is not one that another import is about to lock.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// A temporary folder. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Temporary {
    folder: TempDir,
    _lock: File,
}

impl Temporary {
    /// Makes a folder, after removing those that killed imports left.
    pub(crate) fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    fn within(root: &Path) -> io::Result<Self> {
        sweep(root);
        let mut folder = tempfile::Builder::new();
        folder.prefix(PREFIX);
        // Conversations are their owner's alone.
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir_in(root)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders that no import uses. Those that cannot be removed, such as another user's, stay.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name().to_string_lossy().starts_with(PREFIX) && is_left(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether no import uses a folder any more.
fn is_left(folder: &Path) -> bool {
    match hermes_private_files::open_regular(&folder.join(LOCK)) {
        Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = fs::metadata(folder).and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > FRESH))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_temporary_folder_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let root = tempfile::tempdir().unwrap();
        let folder = Temporary::within(root.path()).unwrap();
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[test]
    fn the_next_import_removes_what_a_killed_one_left_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let used = Temporary::within(root.path()).unwrap();
        let make = |name: &str, has_lock: bool, age: u64| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("state.db"), "x").unwrap();
            if has_lock {
                fs::write(path.join(LOCK), "").unwrap();
            }
            let time = SystemTime::now() - Duration::from_secs(age);
            File::open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let [killed, older] = [make("hermes-import-a", true, 0), make("hermes-import-b", false, 7_200)];
        let [fresh, other] = [make("hermes-import-c", false, 0), make("other", true, 7_200)];
        let next = Temporary::within(root.path()).unwrap();
        assert!(!killed.exists() && !older.exists());
        assert!(fresh.exists() && other.exists() && used.path().exists() && next.path().exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
