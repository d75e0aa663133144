//! Connections to the database file: how they are opened, and what they keep.

use std::path::Path;
use std::time::Duration;

use backon::{BlockingRetryable as _, ConstantBuilder};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::Fault;
use crate::queue::wait_for_writer;
use crate::{StoreError, header, migration, search};

/// The number of retries while others write. With [`wait_for_writer`] and the pauses this takes about nine seconds.
const RETRIES: usize = 14;
/// The shortest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(60);

/// The most KiB of pages that a connection keeps: what a search reads again and again.
const CACHE: i64 = 8 << 10;
/// Prepared statements to cache: more than a turn uses.
const STATEMENTS: usize = 64;

/// If the log has this many pages (64 MiB), writers have to wait for the end of a round. While they write, a round
/// never quite catches up with them, and the log would grow as long as they continue.
pub(crate) const LONG_PAGES: i64 = 16_384;
/// If no thread can be started, a commit moves the log itself from this many pages on.
const AUTOCHECKPOINT_PAGES: i64 = 4 * LONG_PAGES;

/// A connection to a database whose header is that of a store.
pub(crate) fn connect(path: &Path) -> Result<Connection, StoreError> {
    // Without SQLITE_OPEN_CREATE: a database that has vanished is not created again.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| StoreError::sqlite(path, error))?;
    prepare(connection, path).map_err(|fault| fault.at(path))
}

/// A connection where neither the database nor anything beside it can be written.
pub(crate) fn connect_alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = header::connect_immutable(path)?;
    keep_statements(&connection)?;
    search::register(&connection)?;
    Ok(connection)
}

/// Keeps prepared statements, with the plans that they were prepared with. Otherwise SQLite plans some statements anew whenever
/// a parameter gets another value, which takes longer than to run them.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn prepare(mut connection: Connection, path: &Path) -> Result<Connection, Fault> {
    connection.busy_handler(Some(wait_for_writer))?;
    keep_statements(&connection)?;
    search::register(&connection)?;
    // Until the version is known: closing the last connection would move the log into the database.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let version = with_retries(&mut connection, |connection| Ok(migration::version(connection)?))?;
    header::check_version(path, version)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", AUTOCHECKPOINT_PAGES)?;
    Ok(connection)
}

/// Repeats work after a pause while another connection blocks it.
pub(crate) fn with_retries<T>(
    connection: &mut Connection,
    mut work: impl FnMut(&mut Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    // Each pause has a random length, so that two writers do not collide again and again.
    let pauses = ConstantBuilder::new().with_delay(PAUSE).with_jitter().with_max_times(RETRIES);
    (|| work(connection)).retry(pauses).when(Fault::is_busy).call()
}
