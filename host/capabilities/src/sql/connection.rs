//! One connection: how it is opened, the limits of all its statements, and when it is used again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::AuthContext;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::error::Failure;
use super::functions;
use super::guard::Gate;
use super::watch::{self, Watch};
use super::{Budget, MAX_VALUE, Quota, SqlError};

/// How long SQLite itself waits for a lock before the budget is checked again.
const SLICE: Duration = Duration::from_millis(50);
/// Number of compiled statements that a connection caches.
const STATEMENTS: usize = 64;
/// The size in bytes to which the write-ahead log is truncated after a checkpoint.
const LOG: i64 = 16 << 20;

/// The bytes from which a log must be merged into the file before the next transaction: this part of the quota, and at least so many.
const LOG_PART: u64 = 4;
const LOG_LEAST: u64 = 32 << 20;

/// Limits of the parser and the virtual machine. Each is high enough for usual statements, and low enough that the stack
/// does not overflow and no single step takes seconds.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE as i32),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_VALUE as i32),
    (Limit::SQLITE_LIMIT_COLUMN, 500),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    // A pattern with many wildcards takes quadratic time in a single step.
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10_000),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 32),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// A connection that refuses everything that plugins may not do.
pub(super) struct Guarded {
    pub(super) connection: Connection,
    pub(super) gate: Arc<Gate>,
    pub(super) watch: Arc<Watch>,
    /// The generation of the pool when it was opened.
    pub(super) generation: u64,
    /// The write-ahead log, and its most bytes before a transaction.
    pub(super) log: Option<(PathBuf, u64)>,
}

impl Guarded {
    /// Confines a connection before it runs a statement of the plugin. `memory` limits all connections of the process
    /// together.
    pub(super) fn new(
        mut connection: Connection,
        quota: &Quota,
        memory: Option<u64>,
        budget: &Budget,
        generation: u64,
    ) -> Result<Self, Failure> {
        if let Some(memory) = memory {
            connection.pragma_update_and_check(
                None,
                "hard_heap_limit",
                i64::try_from(memory).unwrap_or(i64::MAX),
                |_| Ok(()),
            )?;
        }
        retry_while_busy(budget, || settle(&connection, quota))?;
        functions::replace_in(&connection)?;
        let (gate, watch) = (Arc::<Gate>::default(), Arc::<Watch>::default());
        let own = Arc::clone(&gate);
        connection.authorizer(Some(move |context: AuthContext<'_>| own.judge(&context)))?;
        let own = Arc::clone(&watch);
        connection.progress_handler(watch::STEPS, Some(move || own.look()))?;
        Ok(Self { connection, gate, watch, generation, log: None })
    }

    /// The same for the database in this file, whose log does not grow without end.
    #[must_use]
    pub(super) fn of_file(self, path: &Path, quota: &Quota) -> Self {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Self { log: Some((log.into(), (quota.bytes / LOG_PART).max(LOG_LEAST))), ..self }
    }

    /// Begins a transaction that writes. As long as a statement reads an older state, SQLite appends every change to the log, and
    /// the limit of the file does not count it. So a transaction begins only after a large log is merged.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        let run = |sql: &str| self.gate.open_for(|| self.connection.execute_batch(sql));
        run("BEGIN IMMEDIATE")?;
        let Some((log, most)) = &self.log else { return Ok(()) };
        let is_large = || log.metadata().is_ok_and(|log| log.len() > *most);
        if !is_large() {
            return Ok(());
        }
        run("ROLLBACK")?;
        // This fails while a statement reads; then the log is as large as before.
        let _ = run("PRAGMA wal_checkpoint(TRUNCATE)");
        if is_large() {
            return Err(Failure::busy());
        }
        Ok(run("BEGIN IMMEDIATE")?)
    }

    /// Resets the connection for the next call. None if that fails.
    pub(super) fn cleared(self) -> Option<Self> {
        self.watch.end();
        self.gate.refused();
        self.roll_back();
        self.connection.is_autocommit().then_some(self)
    }

    /// Ends a transaction that is still open. Many errors have ended it already.
    pub(super) fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.gate.open_for(|| self.connection.execute_batch("ROLLBACK"))
        {
            tracing::warn!(%error, "a plugin's transaction could not be rolled back");
        }
    }
}

/// Creates a missing file that only its owner can open.
///
/// An existing file is only opened by SQLite: opening and closing it here would release SQLite's locks on it in this
/// process. Therefore no other thread may be opening the file while this function creates one.
pub(super) fn create(path: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::File(path.to_owned(), error);
    if let Some(folder) = path.parent() {
        hermes_private_files::create_folder(folder).map_err(failed)?;
    }
    match hermes_private_files::create_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map(drop).map_err(failed),
    }
    // A link is refused, because it may point to a file of another user; so is anything that is not a regular file. A parent
    // folder may be a link: people move their data to where they have space.
    match path.symlink_metadata().map_err(failed)?.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_symlink() => Err(failed(io::Error::other("it is a link; put the file itself there"))),
        _ => Err(failed(io::Error::other("it is not a file"))),
    }
}

/// Opens the file in WAL mode, in which readers and a writer do not wait for each other.
pub(super) fn open(path: &Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(SLICE)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        // On a file system without support for such a log, the default mode works too.
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    }
    // A crash of the process loses nothing; a power failure may lose the last transactions, each completely.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", LOG)?;
    Ok(connection)
}

pub(super) fn open_in_memory() -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_in_memory_with_flags(flags)?)
}

fn settle(connection: &Connection, quota: &Quota) -> Result<(), Failure> {
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        // The plugin also wrote the schema, so it may only call functions that SQLite marks as innocuous.
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        // A misspelled column is an error, not a string.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    for &(limit, most) in LIMITS {
        connection.set_limit(limit, most)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Write no files but the database and its log.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = u32::try_from(quota.bytes / u64::from(page.max(1))).unwrap_or(u32::MAX).max(1);
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    Ok(())
}

/// Tries again while other connections block the work, as long as the caller waits.
pub(super) fn retry_while_busy<T>(budget: &Budget, mut work: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    loop {
        match work() {
            Err(failure) if failure.is_busy() => {
                if budget.is_cancelled() {
                    return Err(SqlError::Cancelled.into());
                }
                if budget.left().is_zero() {
                    return Err(SqlError::Busy.into());
                }
                // SQLite returns at once if waiting for the lock cannot help.
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}
