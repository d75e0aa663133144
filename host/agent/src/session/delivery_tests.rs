//! Tests of the outbox: turns on their way to a memory provider that fails.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use hermes_conversation::Model;
use hermes_plugin_host::{Cause, Fault, FaultKind};
use hermes_protocol::{Command, EventKind, TurnEnd};
use hermes_store::{NewSession, Parent, ParentKind, QueueState, QueuedTurn};

use super::testing::{Process, ScriptedMemory, from_here, say, turn_end, until};
use crate::feed::FeedLimits;
use crate::session::{Begin, SessionHandle, SessionRules};

const RULES: SessionRules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(3_600) };
const HOUR: u32 = 3_600_000;

fn fault(kind: FaultKind, retry_after_ms: u32) -> Cause {
    Cause::Fault(Box::new(Fault { retry_after_ms: Some(retry_after_ms), ..Fault::new(kind, "", "scripted") }))
}

/// Closes a session and returns its notices since the start of the call.
async fn close(session: &SessionHandle) -> Vec<String> {
    let mut events = from_here(session);
    session.send(Command::Close).await.unwrap();
    events.notices().into_iter().map(|notice| notice.to_string()).collect()
}

/// Waits until the outbox satisfies a condition.
async fn outbox(process: &Process, is_reached: impl Fn(&[QueuedTurn]) -> bool) -> Vec<QueuedTurn> {
    for _ in 0..60_000 {
        let turns = process.store.outbox().unwrap();
        if is_reached(&turns) {
            return turns;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", process.store.outbox().unwrap());
}

#[tokio::test]
async fn a_turn_leaves_the_outbox_when_the_memory_has_stored_it() {
    let memory = ScriptedMemory::new(Duration::from_millis(50));
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    assert_eq!(process.store.outbox().unwrap().len(), 1);
    assert_eq!(close(&session).await, Vec::<String>::new());
    assert_eq!(process.store.outbox().unwrap(), []);
    assert_eq!(memory.notes(), ["storing 1", "stored 1"]);
}

#[tokio::test]
async fn the_turns_of_a_delegate_are_not_stored() {
    let memory = ScriptedMemory::new(Duration::ZERO);
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    let id = session.session().unwrap();
    close(&session).await;
    let delegate = process.store.create_session(NewSession {
        source: "test".to_owned(),
        workspace: process.workspace(),
        engine: "scripted".to_owned(),
        model: Model { provider: "scripted".to_owned(), name: "small".to_owned(), context_length: 64_000 },
        title: None,
        frozen: None,
        started_at: 1,
        parent: Some(Parent { id, kind: ParentKind::Delegate, through: None }),
    });
    let delegate = process.open(Begin::Resume(delegate.unwrap().id), RULES).await;
    say(&delegate, "do a part of it").await;
    close(&delegate).await;
    assert_eq!(process.store.outbox().unwrap(), []);
    assert_eq!(memory.notes(), ["storing 1", "stored 1"]);
}

#[tokio::test]
async fn a_memory_that_was_away_gets_all_turns_in_order_after_the_pause_it_asked_for() {
    let memory = ScriptedMemory::failing([fault(FaultKind::Unavailable, 1_000), fault(FaultKind::Exhausted, 1_000)]);
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    outbox(&process, |turns| turns.iter().any(|turn| turn.attempts == 1)).await;
    // The second turn waits behind the first one.
    say(&session, "second").await;
    outbox(&process, <[_]>::is_empty).await;
    assert_eq!(memory.notes(), ["failed 1", "failed 1", "storing 1", "stored 1", "storing 2", "stored 2"]);
    assert_eq!(close(&session).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_rejected_turn_is_set_aside_and_later_turns_go_on() {
    for kind in [FaultKind::InvalidInput, FaultKind::Denied, FaultKind::Failed] {
        let memory = ScriptedMemory::failing([fault(kind, 0)]);
        let process = Process::with_memory(&memory);
        let session = process.open(Begin::New, RULES).await;
        let mut events = from_here(&session);
        say(&session, "first").await;
        let notice = until(&mut events, |kind| matches!(kind, EventKind::Notice { .. })).await;
        let EventKind::Notice { text, fix } = &notice.kind else { unreachable!() };
        assert!(text.contains("`memory`") && text.contains("scripted") && text.contains("set aside"), "{text}");
        assert!(!fix.is_empty(), "{kind:?}");
        say(&session, "second").await;
        close(&session).await;
        assert_eq!(memory.notes(), ["failed 1", "storing 2", "stored 2"], "{kind:?}");
        let kept = process.store.outbox().unwrap();
        assert_eq!((kept.len(), kept[0].state, kept[0].error.as_deref()), (1, QueueState::SetAside, Some("scripted")));
    }
}

#[tokio::test]
async fn turns_that_wait_are_reported_at_the_end_and_delivered_when_the_session_is_opened_again() {
    let memory = ScriptedMemory::failing([fault(FaultKind::Unavailable, HOUR)]);
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    say(&session, "second").await;
    let notices = close(&session).await;
    assert!(notices.iter().any(|notice| notice.contains("2 turns") && notice.contains("`memory`")), "{notices:?}");
    assert_eq!(process.store.outbox().unwrap().len(), 2);
    let again = process.open(Begin::Resume(session.session().unwrap()), RULES).await;
    outbox(&process, <[_]>::is_empty).await;
    assert_eq!(memory.notes(), ["failed 1", "storing 1", "stored 1", "storing 2", "stored 2"]);
    assert_eq!(close(&again).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_next_session_delivers_the_turns_of_earlier_ones() {
    let memory = ScriptedMemory::failing([fault(FaultKind::Unavailable, HOUR), fault(FaultKind::Unavailable, HOUR)]);
    let process = Process::with_memory(&memory);
    let first = process.open(Begin::New, RULES).await;
    say(&first, "first").await;
    close(&first).await;
    let second = process.open(Begin::New, RULES).await;
    say(&second, "second").await;
    // Whichever was tried first, the provider was still away for one more turn.
    outbox(&process, |turns| turns.len() <= 1).await;
    close(&second).await;
    let third = process.open(Begin::New, RULES).await;
    say(&third, "third").await;
    outbox(&process, <[_]>::is_empty).await;
    assert_eq!(close(&third).await, Vec::<String>::new());
    let stored = memory.notes().iter().filter(|note| note.starts_with("stored")).count();
    assert_eq!(stored, 3, "{:?}", memory.notes());
}

#[tokio::test]
async fn an_open_session_delivers_its_own_turns() {
    let memory = ScriptedMemory::failing([fault(FaultKind::Unavailable, HOUR)]);
    let process = Process::with_memory(&memory);
    let first = process.open(Begin::New, RULES).await;
    say(&first, "first").await;
    outbox(&process, |turns| turns.iter().any(|turn| turn.attempts == 1)).await;
    let second = process.open(Begin::New, RULES).await;
    say(&second, "second").await;
    outbox(&process, |turns| turns.len() == 1).await;
    close(&second).await;
    assert_eq!(process.store.outbox().unwrap()[0].session, first.session().unwrap());
}

#[tokio::test]
async fn a_slow_memory_is_cancelled_at_the_end_and_loses_no_turn() {
    let memory = ScriptedMemory::new(Duration::from_secs(300));
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    let notices = close(&session).await;
    assert!(notices.iter().any(|notice| notice.contains("1 turn") && notice.contains("`memory`")), "{notices:?}");
    assert_eq!(memory.notes(), ["storing 1", "cancelled 1"]);
    let kept = process.store.outbox().unwrap();
    assert_eq!((kept.len(), kept[0].attempts, kept[0].state), (1, 0, QueueState::Waiting { due_at: 0 }));
    // The reason is stored for people.
    assert!(kept[0].error.as_ref().is_some_and(|why| why.contains("cut the call off")), "{:?}", kept[0].error);
}

#[tokio::test]
async fn a_single_turn_waits_for_a_memory_that_takes_a_few_seconds() {
    let memory = ScriptedMemory::new(Duration::from_secs(4));
    let process = Process::single_with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    let notices = close(&session).await;
    assert!(
        notices.iter().any(|notice| notice.contains("until the memory `memory` has stored the turn")),
        "{notices:?}"
    );
    assert_eq!(
        (memory.notes(), process.store.outbox().unwrap()),
        (vec!["storing 1".to_owned(), "stored 1".to_owned()], Vec::new())
    );
}

#[tokio::test]
async fn a_cancelled_or_suspended_delivery_waits_without_counting_as_a_failure() {
    let suspended = Cause::Suspended { failures: 3, why: "`sync-turn`: scripted".to_owned() };
    for cause in [fault(FaultKind::Cancelled, 0), suspended, Cause::Revoked] {
        let memory = ScriptedMemory::failing([cause]);
        let process = Process::with_memory(&memory);
        let session = process.open(Begin::New, RULES).await;
        say(&session, "first").await;
        until_noted(&memory, 1).await;
        let kept = process.store.outbox().unwrap();
        assert_eq!((kept.len(), kept[0].attempts), (1, 0));
        // The next turn is a reason to look again.
        say(&session, "second").await;
        close(&session).await;
        assert_eq!(memory.notes(), ["failed 1", "storing 1", "stored 1", "storing 2", "stored 2"]);
    }
}

#[tokio::test]
async fn a_failed_turn_does_not_enter_the_outbox() {
    let memory = ScriptedMemory::new(Duration::ZERO);
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "fail").await;
    assert_eq!((memory.notes(), process.store.outbox().unwrap()), (Vec::<String>::new(), Vec::new()));
}

#[tokio::test]
async fn a_turn_that_the_user_stopped_is_delivered_with_a_mark_and_what_the_model_had_written() {
    let memory = ScriptedMemory::new(Duration::ZERO);
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    let mut events = from_here(&session);
    session.send(Command::Say("hang".into())).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::Text { .. })).await;
    session.send(Command::Stop).await.unwrap();
    assert_eq!(turn_end(&mut events).await, TurnEnd::Interrupted);
    session.send(Command::Say("call stuck".into())).await.unwrap();
    until(&mut events, |kind| matches!(kind, EventKind::ToolStarted { .. })).await;
    session.send(Command::Stop).await.unwrap();
    assert_eq!(turn_end(&mut events).await, TurnEnd::Interrupted);
    say(&session, "go on").await;
    close(&session).await;
    assert_eq!(process.store.outbox().unwrap(), []);
    let stored = memory.turns.lock().unwrap().clone();
    let said: Vec<_> =
        stored.iter().map(|turn| (turn.user.as_str(), turn.assistant.as_str(), turn.interrupted)).collect();
    assert_eq!(said, [("hang", "begun", true), ("call stuck", "", true), ("go on", "done", false)]);
}

#[tokio::test]
async fn a_rewound_turn_that_waits_is_not_delivered() {
    let memory = ScriptedMemory::failing([fault(FaultKind::Unavailable, HOUR)]);
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    say(&session, "second").await;
    let to = process.store.conversation(&session.session().unwrap()).unwrap()[2].id;
    session.send(Command::Rewind { to }).await.unwrap();
    // A rewind tries the remaining turns again.
    outbox(&process, <[_]>::is_empty).await;
    assert_eq!(memory.notes(), ["failed 1", "rewound", "storing 1", "stored 1"]);
}

async fn until_noted(memory: &Arc<ScriptedMemory>, notes: usize) {
    for _ in 0..60_000 {
        if memory.notes().len() >= notes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", memory.notes());
}
