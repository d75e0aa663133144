//! The service behind the import `files`: reading, writing and searching below granted roots.
//!
//! A path is relative to a root and never leaves it, even through links or directories that change meanwhile. Denied places
//! stay closed also below a root. This module does not know plugins or grants: the caller that creates [`Roots`] decides
//! who may use which root.

#[cfg(test)]
mod attack;
mod error;
mod found;
mod guard;
mod lines;
mod moving;
mod refusal;
mod removed;
pub(crate) mod replace;
mod search;
#[cfg(test)]
mod tests;
mod unsearched;
mod walk;
mod writing;

use std::ffi::OsStr;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _};

pub use error::FilesError;
pub use found::{Findings, Found};
pub(crate) use guard::is_git;
pub use guard::{Agreed, BUILT_IN, Change, Concern, Deed, EveryChange, Guard, Listed, ListedFile, PatternError, Seen};
pub use search::{MAX_FOUND, Pattern};
use walk::{Leaf, Place, Request, Way};

/// The most entries of one listing.
pub const MAX_ENTRIES: usize = 10_000;
/// The most bytes that one read returns.
pub const MAX_READ: u32 = 8 << 20;
/// The most bytes of one write.
pub const MAX_WRITE: usize = 64 << 20;
/// Files above this size get their version from size and times.
pub const MAX_HASHED: u64 = 16 << 20;
/// The most bytes that one listing hashes for versions.
const MAX_HASHED_PER_LISTING: u64 = 64 << 20;

/// A granted directory, and the denied places below it.
#[derive(Debug)]
pub struct Root {
    name: String,
    path: PathBuf,
    real: PathBuf,
    writable: bool,
    dir: Dir,
    denied: Vec<PathBuf>,
}

impl Root {
    /// Opens the directory at `path`.
    ///
    /// The paths in `denied` (they need not exist) cannot be reached through the root. They are neither listed nor found, and a
    /// root inside such a path refuses everything.
    ///
    /// # Errors
    ///
    /// [`FilesError::Unopened`] when `path` is no directory or cannot be read.
    pub fn open(
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        writable: bool,
        denied: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, FilesError> {
        let (name, path) = (name.into(), path.into());
        let opened = (|| {
            let path = std::path::absolute(&path)?;
            let real = path.canonicalize()?;
            let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
            let denied = denied.into_iter().map(std::path::absolute).collect::<Result<_, _>>()?;
            Ok((path, real, dir, denied))
        })();
        match opened {
            Ok((path, real, dir, denied)) => Ok(Self { name, path, real, writable, dir, denied }),
            Err(source) => Err(FilesError::Unopened { root: name, path, source }),
        }
    }

    /// The name by which plugins refer to it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A root as plugins see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootInfo {
    /// The name by which plugins refer to it.
    pub name: String,
    /// Its path, for texts of users and models.
    pub path: String,
    /// Whether plugins may write to it.
    pub writable: bool,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device. It is listed but cannot be used.
    Other,
}

/// Metadata of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root; empty for the root itself.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// The size in bytes.
    pub size: u64,
    /// The modification time, in Unix milliseconds.
    pub modified_at: u64,
    /// The version. It is empty for unreadable files, for pipes and the like, and in a listing for files after the first
    /// 64 MiB; [`Roots::stat`] computes it for those.
    pub version: String,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The bytes. Shorter than requested at the end of the file, or if more than [`MAX_READ`] was requested.
    pub content: Vec<u8>,
    /// The size of the whole file in bytes.
    pub total: u64,
    /// The version of the whole file.
    pub version: String,
}

/// The roots of one plugin.
#[derive(Debug)]
pub struct Roots {
    roots: Vec<Root>,
    guard: Guard,
}

impl Roots {
    /// Creates a set of roots with the rules for changes. Of two roots with one name, the first counts.
    pub fn new(roots: Vec<Root>, guard: Guard) -> Self {
        Self { roots, guard }
    }

    /// All roots, in the order of their grants.
    pub fn roots(&self) -> Vec<RootInfo> {
        let info = |root: &Root| RootInfo {
            name: root.name.clone(),
            path: root.path.display().to_string(),
            writable: root.writable,
        };
        self.roots.iter().map(info).collect()
    }

    /// The entry at `path`. A link is followed, so that the version is that of the file that a read returns.
    /// An empty path or `.` is the root itself.
    ///
    /// # Errors
    ///
    /// [`FilesError`] names the rule that the path breaks.
    pub fn stat(&self, root: &str, path: &str) -> Result<Entry, FilesError> {
        let mut request = self.request(root, path)?;
        let name = plain(path);
        match request.follow(Leaf::Followed, Way::MustExist, &anything)? {
            Place::Directory(dir) => {
                let meta = dir.dir_metadata().map_err(|e| request.io("look at", e))?;
                Ok(entry(name, &meta, directory_version(&meta)))
            }
            Place::Slot(slot) => {
                let meta = slot.meta.as_ref().ok_or_else(|| request.not_found())?;
                let version = version_of(&request, &slot.parent, &slot.name, meta)?;
                Ok(entry(name, meta, version))
            }
        }
    }

    /// The entries of the directory at `path`, sorted by name. Links are listed as links. Names that are not UTF-8 are left out,
    /// since no path of the contract can name them.
    ///
    /// # Errors
    ///
    /// [`FilesError::TooMany`] above [`MAX_ENTRIES`].
    pub fn entries(&self, root: &str, path: &str) -> Result<Vec<Entry>, FilesError> {
        let mut request = self.request(root, path)?;
        let dir = match request.follow(Leaf::Followed, Way::MustExist, &anything)? {
            Place::Directory(dir) => dir,
            Place::Slot(slot) => request.open_dir(&slot.parent, &slot.name)?,
        };
        let mut names = Vec::new();
        for (count, found) in dir.entries().map_err(|e| request.io("list", e))?.enumerate() {
            if count >= MAX_ENTRIES {
                return Err(request.too_many(MAX_ENTRIES));
            }
            let found = found.map_err(|e| request.io("list", e))?;
            if let Ok(name) = found.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();

        let prefix = plain(path);
        let mut budget = MAX_HASHED_PER_LISTING;
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let meta = match request.look(&dir, name.as_ref()) {
                Ok(Some(meta)) => meta,
                // Removed meanwhile, or denied: both do not exist for the caller.
                Ok(None) | Err(FilesError::Denied { .. }) => continue,
                Err(error) => return Err(error),
            };
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let cost = if meta.is_file() && meta.len() <= MAX_HASHED { meta.len() } else { 0 };
            let version = if cost <= budget {
                budget -= cost;
                version_of(&request, &dir, name.as_ref(), &meta).unwrap_or_default()
            } else {
                String::new()
            };
            entries.push(entry(path, &meta, version));
        }
        Ok(entries)
    }

    /// Reads at most `limit` bytes from `offset`, and never more than [`MAX_READ`].
    ///
    /// # Errors
    ///
    /// [`FilesError::NotAFile`] for anything but a regular file; pipes and devices are not even opened.
    pub fn read(&self, root: &str, path: &str, offset: u64, limit: u32) -> Result<Slice, FilesError> {
        let mut request = self.request(root, path)?;
        let slot = match request.follow(Leaf::Followed, Way::MustExist, &anything)? {
            Place::Directory(dir) => {
                let meta = dir.dir_metadata().map_err(|e| request.io("look at", e))?;
                return Err(request.not_a_file(&meta));
            }
            Place::Slot(slot) => slot,
        };
        let (mut file, meta) = request.open_file(&slot.parent, &slot.name)?;
        let limit = limit.min(MAX_READ) as usize;
        let failed = |e| request.io("read", e);
        let slice = match whole(&mut file, &meta).map_err(failed)? {
            Some(mut content) => {
                let version = content_version(&content);
                let total = content.len() as u64;
                let from = usize::try_from(offset).map_or(content.len(), |offset| offset.min(content.len()));
                content.truncate(from.saturating_add(limit).min(content.len()));
                Slice { content: content.split_off(from), total, version }
            }
            None => {
                let mut content = Vec::new();
                file.seek(SeekFrom::Start(offset.min(meta.len()))).map_err(failed)?;
                file.take(limit as u64).read_to_end(&mut content).map_err(failed)?;
                Slice { content, total: meta.len(), version: large_version(&meta) }
            }
        };
        self.guard.seen().read(&slot.path, &slice.version, slice.total, offset, slice.content.len() as u64);
        Ok(slice)
    }

    fn root(&self, name: &str) -> Result<&Root, FilesError> {
        self.roots.iter().find(|root| root.name == name).ok_or_else(|| FilesError::NoSuchRoot {
            root: name.to_owned(),
            known: self.roots.iter().map(|root| root.name.clone()).collect(),
        })
    }

    fn request<'a>(&'a self, root: &str, path: &'a str) -> Result<Request<'a>, FilesError> {
        Request::new(self.root(root)?, path)
    }
}

/// For paths that are not to be changed, or must exist.
fn anything(_: &Request<'_>, _: &Path) -> Result<(), FilesError> {
    Ok(())
}

fn lock(request: &Request<'_>, parent: &Dir) -> Result<std::fs::File, FilesError> {
    let handle = replace::handle(parent).map_err(|e| request.io("open the directory of", e))?;
    match hermes_private_files::lock_within(&handle, replace::PATIENCE) {
        Ok(true) => Ok(handle),
        Ok(false) => Err(request.busy()),
        Err(error) => Err(request.io("lock the directory of", error)),
    }
}

/// The version of an entry, without following a link.
fn version_of(request: &Request<'_>, parent: &Dir, name: &OsStr, meta: &Metadata) -> Result<String, FilesError> {
    if meta.is_dir() {
        return Ok(directory_version(meta));
    }
    if meta.is_symlink() {
        let target = parent.read_link_contents(name).map_err(|e| request.io("follow the link", e))?;
        return Ok(content_version(target.as_os_str().as_encoded_bytes()));
    }
    if !meta.is_file() {
        return Ok(String::new());
    }
    let (mut file, meta) = match request.open_file(parent, name) {
        // The entry can be listed, but not read.
        Err(FilesError::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(String::new());
        }
        opened => opened?,
    };
    let content = whole(&mut file, &meta).map_err(|e| request.io("read", e))?;
    Ok(content.map_or_else(|| large_version(&meta), |content| content_version(&content)))
}
/// The file's content, unless it is larger than [`MAX_HASHED`].
fn whole(file: &mut File, meta: &Metadata) -> std::io::Result<Option<Vec<u8>>> {
    if meta.len() > MAX_HASHED {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    // The file may grow while it is read.
    file.take(MAX_HASHED + 1).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= MAX_HASHED).then_some(content))
}

/// 128 bits, so that no two contents have the same version in practice.
fn content_version(content: &[u8]) -> String {
    let mut version = blake3::hash(content).to_hex().to_string();
    version.truncate(32);
    version
}

fn large_version(meta: &Metadata) -> String {
    format!("{:x}-{:x}-{:x}.{:x}", meta.len(), meta.ino(), meta.mtime(), meta.mtime_nsec())
}

/// The version of a directory. It changes when an entry is added, removed or renamed, not when a file changes.
fn directory_version(meta: &Metadata) -> String {
    format!("{:x}-{:x}.{:x}", meta.ino(), meta.mtime(), meta.mtime_nsec())
}

fn entry(path: String, meta: &Metadata, version: String) -> Entry {
    let kind = if meta.is_file() {
        Kind::File
    } else if meta.is_dir() {
        Kind::Directory
    } else if meta.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    };
    let modified = meta.modified().ok().and_then(|at| at.into_std().duration_since(UNIX_EPOCH).ok());
    let modified_at = modified.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    Entry { path, kind, size: meta.len(), modified_at, version }
}

/// The path without redundant parts.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}
