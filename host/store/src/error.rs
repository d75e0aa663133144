//! The errors of the store. `Display` gives the cause; `diagnosis.rs` has the remedies.

use std::io;
use std::path::{Path, PathBuf};

use hermes_conversation::{BlobId, PartError};
use hermes_session_store::{SessionError, TransferError};
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

/// Why the home folder cannot be used.
fn home(path: &Path, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            format!("the home folder {} is a file", path.display())
        }
        _ => format!("the home folder {} cannot be created: {source}", path.display()),
    }
}

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A rule about sessions that every store enforces.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The home folder does not exist and cannot be created.
    #[error("{}", home(path, source))]
    Home {
        /// The home folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The database belongs to another program.
    #[error(
        "{} was not created by Hermes, so it was left unchanged",
        path.display()
    )]
    Foreign {
        /// The database.
        path: PathBuf,
        /// The application id in its header; 0 if none was set.
        found: u32,
    },
    /// The database was written by a later version of this program.
    #[error(
        "{} was written by a newer version of Hermes (schema {found}; this version knows {known}) and was left as it is",
        path.display()
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// The file is not an SQLite database.
    #[error("{} is not a database and was left as it is", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The write-ahead log exists, but its database does not.
    #[error(
        "{} exists, but the database beside it is missing or empty: the file may contain messages, so no new database was created",
        path.display()
    )]
    Orphan {
        /// The write-ahead log or journal.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error(
        "{} is damaged: {detail}",
        path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// The damage.
        detail: String,
    },
    /// A damaged database could not be repaired.
    #[error(
        "{} cannot be repaired: {detail}, so it was left as it is, and a copy of it is {}",
        path.display(),
        backup.display()
    )]
    BeyondRepair {
        /// The database.
        path: PathBuf,
        /// The copy that was made first.
        backup: PathBuf,
        /// Why the repair failed.
        detail: String,
    },
    /// The database or its folder cannot be written.
    #[error(
        "{} cannot be written: the file, its folder or the file system is read-only",
        path.display()
    )]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// The newest data is in a log that cannot be read in a read-only folder.
    #[error(
        "the last changes of {} are in the -wal file beside it, which can be read only if the folder can be written",
        path.display()
    )]
    ReadOnlyLog {
        /// The database.
        path: PathBuf,
    },
    /// The database cannot be opened.
    #[error("{} cannot be opened: {detail}", path.display())]
    CannotOpen {
        /// The database.
        path: PathBuf,
        /// The reason of the system.
        detail: String,
    },
    /// The disk is full.
    #[error("{} cannot grow: the disk is full, and nothing of this step was stored", path.display())]
    DiskFull {
        /// The database or file.
        path: PathBuf,
    },
    /// Another process kept the database locked for longer than a writer waits.
    #[error("{} is kept locked by another process", path.display())]
    Busy {
        /// The database or lock file.
        path: PathBuf,
    },
    /// A file beside the database could not be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another failure of the database.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The message of the database.
        source: rusqlite::Error,
    },
    /// The operating system provides no randomness for an id.
    #[error("no session id could be made: {0}")]
    Random(getrandom::Error),
    /// The async runtime stopped the work on the database before it was done.
    #[error("the work on the database was stopped: {0}")]
    Stopped(String),
    /// A file of sessions cannot be written or read.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A picture or file without bytes.
    #[error("a picture or file of the message is empty")]
    EmptyBlob,
    /// Pictures or files of a message are too large.
    #[error("pictures or files of the message have {size} bytes, and at most {most} are allowed")]
    BlobTooLarge {
        /// Bytes.
        size: u64,
        /// The limit.
        most: u64,
    },
    /// All pictures and files of the store are too large.
    #[error("pictures and files of all sessions have {used} bytes, {size} more do not fit into {most}")]
    BlobQuota {
        /// Bytes of the new one.
        size: u64,
        /// Bytes of those in the store.
        used: u64,
        /// The limit.
        most: u64,
    },
    /// The bytes of a picture or file are not those that its hash and size name.
    #[error("the bytes of the picture or file {0} are not those that it had")]
    BlobChanged(BlobId),
    /// A message names a blob that the store does not have, and contains no bytes of it.
    #[error("the bytes of the picture or file {0} are not in the store, and the message does not bring them")]
    NoSuchBlob(BlobId),
    /// The parts of a message break a rule.
    #[error(transparent)]
    Parts(#[from] PartError),
}

impl StoreError {
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        if let rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) = &source {
            return Self::Corrupt { path, detail: source.to_string() };
        }
        // No room for the index of the log; SQLite names the call that failed, not the reason.
        if source.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE) {
            return Self::DiskFull { path };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail: source.to_string() },
            Some(ErrorCode::CannotOpen) => Self::CannotOpen { path, detail: source.to_string() },
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            _ => Self::Sqlite { path, source },
        }
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::File { path, source },
        }
    }
}

/// An error of work on a connection, before the path is known.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl Fault {
    /// Whether another connection is writing, so that a retry may succeed.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Sqlite(error)
                if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        )
    }

    pub(crate) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(source) => StoreError::sqlite(path, source),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        Self::Store(error.into())
    }
}

impl From<TransferError> for Fault {
    fn from(error: TransferError) -> Self {
        Self::Store(error.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
