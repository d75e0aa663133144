//! The service behind the import `documents`: small named texts that people edit too.
//!
//! A write names the version that the writer has read. If another writer was faster, it gets the current text instead, so
//! that no session and no process loses what another wrote. The caller that creates [`Documents`] chooses the folder and
//! the allowed names.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use hermes_private_files::lock_within;

use crate::fault::{Fault, FaultKind};
use crate::files::replace::{self, Mode};

/// The most bytes of a document.
pub const MAX_DOCUMENT: usize = 1 << 20;
const MAX_NAME: usize = 64;
/// Most links that are followed, as many as on Linux.
const MAX_LINKS: usize = 40;

/// The current content of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its text, byte for byte.
    pub content: String,
    /// The hash of the text; empty for a document that does not exist.
    pub version: String,
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

/// An error of a document. Every message names the document and the fix.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// The name is not valid.
    #[error(
        "`{name}` cannot be the name of a document: use up to 64 letters, digits, `.`, `_` and `-` that begin with a letter or digit and do not end in `.lock`"
    )]
    BadName {
        /// The name as given, cut if it is long.
        name: String,
    },
    /// The plugin may not use this document.
    #[error("the document `{name}` is not open to this plugin: it may use {}; ask the user to grant more", listed(.allowed))]
    Denied {
        /// The name.
        name: String,
        /// The names that it may use.
        allowed: Vec<String>,
    },
    /// The text is too large, in the file or as given.
    #[error("the document `{name}` at {} has more than {MAX_DOCUMENT} bytes: shorten it; nothing was overwritten", .path.display())]
    TooLarge {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// The file is not UTF-8 text.
    #[error("{} is not valid UTF-8, so the document `{name}` cannot be used: correct the file or move it away; nothing was overwritten", .path.display())]
    NotText {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// Something other than a file is at the path.
    #[error("{} is not a regular file, so the document `{name}` cannot be used: move it away", .path.display())]
    NotAFile {
        /// The name.
        name: String,
        /// What is there.
        path: PathBuf,
    },
    /// The file is marked read-only.
    #[error("{} is marked read-only, so the document `{name}` stays as it is: the user can make it writable with `chmod u+w`", .path.display())]
    Protected {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// Another writer holds the lock.
    #[error("the document `{name}` is being written by another process, which holds the lock of {}: try again in a moment", .lock.display())]
    Busy {
        /// The name.
        name: String,
        /// The lock file, or the folder.
        lock: PathBuf,
    },
    /// The system returned an error.
    #[error("cannot {action} {} for the document `{name}`: {source}; see that the folder is there, can be written and has room", .path.display())]
    Io {
        /// The name.
        name: String,
        /// The file or folder.
        path: PathBuf,
        /// The failed operation, as a verb.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl DocumentsError {
    /// The `error-kind` of the contract.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::BadName { .. } => FaultKind::InvalidInput,
            Self::Denied { .. } | Self::Protected { .. } => FaultKind::Denied,
            Self::TooLarge { .. } => FaultKind::Exhausted,
            Self::Busy { .. } => FaultKind::Unavailable,
            Self::NotText { .. } | Self::NotAFile { .. } | Self::Io { .. } => FaultKind::Failed,
        }
    }

    /// The more specific `code` of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad-name",
            Self::Denied { .. } => "closed",
            Self::TooLarge { .. } => "too-large",
            Self::NotText { .. } => "not-text",
            Self::NotAFile { .. } => "not-a-file",
            Self::Protected { .. } => "protected",
            Self::Busy { .. } => "locked",
            Self::Io { .. } => "io",
        }
    }
}

impl From<DocumentsError> for Fault {
    fn from(error: DocumentsError) -> Self {
        Self::new(error.kind(), error.code(), error.to_string())
    }
}

/// The documents of one folder that one plugin may use.
#[derive(Debug)]
pub struct Documents {
    place: Place,
    allowed: Option<Vec<String>>,
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
        Self { place: Place::Folder(dir.into()), allowed, patience: replace::PATIENCE }
    }

    /// Documents in memory, for measurements and tests.
    pub fn in_memory() -> Self {
        Self { place: Place::Memory(Mutex::default()), allowed: None, patience: replace::PATIENCE }
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
    /// Those of [`Documents::read`], and [`DocumentsError::Busy`] if the lock is not free within two seconds.
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
        let (locked, dir, handle) = open().map_err(failed("lock", folder))?;
        if !locked {
            return Err(DocumentsError::Busy { name: name.to_owned(), lock: folder.to_owned() });
        }

        let current = load(name, &target)?;
        if let Some(conflict) = conflict(current.as_ref().map(|(document, _)| document), version) {
            return Ok(Written::Conflict(conflict));
        }
        let mode = match current {
            Some((_, mode)) if mode & 0o222 == 0 => {
                return Err(DocumentsError::Protected { name: name.to_owned(), path: target });
            }
            Some((_, mode)) => Mode::Kept(mode),
            None => Mode::New(0o600),
        };
        replace::replace(&dir, &handle, file_name, content.as_bytes(), mode).map_err(failed("write", &target))?;
        Ok(Written::At(version_of(content)))
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
        None if !known.is_empty() => Some(Document { content: String::new(), version: String::new() }),
        _ => None,
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

/// The real path of a file, also if the target of a link does not exist yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let link = match fs::read_link(&path) {
            Ok(link) => link,
            // Not a link, or nothing there.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        };
        path = match path.parent() {
            Some(folder) => folder.join(link),
            None => link,
        };
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

fn listed(allowed: &[String]) -> String {
    if allowed.is_empty() { "none".to_owned() } else { format!("`{}`", allowed.join("`, `")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;
    use std::{env, thread};

    use super::*;

    const NAME: &str = "MEMORY.md";
    const CHILD: &str = "HERMES_TEST_DOCUMENTS";
    const STEPS: usize = 20;

    fn home() -> (tempfile::TempDir, Documents) {
        let home = tempfile::tempdir().unwrap();
        let documents = Documents::new(home.path().join("memories"), None);
        (home, documents)
    }

    fn written(outcome: Written) -> String {
        match outcome {
            Written::At(version) => version,
            Written::Conflict(document) => panic!("a conflict with {document:?}"),
        }
    }

    fn increment(documents: &Documents) {
        for _ in 0..STEPS {
            loop {
                let now = documents.read(NAME).unwrap();
                let count: usize = now.as_ref().map_or(0, |now| now.content.parse().unwrap());
                let version = now.as_ref().map(|now| now.version.as_str());
                match documents.write(NAME, &(count + 1).to_string(), version) {
                    Ok(Written::At(_)) => break,
                    Ok(Written::Conflict(_)) | Err(DocumentsError::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    #[test]
    fn written_text_is_read_back_and_reading_creates_nothing() {
        let (home, documents) = home();
        assert_eq!(documents.read(NAME).unwrap(), None);
        assert_eq!(home.path().read_dir().unwrap().count(), 0);

        let content = "\u{feff}likes\r\ntea\n";
        let version = written(documents.write(NAME, content, None).unwrap());
        assert_eq!(documents.read(NAME).unwrap(), Some(Document { content: content.to_owned(), version }));
        let folder = home.path().join("memories");
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(folder.join(NAME).metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut names: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["MEMORY.md", "MEMORY.md.lock"]);
    }

    #[test]
    fn a_write_with_another_version_gets_the_current_document() {
        let (home, documents) = home();
        let first = written(documents.write(NAME, "one", None).unwrap());
        let one = Document { content: "one".to_owned(), version: first.clone() };
        for version in [None, Some(""), Some("0000")] {
            assert_eq!(documents.write(NAME, "two", version).unwrap(), Written::Conflict(one.clone()));
        }
        let file = home.path().join("memories").join(NAME);
        fs::write(&file, "by hand").unwrap();
        match documents.write(NAME, "two", Some(&first)).unwrap() {
            Written::Conflict(now) => assert_eq!(now.content, "by hand"),
            Written::At(_) => panic!("the text written by hand is lost"),
        }
        fs::remove_file(&file).unwrap();
        let nothing = Document { content: String::new(), version: String::new() };
        assert_eq!(documents.write(NAME, "two", Some(&first)).unwrap(), Written::Conflict(nothing.clone()));
        written(documents.write(NAME, "two", Some(&nothing.version)).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    }

    #[test]
    fn a_linked_document_stays_a_link_and_keeps_its_permissions() {
        let (home, documents) = home();
        let dotfiles = home.path().join("dotfiles");
        fs::create_dir(&dotfiles).unwrap();
        fs::create_dir(home.path().join("memories")).unwrap();
        let link = home.path().join("memories").join(NAME);
        symlink("../dotfiles/memory", &link).unwrap();
        symlink(dotfiles.join("real.md"), dotfiles.join("memory")).unwrap();

        // The target does not exist yet: it is created where the link points.
        let version = written(documents.write(NAME, "one", None).unwrap());
        let real = dotfiles.join("real.md");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        written(documents.write(NAME, "two", Some(&version)).unwrap());
        assert_eq!(fs::read_to_string(&real).unwrap(), "two");
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink() && dotfiles.join("memory").is_symlink());
        assert_eq!(dotfiles.read_dir().unwrap().count(), 2);

        fs::remove_file(&link).unwrap();
        symlink(NAME, &link).unwrap();
        assert!(matches!(documents.read(NAME), Err(DocumentsError::Io { .. })));
        assert!(matches!(documents.write(NAME, "three", None), Err(DocumentsError::Io { .. })));
    }

    #[test]
    fn an_unsuitable_file_is_an_error_and_stays_unchanged() {
        let (home, documents) = home();
        let folder = home.path().join("memories");
        fs::create_dir(&folder).unwrap();
        let large = vec![b'x'; MAX_DOCUMENT + 1];
        for (content, code) in [(&b"caf\xe9"[..], "not-text"), (&large, "too-large")] {
            fs::write(folder.join(NAME), content).unwrap();
            for error in [documents.read(NAME).unwrap_err(), documents.write(NAME, "new", None).unwrap_err()] {
                assert_eq!(error.code(), code);
                assert!(error.to_string().contains(&folder.join(NAME).display().to_string()));
            }
            assert_eq!(fs::read(folder.join(NAME)).unwrap(), content);
        }
        fs::remove_file(folder.join(NAME)).unwrap();
        let too_long = "x".repeat(MAX_DOCUMENT + 1);
        assert_eq!(documents.write(NAME, &too_long, None).unwrap_err().code(), "too-large");
        written(documents.write(NAME, &too_long[1..], None).unwrap());

        fs::create_dir(folder.join("USER.md")).unwrap();
        assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
        for name in ["USER.md", "pipe"] {
            assert_eq!(documents.read(name).unwrap_err().code(), "not-a-file");
            assert_eq!(documents.write(name, "new", None).unwrap_err().code(), "not-a-file");
        }

        let version = documents.read(NAME).unwrap().unwrap().version;
        fs::set_permissions(folder.join(NAME), fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(documents.write(NAME, "new", Some(&version)).unwrap_err().code(), "protected");
    }

    #[test]
    fn only_plain_and_granted_names_are_documents() {
        let (home, documents) = home();
        let long = "a".repeat(65);
        let bad =
            ["", ".", "..", ".env", "../state", "a/b", "/etc/passwd", "a\\b", "a\0", "a b", "ä", "-a", "_a", &long]
                .into_iter()
                .chain(["MEMORY.md.lock", "x.LOCK"]);
        for name in bad {
            assert_eq!(documents.read(name).unwrap_err().code(), "bad-name", "{name:?}");
            assert_eq!(documents.write(name, "x", None).unwrap_err().code(), "bad-name", "{name:?}");
        }
        assert_eq!(home.path().read_dir().unwrap().count(), 0);
        for name in ["a", "0", "A.b_c-D.md", "a..b", "lock", &long[1..]] {
            written(documents.write(name, "x", None).unwrap());
        }
        let few = Documents::new(home.path().join("memories"), Some(vec![NAME.to_owned()]));
        assert_eq!(few.read(NAME).unwrap(), None);
        assert_eq!(few.read("a").unwrap_err().kind(), FaultKind::Denied);
        assert_eq!(few.write("memory.md", "x", None).unwrap_err().kind(), FaultKind::Denied);
    }

    #[test]
    fn a_held_lock_is_waited_for_and_then_named_in_the_error() {
        let (home, mut documents) = home();
        documents.patience = Duration::from_millis(30);
        let version = written(documents.write(NAME, "one", None).unwrap());
        let lock = home.path().join("memories/MEMORY.md.lock");
        let held = fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        let error = documents.write(NAME, "two", Some(&version)).unwrap_err();
        assert_eq!(error.kind(), FaultKind::Unavailable);
        assert!(error.to_string().contains(&lock.display().to_string()));
        assert_eq!(documents.read(NAME).unwrap().unwrap().content, "one");
        drop(held);
        written(documents.write(NAME, "two", Some(&version)).unwrap());
    }

    #[test]
    fn threads_and_homes_that_share_a_file_lose_no_write() {
        let (home, documents) = home();
        let second = home.path().join("second");
        fs::create_dir(&second).unwrap();
        symlink(home.path().join("memories").join(NAME), second.join(NAME)).unwrap();
        fs::create_dir(home.path().join("memories")).unwrap();
        let other = Documents::new(second, None);
        thread::scope(|scope| {
            for documents in [&documents, &documents, &other] {
                scope.spawn(|| increment(documents));
            }
        });
        assert_eq!(documents.read(NAME).unwrap().unwrap().content, (3 * STEPS).to_string());
    }

    #[test]
    fn processes_lose_no_write() {
        let (home, documents) = home();
        let (_, module) = module_path!().split_once("::").unwrap();
        let child = || {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "--ignored", &format!("{module}::child_process")])
                .env(CHILD, home.path().join("memories"))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        for mut child in [child(), child(), child()] {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(documents.read(NAME).unwrap().unwrap().content, (3 * STEPS).to_string());
    }

    #[test]
    #[ignore = "run by processes_lose_no_write"]
    fn child_process() {
        if let Some(dir) = env::var_os(CHILD) {
            increment(&Documents::new(dir, None));
        }
    }
}
