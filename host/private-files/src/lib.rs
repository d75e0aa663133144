//! Files and folders that only their owner may read: how Hermes creates, replaces and locks them.
//!
//! A file or folder that exists keeps its permissions; a new one is closed to other users.
//!
//! ```
//! let home = tempfile::tempdir()?;
//! let folder = home.path().join("data/notes");
//! hermes_private_files::create_folder(&folder)?;
//! hermes_private_files::write_whole(&folder.join("today.json"), b"{}")?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Prefix of the temporary files that [`write_whole`] and [`write_atomically`] rename into place. A process that is
/// killed may leave one behind.
pub const UNFINISHED: &str = ".hermes-";

/// Creates a folder and its missing parents.
///
/// # Errors
///
/// When the system refuses.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file for reading and writing; creates it when it is missing.
///
/// # Errors
///
/// When the system refuses.
pub fn open_file(path: &Path) -> io::Result<File> {
    owner_only().read(true).write(true).create(true).truncate(false).open(path)
}

/// Opens a file for appending; creates it when it is missing.
///
/// # Errors
///
/// When the system refuses.
pub fn append_file(path: &Path) -> io::Result<File> {
    owner_only().append(true).create(true).open(path)
}

/// Creates a file that must not exist yet, for writing.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`], or the system's reason.
pub fn create_file(path: &Path) -> io::Result<File> {
    owner_only().write(true).create_new(true).open(path)
}

fn owner_only() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Replaces a file as a whole and returns once it is on the disk: readers, also after a loss of power, see the old
/// content or the new one.
///
/// # Errors
///
/// When the system refuses; the old content is then still in place.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, true)?;
    sync_folder(folder_of(path))
}

/// As [`write_whole`], without waiting for the disk: for files whose loss costs nothing.
///
/// # Errors
///
/// When the system refuses; the old content is then still in place.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, false)
}

fn replace(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder_of(path))?;
    file.write_all(content)?;
    if let Ok(before) = fs::metadata(path) {
        file.as_file().set_permissions(before.permissions())?;
    }
    if sync {
        file.as_file().sync_all()?;
    }
    file.persist(path)?;
    Ok(())
}

/// Makes the renames in a folder survive a loss of power.
///
/// # Errors
///
/// When the system refuses.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Locks a file for this process, waiting at most `patience`; false when another process still holds the lock. A file
/// system without locks counts as locked, since nobody else could lock the file either.
///
/// # Errors
///
/// When the system refuses.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    const PAUSE: Duration = Duration::from_millis(10);
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[cfg(unix)]
    #[test]
    fn new_files_and_folders_are_closed_to_other_users() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        create_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        open_file(&folder.join("opened")).unwrap();
        append_file(&folder.join("appended")).unwrap();
        create_file(&folder.join("created")).unwrap();
        write_whole(&folder.join("whole"), b"").unwrap();
        write_atomically(&folder.join("atomic"), b"").unwrap();
        for name in ["opened", "appended", "created", "whole", "atomic"] {
            assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_permissions_and_leaves_no_temporary_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("shared");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        write_whole(&file, b"new").unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("new", 0o640));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_file_is_neither_emptied_nor_created_again() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("log");
        append_file(&file).unwrap().write_all(b"one").unwrap();
        append_file(&file).unwrap().write_all(b" two").unwrap();
        drop(open_file(&file).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "one two");
        assert_eq!(create_file(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_lock_is_waited_for_as_long_as_the_patience_lasts() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let held = open_file(&path).unwrap();
        assert!(lock_within(&held, Duration::ZERO).unwrap());
        let other = open_file(&path).unwrap();
        assert!(!lock_within(&other, Duration::from_millis(30)).unwrap());
        let release = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            drop(held);
        });
        assert!(lock_within(&other, Duration::from_secs(20)).unwrap());
        release.join().unwrap();
    }
}
