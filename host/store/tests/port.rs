//! The implementation of the session store's interface: it follows the common rules, and no call blocks an async thread.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_conversation::{Draft, Model};
use hermes_session_store::SessionLog as _;
use hermes_store::{NewSession, SqliteSessions, Store};
use rusqlite::Connection;
use tempfile::TempDir;

async fn open() -> (TempDir, SqliteSessions) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, SqliteSessions::new(Arc::new(store)))
}

hermes_testkit::session_store_rules!(open);

fn new(home: &TempDir) -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: home.path().to_owned(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1,
        parent: None,
    }
}

#[tokio::test]
async fn a_call_that_nobody_polls_holds_up_no_other() {
    const PATIENCE: Duration = Duration::from_secs(600);
    let (home, store) = open().await;
    let session = store.create_session(new(&home)).await.unwrap().id;
    let writer = Connection::open(home.path().join("state.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let drafts = [Draft::user("hello", 1)];
    let mut first = store.append(&session, &drafts);
    let mut forgotten = store.append(&session, &drafts);
    let last = store.append(&session, &drafts);
    // Each is asked once, so that they queue in this order.
    assert!(tokio::time::timeout(Duration::ZERO, &mut first).await.is_err());
    assert!(tokio::time::timeout(Duration::ZERO, &mut forgotten).await.is_err());
    writer.execute_batch("ROLLBACK").unwrap();
    first.await.unwrap();
    tokio::time::timeout(PATIENCE, last).await.expect("the forgotten call has the turn").unwrap();
    assert_eq!(forgotten.await.unwrap().len(), 1);
}

/// One thread runs everything: a store call that blocked it would keep the clock from ticking.
#[tokio::test(flavor = "current_thread")]
async fn a_task_keeps_running_while_a_write_waits_for_another_process() {
    const HELD: Duration = Duration::from_millis(1_500);
    const TICK: Duration = Duration::from_millis(10);
    let (home, store) = open().await;
    let session = store.create_session(new(&home)).await.unwrap().id;
    let writer = Connection::open(home.path().join("state.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = std::thread::spawn(move || {
        std::thread::sleep(HELD);
        writer.execute_batch("ROLLBACK").unwrap();
    });
    let ticking = tokio::spawn(async move {
        let mut ticks = 0;
        while !release.is_finished() {
            tokio::time::sleep(TICK).await;
            ticks += 1;
        }
        ticks
    });
    let begun = Instant::now();
    store.append(&session, &[Draft::user("hello", 1)]).await.unwrap();
    assert!(begun.elapsed() >= HELD, "the other writer was not waited for");
    // A thread that stands still has time for one.
    assert!(ticking.await.unwrap() > 2, "the thread stood still");
    assert_eq!(store.conversation(&session).await.unwrap().len(), 1);
}
