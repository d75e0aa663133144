//! Tests of the requests that keep a session in the provider's cache. The time of timers is simulated.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::{Model, SessionId, Usage};
use hermes_protocol::{Command, EventKind};
use hermes_store::{NewSession, RequestRecord};

use super::testing::{LONG, Process, from_here, say, turn_end, until};
use crate::feed::FeedLimits;
use crate::outgoing::WARMING;
use crate::session::{Begin, SessionRules};

/// A session would become idle shortly after its first warming.
const RULES: SessionRules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(280) };
/// Half a minute before the end of five minutes.
const DUE: Duration = Duration::from_secs(270);

/// A process whose ledger has ten pauses of this many minutes.
fn after_pauses(minutes: u64, dollars: f64) -> Arc<Process> {
    let process = Process::with_warming(dollars);
    let now = jiff::Timestamp::now().as_millisecond().cast_unsigned();
    let model = Model { provider: "scripted".to_owned(), name: "small".to_owned(), context_length: 64_000 };
    let new = NewSession {
        source: "test".to_owned(),
        workspace: process.workspace(),
        engine: "scripted".to_owned(),
        model,
        title: None,
        frozen: None,
        started_at: now,
        parent: None,
    };
    let earlier = process.store.create_session(new).unwrap().id;
    for pause in (0..=10).rev() {
        let request = RequestRecord {
            sent_at: now - 7_200_000 - pause * minutes * 60_000,
            provider: "scripted".to_owned(),
            model: "small".to_owned(),
            api_mode: "chat_completions".to_owned(),
            cache_ttl: Some("5m".to_owned()),
            usage: Some(Usage { input: 100, ..Usage::default() }),
            ..RequestRecord::default()
        };
        process.store.record_request(&earlier, &request).unwrap();
    }
    process
}

/// The warmings of a session in the ledger.
fn warmings(process: &Process, session: &SessionId) -> usize {
    let rows = process.store.auxiliary_since(WARMING.0, WARMING.1, 0).unwrap();
    rows.iter().filter(|(of, row)| of == session && row.usage.is_some()).count()
}

fn caps(process: &Process) -> Vec<Option<u32>> {
    process.model.caps.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_session_without_commands_is_kept_warm_and_does_not_become_idle() {
    let process = after_pauses(8, 1.0);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "hello").await;
    tokio::time::sleep(DUE + Duration::from_secs(20)).await;
    assert_eq!(caps(&process), [None, Some(1)]);
    let requests = process.model.requests.lock().unwrap().clone();
    assert_eq!(requests[0], requests[1]);
    assert_eq!(warmings(&process, &session.session().unwrap()), 1);
    let mut events = from_here(&session);
    session.send(Command::Say("back".into())).await.unwrap();
    let told = until(&mut events, |kind| matches!(kind, EventKind::Notice { .. })).await;
    let EventKind::Notice { text, .. } = &told.kind else { unreachable!() };
    assert!(text.starts_with("1 request to keep the conversation"), "{text}");
    turn_end(&mut events).await;
    assert_eq!(process.started.load(std::sync::atomic::Ordering::SeqCst), 1, "the plugins were not started again");
    assert_eq!(process.log(&session), ["user: hello", "assistant: done", "user: back", "assistant: done"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_warm_while_a_tool_takes_long() {
    let process = after_pauses(8, 1.0);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "hello").await;
    const { assert!(LONG.as_secs() > DUE.as_secs()) };
    session.send(Command::Say("calls: note 300".into())).await.unwrap();
    tokio::time::sleep(LONG + Duration::from_secs(20)).await;
    // The request for the call, the warming, and the request with the result.
    assert_eq!(caps(&process), [None, None, Some(1), None], "{:?}", process.log(&session));
    assert_eq!(warmings(&process, &session.session().unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_warmed_without_a_limit_or_a_habit() {
    for (minutes, dollars) in [(8, 0.0), (2, 1.0), (90, 1.0)] {
        let process = after_pauses(minutes, dollars);
        let session = process.open(Begin::New, RULES).await;
        say(&session, "hello").await;
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(caps(&process), [None], "pauses of {minutes} minutes and ${dollars}");
        assert_eq!(warmings(&process, &session.session().unwrap()), 0);
    }
}
