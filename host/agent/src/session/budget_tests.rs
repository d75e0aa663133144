//! Tests of turns that use up their requests.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use hermes_conversation::Model;
use hermes_protocol::{Command, EventKind, TurnEnd};
use hermes_store::{NewSession, Parent, ParentKind};

use super::testing::{Process, from_here, say, turn_end, until};
use super::tests::assert_valid;
use crate::feed::FeedLimits;
use crate::session::{Begin, SessionHandle, SessionRules};

const RULES: SessionRules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(3_600) };
/// The limit of the scripted process.
const STEPS: usize = 8;

fn out_of_budget(summary: Option<&str>) -> TurnEnd {
    let (steps, setting) = (STEPS as u32, "agent.max_turns".to_owned());
    TurnEnd::OutOfBudget { steps, setting, summary: summary.map(str::to_owned) }
}

/// The log after the calls that were run.
fn closing(process: &Process, session: &SessionHandle) -> Vec<String> {
    process.log(session).split_off(1 + 2 * STEPS)
}

#[tokio::test]
async fn a_turn_that_has_made_its_requests_ends_with_a_summary() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    assert_eq!(say(&session, "toil").await, out_of_budget(Some("done")));
    let notice = until(&mut events, |kind| matches!(kind, EventKind::Notice { .. })).await;
    let EventKind::Notice { text, .. } = &notice.kind else { unreachable!() };
    assert_eq!(text, "the turn has made 8 requests, the limit of agent.max_turns; asking the model for a summary");
    assert_eq!(closing(&process, &session), ["assistant: done"]);
    assert_valid(&process, &session);

    let requests = process.model.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), STEPS + 1);
    for (at, pair) in requests.windows(2).enumerate() {
        assert!(pair[1].starts_with(&pair[0]), "request {}", at + 1);
    }
    let told = |request: &String| request.matches("calls in that reply are not run").count();
    assert_eq!(requests.iter().map(told).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 0, 0, 1]);
    // The request has the note after the result. The log has the result alone.
    assert!(process.log(&session).iter().all(|line| !line.contains("not run")));

    // The limit holds for each turn, and each such turn says so.
    let mut events = from_here(&session);
    assert_eq!(say(&session, "toil again").await, out_of_budget(Some("done")));
    until(&mut events, |kind| matches!(kind, EventKind::Notice { .. })).await;
    assert_eq!(say(&session, "go on").await, TurnEnd::Answered { text: "done".to_owned() });
}

#[tokio::test]
async fn a_call_in_the_summary_gets_a_result_and_is_not_run() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    assert_eq!(say(&session, "toil, stubborn one").await, out_of_budget(None));
    assert_eq!(process.seen.invocations.lock().unwrap().len(), STEPS);
    assert_eq!(
        closing(&process, &session),
        [
            "assistant:  [note]",
            "tool: not run: this turn has made 8 requests, the limit of agent.max_turns",
            "assistant: [stopped after 8 steps of this turn, the limit of agent.max_turns. say \"go on\" to continue.]",
        ]
    );
    let refused = until(&mut events, |kind| matches!(kind, EventKind::ToolFinished { failed: true, .. })).await;
    let stored = process.store.conversation(&session.session().unwrap()).unwrap();
    assert_eq!(refused.message, Some(stored[stored.len() - 2].id));
    assert_valid(&process, &session);

    let id = session.session().unwrap();
    session.send(Command::Close).await.unwrap();
    let again = process.open(Begin::Resume(id), RULES).await;
    assert_eq!(say(&again, "thanks").await, TurnEnd::Answered { text: "done".to_owned() });
    assert_valid(&process, &again);
}

#[tokio::test]
async fn a_summary_that_fails_leaves_a_note_and_the_reason() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    assert_eq!(say(&session, "toil and fail").await, out_of_budget(None));
    let why = until(&mut events, |kind| matches!(kind, EventKind::Notice { text, .. } if text.contains("no summary")));
    assert!(format!("{:?}", why.await.kind).contains("http://nowhere"));
    let [note] = &closing(&process, &session)[..] else { panic!("{:?}", process.log(&session)) };
    assert!(note.starts_with("assistant: [stopped after 8 steps"), "{note}");
    assert_valid(&process, &session);
}

#[tokio::test]
async fn a_stop_during_the_summary_keeps_the_received_text() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    session.send(Command::Say("toil and hang".into())).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    session.send(Command::Stop).await.unwrap();
    assert_eq!(turn_end(&mut events).await, TurnEnd::Interrupted);
    assert_eq!(closing(&process, &session), ["assistant: begun\n\n[the user stopped the reply here.]"]);
    assert_valid(&process, &session);
}

#[tokio::test]
async fn a_delegated_session_has_a_limit_of_its_own() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    let delegate = process.store.create_session(NewSession {
        source: "test".to_owned(),
        workspace: process.workspace(),
        engine: "scripted".to_owned(),
        model: Model { provider: "scripted".to_owned(), name: "small".to_owned(), context_length: 64_000 },
        title: None,
        frozen: None,
        started_at: 1,
        parent: Some(Parent { id: session.session().unwrap(), kind: ParentKind::Delegate, through: None }),
    });
    let delegate = process.open(Begin::Resume(delegate.unwrap().id), RULES).await;
    let setting = "delegation.max_iterations".to_owned();
    let end = TurnEnd::OutOfBudget { steps: 2, setting, summary: Some("done".to_owned()) };
    assert_eq!(say(&delegate, "toil").await, end);
}
