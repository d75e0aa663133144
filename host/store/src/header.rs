//! Identifies a file before it is changed.
//!
//! SQLite creates files beside a database even if it only reads it, unless the database is opened as immutable. So a
//! file is first opened as immutable, until its header shows that it is a store of a known version. It is not read as a
//! plain file, because closing a plain file would release the locks that other connections of the process hold on it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::{SCHEMA_VERSION, StoreError, migration};

/// `Hrms`, in the header of every database that this program creates.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"Hrms");

/// A database has at least one page of this size. SQLite treats a shorter file as empty.
const SMALLEST: u64 = 512;

/// The state of the file at the path of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    /// There is no file, or an empty one.
    Absent,
    /// A store with this schema version in its header. The write-ahead log may contain a later version.
    Ours { version: u32 },
}

/// Inspects the file without writing. Every file that is not a store is an error.
pub(crate) fn inspect(path: &Path) -> Result<FileState, StoreError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return absent(path),
        Err(error) => return Err(StoreError::file(path, error)),
    };
    if !metadata.is_file() {
        return Err(StoreError::NotADatabase { path: path.to_owned() });
    }
    if metadata.len() == 0 {
        return absent(path);
    }
    if metadata.len() < SMALLEST {
        return Err(StoreError::NotADatabase { path: path.to_owned() });
    }
    let (found, version) = fields(path).map_err(|error| StoreError::sqlite(path, error))?;
    if found != APPLICATION_ID {
        return Err(StoreError::Foreign { path: path.to_owned(), found });
    }
    check_version(path, version)?;
    Ok(FileState::Ours { version })
}

/// A connection that treats the file as immutable: it creates nothing beside the file, takes no locks, and ignores the
/// write-ahead log.
pub(crate) fn connect_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    Connection::open_with_flags(uri, flags)
}

/// The application id and the schema version.
fn fields(path: &Path) -> rusqlite::Result<(u32, u32)> {
    let connection = connect_immutable(path)?;
    // During a checkpoint, and after one that was interrupted, the file is shorter than its header says, and only the
    // log has the rest. `writable_schema` allows reading the header; nothing else is read here.
    connection.pragma_update(None, "writable_schema", true)?;
    Ok((application_id(&connection)?, migration::version(&connection)?))
}

fn application_id(connection: &Connection) -> rusqlite::Result<u32> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(id.cast_unsigned())
}

/// Refuses a schema of a newer program.
pub(crate) fn check_version(path: &Path, found: u32) -> Result<(), StoreError> {
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known: SCHEMA_VERSION });
    }
    Ok(())
}

/// A log without its database would be replayed into the new one, or thrown away.
fn absent(path: &Path) -> Result<FileState, StoreError> {
    for suffix in ["-wal", "-journal"] {
        let beside = beside(path, suffix);
        if fs::metadata(&beside).is_ok_and(|metadata| metadata.len() > 0) {
            return Err(StoreError::Orphan { path: beside });
        }
    }
    Ok(FileState::Absent)
}

/// A file that SQLite keeps beside a database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
