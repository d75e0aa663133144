//! The database file: how it is opened, created and shared with other processes.
//!
//! Nothing in this process may open it as a plain file: closing that would release SQLite's locks on it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::connection::{connect, connect_alone, with_retries};
use crate::error::Fault;
use crate::header::{self, APPLICATION_ID, FileState};
use crate::maintenance::Maintenance;
use crate::migration::{self, MIGRATIONS};
use crate::queue::{LOCKS, Queue};
use crate::{SCHEMA_VERSION, StoreError, older};
use hermes_private_files as private;

pub(crate) const NAME: &str = "state.db";
/// A new database before it gets its name. Only the holder of [`CREATION_LOCK`] uses it.
const NEW_NAME: &str = "state.db.new";
pub(crate) const CREATION_LOCK: &str = "state.lock";

/// Longest wait for another process that creates the database. Creating takes a few milliseconds, most of them in `fsync`.
const CREATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The store of one home folder. Calls block; any number of threads and processes may share one.
#[derive(Debug)]
pub struct Store {
    home: PathBuf,
    path: PathBuf,
    /// Declared before the connection, because its own connection must be closed first.
    pub(crate) maintenance: Maintenance,
    queue: Queue,
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens `state.db` in a home folder; creates both if they are missing.
    ///
    /// New files are readable by their owner only; existing ones keep their mode. A file of another program, or of a
    /// newer version, is an error and stays unchanged, byte for byte, with nothing created beside it.
    ///
    /// First adds messages to the search index that it lacks, which can take minutes once.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        let store = Self::up_to_date(home)?;
        store.complete_search()?;
        Ok(store)
    }

    /// Migrates the schema, and leaves the search index as it is.
    fn up_to_date(home: &Path) -> Result<Self, StoreError> {
        private::create_folder(home).map_err(|source| StoreError::Home { path: home.to_owned(), source })?;
        let path = file(home);
        if header::inspect(&path)? == FileState::Absent {
            create(home, &path)?;
        }
        let mut connection = match connect(&path) {
            Err(error @ StoreError::DiskFull { .. }) => return Err(error),
            Err(error) if beside_is_missing(&error, &path) => return Err(StoreError::ReadOnly { path }),
            connection => connection.map_err(|error| unreadable_log(error, &path))?,
        };
        if connection.is_readonly("main").map_err(|error| StoreError::sqlite(&path, error))? {
            return Err(StoreError::ReadOnly { path });
        }
        with_retries(&mut connection, |connection| {
            require_wal(connection, &path)?;
            migration::run(connection, MIGRATIONS)?;
            // Reads the whole schema, so that a damaged schema is found here.
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok(())
        })
        .map_err(|fault| fault.at(&path))?;
        Ok(Self::new(home, path, connection))
    }

    /// The error if the `state.db` of a home belongs to another program. Writes nothing.
    pub fn foreign(home: &Path) -> Option<StoreError> {
        header::inspect(&file(home)).err().filter(|error| matches!(error, StoreError::Foreign { .. }))
    }

    /// Opens a store for reading; `None` if there is no store. Creates nothing.
    ///
    /// A store of an older version is migrated first. If that is impossible at the moment (a read-only or full disk, a lock that
    /// another process keeps), the two versions before this one are read as they are. The search may lack messages of an
    /// older store: [`Store::missing_in_search`].
    pub fn open_read_only(home: &Path) -> Result<Option<Self>, StoreError> {
        let path = file(home);
        match header::inspect(&path)? {
            FileState::Absent => return Ok(None),
            FileState::Ours { version } if version < SCHEMA_VERSION => match Self::up_to_date(home) {
                Err(StoreError::ReadOnly { .. } | StoreError::DiskFull { .. } | StoreError::Busy { .. })
                    if older::READABLE.contains(&version) => {}
                migrated => return migrated.map(Some),
            },
            FileState::Ours { .. } => {}
        }
        // A connection that could write removes the files beside the database when it is the last one; a read-only
        // connection would leave them.
        let connection = match connect(&path) {
            Err(error) if beside_is_missing(&error, &path) => {
                connect_alone(&path).map_err(|error| StoreError::sqlite(&path, error))?
            }
            connection => connection.map_err(|error| unreadable_log(error, &path))?,
        };
        let prepared = migration::version(&connection).and_then(|version| {
            if older::READABLE.contains(&version) {
                older::adapt(&connection, version)?;
            }
            connection.pragma_update(None, "query_only", true)
        });
        prepared.map_err(|error| StoreError::sqlite(&path, error))?;
        Ok(Some(Self::new(home, path, connection)))
    }

    fn new(home: &Path, path: PathBuf, connection: Connection) -> Self {
        Self {
            home: home.to_owned(),
            maintenance: Maintenance::of(&path),
            queue: Queue::of_home(home),
            path,
            connection: Mutex::new(connection),
        }
    }

    /// The home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs work that sees one state of the database from beginning to end.
    pub(crate) fn read<T>(&self, mut work: impl FnMut(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(Transaction::Read, &mut work)
    }

    /// Runs work that is stored as a whole or not at all, and waits until it is on the disk. Repeats it if another writer was
    /// in the way.
    pub(crate) fn write<T>(&self, mut work: impl FnMut(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(Transaction::Write, &mut work)
    }

    /// Like [`Self::write`], but does not wait for the disk. A power failure can undo the work, unless a later
    /// [`Self::write`] has returned; the end of the process cannot. For records without which a conversation continues.
    pub(crate) fn write_unsynced<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.transact(Transaction::WriteUnsynced, &mut work)
    }

    /// Runs work that writes, and rolls it back.
    pub(crate) fn rehearse<T>(&self, mut work: impl FnMut(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(Transaction::Rehearsal, &mut work)
    }

    /// Whether the store was opened for reading only.
    pub(crate) fn is_read_only(&self) -> Result<bool, StoreError> {
        self.read(|connection| Ok(connection.pragma_query_value(None, "query_only", |row| row.get(0))?))
    }

    fn transact<T>(
        &self,
        kind: Transaction,
        work: &mut dyn FnMut(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let writes = kind != Transaction::Read;
        // A panic in earlier work has rolled back its transaction, so the connection itself is sound.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn = writes.then(|| self.queue.next());
        let done = with_retries(&mut connection, |connection| {
            let behavior = if writes {
                // An acknowledged message is on the disk, even after a power failure.
                let synchronous = if kind == Transaction::WriteUnsynced { "NORMAL" } else { "FULL" };
                connection.pragma_update(None, "synchronous", synchronous)?;
                TransactionBehavior::Immediate
            } else {
                TransactionBehavior::Deferred
            };
            let transaction = connection.transaction_with_behavior(behavior)?;
            // The next writer may enter the queue now.
            drop(turn.take());
            if writes {
                // A newer program may have changed the schema since the store was opened.
                header::check_version(&self.path, migration::version(&transaction)?)?;
            }
            let done = work(&transaction)?;
            if kind != Transaction::Rehearsal {
                transaction.commit()?;
            }
            Ok(done)
        })
        .map_err(|fault| fault.at(&self.path))?;
        if writes {
            self.maintenance.committed();
        }
        Ok(done)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    Read,
    Write,
    WriteUnsynced,
    /// Rolled back.
    Rehearsal,
}

/// Whether reading failed because the files of the log cannot be created: the folder is read-only, or the disk is full. The
/// database can be read without them if its log is missing or empty.
fn beside_is_missing(error: &StoreError, path: &Path) -> bool {
    let cannot =
        matches!(error, StoreError::ReadOnly { .. } | StoreError::CannotOpen { .. } | StoreError::DiskFull { .. });
    cannot && !fs::metadata(header::beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// A process ended here without closing the store, and its log cannot be read without a file that cannot be created.
fn unreadable_log(error: StoreError, path: &Path) -> StoreError {
    let cannot = matches!(error, StoreError::ReadOnly { .. } | StoreError::CannotOpen { .. });
    if cannot && header::beside(path, "-wal").exists() && !header::beside(path, "-shm").exists() {
        return StoreError::ReadOnlyLog { path: path.to_owned() };
    }
    error
}

/// Databases are created in WAL mode. A database in another mode was changed by hand, or its file system does not
/// support WAL.
fn require_wal(connection: &Connection, path: &Path) -> Result<(), Fault> {
    // Reading the mode is harmless; setting it while others have the file open is not. So it is set only if necessary.
    if journal_mode(connection)? == "wal" || set_wal(connection)? == "wal" {
        return Ok(());
    }
    tracing::warn!(
        path = %path.display(),
        "this file system cannot hold a write-ahead log: state.db works, but its readers and writers wait for each other; a HERMES_HOME on a local disk avoids that"
    );
    Ok(())
}

fn journal_mode(connection: &Connection) -> rusqlite::Result<String> {
    connection.pragma_query_value(None, "journal_mode", |row| row.get(0))
}

fn set_wal(connection: &Connection) -> rusqlite::Result<String> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
}

/// The database of a home. A link is followed: the user keeps the database elsewhere.
pub(crate) fn file(home: &Path) -> PathBuf {
    let path = home.join(NAME);
    // What is wrong with a link is reported when the file is opened.
    private::target(&path).unwrap_or(path)
}

/// Creates the database under another name and renames it when it is complete, so that no process ever sees half of a
/// database and a crash leaves none.
fn create(home: &Path, path: &Path) -> Result<(), StoreError> {
    let locks = home.join(LOCKS);
    private::create_folder(&locks).map_err(|error| StoreError::file(&locks, error))?;
    let _turn = lock_creation(&locks.join(CREATION_LOCK))?;
    if header::inspect(path)? != FileState::Absent {
        return Ok(());
    }
    let new = path.with_file_name(NEW_NAME);
    let folder = path.parent().unwrap_or(home);
    for suffix in ["", "-journal", "-wal", "-shm"] {
        // Left by a process that ended here.
        let _ = fs::remove_file(header::beside(&new, suffix));
    }
    private::open_file(&new).map_err(|error| StoreError::file(&new, error))?;
    fill(&new).map_err(|error| StoreError::sqlite(&new, error))?;
    fs::rename(&new, path).and_then(|()| private::sync_folder(folder)).map_err(|error| StoreError::file(path, error))
}

/// When this returns, the file is complete and on the disk.
fn fill(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    migration::run(&mut connection, MIGRATIONS)?;
    set_wal(&connection)?;
    connection.close().map_err(|(_, error)| error)
}

/// Waits for the lock that allows creating the database. Dropping the file releases it.
pub(crate) fn lock_creation(path: &Path) -> Result<File, StoreError> {
    let file = private::open_file(path).map_err(|error| StoreError::file(path, error))?;
    match private::lock_within(&file, CREATION_TIMEOUT) {
        Ok(true) => Ok(file),
        Ok(false) => Err(StoreError::Busy { path: path.to_owned() }),
        Err(error) => Err(StoreError::file(path, error)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use hermes_conversation::{Draft, Item, MessageRange, Summary, View};
    use hermes_session_store::{Frozen, PromptNumber};

    use super::*;
    use crate::SearchQuery;
    use crate::testing::{new_session, store};

    #[test]
    fn a_full_disk_is_an_error_and_stores_nothing() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let said = store.append(&session, &[Draft::user("before", 1)]).unwrap();
        let mut export = Vec::new();
        store.export(None, crate::Layout::Lines, &mut export).unwrap();
        store.delete(&[session], false).unwrap();
        let session = store.create_session(new_session()).unwrap().id;
        // SQLite fails at this limit as it does on a full disk.
        let pages = |most: u32| store.connection.lock().unwrap().pragma_update(None, "max_page_count", most).unwrap();
        pages(1);
        let long = "x".repeat(1_000_000);
        let summary = Summary { key: "s".into(), content: long.clone(), covers: vec![MessageRange::one(said[0].id)] };
        let view = View { items: vec![Item::Summary(summary)], through: None };
        let frozen = crate::Frozen { system_prompt: long.clone(), ..crate::Frozen::default() };
        let request = crate::RequestRecord { ephemeral: Some(long.clone()), ..crate::RequestRecord::default() };
        let much = String::from_utf8(export.clone()).unwrap().replace("before", &long);
        let refused = [
            store.append(&session, &[Draft::user("fits", 1), Draft::user(long.clone(), 2)]).map(drop),
            store.put_view(&session, &view, "", "e").map(drop),
            store.freeze(&session, &frozen, 1).map(drop),
            store.record_request(&session, &request).map(drop),
            store.set_note("a", Some(&long)),
            store.import(&mut Cursor::new(much), 2, crate::Trust::OwnFiles).map(drop),
        ];
        for result in refused {
            assert!(matches!(result, Err(StoreError::DiskFull { .. })), "{result:?}");
        }
        assert_eq!(store.conversation(&session).unwrap(), []);
        assert_eq!(store.view(&session).unwrap(), View::default());
        assert_eq!((store.requests(&session).unwrap().len(), store.sessions().unwrap().len()), (0, 1));
        pages(1_000_000);
        store.append(&session, &[Draft::user(long, 2)]).unwrap();
        assert_eq!(store.import(&mut Cursor::new(export), 2, crate::Trust::OwnFiles).unwrap().sessions.len(), 1);
    }

    #[test]
    fn a_store_in_a_read_only_folder_can_be_searched() {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        store.append(&session, &[Draft::user("needle C++ 错误", 1)]).unwrap();
        let path = store.path().to_owned();
        drop(store);
        let store = Store::new(home.path(), path.clone(), connect_alone(&path).unwrap());
        for (text, found) in [("needle", 1), ("C++", 1), ("错误", 1), ("eedl", 1), ("missing", 0)] {
            assert_eq!(store.search(&SearchQuery::new(text)).unwrap().len(), found, "{text}");
        }
        drop(store);
        assert!(!header::beside(&path, "-wal").exists());
    }

    #[test]
    fn a_kept_statement_is_planned_once() {
        let (_home, store) = store();
        let connection = store.connection.lock().unwrap();
        let sql = "SELECT id FROM messages WHERE session_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
        let mut statement = connection.prepare_cached(sql).unwrap();
        for id in 0..3 {
            assert!(!statement.exists(("session", id, 2)).unwrap());
        }
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }

    #[test]
    fn commits_are_synced_and_foreign_keys_are_enforced() {
        let (_home, store) = store();
        let connection = store.connection.lock().unwrap();
        let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((number("synchronous"), number("foreign_keys")), (2, 1));
        assert_eq!(journal_mode(&connection).unwrap(), "wal");
    }

    #[test]
    fn writes_stop_after_a_newer_program_has_changed_the_schema() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let newer = Connection::open(store.path()).unwrap();
        newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        let error = store.append(&session, &[Draft::user("no", 1)]).unwrap_err();
        assert!(matches!(error, StoreError::NewerSchema { found, .. } if found == SCHEMA_VERSION + 1), "{error}");
        newer.pragma_update(None, "user_version", SCHEMA_VERSION).unwrap();
        assert_eq!(store.conversation(&session).unwrap(), []);
        store.append(&session, &[Draft::user("yes", 1)]).unwrap();
    }

    #[test]
    fn only_writes_that_a_conversation_can_lose_do_not_wait_for_the_disk() {
        let (_home, store) = store();
        let level = || -> i64 {
            store.read(|connection| Ok(connection.pragma_query_value(None, "synchronous", |row| row.get(0))?)).unwrap()
        };
        let (full, normal) = (2, 1);
        let session = store.create_session(new_session()).unwrap().id;
        assert_eq!(level(), normal);
        let said = store.append(&session, &[Draft::user("hi", 1)]).unwrap();
        assert_eq!(level(), full);
        let frozen = Frozen {
            number: PromptNumber(0),
            system_prompt: "be kind".to_owned(),
            layers: String::new(),
            tools: "[]".to_owned(),
            reason: "the session begins".to_owned(),
        };
        store.freeze(&session, &frozen, 2).unwrap();
        assert_eq!(level(), normal);
        // The words of a branch are its parent's, but the user was shown the branch.
        store.branch(&session, None, None, 3).unwrap();
        assert_eq!(level(), full);
        store.freeze(&session, &frozen, 4).unwrap();
        store.rewind(&session, said[0].id).unwrap();
        assert_eq!(level(), full);
    }

    #[test]
    fn the_store_works_after_a_panic_within_a_transaction() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.write(|connection| -> Result<(), Fault> {
                connection.execute("UPDATE sessions SET title = 'half'", [])?;
                panic!("in the middle");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(store.session(&session).unwrap().title, None);
    }

    #[test]
    fn a_store_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Store>();
    }
}
