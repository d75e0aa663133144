//! Restarts, kills, forks, and changes of model, window and engine in any order: no message is duplicated, no view is invalid, and
//! no acknowledged word is lost.
//!
//! `HERMES_UNREST` sets the number of steps (`cargo xtask chaos N`); the seed is fixed.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hermes_conversation::plan::{ReferenceState, verify};
use hermes_conversation::{Conversation, Item, Plan, Segment, SessionId, View, render, validity};
use hermes_store::Store;
use hermes_tests::oracle::assert_valid_request;
use hermes_tests::wire::trailing_results;
use hermes_tests::{Call, Home, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::chaos::random_kills::Dice;
use crate::fixtures::journal::long_text;

/// Default number of steps.
const STEPS: usize = 60;
/// Steps per home: enough for many compactions, without requests growing for ever.
const TO_A_HOME: usize = 60;
const ENGINES: &[&str] = &["compressor", "lossless"];
const MODELS: &[&str] = &["scripted-model", "another-model"];
const WINDOWS: &[usize] = &[12_000, 16_000, 24_000];
const SEED: u64 = 0x756e_7265_7374;

/// Reads a file in every third turn. The model that writes summaries fails in every possible way.
fn partner(body: &Value, number: usize) -> Reply {
    if is_auxiliary(body) {
        return match number % 5 {
            0 => Reply::text(""),
            1 => Reply::error(500, "overloaded"),
            2 => Reply::text(long_text("a summary that is far too long", number).repeat(20)),
            _ => Reply::text("The user reports delays of ferries; the assistant keeps count. Nothing is open."),
        };
    }
    if number.is_multiple_of(3) && trailing_results(body).is_empty() {
        return Reply::calls([Call::new(&format!("call_{number}"), "read_file", &json!({"path": "timetable.txt"}))]);
    }
    Reply::text(long_text("answer", number)).in_steps_of(100)
}

#[test]
fn after_any_sequence_of_failures_no_view_is_invalid_and_no_message_doubled() {
    let steps = std::env::var("HERMES_UNREST").map_or(STEPS, |count| count.parse().expect("a count of steps"));
    let mut dice = Dice(SEED);
    let mut happened: HashMap<&str, usize> = HashMap::new();
    for first in (0..steps).step_by(TO_A_HOME) {
        upset(&mut dice, first, TO_A_HOME.min(steps - first), &mut happened);
    }
    println!("{steps} steps: {happened:?}");
    for what in ["killed", "forked", "compacted", "another engine", "another model"] {
        assert!(happened.get(what).is_some_and(|count| *count > 0), "{what}: never happened in {happened:?}");
    }
}

/// Runs so many steps in a home of their own.
fn upset<'a>(dice: &mut Dice, first: usize, steps: usize, happened: &mut HashMap<&'a str, usize>) {
    let server = Server::answering(partner);
    let home = Home::with(&server);
    home.write_workspace("timetable.txt", long_text("the timetable", 0));
    home.hermes(&["-z", "How it begins"]).run().success();
    let mut acknowledged: Vec<String> = vec!["How it begins".to_owned()];
    let (mut engine, mut model) = (ENGINES[0], MODELS[0]);
    let mut note = |what: &'a str| *happened.entry(what).or_default() += 1;
    for step in first..first + steps {
        let sessions = sessions(&home);
        let session = sessions[dice.below(sessions.len())].as_str().to_owned();
        if dice.below(3) == 0 {
            engine = ENGINES[dice.below(ENGINES.len())];
            note("another engine");
        }
        if dice.below(6) == 0 {
            model = MODELS[dice.below(MODELS.len())];
            home.set("model.context_length", json!(WINDOWS[dice.below(WINDOWS.len())]));
            note("another model");
        }
        let text = long_text("step", step);
        let mut arguments = vec!["-z", &text, "--resume", &session, "--engine", engine, "--model", model];
        if dice.below(12) == 0 && sessions.len() < 4 {
            arguments.push("--branch");
            note("forked");
        }
        let seen = server.requests().len();
        let running = home.hermes(&arguments).spawn();
        if dice.below(3) > 0 {
            running.wait().success();
            acknowledged.push(text);
        } else {
            if dice.below(4) > 0 {
                server.wait_for_requests(seen + 1);
            }
            std::thread::sleep(Duration::from_millis(dice.below(100) as u64));
            let output = running.kill();
            if output.status.success() {
                acknowledged.push(text);
            } else {
                assert_eq!(output.status.code(), None, "it ended by itself\n{output}");
                note("killed");
            }
        }
    }
    for request in &server.turns() {
        assert_valid_request(&request.body);
    }
    note_views(&home, &acknowledged, &mut note);
    home.hermes(&["sessions", "check"]).run().success();
}

fn store(home: &Home) -> Store {
    Store::open_read_only(&home.path()).unwrap().expect("there is a store")
}

fn sessions(home: &Home) -> Vec<SessionId> {
    let mut ids: Vec<SessionId> = store(home).sessions().unwrap().into_iter().map(|session| session.id).collect();
    ids.sort();
    ids
}

/// Checks every stored conversation.
fn note_views<'a>(home: &Home, acknowledged: &[String], note: &mut impl FnMut(&'a str)) {
    let store = store(home);
    let mut said = HashSet::new();
    for session in sessions(home) {
        let conversation = Conversation::new(store.conversation(&session).unwrap());
        let mut own = HashSet::new();
        for message in conversation.messages().iter().filter(|message| message.role == hermes_conversation::Role::User)
        {
            assert!(own.insert(message.content.clone()), "`{}` is there twice", message.content);
        }
        said.extend(own);
        let view = store.view_in_force(&session).unwrap().view;
        if !view.items.is_empty() {
            note("compacted");
        }
        assert_whole(&conversation, &view, &store, &session);
    }
    for text in acknowledged {
        assert!(said.contains(text), "`{text}` was answered and is gone");
    }
}

/// Checks that the host would accept a stored view as a plan, and that it renders to a valid request.
fn assert_whole(conversation: &Conversation, view: &View, store: &Store, session: &SessionId) {
    let segments = conversation.items(view).into_iter().map(|item| match item {
        Item::Messages(range) => Segment::Restore(range),
        Item::Excerpt(excerpt) => Segment::Excerpt(excerpt),
        Item::Summary(summary) => Segment::KeepSummary(summary.key),
    });
    let plan = Plan { segments: segments.collect(), reason: String::new(), extra: Vec::new() };
    let summaries = store.summaries(session).unwrap();
    let ground = ReferenceState {
        conversation,
        view: &View::default(),
        summaries: &summaries,
        limit: u32::MAX,
        must_shrink: false,
    };
    let accepted = verify(&plan, &ground);
    // A killed process can leave its last call unanswered; the next process closes it.
    let shown = render::render(conversation, view);
    let open = conversation
        .messages()
        .last()
        .is_some_and(|last| last.role == hermes_conversation::Role::Tool || !last.tool_calls.is_empty());
    assert!(accepted.is_ok() || open, "{session}: {:?}", accepted.err());
    if !open {
        validity::check(&shown).unwrap();
    }
}
