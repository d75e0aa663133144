//! Files and folders that only their owner may read: how Hermes creates, replaces, reads and locks them.
//!
//! A file or folder that exists keeps its permissions; a new one is closed to other users. What is written goes where the path
//! points, by the rule of [`Place`]: only a plain file is replaced. Files of a home or a workspace are read with [`read_regular`]
//! and [`read_text`], which have a limit and never wait: another program may have put a pipe, a device or an endless file in
//! their place. [`Documents`] is the port to small texts that all processes of a home share.
//!
//! ```
//! let home = tempfile::tempdir()?;
//! let folder = home.path().join("data/notes");
//! hermes_private_files::create_folder(&folder)?;
//! hermes_private_files::write_whole(&folder.join("today.json"), b"{}")?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod documents;
mod place;
mod secrets;
mod temporary;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

pub use documents::{Document, Documents, Editing, FileDocuments, Version};
pub use place::{Patience, Place, Readers, target, write_output};
pub use secrets::{holds_secrets, is_secret};
pub use temporary::TemporaryFolder;

use place::Durable;

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
    let mut options = at_once();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Options that do not wait for the other end of a pipe, and do not make a terminal the one of this process.
fn at_once() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Opens a regular file for reading. A link is followed.
///
/// # Errors
///
/// At once, if it is a folder, a pipe, a socket or a device, or when the system refuses.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // A device can act when it is opened, so its type is checked before, too.
    check_regular(&fs::metadata(path)?)?;
    let file = at_once().read(true).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(found: &fs::Metadata) -> io::Result<()> {
    let kind = found.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    #[cfg(unix)]
    let what = {
        use std::os::unix::fs::FileTypeExt as _;
        match kind {
            _ if kind.is_fifo() => "a pipe",
            _ if kind.is_socket() => "a socket",
            _ => "a device",
        }
    };
    #[cfg(not(unix))]
    let what = "something else";
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
///
/// Those of [`open_regular`], and [`io::ErrorKind::FileTooLarge`] for a larger file.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {}", size(most)));
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // It may have grown, and some file systems state no length.
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most { Err(too_large()) } else { Ok(content) }
}

/// Reads a regular file of at most `most` bytes as UTF-8 text.
///
/// # Errors
///
/// Those of [`read_regular`], and [`io::ErrorKind::InvalidData`] for other bytes.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let text = String::from_utf8(read_regular(path, most)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}

/// Replaces a file as a whole and returns once it is on the disk: readers, also after a loss of power, see the old
/// content or the new one. [`Place`] says what happens at a path with something else.
///
/// # Errors
///
/// When the system refuses; the old content is then still in place. A pipe that nobody reads is an error.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    Place::of(path)?.write(content, Readers::Owner, Durable::Yes, Patience::None)
}

/// As [`write_whole`], without waiting for the disk: for files whose loss costs nothing.
///
/// # Errors
///
/// Those of [`write_whole`].
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    Place::of(path)?.write(content, Readers::Owner, Durable::No, Patience::None)
}

/// As [`write_whole`], in a folder where others write, too: a link that they put there is replaced, because it could lead anywhere.
///
/// # Errors
///
/// When the system refuses; the old content is then still in place.
pub fn write_among_others(path: &Path, content: &[u8]) -> io::Result<()> {
    place::replace(path, content, Readers::Owner, Durable::Yes)
}

/// Moves a log that is full to `older`, and begins it anew. A link stays a link: the content of its target is moved.
///
/// # Errors
///
/// When the system refuses.
pub fn rotate(log: &Path, older: &Path) -> io::Result<()> {
    if !log.is_symlink() {
        return fs::rename(log, older);
    }
    fs::copy(log, older)?;
    OpenOptions::new().write(true).open(log)?.set_len(0)
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
    use std::io::Write as _;

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
    fn a_regular_file_is_read_up_to_its_limit() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("text");
        fs::write(&file, "grün").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "grün");
        let error = read_regular(&file, 4).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::FileTooLarge, "it has more than 0 KiB"));
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file, 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_regular(home.path(), 5).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read_regular(&home.path().join("none"), 5).unwrap_err().kind(), io::ErrorKind::NotFound);
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

/// What a hostile plugin or repository may put in the place of a file.
#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod attack {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    /// Every way to read a file, with its outcome. None may wait.
    fn outcomes(path: &Path) -> Vec<String> {
        let begun = Instant::now();
        let errors = [
            open_regular(path).map(drop).unwrap_err(),
            read_regular(path, 1 << 20).map(drop).unwrap_err(),
            read_text(path, 1 << 20).map(drop).unwrap_err(),
        ];
        assert!(begun.elapsed() < Duration::from_secs(600), "{:?}", begun.elapsed());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pipes_devices_and_sockets_are_errors_at_once_also_behind_links() {
        let home = tempfile::tempdir().unwrap();
        let place = |name: &str| home.path().join(name);
        assert!(Command::new("mkfifo").arg(place("pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(place("socket")).unwrap();
        for (target, link) in [("pipe", "to-pipe"), ("socket", "to-socket"), ("/dev/zero", "to-zero")] {
            symlink(target, place(link)).unwrap();
        }
        for (name, what) in [
            ("pipe", "a pipe"),
            ("to-pipe", "a pipe"),
            ("socket", "a socket"),
            ("to-socket", "a socket"),
            ("to-zero", "a device"),
        ] {
            assert_eq!(outcomes(&place(name)), vec![format!("it is {what}, not a regular file"); 3], "{name}");
        }
        symlink("loop", place("loop")).unwrap();
        assert_eq!(outcomes(&place("loop")).len(), 3);
    }

    #[test]
    fn a_sparse_file_of_terabytes_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("huge");
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        let error = read_regular(&file, 4 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 4 MiB");
    }

    #[test]
    fn a_log_that_is_a_pipe_without_a_reader_is_an_error_at_once() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("log");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(append_file(&pipe).is_err());
    }

    #[test]
    fn files_of_the_kernel_that_state_no_length_are_read_to_their_limit() {
        if Path::new("/proc/self/status").exists() {
            assert!(!read_regular(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
            assert_eq!(
                read_regular(Path::new("/proc/self/status"), 3).unwrap_err().kind(),
                io::ErrorKind::FileTooLarge
            );
        }
    }
}
