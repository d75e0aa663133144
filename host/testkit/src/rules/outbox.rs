//! The outbox of memory providers.

use hermes_conversation::{Draft, MessageId};
use hermes_session_store::{Delivery, QueueState, QueuedTurn, Session, SessionError, SessionStore};

use super::{created, range, refused, said, say};

const PROVIDERS: [&str; 2] = ["mem0", "notes"];

/// A turn of two messages, queued for all providers. Returns the id of its first message.
async fn turn(store: &dyn SessionStore, session: &Session) -> MessageId {
    let first = say(store, session, "A").await[0];
    let providers = PROVIDERS.map(str::to_owned);
    store.end_turn(&session.id, &[Draft::assistant("a", Vec::new(), 7)], first, &providers).await.unwrap();
    first
}

async fn next(store: &dyn SessionStore, session: &Session) -> Option<QueuedTurn> {
    store.next_turn(&session.id, "mem0").await.unwrap()
}

fn postponed(due_at: u64) -> Delivery {
    Delivery::Postponed { error: "away".into(), due_at }
}

pub async fn a_turn_ends_and_enters_the_outbox_in_one_write(store: &dyn SessionStore) {
    let (session, other) = (created(store).await, created(store).await);
    let elsewhere = say(store, &other, "X").await[0];
    let providers = PROVIDERS.map(str::to_owned);
    let drafts = [Draft::assistant("a", Vec::new(), 5), Draft::assistant("b", Vec::new(), 6)];
    let refusal = refused(store.end_turn(&session.id, &drafts, elsewhere, &providers).await);
    assert!(matches!(refusal, SessionError::NoSuchMessage { message, .. } if message == elsewhere), "{refusal}");
    assert_eq!((said(store, &session).await.as_str(), store.outbox().await.unwrap()), ("", Vec::new()));

    let first = say(store, &session, "A").await[0];
    let ended = store.end_turn(&session.id, &drafts, first, &providers).await.unwrap();
    assert_eq!(said(store, &session).await, "Aab");
    let queued = |provider: &str| QueuedTurn {
        session: session.id.clone(),
        provider: provider.into(),
        messages: range(first, ended[1].id),
        ended_at: 6,
        attempts: 0,
        state: QueueState::Waiting { due_at: 0 },
        error: None,
    };
    assert_eq!(store.outbox().await.unwrap(), PROVIDERS.map(queued));
    // A turn that goes on stays queued once.
    store.end_turn(&session.id, &[Draft::assistant("c", Vec::new(), 8)], first, &providers).await.unwrap();
    assert_eq!(store.outbox().await.unwrap().len(), 2);
    // Without providers nothing is queued.
    let alone = say(store, &session, "B").await[0];
    store.end_turn(&session.id, &drafts, alone, &[]).await.unwrap();
    assert_eq!(store.outbox().await.unwrap().len(), 2);
}

pub async fn queued_turns_leave_in_order_and_a_rejected_one_is_passed_over(store: &dyn SessionStore) {
    let (session, other) = (created(store).await, created(store).await);
    let turns = [turn(store, &session).await, turn(store, &session).await, turn(store, &session).await];
    turn(store, &other).await;
    let first = next(store, &session).await.unwrap();
    assert_eq!((first.messages.first, first.provider.as_str()), (turns[0], "mem0"));
    // A postponed turn stays in front of the later ones.
    store.record_delivery(&first, &postponed(50)).await.unwrap();
    store.record_delivery(&first, &postponed(60)).await.unwrap();
    let again = next(store, &session).await.unwrap();
    let state = QueueState::Waiting { due_at: 60 };
    assert_eq!(again, QueuedTurn { attempts: 2, state, error: Some("away".into()), ..first.clone() });
    // What the host cut off is no failure.
    store.record_delivery(&first, &Delivery::CutOff { error: "the end".into() }).await.unwrap();
    let cut_off = next(store, &session).await.unwrap();
    assert_eq!(cut_off, QueuedTurn { error: Some("the end".into()), ..again });
    store.record_delivery(&first, &Delivery::Stored).await.unwrap();
    let second = next(store, &session).await.unwrap();
    assert_eq!(second.messages.first, turns[1]);
    store.record_delivery(&second, &Delivery::SetAside { error: "too rude".into() }).await.unwrap();
    let third = next(store, &session).await.unwrap();
    assert_eq!(third.messages.first, turns[2]);
    store.record_delivery(&third, &Delivery::Stored).await.unwrap();
    assert_eq!(next(store, &session).await, None);
    // The rejected turn is kept with its error; a turn that has left changes nothing any more.
    store.record_delivery(&third, &postponed(70)).await.unwrap();
    let mine = |turn: &QueuedTurn| turn.provider == "mem0" && turn.session == session.id;
    let kept: Vec<QueuedTurn> = store.outbox().await.unwrap().into_iter().filter(mine).collect();
    let error = Some("too rude".into());
    assert_eq!(kept, [QueuedTurn { attempts: 1, state: QueueState::SetAside, error, ..second }]);
    // Providers and sessions do not disturb each other.
    assert_eq!(store.outbox().await.unwrap().len(), 1 + 3 + 2);
    store.delete(std::slice::from_ref(&session.id), false).await.unwrap();
    assert!(store.outbox().await.unwrap().iter().all(|turn| turn.session == other.id));
}

pub async fn rewound_turns_are_not_delivered(store: &dyn SessionStore) {
    let session = created(store).await;
    let (kept, rewound) = (turn(store, &session).await, turn(store, &session).await);
    let queued = async || {
        let turns = store.outbox().await.unwrap();
        turns.iter().filter(|turn| turn.provider == "mem0").map(|turn| turn.messages.first).collect::<Vec<_>>()
    };
    store.rewind(&session.id, rewound).await.unwrap();
    assert_eq!(queued().await, [kept]);
    store.restore(&session.id).await.unwrap();
    assert_eq!(queued().await, [kept, rewound]);
    store.rewind(&session.id, kept).await.unwrap();
    assert_eq!((next(store, &session).await, queued().await), (None, Vec::new()));
    let later = turn(store, &session).await;
    assert_eq!(queued().await, [later]);
}

pub async fn a_delivery_lease_is_apart_for_each_session_and_provider(store: &dyn SessionStore) {
    let (one, other) = (created(store).await.id, created(store).await.id);
    let lease = store.delivery_lease(&one, "mem0").await.unwrap();
    let refusal = refused(store.delivery_lease(&one, "mem0").await);
    assert!(matches!(refusal, SessionError::InUse { session, .. } if session == one));
    let _beside = (
        store.delivery_lease(&one, "notes").await.unwrap(),
        store.delivery_lease(&other, "mem0").await.unwrap(),
        store.lease(&one).await.unwrap(),
    );
    drop(lease);
    let _again = store.delivery_lease(&one, "mem0").await.unwrap();
}
