//! Several processes with one home folder. The tests start this program again as a child process.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::new_session;
use hermes_conversation::{Draft, SessionId};
use hermes_diagnostic::{Action, Diagnose as _};
use hermes_store::{SessionError, Store, StoreError};

const HOME: &str = "HERMES_STORE_TEST_HOME";
const SESSION: &str = "HERMES_STORE_TEST_SESSION";
const MESSAGES: u64 = 40;

/// Starts one of the ignored tests below as a process of its own.
fn start(part: &str, home: &Path, session: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", part, "--nocapture"])
        .env(HOME, home)
        .env(SESSION, session)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("1 passed"), "it ran nothing: {output}");
}

fn part() -> Option<(PathBuf, SessionId)> {
    Some((std::env::var_os(HOME)?.into(), SessionId(std::env::var(SESSION).ok()?)))
}

fn write(store: &Store, session: &SessionId, writer: &str) {
    for number in 0..MESSAGES {
        let text = format!("{writer} {number}");
        let pair = [Draft::user(text.clone(), number), Draft::assistant(text, Vec::new(), number)];
        store.append(session, &pair).unwrap();
    }
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn writer() {
    let Some((home, session)) = part() else { return };
    let store = Store::open(&home).unwrap();
    write(&store, &session, &format!("process {}", std::process::id()));
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn opener() {
    let Some((home, _)) = part() else { return };
    let store = Store::open(&home).unwrap();
    let session = store.create_session(new_session()).unwrap();
    store.append(&session.id, &[Draft::user("hello", 1)]).unwrap();
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn holder() {
    let Some((home, session)) = part() else { return };
    let store = Store::open(&home).unwrap();
    let _lease = store.lease(&session).unwrap();
    println!("\nleased");
    loop {
        std::thread::park();
    }
}

#[test]
fn writers_in_threads_and_processes_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let processes: Vec<Child> = (0..2).map(|_| start("writer", home.path(), session.as_str())).collect();
    std::thread::scope(|scope| {
        for name in ["thread 0", "thread 1"] {
            let session = &session;
            let home = home.path();
            scope.spawn(move || write(&Store::open(home).unwrap(), session, name));
        }
    });
    processes.into_iter().for_each(finish);

    let conversation = store.conversation(&session).unwrap();
    let texts: HashSet<&str> = conversation.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(conversation.len() as u64, 4 * 2 * MESSAGES);
    assert_eq!(texts.len() as u64, 4 * MESSAGES);
    assert_eq!(store.session(&session).unwrap().message_count, 4 * 2 * MESSAGES);
    // Messages that were appended together are adjacent.
    assert!(conversation.chunks(2).all(|pair| pair[0].content == pair[1].content && pair[0].id.0 + 1 == pair[1].id.0));
}

#[test]
fn processes_that_open_a_new_home_at_once_share_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let processes: Vec<Child> = (0..6).map(|_| start("opener", &home, "")).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| drop(Store::open(&home).unwrap()));
        }
    });
    processes.into_iter().for_each(finish);
    assert_eq!(Store::open(&home).unwrap().sessions().unwrap().len(), 6);
    assert!(!home.join("state.db.new").exists());
}

#[test]
fn a_lease_excludes_others_until_it_is_dropped() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let other = store.create_session(new_session()).unwrap().id;
    let lease = store.lease(&session).unwrap();
    let error = Store::open(home.path()).unwrap().lease(&session).unwrap_err();
    assert!(
        matches!(&error, StoreError::Session(SessionError::InUse { pid, .. }) if *pid == Some(std::process::id())),
        "{error}"
    );
    assert!(error.diagnose().fix.steps().contains(&Action::BranchSession.into()), "{error}");
    let _another = store.lease(&other).unwrap();
    drop(lease);
    assert!(!home.path().join("locks").join(format!("{session}.lock")).exists());
    drop(store.lease(&session).unwrap());
}

#[test]
fn a_lease_ends_when_its_process_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let mut child = start("holder", home.path(), session.as_str());
    let output = BufReader::new(child.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap() == "leased"));
    let error = store.lease(&session).unwrap_err();
    assert!(
        matches!(&error, StoreError::Session(SessionError::InUse { pid, .. }) if *pid == Some(child.id())),
        "{error}"
    );
    // SIGKILL on Unix.
    child.kill().unwrap();
    child.wait().unwrap();
    drop(store.lease(&session).unwrap());
}

#[test]
fn only_one_of_many_processes_gets_a_lease() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    let held = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let Ok(lease) = store.lease(&session) else { continue };
                    assert_eq!(held.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    held.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(lease);
                }
            });
        }
    });
}
