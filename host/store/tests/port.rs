//! The implementation of the session store's interface: it follows the common rules, and no call blocks an async thread.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_conversation::{Draft, Model};
use hermes_store::{NewSession, SessionStore, SqliteSessions, Store};
use rusqlite::Connection;
use tempfile::TempDir;

async fn open() -> (TempDir, SqliteSessions) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, SqliteSessions::new(Arc::new(store)))
}

hermes_testkit::session_store_rules!(open);

/// One thread runs everything: a store call that blocked it would keep the clock from ticking.
#[tokio::test(flavor = "current_thread")]
async fn a_task_keeps_running_while_a_write_waits_for_another_process() {
    const HELD: Duration = Duration::from_millis(1_500);
    const TICK: Duration = Duration::from_millis(10);
    let (home, store) = open().await;
    let new = NewSession {
        source: "cli".into(),
        workspace: home.path().to_owned(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1,
        parent: None,
    };
    let session = store.create_session(new).await.unwrap().id;
    let writer = Connection::open(home.path().join("state.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(HELD);
        writer.execute_batch("ROLLBACK").unwrap();
    });
    let ticking = tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(TICK).await;
            longest = longest.max(last.elapsed());
            last = Instant::now();
            if release.is_finished() {
                return longest;
            }
        }
    });
    let begun = Instant::now();
    store.append(&session, &[Draft::user("hello", 1)]).await.unwrap();
    assert!(begun.elapsed() >= HELD, "the other writer was not waited for");
    let longest = ticking.await.unwrap();
    assert!(longest < HELD / 2, "the thread stood still for {longest:?}");
    assert_eq!(store.conversation(&session).await.unwrap().len(), 1);
}
