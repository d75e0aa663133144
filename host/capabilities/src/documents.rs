//! The service behind the import `documents`: small named texts that people edit too.
//!
//! A write names the version that the writer has read. If another writer was faster, it gets the current text instead, so
//! that no session and no process loses what another wrote. The caller that creates [`Documents`] chooses the folder and
//! the allowed names.

mod error;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use hermes_private_files::{lock_within, target};

pub use self::error::DocumentsError;
use crate::files::replace::{self, Mode};

/// The most bytes of a document.
pub const MAX_DOCUMENT: usize = 1 << 20;
const MAX_NAME: usize = 64;
/// How long an editor that has emptied a file may take to write it.
const SAVING: Duration = Duration::from_millis(200);

/// The current content of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its text, byte for byte.
    pub content: String,
    /// The hash of the text; empty for a document that does not exist.
    pub version: String,
}

impl Document {
    /// A document that was removed.
    fn gone() -> Self {
        Self { content: String::new(), version: String::new() }
    }
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The document was written and has this version.
    At(String),
    /// Nothing was written, since this is the current document. A document that was removed has no content and an empty
    /// version.
    Conflict(Document),
}

/// How much a plugin may store in documents of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentQuota {
    /// The most documents.
    pub count: u64,
    /// The most bytes of all documents together.
    pub bytes: u64,
}

impl DocumentQuota {
    /// 1,000 documents with 64 MiB together.
    pub fn standard() -> Self {
        Self { count: 1_000, bytes: 64 << 20 }
    }
}

/// The documents of one folder that one plugin may use.
#[derive(Debug)]
pub struct Documents {
    place: Place,
    allowed: Option<Vec<String>>,
    /// None for documents that people keep, whose names are few.
    quota: Option<DocumentQuota>,
    patience: Duration,
}

#[derive(Debug)]
enum Place {
    Folder(PathBuf),
    Memory(Mutex<HashMap<String, Document>>),
}

impl Documents {
    /// Documents in `dir`. The folder is created, private to the user, when the first document is written. `allowed`
    /// restricts the names; `None` allows all.
    pub fn new(dir: impl Into<PathBuf>, allowed: Option<Vec<String>>) -> Self {
        Self { place: Place::Folder(dir.into()), allowed, quota: None, patience: replace::PATIENCE }
    }

    /// Documents of a plugin's own in `dir`, with any name. What is there above the quota can be read, shortened and removed.
    pub fn within(dir: impl Into<PathBuf>, quota: DocumentQuota) -> Self {
        Self { quota: Some(quota), ..Self::new(dir, None) }
    }

    /// Documents in memory, for measurements, rehearsals and tests.
    pub fn in_memory() -> Self {
        Self::in_memory_within(DocumentQuota::standard())
    }

    /// Like [`Documents::in_memory`], with another quota.
    pub fn in_memory_within(quota: DocumentQuota) -> Self {
        let place = Place::Memory(Mutex::default());
        Self { place, allowed: None, quota: Some(quota), patience: replace::PATIENCE }
    }

    /// Whether a call may wait for a disk or a lock.
    pub fn may_wait(&self) -> bool {
        matches!(self.place, Place::Folder(_))
    }

    /// Whether this set allows a document of this name.
    pub fn admits(&self, name: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == name))
    }

    /// The current document; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`DocumentsError::NotText`] and [`DocumentsError::TooLarge`] when people or programs replaced the content
    /// of the file by something else.
    pub fn read(&self, name: &str) -> Result<Option<Document>, DocumentsError> {
        self.check(name)?;
        match &self.place {
            Place::Folder(dir) => Ok(load(name, &dir.join(name))?.map(|(document, _)| document)),
            Place::Memory(documents) => Ok(whole(documents).get(name).cloned()),
        }
    }

    /// Writes the document if it is at `version`. Without a version, or with an empty one, the document must not exist
    /// yet. The folder and a file `NAME.lock` in it are created when needed. If the document is a link, its target is
    /// replaced and the link is kept: some people keep such texts with their other settings.
    ///
    /// # Errors
    ///
    /// Those of [`Documents::read`], [`DocumentsError::Busy`] if the lock is not free within two seconds, and
    /// [`DocumentsError::Full`] if the document would grow beyond the quota, whatever its version.
    /// After an error nothing was overwritten.
    pub fn write(&self, name: &str, content: &str, version: Option<&str>) -> Result<Written, DocumentsError> {
        self.check(name)?;
        let path = match &self.place {
            Place::Folder(dir) => dir.join(name),
            Place::Memory(_) => PathBuf::from(name),
        };
        if content.len() > MAX_DOCUMENT {
            return Err(DocumentsError::TooLarge { name: name.to_owned(), path });
        }
        match &self.place {
            Place::Folder(dir) => self.write_file(name, content, version, dir),
            Place::Memory(documents) => {
                let mut documents = whole(documents);
                let before = documents.get(name).map(|document| document.content.len() as u64);
                let others = documents.values().map(|document| document.content.len() as u64);
                self.admit(name, content, before, others)?;
                if let Some(conflict) = conflict(documents.get(name), version) {
                    return Ok(Written::Conflict(conflict));
                }
                let version = version_of(content);
                documents.insert(name.to_owned(), Document { content: content.to_owned(), version: version.clone() });
                Ok(Written::At(version))
            }
        }
    }

    fn write_file(
        &self,
        name: &str,
        content: &str,
        version: Option<&str>,
        dir: &Path,
    ) -> Result<Written, DocumentsError> {
        let path = dir.join(name);
        let failed = |action: &'static str, path: &Path| {
            let (name, path) = (name.to_owned(), path.to_owned());
            move |source| DocumentsError::Io { name, path, action, source }
        };
        // Before the lock file is made, because a lock file is never removed: names must not fill the folder.
        self.admit_file(name, content, dir)?;
        if version.is_some_and(|version| !version.is_empty())
            && let Err(error) = path.symlink_metadata()
            && error.kind() == io::ErrorKind::NotFound
        {
            return Ok(Written::Conflict(Document::gone()));
        }
        hermes_private_files::create_folder(dir).map_err(failed("make the folder", dir))?;
        // Both locks are held until the end of the function. The lock file is never removed, because waiting processes
        // have it open. The folder's lock also excludes writers that reach the same file in another way: through
        // `files`, or through a link in another home.
        let _lock = self.lock(dir, name)?;
        let target = target(&path).map_err(failed("follow the link", &path))?;
        let (Some(folder), Some(file_name)) = (target.parent(), target.file_name()) else {
            return Err(DocumentsError::NotAFile { name: name.to_owned(), path: target });
        };
        let open = || {
            let dir = Dir::open_ambient_dir(folder, ambient_authority())?;
            let handle = replace::handle(&dir)?;
            Ok((lock_within(&handle, self.patience)?, dir, handle))
        };
        let own_folder = dir;
        let (locked, dir, handle) = open().map_err(failed("lock", folder))?;
        if !locked {
            return Err(DocumentsError::Busy { name: name.to_owned(), lock: folder.to_owned() });
        }

        // Other documents may have been written while this call waited for the locks.
        self.admit_file(name, content, own_folder)?;
        let current = settled(name, &target)?;
        if let Some(conflict) = conflict(current.as_ref().map(|(document, _)| document), version) {
            return Ok(Written::Conflict(conflict));
        }
        match current {
            Some((_, mode)) if mode & 0o222 == 0 => {
                return Err(DocumentsError::Protected { name: name.to_owned(), path: target });
            }
            Some((document, mode)) => {
                let texts = (document.content.as_bytes(), content.as_bytes());
                let replaced = replace::replace_unchanged(&dir, &handle, file_name, texts, Mode::Kept(mode));
                if !replaced.map_err(failed("write", &target))? {
                    let saved = settled(name, &target)?.map(|(document, _)| document);
                    return Ok(Written::Conflict(saved.unwrap_or_else(Document::gone)));
                }
            }
            None => {
                let mode = Mode::New(0o600);
                replace::replace(&dir, &handle, file_name, content.as_bytes(), mode)
                    .map_err(failed("write", &target))?;
            }
        }
        Ok(Written::At(version_of(content)))
    }

    /// Whether the quota has room for a document of a folder.
    fn admit_file(&self, name: &str, content: &str, dir: &Path) -> Result<(), DocumentsError> {
        if self.quota.is_none() {
            return Ok(());
        }
        let length = |path: &Path| path.metadata().or_else(|_| path.symlink_metadata()).ok().map(|meta| meta.len());
        let others = match fs::read_dir(dir) {
            Ok(entries) => entries,
            // There is no document yet; what else is wrong with the folder is reported when it is used.
            Err(_) => return self.admit(name, content, None, std::iter::empty()),
        };
        let others = others.flatten().filter(|entry| entry.path().extension().is_none_or(|end| end != "lock"));
        self.admit(name, content, length(&dir.join(name)), others.filter_map(|entry| length(&entry.path())))
    }

    /// Whether the quota has room for a document that had `before` bytes, among all documents with these lengths. A
    /// document that does not grow always has room.
    fn admit(
        &self,
        name: &str,
        content: &str,
        before: Option<u64>,
        lengths: impl Iterator<Item = u64>,
    ) -> Result<(), DocumentsError> {
        let Some(quota) = self.quota else { return Ok(()) };
        let length = content.len() as u64;
        if before.is_some_and(|before| length <= before) {
            return Ok(());
        }
        // As many more as it adds.
        let (mut count, mut bytes) = (u64::from(before.is_none()), length - before.unwrap_or_default());
        let full = || DocumentsError::Full { name: name.to_owned(), quota };
        for other in lengths {
            count += 1;
            bytes = bytes.saturating_add(other);
            if count > quota.count && before.is_none() || bytes > quota.bytes {
                return Err(full());
            }
        }
        if count > quota.count && before.is_none() || bytes > quota.bytes { Err(full()) } else { Ok(()) }
    }

    fn check(&self, name: &str) -> Result<(), DocumentsError> {
        let mut bytes = name.bytes();
        let good = name.len() <= MAX_NAME
            && bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
            && !name.to_ascii_lowercase().ends_with(".lock");
        if !good {
            return Err(DocumentsError::BadName { name: name.chars().take(MAX_NAME).collect() });
        }
        match &self.allowed {
            Some(allowed) if !allowed.iter().any(|allowed| allowed == name) => {
                Err(DocumentsError::Denied { name: name.to_owned(), allowed: allowed.clone() })
            }
            _ => Ok(()),
        }
    }

    fn lock(&self, dir: &Path, name: &str) -> Result<fs::File, DocumentsError> {
        let path = dir.join(format!("{name}.lock"));
        let opened = hermes_private_files::open_file(&path);
        let locked = opened.and_then(|file| Ok((lock_within(&file, self.patience)?, file)));
        match locked {
            Ok((true, file)) => Ok(file),
            Ok((false, _)) => Err(DocumentsError::Busy { name: name.to_owned(), lock: path }),
            Err(source) => Err(DocumentsError::Io { name: name.to_owned(), path, action: "lock", source }),
        }
    }
}

/// Every change is a single step, so the map is consistent even after a panic in another thread.
fn whole(documents: &Mutex<HashMap<String, Document>>) -> MutexGuard<'_, HashMap<String, Document>> {
    documents.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The current document, if it is not at the version that the writer knows.
fn conflict(current: Option<&Document>, known: Option<&str>) -> Option<Document> {
    let known = known.unwrap_or_default();
    match current {
        Some(document) if document.version != known => Some(document.clone()),
        None if !known.is_empty() => Some(Document::gone()),
        _ => None,
    }
}

/// Like [`load`], but not in the middle of a save: some editors empty the file before they write it. A file that stays empty
/// is an empty document.
fn settled(name: &str, path: &Path) -> Result<Option<(Document, u32)>, DocumentsError> {
    let begun = Instant::now();
    loop {
        let found = load(name, path)?;
        let is_empty = found.as_ref().is_some_and(|(document, _)| document.content.is_empty());
        let changed = || path.metadata().and_then(|meta| meta.modified()).ok()?.elapsed().ok();
        if !is_empty || changed().is_none_or(|ago| ago >= SAVING) || begun.elapsed() >= SAVING {
            return Ok(found);
        }
        std::thread::sleep(SAVING / 20);
    }
}

/// The document in a file, with the file's permissions.
fn load(name: &str, path: &Path) -> Result<Option<(Document, u32)>, DocumentsError> {
    let at = || (name.to_owned(), path.to_owned());
    let failed = |source| {
        let (name, path) = at();
        DocumentsError::Io { name, path, action: "read", source }
    };
    // Opening a pipe must not wait for its writer.
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        let (name, path) = at();
        return Err(DocumentsError::NotAFile { name, path });
    }
    let mut content = Vec::new();
    file.take(MAX_DOCUMENT as u64 + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() > MAX_DOCUMENT {
        let (name, path) = at();
        return Err(DocumentsError::TooLarge { name, path });
    }
    let Ok(content) = String::from_utf8(content) else {
        let (name, path) = at();
        return Err(DocumentsError::NotText { name, path });
    };
    let version = version_of(&content);
    Ok(Some((Document { content, version }, meta.mode())))
}

fn version_of(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex().to_string()
}
