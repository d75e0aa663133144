//! The service behind the import `sql`: a SQLite database of one plugin, shared by all its instances and by several
//! processes.
//!
//! A plugin's SQL is untrusted. `guard` checks a statement while SQLite compiles it, `watch` limits it while it runs, the
//! size of the file limits what it stores, and `worker` runs it in a process that can be ended, with a limit of memory. The
//! caller that creates a [`Database`] chooses the file.

#[cfg(test)]
pub(crate) mod attack;
mod connection;
mod error;
mod functions;
mod guard;
mod statement;
#[cfg(test)]
mod tests;
mod watch;
mod worker;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

pub use self::error::SqlError;
pub use self::worker::{WorkerProgram, run_in_workers, serve};
pub use rusqlite::types::Value;

use serde::{Deserialize, Serialize};

use self::connection::Guarded;
use self::worker::Remote;

/// The most bytes of a statement's text, of one value, or of one row of a table.
pub const MAX_VALUE: usize = 1 << 20;

/// Most connections of one file, and so of concurrent statements. A database in memory has one connection.
const CONNECTIONS: usize = 4;
/// How often a waiting call checks whether its caller still waits.
const LOOK: Duration = Duration::from_millis(25);
/// The usual grace of a budget.
const GRACE: Duration = Duration::from_millis(200);

/// One SQL statement, with the values of its parameters in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The text, with `?1`, `?2`, … for the parameters.
    pub sql: String,
    /// One value for each parameter.
    pub params: Vec<Value>,
}

impl Statement {
    /// A statement with its parameters.
    pub fn new(sql: impl Into<String>, params: impl IntoIterator<Item = Value>) -> Self {
        Self { sql: sql.into(), params: params.into_iter().collect() }
    }
}

/// The rows of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<Value>>,
}

/// The limits of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// The most bytes of the database.
    pub bytes: u64,
    /// The most rows of one result.
    pub rows: usize,
    /// The most bytes of one result.
    pub answer: usize,
    /// The most bytes of memory that SQLite takes in a worker, for all statements together and, in memory, the database.
    pub memory: u64,
}

impl Quota {
    /// The limits of every plugin: 1 GiB, 100,000 rows and 16 MiB for a query, and 256 MiB of memory.
    pub fn standard() -> Self {
        Self { bytes: 1 << 30, rows: 100_000, answer: 16 << 20, memory: 256 << 20 }
    }

    /// The same with another limit of memory.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// For a database in memory that is thrown away: all of it counts towards this many bytes.
    pub fn temporary(memory: u64) -> Self {
        Self { bytes: memory / 2, memory, ..Self::standard() }
    }
}

/// The deadline of a call, and whether its caller still waits.
#[derive(Clone)]
pub struct Budget {
    /// The deadline.
    pub until: Instant,
    /// How long after its deadline, or after the caller has gone, a statement in a worker may still stop by itself.
    pub grace: Duration,
    /// Called regularly while a statement runs.
    pub cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Budget {
    /// A budget of time alone.
    pub fn of(time: Duration) -> Self {
        Self { until: Instant::now() + time, grace: GRACE, cancelled: Arc::new(|| false) }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn is_cancelled(&self) -> bool {
        (self.cancelled)()
    }
}

/// A plugin's database. Calls block, and any number of threads may make them. The first call opens the file.
pub struct Database {
    place: Place,
    quota: Quota,
    pool: Mutex<Pool>,
    returned: Condvar,
    /// Held while a connection is opened: see [`connection::create`].
    opening: Mutex<()>,
    /// The worker that runs the statements, unless this process does.
    remote: Option<Remote>,
    /// Whether this process is a worker, with no other database.
    is_worker: bool,
}

enum Place {
    File(PathBuf),
    Memory,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Guarded>,
    /// All open connections, those in use included.
    open: usize,
    /// Incremented when open connections must not be used again.
    generation: u64,
}

/// Every database file in use by this process.
static FILES: LazyLock<Mutex<HashMap<PathBuf, Weak<Database>>>> = LazyLock::new(Mutex::default);

impl Database {
    /// The database in a file. The first use creates the file and its folder, for the owner alone. All callers in this process
    /// that name the same file share one database.
    pub fn at(path: impl Into<PathBuf>) -> Arc<Self> {
        Self::at_with(path, Quota::standard())
    }

    /// Like [`Database::at`], with other limits. While the database is in use, those of its first caller count.
    pub fn at_with(path: impl Into<PathBuf>, quota: Quota) -> Arc<Self> {
        let path = path.into();
        let mut files = lock(&FILES);
        files.retain(|_, database| database.strong_count() > 0);
        if let Some(database) = files.get(&path).and_then(Weak::upgrade) {
            return database;
        }
        let database = Arc::new(Self::new(Place::File(path.clone()), quota));
        files.insert(path, Arc::downgrade(&database));
        database
    }

    /// A database in memory of this process, for the lab, measurements and tests: they make thousands, and a worker for each
    /// would take most of their time. It costs nothing until it is used.
    pub fn in_memory() -> Self {
        Self { is_worker: false, ..Self::here(Place::Memory, Quota::standard()) }
    }

    /// A database in memory with these limits, in a worker if this process uses workers. A statement that ends its worker takes
    /// the contents along.
    pub fn in_memory_with(quota: Quota) -> Self {
        Self::new(Place::Memory, quota)
    }

    fn new(place: Place, quota: Quota) -> Self {
        let path = if let Place::File(path) = &place { Some(path.clone()) } else { None };
        Self { remote: Remote::new(path, quota), is_worker: false, ..Self::here(place, quota) }
    }

    /// A database whose statements run in this process, which is a worker.
    fn here(place: Place, quota: Quota) -> Self {
        Self {
            place,
            quota,
            pool: Mutex::default(),
            returned: Condvar::new(),
            opening: Mutex::default(),
            remote: None,
            is_worker: true,
        }
    }

    /// The path of the file; `None` for a database in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Memory => None,
        }
    }

    /// Runs one statement that only reads.
    ///
    /// # Errors
    ///
    /// An error affects only this call: the next one works.
    pub fn query(&self, statement: &Statement, budget: &Budget) -> Result<Rows, SqlError> {
        if let Some(remote) = &self.remote {
            return remote.query(statement, budget);
        }
        self.on_connection(budget, |connection| connection.query(statement, budget, &self.quota))
    }

    /// Runs all statements or none, and returns how many rows each changed.
    ///
    /// # Errors
    ///
    /// After an error, the call has had no effect.
    pub fn execute(&self, statements: &[Statement], budget: &Budget) -> Result<Vec<u64>, SqlError> {
        if let Some(remote) = &self.remote {
            return remote.execute(statements, budget);
        }
        self.on_connection(budget, |connection| connection.execute(statements, budget))
    }

    /// Closes the connections that no call uses. With the last one, SQLite merges its log into the file.
    fn close_idle(&self) {
        let idle = std::mem::take(&mut lock(&self.pool).idle);
        lock(&self.pool).open -= idle.len();
    }

    fn on_connection<T>(
        &self,
        budget: &Budget,
        work: impl FnOnce(&mut Guarded) -> Result<T, error::Failure>,
    ) -> Result<T, SqlError> {
        let mut lent = self.take(budget)?;
        let connection = lent.connection.as_mut().expect("the connection is returned only on drop");
        work(connection).map_err(|failure| {
            if failure.is_about_the_file() && self.path().is_some() {
                // The file may be repaired or replaced: no one should go on with the open connections.
                lock(&self.pool).generation += 1;
            }
            failure.into_sql_error(self.path(), &self.quota)
        })
    }

    /// An idle connection, or a new one if the limit allows it.
    fn take(&self, budget: &Budget) -> Result<Lent<'_>, SqlError> {
        let most = if self.path().is_some() { CONNECTIONS } else { 1 };
        let mut pool = lock(&self.pool);
        loop {
            let generation = pool.generation;
            let before = pool.idle.len();
            pool.idle.retain(|connection| connection.generation == generation);
            pool.open -= before - pool.idle.len();
            if let Some(connection) = pool.idle.pop() {
                return Ok(Lent { database: self, connection: Some(connection) });
            }
            if pool.open < most {
                pool.open += 1;
                drop(pool);
                let mut lent = Lent { database: self, connection: None };
                let opened = self.open(budget, generation);
                lent.connection = Some(opened.map_err(|failure| failure.into_sql_error(self.path(), &self.quota))?);
                return Ok(lent);
            }
            if budget.is_cancelled() {
                return Err(SqlError::Cancelled);
            }
            let left = budget.left();
            if left.is_zero() {
                return Err(SqlError::Busy);
            }
            pool = self.returned.wait_timeout(pool, left.min(LOOK)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn open(&self, budget: &Budget, generation: u64) -> Result<Guarded, error::Failure> {
        let connection = match &self.place {
            Place::Memory => connection::open_in_memory(),
            Place::File(path) => {
                let _one_at_a_time = lock(&self.opening);
                connection::create(path)?;
                connection::retry_while_busy(budget, || connection::open(path))
            }
        }?;
        let memory = self.is_worker.then_some(self.quota.memory);
        let guarded = Guarded::new(connection, &self.quota, memory, budget, generation)?;
        Ok(match self.path() {
            Some(path) => guarded.of_file(path, &self.quota),
            None => guarded,
        })
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("path", &self.path()).field("quota", &self.quota).finish_non_exhaustive()
    }
}

/// A connection in use. Dropping it returns the connection to the pool, unless it must not be used again.
struct Lent<'a> {
    database: &'a Database,
    connection: Option<Guarded>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let sound = self.connection.take().and_then(Guarded::cleared);
        let mut pool = lock(&self.database.pool);
        match sound {
            Some(connection) if connection.generation == pool.generation => pool.idle.push(connection),
            _ => pool.open -= 1,
        }
        drop(pool);
        self.database.returned.notify_one();
    }
}

/// The data under these locks is always consistent, so that a panic in another thread does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
