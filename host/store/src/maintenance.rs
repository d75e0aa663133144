//! Moves the write-ahead log into the database while others write.
//!
//! SQLite would do this within whichever commit finds the log long, and that commit would wait for two more syncs and
//! for all pages between them. Here a thread does it while others continue to write. The first writer that writes much,
//! or finds a long log, starts the thread; a command that stores a message or two leaves the work to closing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::connection::{LONG_PAGES, connect};
use crate::header::beside;
use crate::queue::Queue;

/// Commits between two rounds. With about ten pages each, that is about four megabytes.
const COMMITS_PER_ROUND: u32 = 100;
/// If the log has this many bytes, the first commit of a process starts a round at once. Otherwise the log would only
/// grow while another process keeps the database open and many short processes each store a message.
const LONG_AT_START: u64 = 4 << 20;
/// How long writers wait for that while a reader still uses the log. After that the log grows until the reader has
/// ended.
const BLOCKING_TIMEOUT: Duration = Duration::from_millis(20);
/// The thread, once it was needed.
#[derive(Debug)]
pub(crate) struct Maintenance {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Commits since the thread was last woken.
    commits: u32,
    /// Whether the length of the log was checked.
    looked: bool,
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    bell: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Maintenance {
    /// For the database at this path.
    pub(crate) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), state: Mutex::new(State { commits: 0, looked: false, worker: None }) }
    }

    /// Called after each commit; never waits.
    pub(crate) fn committed(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.commits += 1;
        let is_left = !std::mem::replace(&mut state.looked, true) && is_long(&self.path);
        if state.commits < COMMITS_PER_ROUND && !is_left {
            return;
        }
        state.commits = 0;
        if state.worker.is_none() {
            state.worker = start(&self.path);
        }
        if let Some(worker) = &state.worker {
            // If the thread was woken already, once is enough.
            let _ = worker.bell.try_send(());
        }
    }
}

impl Drop for Maintenance {
    /// Waits for the round that is running, so that closing the last connection finds the log unused.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Worker { bell, thread }) = state.worker.take() {
            drop(bell);
            let _ = thread.join();
        }
    }
}

/// Whether the log is or was long: its file keeps its length.
fn is_long(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() >= LONG_AT_START)
}

fn start(path: &Path) -> Option<Worker> {
    let (bell, rings) = sync_channel(1);
    let path = path.to_owned();
    let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(move || work(&path, &rings)).ok()?;
    Some(Worker { bell, thread })
}

fn work(path: &Path, rings: &Receiver<()>) {
    let connection = match connect(path) {
        Ok(connection) => connection,
        Err(error) => return tracing::debug!(%error, "no connection for checkpoints"),
    };
    let queue = path.parent().map(Queue::of_home);
    while rings.recv().is_ok() {
        if let Err(error) = round(&connection, queue.as_ref()) {
            tracing::debug!(%error, "a checkpoint was not finished");
        }
    }
}

/// Moves what can be moved without blocking others. Moves the rest only if the log has become long.
fn round(connection: &Connection, queue: Option<&Queue>) -> rusqlite::Result<()> {
    if checkpoint(connection, "PASSIVE")? > LONG_PAGES {
        // A second pass moves the pages that were written meanwhile, so that little remains for the blocking pass.
        checkpoint(connection, "PASSIVE")?;
        let _place = queue.map(Queue::next);
        connection.busy_timeout(BLOCKING_TIMEOUT)?;
        // The log restarts at its beginning, and its file keeps its length: truncating would block everyone for longer,
        // and growing again would slow down every write.
        checkpoint(connection, "RESTART")?;
    }
    Ok(())
}

/// Returns how many pages the log has.
fn checkpoint(connection: &Connection, how: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |row| row.get(1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Draft;

    use super::*;
    use crate::Store;
    use crate::testing::{new_session, store};

    #[test]
    fn a_round_moves_and_restarts_a_long_log() {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let other = connect(store.path()).unwrap();
        let text = "x".repeat(4 * 1024 * 1024);
        for at in 0..20 {
            store.append(&session, &[Draft::user(text.clone(), at)]).unwrap();
        }
        let log = home.path().join("state.db-wal");
        let length = fs::metadata(&log).unwrap().len();
        assert!(length > 64 * 1024 * 1024);
        round(&other, Some(&Queue::of_home(home.path()))).unwrap();
        store.append(&session, &[Draft::user("after", 1)]).unwrap();
        assert!(checkpoint(&other, "PASSIVE").unwrap() < 100);
        assert_eq!(fs::metadata(&log).unwrap().len(), length);
        drop((store, other));
        assert!(!log.exists());
    }

    #[test]
    fn a_round_does_not_wait_for_a_reader() {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let (other, reader) = (connect(store.path()).unwrap(), connect(store.path()).unwrap());
        reader.execute_batch("BEGIN; SELECT count(*) FROM messages;").unwrap();
        store.append(&session, &[Draft::user("x".repeat(70 * 1024 * 1024), 1)]).unwrap();
        round(&other, Some(&Queue::of_home(home.path()))).unwrap();
        store.append(&session, &[Draft::user("after", 1)]).unwrap();
        assert!(checkpoint(&other, "PASSIVE").unwrap() > LONG_PAGES, "the log continues to grow");
        let seen = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(seen, 0);
        assert_eq!(store.conversation(&session).unwrap().len(), 2);
    }

    #[test]
    fn the_thread_starts_after_many_writes() {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let has_thread = |store: &Store| store.maintenance.state.lock().unwrap().worker.is_some();
        for at in 2..COMMITS_PER_ROUND.into() {
            store.append(&session, &[Draft::user("a", at)]).unwrap();
        }
        assert!(!has_thread(&store));
        store.append(&session, &[Draft::user("a", 1)]).unwrap();
        assert!(has_thread(&store));
        drop(store);
        assert!(!home.path().join("state.db-wal").exists(), "its connection was not the last");
    }
    #[test]
    fn the_log_stays_short_with_many_short_processes_and_an_idle_one() {
        let (home, idle) = store();
        let session = idle.create_session(new_session()).unwrap().id;
        let log = home.path().join("state.db-wal");
        let mut longest = 0;
        for at in 0..60 {
            let short = Store::open(home.path()).unwrap();
            short.append(&session, &[Draft::user("x".repeat(256 << 10), at)]).unwrap();
            drop(short);
            longest = longest.max(fs::metadata(&log).unwrap().len());
        }
        // Fifteen megabytes of messages were written, plus the indexes.
        assert!(longest < 2 * LONG_AT_START, "{longest}");
        assert_eq!(idle.conversation(&session).unwrap().len(), 60);
    }
}
