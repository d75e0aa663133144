//! The files of a workspace, reached from its root without following a link.
//!
//! A path is followed name by name, so that a link that replaces a folder meanwhile leads nowhere: it is an error, never a way to
//! another place.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::path::{RelPath, os_string_of, text_of};
use crate::state::{Stamp, State};

/// The mode of a new folder, from which the process's mask takes bits.
const DEFAULT_MODE: u32 = 0o777;
/// The end of the names of files that are being written.
const DRAFT: &str = ".undo";

/// What the system says of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) stamp: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
    Folder,
    Other,
}

/// An open workspace.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    fd: OwnedFd,
}

#[cfg(target_os = "linux")]
const PLACE: OFlags = FOLDER.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = FOLDER;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn found(stat: &Stat) -> Found {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        FileType::Directory => Kind::Folder,
        _ => Kind::Other,
    };
    // The types of these fields differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_possible_wrap)]
    let nanos = |seconds: i64, nanos: u64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos as i64);
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    let stamp = Stamp {
        inode: stat.st_ino as u64,
        size: stat.st_size as u64,
        changed: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
    };
    #[allow(clippy::unnecessary_cast)]
    Found { kind, mode: stat.st_mode as u32 & 0o777, stamp }
}

/// Nothing is there, or a file or a link is where a folder would be.
fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

impl Tree {
    /// Opens a workspace.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let fd = rustix::fs::openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root: root.to_owned(), fd })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Opens the folder that contains an entry.
    fn parent(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        let mut folder = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?;
        let above = path.as_path().parent().into_iter().flat_map(Path::iter);
        for name in above {
            folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// The entry at a path; a link is not followed.
    pub(crate) fn look(&self, path: &RelPath) -> io::Result<Option<Found>> {
        let stat = self.parent(path).and_then(|folder| look_in(&folder, path.name()));
        match stat {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_absent(error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a folder for looks at its entries. Only its last name may be no link, which is enough to compare stamps.
    pub(crate) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(rustix::fs::openat(&self.fd, path, PLACE, Mode::empty())?)
    }

    /// The link, file or device above a path in whose place a folder would have to be.
    pub(crate) fn obstacle(&self, path: &RelPath) -> io::Result<Option<RelPath>> {
        for folder in path.folders() {
            match self.look(&folder)? {
                None => return Ok(None),
                Some(found) if found.kind != Kind::Folder => return Ok(Some(folder)),
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// The entries of a folder.
    pub(crate) fn entries(&self, path: &RelPath) -> io::Result<Vec<OsString>> {
        names(&rustix::fs::openat(&self.parent(path)?, path.name(), FOLDER, Mode::empty())?)
    }

    /// The entries of the root.
    pub(crate) fn root_entries(&self) -> io::Result<Vec<OsString>> {
        names(&self.fd)
    }

    /// Reads a regular file of at most `most` bytes; `None` if it is larger.
    pub(crate) fn read(&self, path: &RelPath, most: u64) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Opening a device can have an effect.
        let folder = self.parent(path)?;
        if look_in(&folder, path.name())?.kind != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::from(rustix::fs::openat(&folder, path.name(), flags, Mode::empty())?);
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if meta.len() > most {
            return Ok(None);
        }
        let mut content = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
        file.take(most.saturating_add(1)).read_to_end(&mut content)?;
        Ok((content.len() as u64 <= most).then_some(content))
    }

    /// Where a link leads.
    pub(crate) fn target(&self, path: &RelPath) -> io::Result<String> {
        let target = rustix::fs::readlinkat(self.parent(path)?, path.name(), Vec::new())?;
        Ok(text_of(OsStr::from_bytes(target.as_bytes())))
    }

    /// Puts a file with this content in the place of what is there, which is no folder.
    /// With `sync`, it is on the disk then.
    pub(crate) fn write(&self, path: &RelPath, content: &[u8], mode: u32, sync: bool) -> io::Result<()> {
        let folder = self.parent(path)?;
        let draft = draft_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, &draft, flags, Mode::from_raw_mode(0o600))?);
        let written = file
            .write_all(content)
            .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(raw(mode)))?))
            .and_then(|()| if sync { file.sync_data() } else { Ok(()) })
            .and_then(|()| Ok(rustix::fs::renameat(&folder, &draft, &folder, path.name())?));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&folder, &draft, AtFlags::empty());
        }
        written
    }

    /// Puts a link in the place of what is there, which is no folder.
    pub(crate) fn link(&self, path: &RelPath, target: &str) -> io::Result<()> {
        let folder = self.parent(path)?;
        let target = os_string_of(target).ok_or(io::ErrorKind::InvalidData)?;
        let draft = draft_name();
        rustix::fs::symlinkat(&target, &folder, &draft)?;
        let renamed = rustix::fs::renameat(&folder, &draft, &folder, path.name());
        if renamed.is_err() {
            let _ = rustix::fs::unlinkat(&folder, &draft, AtFlags::empty());
        }
        Ok(renamed?)
    }

    /// Creates a folder, unless there is one.
    pub(crate) fn make_folder(&self, path: &RelPath, mode: u32) -> io::Result<()> {
        let folder = self.parent(path)?;
        match rustix::fs::mkdirat(&folder, path.name(), Mode::from_raw_mode(raw(mode))) {
            Err(Errno::EXIST) if look_in(&folder, path.name())?.kind == Kind::Folder => Ok(()),
            Err(error) => Err(error.into()),
            // The process's mask took bits away that the folder had.
            Ok(()) if mode != DEFAULT_MODE => {
                let made = rustix::fs::openat(&folder, path.name(), FOLDER, Mode::empty())?;
                Ok(rustix::fs::fchmod(made, Mode::from_raw_mode(raw(mode)))?)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Creates the missing folders above a path.
    pub(crate) fn make_folders_above(&self, path: &RelPath) -> io::Result<()> {
        path.folders().iter().try_for_each(|folder| self.make_folder(folder, DEFAULT_MODE))
    }

    /// Removes a file or a link.
    pub(crate) fn remove_file(&self, path: &RelPath) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.parent(path)?, path.name(), AtFlags::empty())?)
    }

    /// Removes a folder. False if it has entries.
    pub(crate) fn remove_folder(&self, path: &RelPath) -> io::Result<bool> {
        match rustix::fs::unlinkat(self.parent(path)?, path.name(), AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until what was written is on the disk.
    pub(crate) fn sync(&self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::syncfs(&self.fd);
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
    }

    /// A state without its content, for entries that have none.
    pub(crate) fn plain_state(&self, path: &RelPath, found: Option<&Found>) -> io::Result<Option<State>> {
        Ok(match found.map(|found| (found.kind, found.mode)) {
            None => Some(State::Absent),
            Some((Kind::Link, _)) => Some(State::Link { target: self.target(path)? }),
            Some((Kind::Folder, mode)) => Some(State::Folder { mode }),
            Some((Kind::Other, _)) => Some(State::Other),
            Some((Kind::File, _)) => None,
        })
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

pub(crate) fn look_in(folder: &OwnedFd, name: &OsStr) -> Result<Found, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| found(&stat))
}

#[allow(clippy::unnecessary_cast, clippy::cast_possible_truncation)]
fn raw(mode: u32) -> rustix::fs::RawMode {
    (mode & 0o777) as rustix::fs::RawMode
}

/// A name beside the file that it will replace.
fn draft_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}{}-{next}{DRAFT}", hermes_private_files::UNFINISHED, std::process::id())
}

/// Whether a file was being written by an undo that was killed.
pub(crate) fn is_draft(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(hermes_private_files::UNFINISHED.as_bytes()) && name.ends_with(DRAFT.as_bytes())
}
