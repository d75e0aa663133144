//! Codes and remedies for the errors of the store.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::StoreError;

hermes_diagnostic::codes! {
    /// The codes of the store.
    pub mod codes {
        HOME = "store.home", Category::Configuration, "the home folder cannot be created";
        FOREIGN = "store.foreign", Category::Store, "the database belongs to another program";
        NEWER = "store.newer", Category::Store, "a newer version of Hermes wrote the database";
        NOT_A_DATABASE = "store.not-a-database", Category::Store, "`state.db` is not a database";
        ORPHAN = "store.orphan", Category::Store, "a log is there without its database";
        DAMAGED = "store.damaged", Category::Store, "the database is damaged";
        BEYOND_REPAIR = "store.beyond-repair", Category::Store, "the damaged database cannot be repaired";
        READ_ONLY = "store.read-only", Category::Store, "the database cannot be written";
        CANNOT_OPEN = "store.cannot-open", Category::Store, "the database cannot be opened";
        DISK_FULL = "store.disk-full", Category::Store, "the disk is full";
        BUSY = "store.busy", Category::Store, "another process keeps the database locked";
        FILE = "store.file", Category::Store, "a file beside the database cannot be used";
        SQLITE = "store.sqlite", Category::Store, "another failure of the database";
        RANDOM = "store.random", Category::Store, "the system gives no randomness for an id";
        STOPPED = "store.stopped", Category::Store, "the work on the database was stopped with the program";
        EMPTY_BLOB = "store.empty-blob", Category::Store, "a picture or file has no content";
        BLOB_TOO_LARGE = "store.blob-too-large", Category::Store, "the pictures or files of a message are too large";
        BLOB_QUOTA = "store.blob-quota", Category::Store, "the pictures and files of all sessions take too much space";
        BLOB_CHANGED = "store.blob-changed", Category::Store, "the content of a picture or file has changed";
        NO_SUCH_BLOB = "store.no-such-blob", Category::Store, "the content of a picture or file is missing";
        PARTS = "store.parts", Category::Store, "a message has parts that it cannot have";
    }
}

const ANOTHER_HOME: &str = "set HERMES_HOME to another folder";
/// The program whose folder has the same name by default.
const OF_PEER: &str = "set HERMES_HOME to another folder, such as ~/.hermes-home; if Hermes Agent, the Python program, uses this one, \
                       `hermes import peer` then brings over what it has";

impl Diagnose for StoreError {
    #[allow(clippy::too_many_lines)]
    fn parts(&self) -> Parts {
        const OPEN: &str = "the session store cannot be opened";
        const STORE: &str = "the session cannot be stored";
        let (code, what, fix) = match self {
            Self::Session(error) => return error.parts(),
            Self::Transfer(error) => return error.parts(),
            Self::Home { .. } => (
                codes::HOME,
                "the home folder cannot be used",
                Fix::words("set HERMES_HOME to a folder that you can write to"),
            ),
            Self::Foreign { .. } => (codes::FOREIGN, OPEN, Fix::words(OF_PEER)),
            Self::NewerSchema { .. } => (codes::NEWER, OPEN, Fix::words("update Hermes").or(ANOTHER_HOME)),
            Self::NotADatabase { .. } => (codes::NOT_A_DATABASE, OPEN, Fix::words("move it away").or(ANOTHER_HOME)),
            Self::Orphan { .. } => {
                (codes::ORPHAN, OPEN, Fix::words("put the database back").or("move the file away").or(ANOTHER_HOME))
            }
            Self::Corrupt { .. } => (codes::DAMAGED, OPEN, Fix::from(Action::RepairStore).or(ANOTHER_HOME)),
            Self::BeyondRepair { .. } => (
                codes::BEYOND_REPAIR,
                "the store cannot be repaired",
                Fix::words("keep the copy, and set HERMES_HOME to another folder"),
            ),
            Self::ReadOnly { .. } => (codes::READ_ONLY, STORE, Fix::words("allow writing").or(ANOTHER_HOME)),
            Self::ReadOnlyLog { .. } => (
                codes::READ_ONLY,
                STORE,
                Fix::words("allow writing")
                    .or("copy the folder to a place that can be written and set HERMES_HOME to it"),
            ),
            Self::CannotOpen { .. } => {
                (codes::CANNOT_OPEN, STORE, Fix::words("check the permissions of the file and its folder"))
            }
            Self::DiskFull { .. } => (codes::DISK_FULL, STORE, Fix::words("free some space and try again")),
            Self::Busy { .. } => (codes::BUSY, STORE, Fix::words("end that process or try again")),
            Self::File { .. } => {
                (codes::FILE, STORE, Fix::words("check the permissions of its folder").or(ANOTHER_HOME))
            }
            Self::Sqlite { .. } => (codes::SQLITE, STORE, Action::CheckStore.into()),
            Self::Stopped(_) => (codes::STOPPED, STORE, Fix::words("start Hermes again")),
            Self::Random(_) => (codes::RANDOM, STORE, Fix::words("try again")),
            Self::EmptyBlob => (codes::EMPTY_BLOB, STORE, Fix::words("give a file with content")),
            Self::BlobTooLarge { .. } => {
                (codes::BLOB_TOO_LARGE, STORE, Fix::words("make the pictures or files smaller"))
            }
            Self::BlobQuota { .. } => {
                (codes::BLOB_QUOTA, STORE, Fix::words("delete sessions that contain pictures or files"))
            }
            Self::BlobChanged(_) => (codes::BLOB_CHANGED, STORE, Action::CheckStore.into()),
            Self::NoSuchBlob(_) => (codes::NO_SUCH_BLOB, STORE, Fix::words("add the picture or file again")),
            Self::Parts(_) => (codes::PARTS, STORE, Fix::words("update Hermes, or the program that made the message")),
        };
        (code, what.into(), fix)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use hermes_conversation::BlobId;

    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let path = PathBuf::from("/home/ada; mallory/x");
        let text = || "fix; mallory".to_owned();
        let cause = || io::Error::other(text());
        let blob = || BlobId::of(b"x");
        let errors = [
            StoreError::Home { path: path.clone(), source: cause() },
            StoreError::Foreign { path: path.clone(), found: 1 },
            StoreError::NewerSchema { path: path.clone(), found: 2, known: 1 },
            StoreError::NotADatabase { path: path.clone() },
            StoreError::Orphan { path: path.clone() },
            StoreError::Corrupt { path: path.clone(), detail: text() },
            StoreError::BeyondRepair { path: path.clone(), backup: path.clone(), detail: text() },
            StoreError::ReadOnly { path: path.clone() },
            StoreError::ReadOnlyLog { path: path.clone() },
            StoreError::CannotOpen { path: path.clone(), detail: text() },
            StoreError::DiskFull { path: path.clone() },
            StoreError::Busy { path: path.clone() },
            StoreError::File { path: path.clone(), source: cause() },
            StoreError::Sqlite { path, source: rusqlite::Error::InvalidParameterName(text()) },
            StoreError::Random(getrandom::Error::UNSUPPORTED),
            StoreError::Stopped(text()),
            StoreError::EmptyBlob,
            StoreError::BlobTooLarge { size: 2, most: 1 },
            StoreError::BlobQuota { size: 2, used: 1, most: 2 },
            StoreError::BlobChanged(blob()),
            StoreError::NoSuchBlob(blob()),
            StoreError::Parts(hermes_conversation::PartError::Result),
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
        for diagnostic in diagnostics {
            assert!(!diagnostic.fix.to_string().contains("mallory"), "{diagnostic:?}");
        }
    }
}
