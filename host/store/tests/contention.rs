//! Two processes append to one store while a third one searches it. The benchmark measures their durations.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::new_session;
use hermes_conversation::{Draft, SessionId, ToolCall};
use hermes_store::{SearchQuery, Sort, Store};

const HOME: &str = "HERMES_STORE_TEST_HOME";
/// The number of messages that each of the two processes appends.
const MESSAGES: &str = "HERMES_STORE_TEST_MESSAGES";

fn messages() -> u64 {
    std::env::var(MESSAGES).map_or(1_500, |number| number.parse().unwrap())
}

/// Starts one of the ignored tests below as a process of its own.
fn start(part: &str, home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", part, "--nocapture"])
        .env(HOME, home)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn home() -> Option<PathBuf> {
    std::env::var_os(HOME).map(PathBuf::from)
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn writer() {
    let Some(home) = home() else { return };
    let store = Store::open(&home).unwrap();
    let session = store.create_session(new_session()).unwrap().id;
    for number in 0..messages() {
        let text = format!("needle {number} 在错误处理中 of {}", std::process::id());
        let draft = match number % 3 {
            0 => Draft::user(text, number),
            _ => {
                let call =
                    ToolCall { id: "c".into(), name: "read_file".into(), arguments: format!("{{\"n\":{number}}}") };
                Draft::assistant(text, vec![call], number)
            }
        };
        store.append(&session, &[draft]).unwrap();
    }
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn searcher() {
    let Some(home) = home() else { return };
    let store = Store::open(&home).unwrap();
    println!("\nsearching");
    let newest = |text: &str| {
        let query = SearchQuery { sort: Sort::Newest, limit: 1, ..SearchQuery::new(text) };
        store.search(&query).unwrap().first().map_or(0, |hit| hit.message.0)
    };
    let mut last = 0;
    let mut searches = 0_u64;
    // Standard input is closed when this process must end.
    let ended = std::thread::spawn(|| std::io::read_to_string(std::io::stdin()).unwrap());
    while !ended.is_finished() {
        for text in ["needle", "错误", "dle 1", "need*", "read_file"] {
            let found = newest(text);
            // A message and its index entries are one transaction, so a found message stays found.
            if text == "needle" {
                assert!(found >= last, "{found} after {last}");
                last = found;
            }
            searches += 1;
        }
    }
    println!("{searches} searches");
}

#[test]
fn two_processes_append_while_a_third_one_searches_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut searcher = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "searcher", "--nocapture"])
        .env(HOME, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(searcher.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line == "searching"));
    let writers = [start("writer", folder.path()), start("writer", folder.path())];
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it wrote nothing");
    }
    drop(searcher.stdin.take());
    let rest: Vec<String> = lines.collect();
    assert!(searcher.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.ends_with("searches") && !line.starts_with("0 ")), "{rest:?}");

    let sessions: Vec<SessionId> = store.sessions().unwrap().into_iter().map(|session| session.id).collect();
    assert_eq!(sessions.len(), 2);
    let mut texts = HashSet::new();
    for session in &sessions {
        let conversation = store.conversation(session).unwrap();
        assert_eq!(conversation.len() as u64, messages());
        assert_eq!(store.session(session).unwrap().message_count, messages());
        texts.extend(conversation.into_iter().map(|message| message.draft.content));
    }
    assert_eq!(texts.len() as u64, 2 * messages());
    assert!(store.check_search().unwrap());
    let limit = usize::try_from(2 * messages() + 1).unwrap();
    for text in ["needle", "错误", "read_file OR needle"] {
        let all = SearchQuery { sort: Sort::Newest, limit, ..SearchQuery::new(text) };
        assert_eq!(store.search(&all).unwrap().len() as u64, 2 * messages(), "{text}");
    }
}
