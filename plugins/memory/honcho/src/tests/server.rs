//! The mode `server`, against the answers that version 3 of the interface gives.

use std::cell::RefCell;
use std::rc::Rc;

use hermes_plugin::memory_provider::{Query, Turn};
use hermes_plugin::testing::{Answer, Host, Sent};
use hermes_plugin::{ErrorKind, MemoryPrefetch as _, MemoryProvider as _, MemoryRewind as _, Tools as _};
use serde_json::{Value, json};

use super::call;
use crate::Honcho;

/// A server that knows nothing yet, except the messages that it was given.
#[derive(Default)]
struct Backend {
    sessions: Vec<String>,
    messages: Vec<Value>,
    /// Answers by the end of the path, in place of its own.
    instead: Vec<(&'static str, Answer)>,
}

impl Backend {
    fn answer(&mut self, sent: &Sent) -> Answer {
        let path = sent.url.split('?').next().unwrap_or_default().to_owned();
        if let Some((_, answer)) = self.instead.iter().find(|(end, _)| path.ends_with(end)) {
            return answer.clone();
        }
        let body: Value = sent.json().unwrap_or_default();
        if path.ends_with("/sessions") {
            let name = body["id"].as_str().unwrap().to_owned();
            let is_new = !self.sessions.contains(&name);
            self.sessions.push(name);
            return Answer::json(if is_new { 201 } else { 200 }, json!({"id": body["id"], "later": 1}));
        }
        if path.ends_with("/messages") {
            let new = body["messages"].as_array().unwrap().clone();
            self.messages.extend(new.clone());
            return Answer::json(201, json!(new));
        }
        if path.ends_with("/messages/list") {
            let wanted = &body["filters"]["metadata"];
            let fits = |message: &&Value| {
                wanted.as_object().unwrap().iter().all(|(key, value)| message["metadata"][key] == *value)
            };
            let items: Vec<&Value> = self.messages.iter().filter(fits).collect();
            return Answer::json(200, json!({"items": items, "total": items.len(), "page": 1, "size": 50, "pages": 1}));
        }
        Answer::json(200, json!({}))
    }
}

fn served(backend: Backend) -> (Host, Rc<RefCell<Backend>>) {
    let backend = Rc::new(RefCell::new(backend));
    let serving = Rc::clone(&backend);
    let host = Host::new().database().secret("api_key", "key-0123456789");
    (host.serve(move |sent| serving.borrow_mut().answer(sent)), backend)
}

fn instead(end: &'static str, answer: Answer) -> (Host, Rc<RefCell<Backend>>) {
    served(Backend { instead: vec![(end, answer)], ..Backend::default() })
}

fn honcho(host: &Host, settings: Value) -> Honcho {
    host.start(settings).unwrap()
}

/// The ends of paths that were requested, with methods.
fn paths(host: &Host) -> Vec<String> {
    let path = |sent: &Sent| {
        let (_, path) = sent.url.split_once("/v3").unwrap();
        format!("{} {}", sent.method, path.split('?').next().unwrap().replace("/workspaces/hermes", ""))
    };
    host.requests().iter().map(path).collect()
}

#[test]
fn a_turn_is_stored_under_its_key_and_only_once() {
    let (host, backend) = served(Backend::default());
    let mut plugin = honcho(&host, json!({"peerName": "ada"}));
    let framed = "When is tea?\n\n<memory-context>\nold\n</memory-context>";
    plugin.sync_turn(&Turn::new(1, framed, "At four.")).unwrap();
    let stored = backend.borrow().messages.clone();
    assert_eq!(stored.len(), 2);
    assert_eq!((&stored[0]["peer_id"], &stored[0]["content"]), (&json!("ada"), &json!("When is tea?")));
    assert_eq!(stored[1]["metadata"]["hermes_turn"], "session-1:1");
    // The clock of the test is far from the turn's time, so the turn brings its own.
    assert_eq!(stored[1]["created_at"], "1970-01-01T00:00:00.000Z");
    assert_eq!(host.requests()[0].header("authorization"), Some("Bearer key-0123456789"));
    assert_eq!(
        paths(&host),
        [
            "POST /workspaces",
            "POST /sessions",
            "POST /sessions/session-1/peers",
            "POST /sessions/session-1/messages/list",
            "POST /sessions/session-1/messages",
        ]
    );
    // The answer was lost: another instance delivers the turn again.
    let mut plugin = honcho(&host, json!({"peerName": "ada"}));
    plugin.sync_turn(&Turn::new(1, framed, "At four.")).unwrap();
    assert_eq!(backend.borrow().messages.len(), 2);
    // A part arrived.
    backend.borrow_mut().messages.truncate(1);
    plugin.sync_turn(&Turn::new(1, framed, "At four.")).unwrap();
    assert_eq!(backend.borrow().messages[1]["content"], "At four.");
}

#[test]
fn a_long_text_is_sent_in_pieces_and_calls_that_the_server_takes() {
    let (host, backend) = served(Backend::default());
    let mut plugin = honcho(&host, json!({"messageMaxChars": 1_000}));
    plugin.sync_turn(&Turn::new(1, "word ".repeat(30_000), "")).unwrap();
    let stored = &backend.borrow().messages;
    let lengths = stored.iter().map(|message| message["content"].as_str().unwrap().chars().count());
    assert!(stored.len() > 150 && lengths.max() <= Some(1_000));
    assert!(stored[1]["content"].as_str().unwrap().starts_with("[continued] "));
    let calls = paths(&host).iter().filter(|path| path.ends_with("/messages")).count();
    assert_eq!(calls, stored.len().div_ceil(100));
}

#[test]
fn the_error_of_a_server_decides_whether_a_turn_waits() {
    let list =
        json!([{"type": "too_long", "loc": ["body", "messages", 0, "content"], "msg": "too long", "input": "…"}]);
    for (answer, kind, words) in [
        (
            Answer::json(401, json!({"detail": "Invalid JWT"})),
            ErrorKind::Unavailable,
            "HONCHO_API_KEY is not the right key",
        ),
        (Answer::json(409, json!({"detail": "busy"})), ErrorKind::Conflict, "busy"),
        (Answer::json(422, json!({ "detail": list })), ErrorKind::InvalidInput, "body.messages.0.content: too long"),
        (Answer::status(429).header("retry-after", "9"), ErrorKind::Exhausted, "429"),
        (Answer::status(500), ErrorKind::Unavailable, "500"),
        (Answer::bytes(200, "text/html", "<html>log in"), ErrorKind::Unavailable, "not JSON"),
    ] {
        let (host, _) = instead("/messages/list", answer);
        let error = honcho(&host, json!({})).sync_turn(&Turn::new(1, "hi", "ho")).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
        assert!(error.retry_after_ms.is_none_or(|wait| wait == 9_000 || wait == 600_000));
    }
}

#[test]
fn what_is_known_is_recalled_line_by_line() {
    let context = json!({
        "peer_card": ["IDENTITY: Ada"], "summary": {"content": "They talked about tea."}, "messages": [],
        "peer_representation": "## Explicit\n\n[2026-01-01] ada drinks tea\n- [2026-01-02] ada has a boat\n", "uid": 1,
    });
    let (host, _) = instead("/context", Answer::json(200, context));
    let mut plugin = honcho(&host, json!({"peerName": "ada", "contextCadence": 2}));
    let recalled = plugin.recall(&Query::new("What do I drink?", 1_000)).unwrap();
    let texts: Vec<&str> = recalled.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        texts[..3],
        ["Card of ada:\n- IDENTITY: Ada", "[2026-01-01] ada drinks tea", "[2026-01-02] ada has a boat"]
    );
    assert!(texts[3].ends_with("They talked about tea."));
    let url = &host.requests()[0].url;
    for part in ["peer_target=ada", "peer_perspective=hermes", "search_query=What+do+I+drink"] {
        assert!(url.contains(part), "{url}");
    }
    // Within the cadence nothing is asked, nor for words that ask nothing.
    let next = Query { turn: 2, ..Query::new("And where?", 1_000) };
    assert_eq!(plugin.recall(&next).unwrap(), []);
    assert_eq!(plugin.recall(&Query { turn: 9, ..Query::new("Thanks!", 1_000) }).unwrap(), []);
    assert_eq!(host.requests().len(), 1);
    assert!(!plugin.recall(&Query { turn: 3, ..Query::new("And where?", 1_000) }).unwrap().is_empty());
    // A budget is kept.
    let mut plugin = honcho(&host, json!({"peerName": "ada", "contextTokens": 8}));
    assert_eq!(plugin.recall(&Query::new("What do I drink?", 1_000)).unwrap().len(), 1);
}

#[test]
fn a_long_message_fits_into_an_address() {
    let (host, _) = served(Backend::default());
    honcho(&host, json!({})).recall(&Query::new("茶".repeat(100_000), 1_000)).unwrap();
    assert!(host.requests().iter().all(|sent| sent.url.len() < 8_000));
}

#[test]
fn a_new_session_shows_what_others_told_about_a_person() {
    let (host, backend) = served(Backend::default());
    let of_peer = json!({"peer_id": "hermes", "representation": "[2026-01-01] user rows", "peer_card": null});
    backend.borrow_mut().instead = vec![("/peers/hermes/context", Answer::json(200, of_peer))];
    let mut plugin = honcho(&host, json!({}));
    assert_eq!(plugin.recall(&Query::new("What do I do?", 1_000)).unwrap()[0].text, "[2026-01-01] user rows");
    backend.borrow_mut().instead = vec![("/peers/hermes/context", Answer::json(404, json!({"detail": "no peer"})))];
    let mut plugin = honcho(&host, json!({}));
    assert_eq!(plugin.recall(&Query::new("What do I do?", 1_000)).unwrap(), []);
}

#[test]
fn the_dialectic_is_asked_ahead_and_less_often_without_answers() {
    let (host, _) = instead("/chat", Answer::json(200, json!({"content": null})));
    let mut plugin = honcho(&host, json!({"observation": {"ai": {"observeMe": false}}}));
    let ahead =
        |plugin: &mut Honcho, turn: u32| plugin.prefetch(&Query { turn, ..Query::new("Plan my trip", 500) }).unwrap();
    for turn in 1..=7 {
        assert_eq!(ahead(&mut plugin, turn), []);
    }
    // Turns 1, 3 and 6: every empty answer lets one turn more pass.
    assert_eq!(host.requests().len(), 3);

    drop(host);
    let (host, _) = instead("/chat", Answer::json(200, json!({"content": "likes trains ".repeat(100)})));
    let mut plugin = honcho(&host, json!({"observation": {"ai": {"observeMe": false}}, "dialecticCadence": 2}));
    let recalled = ahead(&mut plugin, 1);
    assert!(recalled[0].text.starts_with("About user: likes trains") && recalled[0].text.len() <= 620);
    let asked: Value = host.requests()[0].json().unwrap();
    assert_eq!(
        (&asked["target"], &asked["reasoning_level"], &asked["stream"]),
        (&json!("user"), &json!("low"), &json!(false))
    );
    assert_eq!(ahead(&mut plugin, 2), []);
    assert_eq!(ahead(&mut plugin, 3).len(), 1);
}

#[test]
fn before_the_first_message_the_dialectic_is_asked_about_the_person() {
    let (host, _) = instead("/chat", Answer::json(200, json!({"content": "likes trains"})));
    let mut plugin = honcho(&host, json!({"observation": {"ai": {"observeMe": false}}}));
    let ahead = |plugin: &mut Honcho, turn: u32, text: &str| {
        plugin.prefetch(&Query { turn, ..Query::new(text, 500) }).unwrap().len()
    };
    assert_eq!(ahead(&mut plugin, 0, ""), 1);
    let asked: Value = host.requests()[0].json().unwrap();
    assert!(asked["query"].as_str().unwrap().contains("begins a conversation"), "{asked}");
    // The first answer of the dialectic does not delay the one about the first message.
    assert_eq!((ahead(&mut plugin, 1, "ok"), ahead(&mut plugin, 1, "Plan my trip")), (0, 1));
}

#[test]
fn modes_hide_tools_or_recall_nothing() {
    let (host, _) = served(Backend::default());
    let mut tools = honcho(&host, json!({"recallMode": "tools"}));
    assert_eq!(tools.recall(&Query::new("What do I drink?", 1_000)).unwrap(), []);
    assert_eq!(tools.prefetch(&Query::new("What do I drink?", 1_000)).unwrap(), []);
    assert_eq!(tools.catalog().unwrap().len(), 5);
    assert!(honcho(&host, json!({"recallMode": "context"})).catalog().unwrap().is_empty());
    assert_eq!(tools.system_prompt().unwrap(), "");
    assert!(host.requests().is_empty());
    honcho(&host, json!({"saveMessages": false})).sync_turn(&Turn::new(1, "hi", "ho")).unwrap();
    assert!(host.requests().is_empty());
}

#[test]
fn tools_use_the_pair_of_observer_and_observed() {
    let (host, backend) = served(Backend::default());
    let mut plugin = honcho(&host, json!({"peerName": "ada"}));
    backend.borrow_mut().instead = vec![
        ("/card", Answer::json(404, json!({"detail": "Peer hermes not found"}))),
        ("/conclusions", Answer::json(201, json!([{"id": "c_1", "content": "x"}]))),
        (
            "/conclusions/list",
            Answer::json(200, json!({"items": [{"id": "c_1", "content": "rows", "created_at": "2026"}]})),
        ),
        (
            "/search",
            Answer::json(
                200,
                json!([{"peer_id": "ada", "content": "I row.", "session_id": "s", "created_at": "2026"}]),
            ),
        ),
        ("/chat", Answer::json(200, json!({"content": "Ada rows."}))),
    ];
    let card = call(&mut plugin, "honcho_profile", json!({})).unwrap();
    assert!(card["card"] == json!([]) && card["hint"].is_string(), "{card}");
    assert!(host.requests().last().unwrap().url.ends_with("/peers/hermes/card?target=ada"));
    let kept = call(&mut plugin, "honcho_conclude", json!({"conclusion": "Ada rows"})).unwrap();
    assert_eq!(kept["id"], "c_1");
    let sent: Value = host.requests().last().unwrap().json().unwrap();
    assert_eq!(
        sent["conclusions"][0],
        json!({"content": "Ada rows", "observer_id": "hermes", "observed_id": "ada", "session_id": "session-1"})
    );
    let listed = call(&mut plugin, "honcho_conclude", json!({"list": true})).unwrap();
    assert_eq!(listed["conclusions"][0]["id"], "c_1");
    for wrong in [json!({}), json!({"conclusion": "a", "list": true}), json!({"delete_id": "../peers"})] {
        assert!(call(&mut plugin, "honcho_conclude", wrong).unwrap_err().is(ErrorKind::InvalidInput));
    }
    let found = call(&mut plugin, "honcho_search", json!({"query": "boats"})).unwrap();
    assert_eq!(found["excerpts"][0]["text"], "I row.");
    let sent: Value = host.requests().last().unwrap().json().unwrap();
    assert_eq!(sent["filters"], json!({"peer_perspective": "ada"}));
    let answer =
        call(&mut plugin, "honcho_reasoning", json!({"query": "Does Ada row?", "reasoning_level": "high"})).unwrap();
    assert_eq!(answer["answer"], "Ada rows.");
    let sent: Value = host.requests().last().unwrap().json().unwrap();
    assert_eq!(sent["reasoning_level"], "high");
    // An agent that does not observe others knows nothing: everyone is asked about themselves.
    let mut plugin = honcho(&host, json!({"peerName": "ada", "observation": {"ai": {"observeOthers": false}}}));
    call(&mut plugin, "honcho_profile", json!({})).unwrap();
    assert!(host.requests().last().unwrap().url.ends_with("/peers/ada/card"));
}

#[test]
fn what_was_taken_back_is_marked_and_not_found() {
    let (host, backend) = served(Backend::default());
    let mut plugin = honcho(&host, json!({}));
    plugin.sync_turn(&Turn::new(1, "one", "ho")).unwrap();
    plugin.sync_turn(&Turn::new(2, "two", "ho")).unwrap();
    for (number, message) in backend.borrow_mut().messages.iter_mut().enumerate() {
        message["id"] = json!(format!("m{number}"));
    }
    plugin.rewound("session-1", 3).unwrap();
    let marked: Vec<String> = paths(&host).into_iter().filter(|path| path.starts_with("PUT")).collect();
    assert_eq!(marked, ["PUT /sessions/session-1/messages/m2", "PUT /sessions/session-1/messages/m3"]);
    let found = json!([{"content": "two", "metadata": {"hermes_rewound": true}}, {"content": "one", "metadata": {}}]);
    backend.borrow_mut().instead = vec![("/search", Answer::json(200, found))];
    let found = call(&mut plugin, "honcho_search", json!({"query": "words"})).unwrap();
    assert_eq!(found["excerpts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_turn_of_an_earlier_conversation_keeps_its_session() {
    let (host, _) = served(Backend::default());
    let host = host.session(super::session("/home/ada/app"));
    drop(honcho(&host, json!({})));
    let other = hermes_plugin::Session { id: "session-2".to_owned(), ..super::session("/home/ada/other") };
    let host = host.session(other);
    let mut plugin = honcho(&host, json!({}));
    plugin.sync_turn(&Turn::new(1, "late", "yes")).unwrap();
    assert_eq!(paths(&host).last().map(String::as_str), Some("POST /sessions/app/messages"));
}
