//! Tests of rewinds: the log, the engine and the memory providers.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use hermes_conversation::MessageId;
use hermes_protocol::{Command, CommandError, EventKind};

use super::testing::{Process, ScriptedMemory, from_here, say, until};
use crate::feed::FeedLimits;
use crate::session::{Begin, SessionHandle, SessionRules};

const RULES: SessionRules = SessionRules { feed: FeedLimits::SHARED, idle_after: Duration::from_secs(3_600) };

/// A message of the conversation, counted from 0. Each turn has two messages.
fn message(process: &Process, session: &SessionHandle, at: usize) -> MessageId {
    process.store.conversation(&session.session().unwrap()).unwrap()[at].id
}

#[tokio::test]
async fn a_rewind_removes_messages_and_the_next_turn_follows_the_rest() {
    let process = Process::new();
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    say(&session, "second").await;
    let to = process.store.conversation(&session.session().unwrap()).unwrap()[2].id;
    let mut events = from_here(&session);
    session.send(Command::Rewind { to }).await.unwrap();
    let rewound = until(&mut events, |kind| matches!(kind, EventKind::Rewound { .. })).await;
    // The same plugin instance keeps running and is notified.
    assert_eq!(*process.rewound.lock().unwrap(), [to]);
    assert_eq!(process.started.load(Ordering::SeqCst), 1);
    assert_eq!((rewound.message, &rewound.kind), (Some(to), &EventKind::Rewound { messages: 2 }));
    say(&session, "third").await;
    assert_eq!(process.log(&session), ["user: first", "assistant: done", "user: third", "assistant: done"]);
    let last = process.model.requests.lock().unwrap().last().unwrap().clone();
    assert!(last.contains("third") && !last.contains("second"), "{last}");
}

#[tokio::test]
async fn a_rewind_waits_until_the_memory_has_stored_the_turn() {
    let memory = ScriptedMemory::new(Duration::from_millis(200));
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    session.send(Command::Rewind { to: message(&process, &session, 0) }).await.unwrap();
    assert_eq!(memory.notes(), ["storing 1", "stored 1", "rewound"]);
}

/// A stuck provider delays a rewind by two seconds. Rewound turns are forgotten, and the others are stored again.
#[tokio::test]
async fn a_rewind_cancels_a_slow_memory_provider() {
    let memory = ScriptedMemory::new(Duration::from_secs(300));
    let process = Process::with_memory(&memory);
    let session = process.open(Begin::New, RULES).await;
    say(&session, "first").await;
    say(&session, "second").await;
    // A message that does not exist interrupts nothing.
    let refused = session.send(Command::Rewind { to: MessageId(9_999) }).await.unwrap_err();
    assert!(matches!(refused, CommandError::UnknownMessage { .. }), "{refused:?}");
    assert_eq!(memory.notes(), ["storing 1"]);
    // A refused rewind leaves all turns to the memory.
    let refused = session.send(Command::Rewind { to: message(&process, &session, 1) }).await.unwrap_err();
    assert!(matches!(refused, CommandError::NotTheUsers { .. }), "{refused:?}");
    session.send(Command::Rewind { to: message(&process, &session, 2) }).await.unwrap();
    until_noted(&memory, 6).await;
    let notes = memory.notes();
    assert_eq!(notes, ["storing 1", "cancelled 1", "storing 1", "cancelled 1", "rewound", "storing 1"]);
}

async fn until_noted(memory: &ScriptedMemory, notes: usize) {
    for _ in 0..60_000 {
        if memory.notes().len() >= notes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", memory.notes());
}
