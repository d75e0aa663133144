#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::approval::question::Decision;
use crate::command::{Command, CommandError};
use crate::event::{Status, TurnEnd};
use crate::id::QuestionId;
use crate::query::{Query, QuestionEnd};

const SMALL: FeedLimits = FeedLimits { events: 4, bytes: 1 << 20 };

fn text(text: &str) -> EventKind {
    EventKind::Text { text: text.to_owned() }
}

fn drain(subscription: &mut Subscription) -> Vec<Arc<Event>> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}

fn sequences(events: &[Arc<Event>]) -> Vec<u64> {
    events.iter().map(|event| event.position.sequence).collect()
}

#[test]
fn a_new_front_end_gets_a_snapshot_and_then_every_event_once() {
    let feed = Feed::new(SMALL);
    feed.publish(text("a"));
    let mut front = feed.subscribe(None);
    feed.publish(text("b"));
    let first = front.try_next().unwrap();
    let EventKind::Snapshot(snapshot) = &first.kind else { panic!("{first:?}") };
    assert_eq!((snapshot.text.as_str(), first.position.sequence), ("ab", 2));
    feed.publish(text("c"));
    assert_eq!(sequences(&drain(&mut front)), [3]);
}

#[test]
fn a_reconnecting_front_end_gets_each_event_once() {
    let feed = Feed::new(SMALL);
    feed.publish(text("a"));
    feed.publish(text("b"));
    let mut front = feed.subscribe(None);
    let seen = front.try_next().unwrap().position.clone();
    drop(front);
    feed.publish(text("c"));
    feed.publish(text("d"));
    assert_eq!(sequences(&drain(&mut feed.subscribe(Some(&seen)))), [3, 4]);
    let last = Position { sequence: 4, ..seen };
    assert_eq!(drain(&mut feed.subscribe(Some(&last))), []);
}

#[test]
fn an_old_or_unknown_position_gets_a_snapshot_first() {
    let feed = Feed::new(SMALL);
    (0..10).for_each(|_| feed.publish(text("x")));
    let epoch = feed.0.epoch.clone();
    let other = Feed::new(SMALL).0.epoch.clone();
    assert_ne!(epoch, other);
    for (epoch, sequence) in [(&epoch, 5), (&epoch, 99), (&other, 10)] {
        let position = Position { epoch: epoch.clone(), sequence };
        let events = drain(&mut feed.subscribe(Some(&position)));
        assert!(matches!(events[0].kind, EventKind::Snapshot(_)), "{position:?}");
        assert_eq!(sequences(&events), [10], "{position:?}");
    }
    let oldest = Position { epoch, sequence: 6 };
    assert_eq!(sequences(&drain(&mut feed.subscribe(Some(&oldest)))), [7, 8, 9, 10]);
}

#[test]
fn the_buffer_is_bounded_by_events_and_by_bytes() {
    let feed = Feed::new(FeedLimits { events: 100, bytes: 4_000 });
    (0..1_000).for_each(|_| feed.publish(text(&"x".repeat(500))));
    let state = feed.state();
    assert!(state.bytes <= 4_000 && state.events.len() < 8, "{} {}", state.bytes, state.events.len());
    assert_eq!(state.bytes, state.events.iter().map(|event| size_of(event)).sum::<usize>());
}

#[test]
fn the_same_notice_is_published_once() {
    let feed = Feed::new(SMALL);
    let mut front = feed.subscribe(None);
    (0..3).for_each(|_| feed.notice("careful"));
    assert_eq!(drain(&mut front).len(), 1);
}

#[tokio::test]
async fn a_subscription_ends_with_its_session() {
    let feed = Feed::new(SMALL);
    let mut front = feed.subscribe(None);
    feed.publish(EventKind::Ended);
    feed.publish(text("too late"));
    assert_eq!(front.next().await.unwrap().kind, EventKind::Ended);
    assert!(front.next().await.is_none());
    let mut late = feed.subscribe(None);
    let first = late.next().await.unwrap();
    assert!(matches!(&first.kind, EventKind::Snapshot(snapshot) if snapshot.ended));
    assert!(late.next().await.is_none());
}

#[test]
fn events_and_commands_survive_serialisation() {
    let kinds = [
        text("ü"),
        EventKind::TurnStarted,
        EventKind::TurnEnded { end: TurnEnd::OutOfBudget { steps: 3 }, status: Status::default() },
        EventKind::Asked {
            question: QuestionId(1),
            query: Query::Text { text: "which?".to_owned(), choices: vec!["this".to_owned()] },
        },
        EventKind::Closed { question: QuestionId(1), how: QuestionEnd::Withdrawn },
    ];
    let feed = Feed::new(FeedLimits::SHARED);
    feed.set_session(&SessionId("s".to_owned()));
    feed.set_turn(Some(TurnNumber(2)));
    for kind in kinds {
        let start = feed.state().newest;
        feed.publish_about(About { message: Some(MessageId(7)), call: Some(CallId("c".to_owned())) }, kind);
        let event = feed.after(Some(start)).unwrap();
        let json = serde_json::to_string(&*event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), *event, "{json}");
    }
    let snapshot = feed.subscribe(None).try_next().unwrap();
    let json = serde_json::to_string(&*snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), *snapshot, "{json}");
    for command in [
        Command::Say { text: "hi".to_owned(), attached: Vec::new() },
        Command::Stop,
        Command::Decide { question: QuestionId(3), decision: Decision::Session },
        Command::Rewind { to: MessageId(4) },
    ] {
        let json = serde_json::to_value(&command).unwrap();
        assert_eq!(json["command"], command.name());
        assert_eq!(serde_json::from_value::<Command>(json).unwrap(), command);
    }
    for error in [CommandError::NothingRuns, CommandError::AlreadyAnswered { question: QuestionId(3) }] {
        let json = serde_json::to_value(&error).unwrap();
        assert_eq!(json["code"], error.code());
        assert_eq!(serde_json::from_value::<CommandError>(json).unwrap(), error);
    }
}

/// An operation on a feed and its readers.
#[derive(Debug, Clone)]
enum Step {
    Publish(u8),
    Read(usize),
    Reconnect,
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any::<u8>().prop_map(Step::Publish),
        3 => (0..6_usize).prop_map(Step::Read),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Forget),
    ]
}

fn kind(seed: u8) -> EventKind {
    let question = QuestionId(u64::from(seed / 16));
    match seed % 9 {
        0 => EventKind::TurnStarted,
        1 => EventKind::ReplyDone,
        2 => EventKind::ToolStarted { name: "t".to_owned(), arguments: "{}".to_owned() },
        3 => EventKind::ToolFinished { name: "t".to_owned(), content: String::new(), failed: false, elapsed_ms: 1 },
        4 => EventKind::TurnEnded { end: TurnEnd::Interrupted, status: Status::default() },
        5 => EventKind::Asked { question, query: Query::Text { text: "?".to_owned(), choices: Vec::new() } },
        6 => EventKind::Closed { question, how: QuestionEnd::Answered },
        7 => EventKind::Reasoning { text: seed.to_string() },
        _ => text(&seed.to_string()),
    }
}

proptest! {
    #[test]
    fn a_front_end_that_misses_events_ends_with_the_sessions_state(steps in prop::collection::vec(step(), 1..80)) {
        let feed = Feed::new(SMALL);
        let mut front = feed.subscribe(None);
        let (mut seen, mut state) = (None, Snapshot::default());
        let mut take = |event: Arc<Event>, seen: &mut Option<Position>| {
            // The sequence numbers have no gap except at a snapshot, and no event comes twice.
            if let Some(before) = &*seen {
                let next = event.position.sequence;
                let whole = matches!(event.kind, EventKind::Snapshot(_));
                assert!(if whole { next > before.sequence } else { next == before.sequence + 1 });
            }
            state.apply(&event);
            *seen = Some(event.position.clone());
        };
        for step in steps {
            match step {
                Step::Publish(seed) => {
                    let about = About { message: Some(MessageId(u64::from(seed))), call: Some(CallId((seed / 64).to_string())) };
                    feed.publish_about(about, kind(seed));
                }
                Step::Read(most) => {
                    for _ in 0..most {
                        if let Some(event) = front.try_next() {
                            take(event, &mut seen);
                        }
                    }
                }
                Step::Reconnect => front = feed.subscribe(seen.as_ref()),
                Step::Forget => feed.forget(),
            }
        }
        while let Some(event) = front.try_next() {
            take(event, &mut seen);
        }
        prop_assert_eq!(state, feed.snapshot());
    }
}
