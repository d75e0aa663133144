//! The errors of statements, in words for plugins and their authors.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use serde::{Deserialize, Serialize};

use super::{MAX_VALUE, Quota};
use crate::fault::{Fault, FaultKind};

/// The suggested wait before a busy database is tried again, in milliseconds.
const BUSY: u32 = 100;

/// Why a call had no effect. Kind and code are those of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SqlError {
    /// The text is not a statement that works on this database.
    #[error("{0}")]
    Statement(String),
    /// Plugins may not do this.
    #[error("{0} is not open to plugins")]
    Refused(String),
    /// `query` got a statement that writes.
    #[error("the statement writes: `query` only reads; give it to `execute`")]
    Writes,
    /// The text contains more than one statement.
    #[error("there is more than one statement in the text: give each to `execute` by itself")]
    Several,
    /// The text contains no statement.
    #[error("there is no statement in the text")]
    Empty,
    /// A value, a row or a text is too long.
    #[error("a value, a row or the statement itself has more than {} KiB: store large things in parts", MAX_VALUE >> 10)]
    TooLong,
    /// The result has more rows than allowed.
    #[error("the answer has more than {most} rows: ask for fewer with LIMIT")]
    Rows {
        /// The limit.
        most: usize,
    },
    /// The result has more bytes than allowed.
    #[error("the answer has more than {} KiB: ask for fewer rows with LIMIT, or for fewer columns", most >> 10)]
    Answer {
        /// The limit in bytes.
        most: usize,
    },
    /// The database is full.
    #[error("the database cannot grow: it may have {} MiB, and the disk must have room; delete what is not needed any more", bytes >> 20)]
    Full {
        /// The limit in bytes.
        bytes: u64,
    },
    /// It took too long.
    #[error("the statement was stopped: the time of the call is up; use an index, or do it in smaller steps")]
    Time,
    /// It took too much memory.
    #[error("the statement was stopped: it takes too much memory; sort, group or collect less at a time")]
    Memory,
    /// The caller no longer waits.
    #[error("the user no longer waits for this")]
    Cancelled,
    /// Other processes are using the database.
    #[error("the database was in use by others all the time: try again in a moment")]
    Busy,
    /// The process that runs the plugin's statements ended during the call.
    #[error(
        "the process of the plugin's database ended ({detail}), so the statements were not finished: try again in a moment"
    )]
    Ended {
        /// How it ended.
        detail: String,
    },
    /// The process that would run the plugin's statements does not start.
    #[error(
        "the process of the plugin's database cannot be started: {detail}; close other programs, or raise the limit of processes"
    )]
    NoWorker {
        /// The system's error.
        detail: String,
    },
    /// The file is damaged.
    #[error(
        "the plugin's database {place} is damaged: {detail}; to begin with an empty one, end all sessions and move the file \
         away together with those beside it that end in -wal and -shm; what the plugin alone kept there is then missing"
    )]
    Damaged {
        /// Its path.
        place: String,
        /// What is wrong.
        detail: String,
    },
    /// The file cannot be used.
    #[error(
        "the plugin's database {place} cannot be used: {detail}; see that its folder is there, can be written and has room"
    )]
    File {
        /// Its path.
        place: String,
        /// The system's error.
        detail: String,
    },
}

impl SqlError {
    /// The `error-kind` of the contract.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Statement(_) | Self::Refused(_) | Self::Writes | Self::Several | Self::Empty => {
                FaultKind::InvalidInput
            }
            Self::TooLong | Self::Rows { .. } | Self::Answer { .. } | Self::Full { .. } | Self::Memory => {
                FaultKind::Exhausted
            }
            Self::Time => FaultKind::Timeout,
            Self::Cancelled => FaultKind::Cancelled,
            Self::Busy | Self::Ended { .. } => FaultKind::Unavailable,
            Self::Damaged { .. } | Self::File { .. } | Self::NoWorker { .. } => FaultKind::Failed,
        }
    }

    /// The more specific `code` of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Statement(_) | Self::Refused(_) | Self::Writes | Self::Several | Self::Empty => "sql",
            Self::TooLong | Self::Rows { .. } | Self::Answer { .. } | Self::Full { .. } | Self::Memory | Self::Time => {
                "quota"
            }
            Self::Cancelled => "",
            Self::Busy | Self::Ended { .. } => "busy",
            Self::Damaged { .. } => "damaged",
            Self::File { .. } | Self::NoWorker { .. } => "io",
        }
    }
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Self {
        let fault = Self::new(error.kind(), error.code(), error.to_string());
        let is_brief = matches!(error, SqlError::Busy | SqlError::Ended { .. });
        Self { retry_after_ms: is_brief.then_some(BUSY), ..fault }
    }
}

/// An error before the path of the database is known.
#[derive(Debug)]
pub(super) enum Failure {
    Known(SqlError),
    Sqlite(rusqlite::Error),
    File(PathBuf, std::io::Error),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Known(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failure {
    fn code(&self) -> Option<ErrorCode> {
        if let Self::Sqlite(error) = self { error.sqlite_error_code() } else { None }
    }

    /// The error of SQLite for a database that others use.
    pub(super) fn busy() -> Self {
        Self::Sqlite(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None))
    }

    /// Another connection is writing, or opening or closing the file.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// The open file may not be the file at the path.
    pub(super) fn is_about_the_file(&self) -> bool {
        use ErrorCode::{CannotOpen, DatabaseCorrupt, NotADatabase, ReadOnly, SystemIoFailure};
        matches!(self.code(), Some(DatabaseCorrupt | NotADatabase | SystemIoFailure | CannotOpen | ReadOnly))
    }

    pub(super) fn into_sql_error(self, path: Option<&Path>, quota: &Quota) -> SqlError {
        let place =
            |path: Option<&Path>| path.map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
        let error = match self {
            Self::Known(error) => return error,
            Self::File(path, source) => {
                return SqlError::File { place: place(Some(&path)), detail: source.to_string() };
            }
            Self::Sqlite(error) => error,
        };
        let detail = detail(&error);
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => SqlError::Full { bytes: quota.bytes },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                SqlError::Damaged { place: place(path), detail }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SqlError::Busy,
            Some(ErrorCode::TooBig) => SqlError::TooLong,
            Some(ErrorCode::OutOfMemory) => SqlError::Memory,
            Some(ErrorCode::OperationInterrupted) => SqlError::Time,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed,
            ) => SqlError::File { place: place(path), detail },
            _ => SqlError::Statement(detail),
        }
    }
}

/// Most characters of a message of SQLite, which may repeat a name of any length.
const MAX_DETAIL: usize = 1_000;

/// The message of SQLite, without the statement.
fn detail(error: &rusqlite::Error) -> String {
    let bounded = |text: &str| match text.char_indices().nth(MAX_DETAIL) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    };
    match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } => {
            if *offset >= 0 {
                format!("{}, at byte {offset}", bounded(msg))
            } else {
                bounded(msg)
            }
        }
        rusqlite::Error::SqliteFailure(_, Some(message)) => bounded(message),
        rusqlite::Error::InvalidParameterCount(given, needed) => {
            format!("the statement has {needed} parameters, but {given} values were given")
        }
        other => bounded(&other.to_string()),
    }
}
