//! `auth.json`: the logins of a home. Written whole or not at all, readable by its owner alone, and changed by one
//! process at a time.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is known of one login. Keys that this version does not know are kept as they are.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Login {
    /// Where a refresh token is exchanged for an access token.
    pub(super) token_url: String,
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<String>,
    /// Where tokens are revoked when the user logs out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revoke_url: Option<String>,
    /// Empty where the server gave none; the login then ends with its access token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) refresh_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) access_token: Option<String>,
    /// When the access token expires, in seconds since 1970; none where the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// When it was issued, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) obtained_at: Option<u64>,
    /// The server on the web that the tokens are for (RFC 8707), where they are not for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    /// Whether the password goes to the server in a header (HTTP Basic) and not in the form.
    #[serde(default, rename = "basic", skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_basic: bool,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

/// The most bytes of the file.
const LARGEST: u64 = 1 << 20;
/// The fields without which a login cannot be refreshed. With an access token it works without the last one.
const REQUIRED: &[&str] = &["token_url", "client_id", "refresh_token"];
/// The fields that a new login replaces, whether it has them or not.
const KNOWN: &[&str] = &[
    "token_url",
    "client_id",
    "client_secret",
    "scope",
    "revoke_url",
    "refresh_token",
    "access_token",
    "expires_at",
    "obtained_at",
    "resource",
    "basic",
];
/// The pause between two tries to take the lock.
const PAUSE: Duration = Duration::from_millis(25);

#[derive(Default, Serialize, Deserialize)]
struct Document {
    #[serde(default)]
    logins: BTreeMap<String, Value>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Why a login cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("there is no {}", .0.display())]
    NoFile(PathBuf),
    #[error("it is not in {}", .0.display())]
    NoLogin(PathBuf),
    // The parser's own words may quote a token.
    #[error("{} is not valid JSON at line {line}", path.display())]
    Invalid { path: PathBuf, line: usize },
    #[error("{} {} missing in {}", missing.join(" and "), if missing.len() == 1 { "is" } else { "are" }, path.display())]
    Incomplete { path: PathBuf, missing: Vec<&'static str> },
    // As above, the parser's own words may quote a token.
    #[error("a field has the wrong type in {}", .0.display())]
    Malformed(PathBuf),
    #[error("{} cannot be read or written: {why}", path.display())]
    Io { path: PathBuf, why: io::Error },
    #[error("another process has been writing {} for {seconds} s", path.display())]
    Locked { path: PathBuf, seconds: u64 },
}

/// The file.
#[derive(Debug, Clone)]
pub(super) struct AuthFile {
    path: PathBuf,
}

/// The right to change the file, held by one process and one login at a time. Ends with the value, and with the process.
pub(super) struct Lock {
    _file: File,
}

impl AuthFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock, and waits for another process at most `longest`. Polls, because a thread that waits for a file lock
    /// cannot be stopped.
    pub(super) async fn lock(&self, longest: Duration) -> Result<Lock, FileError> {
        let until = tokio::time::Instant::now() + longest;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            if tokio::time::Instant::now() >= until {
                return Err(FileError::Locked { path: self.path.clone(), seconds: longest.as_secs() });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Takes the lock if it is free. The lock is a file of its own, because writing replaces the file itself.
    fn try_lock(&self) -> Result<Option<Lock>, FileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let file = options.open(self.path.with_extension("json.lock")).map_err(|why| self.io(why))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(why)) => Err(self.io(why)),
        }
    }

    /// A login as it is now. Reading needs no lock, because the file is replaced as a whole.
    pub(super) fn read(&self, name: &str) -> Result<Login, FileError> {
        let entry = self.document()?.logins.remove(name).ok_or_else(|| FileError::NoLogin(self.path.clone()))?;
        let has = |field: &str| entry.get(field).is_some();
        let is_needed = |field: &str| field != "refresh_token" || !has("access_token");
        let missing: Vec<&str> = REQUIRED.iter().copied().filter(|field| is_needed(field) && !has(field)).collect();
        if !missing.is_empty() {
            return Err(FileError::Incomplete { path: self.path.clone(), missing });
        }
        serde_json::from_value(entry).map_err(|_| FileError::Malformed(self.path.clone()))
    }

    /// Checks that a login could be written.
    pub(super) fn check(&self) -> Result<(), FileError> {
        self.existing().map(drop)
    }

    /// Checks that a login with this name exists. Its fields may be incomplete.
    pub(super) fn check_has(&self, name: &str) -> Result<(), FileError> {
        match self.document()?.logins.contains_key(name) {
            true => Ok(()),
            false => Err(FileError::NoLogin(self.path.clone())),
        }
    }

    /// Removes a login and keeps the rest of the file.
    pub(super) fn remove(&self, _lock: &Lock, name: &str) -> Result<(), FileError> {
        let mut document = self.document()?;
        document.logins.remove(name).ok_or_else(|| FileError::NoLogin(self.path.clone()))?;
        self.save(&document)
    }

    /// Adds a login or replaces it, and keeps the rest of the file. A missing file is created.
    pub(super) fn write(&self, _lock: &Lock, name: &str, login: &Login) -> Result<(), FileError> {
        let mut document = self.existing()?;
        let mut value = serde_json::to_value(login).map_err(|error| self.io(error.into()))?;
        // A new login keeps what only other programs know of the former one.
        if let (Some(new), Some(old)) = (value.as_object_mut(), document.logins.get(name).and_then(Value::as_object)) {
            for (key, value) in old.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
                new.entry(key).or_insert_with(|| value.clone());
            }
        }
        document.logins.insert(name.to_owned(), value);
        self.save(&document)
    }

    fn save(&self, document: &Document) -> Result<(), FileError> {
        let text = serde_json::to_vec_pretty(document).map_err(|error| self.io(error.into()))?;
        self.replace(&text).map_err(|why| self.io(why))
    }

    /// The file as it is, or an empty one where there is none.
    fn existing(&self) -> Result<Document, FileError> {
        match self.document() {
            Err(FileError::NoFile(_)) => Ok(Document::default()),
            read => read,
        }
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        // A link is followed, so that a file kept elsewhere stays there.
        let path = hermes_private_files::target(&self.path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        // Only its owner may read a temporary file, and so the new one.
        let mut file = tempfile::Builder::new().prefix(".auth-").tempfile_in(folder)?;
        file.write_all(text)?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        if cfg!(unix) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// All logins as they are now; none for a login that lacks a field. Unlike a read for a request, this leaves the mode
    /// of the file as it is.
    pub(super) fn all(&self) -> Result<Vec<(String, Option<Login>)>, FileError> {
        let logins = self.parsed(false)?.logins;
        Ok(logins.into_iter().map(|(name, entry)| (name, serde_json::from_value(entry).ok())).collect())
    }

    fn document(&self) -> Result<Document, FileError> {
        self.parsed(true)
    }

    fn parsed(&self, make_private: bool) -> Result<Document, FileError> {
        let text = hermes_private_files::read_regular(&self.path, LARGEST).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => FileError::NoFile(self.path.clone()),
            _ => self.io(why),
        })?;
        if make_private {
            self.make_private();
        }
        serde_json::from_slice(&text)
            .map_err(|error| FileError::Invalid { path: self.path.clone(), line: error.line() })
    }

    /// Takes the file away from other users, who could read it where the user created it with an editor.
    fn make_private(&self) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let open = fs::metadata(&self.path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
            if open && let Err(error) = fs::set_permissions(&self.path, fs::Permissions::from_mode(0o600)) {
                tracing::warn!(path = %self.path.display(), %error, "other users may read the tokens of this file");
            }
        }
    }

    fn io(&self, why: io::Error) -> FileError {
        FileError::Io { path: self.path.clone(), why }
    }
}
