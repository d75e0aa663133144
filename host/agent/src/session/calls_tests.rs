//! Tests of several calls in one reply.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use hermes_protocol::{Command, Decision, EventKind, TurnEnd};

use super::testing::{Process, from_here, say, turn_end, until};
use super::tests::assert_valid;
use crate::feed::FeedLimits;
use crate::session::{Begin, SessionHandle, SessionRules};

const RULES: SessionRules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(3_600) };

fn done() -> TurnEnd {
    TurnEnd::Answered { text: "done".to_owned() }
}

/// The results of the calls, in the order of the log.
fn results(process: &Process, session: &SessionHandle) -> Vec<String> {
    let tool = |line: String| line.strip_prefix("tool: ").map(str::to_owned);
    process.log(session).into_iter().filter_map(tool).collect()
}

#[tokio::test]
async fn neighbours_that_may_run_beside_each_other_do_so_and_others_run_alone() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    assert_eq!(say(&session, "calls: look 1, look 2, note 3, note 4, look 5").await, done());
    let calls = process.seen.take_calls();
    let mut together = calls[..4].to_vec();
    together[..2].sort();
    together[2..].sort();
    assert_eq!(together, ["begin look 1", "begin look 2", "end look 1", "end look 2"]);
    let alone = ["begin note 3", "end note 3", "begin note 4", "end note 4", "begin look 5", "end look 5"];
    assert_eq!(calls[4..], alone);
    let expected = ["look 1", "look 2", "note 3", "note 4", "look 5"].map(|call| format!("{call} did it"));
    assert_eq!(results(&process, &session), expected);
}

#[tokio::test]
async fn identical_calls_that_only_read_run_once_and_each_gets_the_result() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    assert_eq!(say(&session, "calls: look 1, look 2, look 1, note 3, note 3, look 1, look 1").await, done());
    let mut begun = process.seen.take_calls();
    begun.retain(|line| line.starts_with("begin"));
    assert_eq!(begun, ["look 1", "look 2", "note 3", "note 3", "look 1"].map(|call| format!("begin {call}")));
    let expected = ["look 1", "look 2", "look 1", "note 3", "note 3", "look 1", "look 1"];
    assert_eq!(results(&process, &session), expected.map(|call| format!("{call} did it")));
    assert_valid(&process, &session);
    let stored = process.store.conversation(&session.session().unwrap()).unwrap();
    let answered: Vec<&str> = stored.iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
    assert_eq!(answered, ["call-0", "call-1", "call-2", "call-3", "call-4", "call-5", "call-6"]);
    for call in answered {
        let ended = until(&mut events, |kind| matches!(kind, EventKind::ToolFinished { .. })).await;
        assert_eq!(ended.call.as_ref().unwrap().0, call);
    }
}

#[tokio::test]
async fn a_call_that_asks_the_user_runs_beside_no_other() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let _attending = session.attend();
    let mut events = from_here(&session);
    let text = "calls: look 1, wipe 2, look 3".to_owned();
    session.send(Command::Say(text.into())).await.unwrap();
    let asked = until(&mut events, |kind| matches!(kind, EventKind::Asked { .. })).await;
    let EventKind::Asked { question, .. } = asked.kind else { unreachable!() };
    assert_eq!(process.seen.take_calls(), ["begin look 1", "end look 1"]);
    session.send(Command::Decide { question, decision: Decision::Once, instead: None }).await.unwrap();
    assert_eq!(turn_end(&mut events).await, done());
    assert_eq!(process.seen.take_calls(), ["begin wipe 2", "end wipe 2", "begin look 3", "end look 3"]);
}
