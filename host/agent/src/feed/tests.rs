#![allow(clippy::unwrap_used)]

use hermes_conversation::Usage;
use hermes_protocol::{Command, CommandError, Decision, Mode, Query, QuestionEnd, QuestionId, Status, TurnEnd};
use proptest::prelude::*;

use super::*;

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
        EventKind::Steered { texts: vec!["shorter".to_owned()] },
        EventKind::TurnEnded {
            end: TurnEnd::OutOfBudget { steps: 3, setting: "agent.max_turns".to_owned(), summary: None },
            status: Status::default(),
            unsent: vec!["and now?".to_owned()],
        },
        EventKind::Asked {
            question: QuestionId(1),
            query: Query::Text {
                text: "which?".to_owned(),
                choices: vec!["this".to_owned()],
                open: true,
                by_host: false,
                server: None,
                agent: None,
                takes_values: false,
            },
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
        Command::Say("hi".into()),
        Command::Steer { text: "shorter".to_owned() },
        Command::Stop,
        Command::Decide { question: QuestionId(3), decision: Decision::Session, instead: None },
        Command::Decide { question: QuestionId(3), decision: Decision::Deny, instead: Some("use `patch`".to_owned()) },
        Command::ChooseMode { mode: Mode::AcceptEdits },
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
    match seed % 11 {
        0 => EventKind::TurnStarted,
        1 => EventKind::ReplyDone,
        2 => EventKind::ToolStarted { name: "t".to_owned(), arguments: "{}".to_owned() },
        3 => EventKind::ToolFinished {
            name: "t".to_owned(),
            content: String::new(),
            failed: false,
            elapsed_ms: 1,
            refused: None,
            changes: Vec::new(),
        },
        4 => EventKind::TurnEnded { end: TurnEnd::Interrupted, status: Status::default(), unsent: Vec::new() },
        5 => EventKind::Asked {
            question,
            query: Query::Text {
                text: "?".to_owned(),
                choices: Vec::new(),
                open: false,
                by_host: false,
                server: None,
                agent: None,
                takes_values: false,
            },
        },
        6 => EventKind::Closed { question, how: QuestionEnd::Answered },
        7 => EventKind::Reasoning { text: seed.to_string() },
        8 => EventKind::Used { model: "m".to_owned(), usage: Usage::default(), elapsed_ms: u64::from(seed) },
        9 => EventKind::StatusChanged { status: Status { prompt_tokens: u32::from(seed), ..Status::default() } },
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

/// Front ends with odd positions, events of any size, and readers that never read.
mod attack {
    use super::*;

    #[test]
    fn no_position_gives_an_event_twice_or_panics() {
        let feed = Feed::new(SMALL);
        (0..10).for_each(|_| feed.publish(text("x")));
        let own = feed.0.epoch.clone();
        let epochs =
            ["", "0", "\0", "\u{1b}[2J", &"x".repeat(1 << 20), &own.0.to_uppercase()].map(|text| Epoch(text.into()));
        for epoch in epochs.iter().chain([&own]) {
            for sequence in [0, 1, 5, 9, 11, 1 << 53, u64::MAX - 1, u64::MAX] {
                let position = Position { epoch: epoch.clone(), sequence };
                let is_known = *epoch == own && (6..=10).contains(&sequence);
                let events = drain(&mut feed.subscribe(Some(&position)));
                if !is_known {
                    let first = &events[0];
                    assert!(matches!(first.kind, EventKind::Snapshot(_)), "{sequence}");
                    assert_eq!(sequences(&events), [10], "{sequence}");
                } else {
                    assert_eq!(sequences(&events), (sequence + 1..=10).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_position_that_is_no_position_is_an_error() {
        for json in [
            "{}",
            "null",
            "[]",
            r#"{"epoch":"a"}"#,
            r#"{"epoch":"a","sequence":-1}"#,
            r#"{"epoch":"a","sequence":1.5}"#,
            r#"{"epoch":"a","sequence":"1"}"#,
            r#"{"epoch":"a","sequence":18446744073709551616}"#,
            r#"{"epoch":7,"sequence":1}"#,
            r#"{"epoch":null,"sequence":1}"#,
            r#"{"epoch":"a","sequence":1,"sequence":2}"#,
        ] {
            assert!(serde_json::from_str::<Position>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_command_that_is_no_command_is_an_error() {
        for json in [
            "{}",
            r#"{"command":"shell","text":"rm"}"#,
            r#"{"command":"Say","text":"hi"}"#,
            r#"{"command":["say"],"text":"hi"}"#,
            r#"{"command":"say"}"#,
            r#"{"command":"say","text":7}"#,
            r#"{"command":"say","text":"a","command":"stop"}"#,
            r#"{"command":"decide","question":-1,"decision":"session"}"#,
            r#"{"command":"decide","question":1,"decision":"everything"}"#,
            r#"{"command":"decide","question":1}"#,
            r#"{"command":"rewind","to":"1"}"#,
        ] {
            assert!(serde_json::from_str::<Command>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn events_of_any_size_leave_the_buffer_within_its_bounds() {
        let limits = FeedLimits { events: 50, bytes: 10_000 };
        let large = "x".repeat(1 << 20);
        for (name, kind) in [
            ("a text", text(&large)),
            ("reasoning", EventKind::Reasoning { text: large.clone() }),
            ("progress", EventKind::Progress { text: large.clone() }),
            ("a notice", EventKind::Notice { text: large.clone(), fix: hermes_diagnostic::Fix::default() }),
            ("a call", EventKind::ToolStarted { name: large.clone(), arguments: large.clone() }),
            (
                "a result",
                EventKind::ToolFinished {
                    name: large.clone(),
                    content: large.clone(),
                    failed: false,
                    elapsed_ms: u64::MAX,
                    refused: None,
                    changes: Vec::new(),
                },
            ),
            ("nothing", text("")),
        ] {
            let feed = Feed::new(limits);
            let mut front = feed.subscribe(None);
            feed.publish(EventKind::TurnStarted);
            for _ in 0..200 {
                feed.publish(kind.clone());
            }
            feed.publish(text("end"));
            let state = feed.state();
            assert!(state.events.len() <= limits.events && state.bytes <= limits.bytes, "{name}: {}", state.bytes);
            drop(state);
            // A front end that fell behind gets the state, and then nothing twice.
            let events = drain(&mut front);
            assert!(matches!(events[0].kind, EventKind::Snapshot(_)), "{name}");
            assert_eq!(events.last().unwrap().position.sequence, feed.state().newest, "{name}");
            assert_eq!(drain(&mut front), [], "{name}");
        }
    }

    #[test]
    fn a_thousand_front_ends_that_never_read_take_no_part_of_an_event() {
        let feed = Feed::new(SMALL);
        let mut fronts: Vec<Subscription> = (0..1_000).map(|_| feed.subscribe(None)).collect();
        let content = "x".repeat(100_000);
        (0..100).for_each(|_| feed.publish(EventKind::Progress { text: content.clone() }));
        // The buffer alone holds events.
        let newest = feed.state().events.back().cloned().unwrap();
        assert!(feed.state().events.len() <= 4 && Arc::strong_count(&newest) == 2);
        for front in &mut fronts {
            assert_eq!(sequences(&drain(front)), [100]);
        }
    }

    #[test]
    fn calls_and_questions_that_never_began_end_nothing() {
        let feed = Feed::new(SMALL);
        feed.publish(EventKind::TurnStarted);
        let finished = |id: &str| {
            let kind = EventKind::ToolFinished {
                name: "t".into(),
                content: String::new(),
                failed: false,
                elapsed_ms: 0,
                refused: None,
                changes: Vec::new(),
            };
            feed.publish_about(About::call(id), kind);
        };
        let started = |id: &str| {
            feed.publish_about(About::call(id), EventKind::ToolStarted { name: "t".into(), arguments: "{}".into() });
        };
        finished("never");
        started("same");
        started("same");
        finished("other");
        finished("same");
        feed.publish(EventKind::ToolFinished {
            name: "t".into(),
            content: String::new(),
            failed: true,
            elapsed_ms: 0,
            refused: None,
            changes: Vec::new(),
        });
        assert_eq!(feed.snapshot().running.len(), 1);
        let asked = || EventKind::Asked {
            question: QuestionId(7),
            query: Query::Text {
                text: "?".into(),
                choices: Vec::new(),
                open: false,
                by_host: false,
                server: None,
                agent: None,
                takes_values: false,
            },
        };
        feed.publish(asked());
        feed.publish(EventKind::Closed { question: QuestionId(8), how: QuestionEnd::Answered });
        assert_eq!(feed.snapshot().questions.len(), 1);
        feed.publish(EventKind::Closed { question: QuestionId(7), how: QuestionEnd::Withdrawn });
        feed.publish(EventKind::Closed { question: QuestionId(7), how: QuestionEnd::Answered });
        assert_eq!(feed.snapshot().questions, []);
        feed.publish(EventKind::TurnEnded { end: TurnEnd::Interrupted, status: Status::default(), unsent: Vec::new() });
        assert_eq!(feed.snapshot().running, []);
    }

    #[test]
    fn nothing_follows_the_end_of_a_session() {
        let feed = Feed::new(SMALL);
        feed.publish(EventKind::Ended);
        let ended = feed.snapshot();
        for kind in (0..=255).map(kind).chain([
            EventKind::Ended,
            EventKind::Notice { text: "late".into(), fix: hermes_diagnostic::Fix::default() },
        ]) {
            feed.publish(kind);
        }
        feed.notice("later");
        assert_eq!((feed.snapshot(), feed.state().newest), (ended, 1));
    }
}
