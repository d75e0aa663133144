//! Small documents that all processes of a home share: kept approvals, lists of tool servers, cooldowns.
//!
//! [`Documents`] is a port. [`FileDocuments`] keeps each document in a file of its own below one folder. An adapter for several
//! machines would keep them where all of them look.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::{create_folder, lock_within, open_file, read_regular, write_atomically, write_whole};

/// Which document, and how it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name: a relative path with `/`, such as `mcp/files.json`.
    pub name: String,
    /// The most bytes that are read. A larger document is an error of [`Documents::read`].
    pub most: u64,
    /// Whether a change is reported as done only once it survives a loss of power.
    pub lasting: bool,
}

/// Tells one version of a document from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// When it was written, or confirmed by [`Documents::confirm`]. `None` if the system does not know.
    pub written: Option<SystemTime>,
    /// Its length in bytes.
    pub length: u64,
}

/// Makes the new content of a document from what was read, or `None` to leave it as it is. It may be called more than once.
pub type Editing<'a> = dyn FnMut(io::Result<Option<Vec<u8>>>) -> Option<Vec<u8>> + 'a;

/// Keeps small documents. Each is read whole and replaced whole.
///
/// Calls are short, and they may block.
pub trait Documents: fmt::Debug + Send + Sync {
    /// The content; `None` if nobody wrote it.
    ///
    /// # Errors
    ///
    /// When it cannot be read, and [`ErrorKind::FileTooLarge`] for one of more than `most` bytes.
    fn read(&self, document: &Document) -> io::Result<Option<Vec<u8>>>;

    /// The present version; `None` if there is no such document or if it cannot be reached.
    fn version(&self, document: &Document) -> Option<Version>;

    /// Replaces the content, whatever it was. Who reads meanwhile gets the old content or the new one.
    ///
    /// # Errors
    ///
    /// When it cannot be written. The old content is still there then.
    fn replace(&self, document: &Document, content: &[u8]) -> io::Result<()>;

    /// Reads and replaces the content so that no change of another process is lost between the two. Returns the version that
    /// this change wrote, or the present one if `change` gave nothing.
    ///
    /// # Errors
    ///
    /// When it cannot be written, and [`ErrorKind::TimedOut`] when others changed it for longer than `patience`.
    fn change(&self, document: &Document, patience: Duration, change: &mut Editing<'_>) -> io::Result<Option<Version>>;

    /// Makes the content count as written now, without changing it.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be written.
    fn confirm(&self, document: &Document) -> io::Result<()>;

    /// Removes a document, which may be missing.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    fn remove(&self, document: &Document) -> io::Result<()>;

    /// Where a person finds it, for messages.
    fn location(&self, document: &Document) -> PathBuf;
}

/// Documents as files below a folder.
#[derive(Debug, Clone)]
pub struct FileDocuments(PathBuf);

impl FileDocuments {
    /// The documents below a folder, which is created with the first of them.
    pub fn below(folder: &Path) -> Arc<dyn Documents> {
        Arc::new(Self(folder.to_owned()))
    }

    fn file(&self, document: &Document) -> PathBuf {
        self.0.join(&document.name)
    }

    /// Makes the folder of a document that is not directly in the home. Whoever opens the store makes the home.
    fn make_folder(&self, document: &Document) -> io::Result<()> {
        match self.file(document).parent() {
            Some(folder) if folder != self.0 => create_folder(folder),
            _ => Ok(()),
        }
    }

    /// The lock of a document: a file beside it, because the document itself is replaced.
    fn lock(&self, document: &Document) -> io::Result<File> {
        self.make_folder(document)?;
        open_file(&self.0.join(format!("{}.lock", document.name)))
    }
}

impl Documents for FileDocuments {
    fn read(&self, document: &Document) -> io::Result<Option<Vec<u8>>> {
        match read_regular(&self.file(document), document.most) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn version(&self, document: &Document) -> Option<Version> {
        let found = fs::metadata(self.file(document)).ok()?;
        Some(Version { written: found.modified().ok(), length: found.len() })
    }

    fn replace(&self, document: &Document, content: &[u8]) -> io::Result<()> {
        self.make_folder(document)?;
        let file = self.file(document);
        if document.lasting { write_whole(&file, content) } else { write_atomically(&file, content) }
    }

    fn change(&self, document: &Document, patience: Duration, change: &mut Editing<'_>) -> io::Result<Option<Version>> {
        let lock = self.lock(document)?;
        if !lock_within(&lock, patience)? {
            return Err(io::Error::new(ErrorKind::TimedOut, "another process is changing it"));
        }
        if let Some(content) = change(self.read(document)) {
            self.replace(document, &content)?;
        }
        Ok(self.version(document))
    }

    fn confirm(&self, document: &Document) -> io::Result<()> {
        File::options().write(true).open(self.file(document))?.set_modified(SystemTime::now())
    }

    fn remove(&self, document: &Document) -> io::Result<()> {
        match fs::remove_file(self.file(document)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn location(&self, document: &Document) -> PathBuf {
        self.file(document)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn notes() -> Document {
        Document { name: "shared/notes.json".to_owned(), most: 64, lasting: false }
    }

    #[test]
    fn a_document_is_read_replaced_confirmed_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let documents = FileDocuments::below(home.path());
        assert_eq!((documents.read(&notes()).unwrap(), documents.version(&notes())), (None, None));
        assert_eq!(documents.confirm(&notes()).unwrap_err().kind(), ErrorKind::NotFound);
        documents.remove(&notes()).unwrap();
        documents.replace(&notes(), b"one").unwrap();
        assert_eq!(documents.read(&notes()).unwrap().unwrap(), b"one");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        File::options().write(true).open(documents.location(&notes())).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(documents.version(&notes()), Some(Version { written: Some(long_ago), length: 3 }));
        documents.confirm(&notes()).unwrap();
        assert!(documents.version(&notes()).unwrap().written.unwrap() > long_ago);
        documents.replace(&notes(), &[b'x'; 65]).unwrap();
        assert_eq!(documents.read(&notes()).unwrap_err().kind(), ErrorKind::FileTooLarge);
        documents.remove(&notes()).unwrap();
        assert_eq!(documents.read(&notes()).unwrap(), None);
        let first = Document { name: "new/first.json".to_owned(), ..notes() };
        documents.change(&first, Duration::ZERO, &mut |_| Some(b"1".to_vec())).unwrap();
        assert_eq!(documents.read(&first).unwrap().unwrap(), b"1", "a change makes the folder, too");
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept_and_one_that_gives_nothing_writes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let document = Document { name: "count".to_owned(), most: 64, lasting: true };
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let add_one = |read: io::Result<Option<Vec<u8>>>| {
                        let text = String::from_utf8(read.unwrap().unwrap_or_default()).unwrap();
                        Some((text.parse().unwrap_or(0) + 1).to_string().into_bytes())
                    };
                    let documents = FileDocuments::below(home.path());
                    documents.change(&document, Duration::from_secs(60), &mut { add_one }).unwrap();
                });
            }
        });
        let documents = FileDocuments::below(home.path());
        assert_eq!(documents.read(&document).unwrap().unwrap(), b"16");
        let before = documents.version(&document);
        assert_eq!(documents.change(&document, Duration::ZERO, &mut |_| None).unwrap(), before);
    }

    /// Who keeps what it read takes this version for that of its own change, and reads again when another process wrote.
    #[test]
    fn a_change_gives_the_version_that_it_wrote() {
        let home = tempfile::tempdir().unwrap();
        let document = Document { name: "count".to_owned(), most: 64, lasting: false };
        let documents = FileDocuments::below(home.path());
        for content in ["1", "22"] {
            let written = documents.change(&document, Duration::ZERO, &mut |_| Some(content.into())).unwrap();
            assert_eq!(written.unwrap().length, content.len() as u64);
            assert_eq!(written, documents.version(&document));
        }
    }

    #[test]
    fn a_change_does_not_wait_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let document = Document { name: "count".to_owned(), most: 64, lasting: false };
        let held = open_file(&home.path().join("count.lock")).unwrap();
        assert!(lock_within(&held, Duration::ZERO).unwrap());
        let documents = FileDocuments::below(home.path());
        let refused = documents.change(&document, Duration::ZERO, &mut |_| Some(Vec::new())).unwrap_err();
        assert_eq!((refused.kind(), documents.read(&document).unwrap()), (ErrorKind::TimedOut, None));
    }
}
