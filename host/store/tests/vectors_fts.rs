//! Recorded cases of searches. They lie next to the repository.
//!
//! The cases define which rows a query must find, not how. Intended differences are listed with their reason, and the
//! actual result is asserted.
#![allow(clippy::unwrap_used)]

mod common;
mod recorded;

use common::new_session;
use hermes_conversation::{Draft, Role, SessionId, ToolCall};
use hermes_store::{Hit, NewSession, SearchQuery, Sort, Store};
use recorded::suite;
use serde_json::Value;
use tempfile::TempDir;

fn cases(suite: &Value) -> impl Iterator<Item = (&str, &Value, &Value)> {
    let cases = suite["cases"].as_array().unwrap();
    cases.iter().map(|case| (case["name"].as_str().unwrap(), &case["input"], &case["expected"]))
}

fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

/// The text of a message content in the chat format: a text, or the texts of its parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => {
            let texts = parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

fn draft(role: &str, content: &Value, extra: &Value, created_at: u64) -> Draft {
    let calls = extra["tool_calls"].as_array().into_iter().flatten().map(|call| ToolCall {
        id: call["id"].as_str().unwrap().into(),
        name: call["function"]["name"].as_str().unwrap().into(),
        arguments: call["function"]["arguments"].as_str().unwrap().into(),
    });
    Draft {
        role: Role::parse(role).unwrap(),
        tool_calls: calls.collect(),
        tool_call_id: extra["tool_call_id"].as_str().map(str::to_owned),
        tool_name: extra["tool_name"].as_str().map(str::to_owned),
        ..Draft::user(text(content), created_at)
    }
}

fn list(value: &Value) -> Option<Vec<&str>> {
    value.as_array().map(|list| list.iter().map(|one| one.as_str().unwrap()).collect())
}

/// Queries that the reference refuses and that find their row in this search.
const QUERIES_THAT_DIFFER: [(&str, &str); 3] = [
    ("double-dangling-start", "operators without operands are ignored"),
    ("windows-path", "every sign can be searched"),
    ("percent-underscore", "every sign can be searched"),
];

/// A query finds the row with its own words, whatever signs it contains. A query without words finds nothing.
#[test]
fn every_query_finds_the_row_with_its_words() {
    let Some(suite) = suite("fts_query") else { return };
    let (_home, store) = store();
    let session = store.create_session(new_session()).unwrap().id;
    let mut passed = 0;
    for (at, (name, input, expected)) in (0_u64..).zip(cases(&suite)) {
        let query = input["query"].as_str().unwrap();
        // The other row contains the letters but none of the words.
        let other: String = query.chars().flat_map(|c| [c, 'q']).collect();
        let rows = store.append(&session, &[Draft::user(query, at), Draft::user(other, at)]).unwrap();
        let all = SearchQuery { limit: 1000, ..SearchQuery::new(query) };
        let found: Vec<Hit> = store.search(&all).unwrap();
        let finds = found.iter().any(|hit| hit.message == rows[0].id);
        assert!(!found.iter().any(|hit| hit.message == rows[1].id), "{name}: the other row");
        let route = expected["route"].as_str().unwrap();
        // For the reference an empty phrase is an expression that finds nothing.
        let asks = route != "none" && query.chars().any(char::is_alphanumeric);
        let works = asks && expected["match_ok"] == true;
        match QUERIES_THAT_DIFFER.iter().any(|(differing, _)| *differing == name) {
            true => assert!(finds && !works, "{name}"),
            false => {
                assert_eq!(finds, works, "{name}");
                passed += 1;
            }
        }
    }
    println!("fts_query: {passed} passed, {} differ", QUERIES_THAT_DIFFER.len());
}

/// A case with a different result.
type OtherHits = (&'static str, &'static [(&'static str, u64)], &'static str);

const STEMS: &str = "words are found by their stems: `networking` finds `network`";
const SEARCHES_THAT_DIFFER: [OtherHits; 2] = [
    ("word", &[("s1", 0), ("s1", 1), ("s1", 2)], STEMS),
    ("bad-sort-ignored", &[("s1", 0), ("s1", 1), ("s1", 2)], STEMS),
];

#[test]
fn the_corpus_is_searched_as_recorded() {
    let Some(suite) = suite("fts_search") else { return };
    let (_home, store) = store();
    let mut places = std::collections::HashMap::new();
    let mut clock = 1000;
    for session in suite["corpus"].as_array().unwrap() {
        let title = session["title"].as_str().map(str::to_owned);
        let source = session["source"].as_str().unwrap().to_owned();
        let id = store.create_session(NewSession { source, title, ..new_session() }).unwrap().id;
        for (position, message) in (0_u64..).zip(session["messages"].as_array().unwrap()) {
            let draft = draft(message[0].as_str().unwrap(), &message[1], &message[2], clock);
            clock += 1;
            let message = store.append(&id, &[draft]).unwrap();
            places.insert(message[0].id, (session["id"].as_str().unwrap(), position));
        }
    }
    let mut passed = 0;
    for (name, input, expected) in cases(&suite) {
        let sort = match input["sort"].as_str() {
            Some("newest") => Sort::Newest,
            Some("oldest") => Sort::Oldest,
            _ => Sort::Rank,
        };
        let query = SearchQuery {
            sort,
            roles: list(&input["role_filter"]).map(|roles| roles.into_iter().filter_map(Role::parse).collect()),
            sources: list(&input["source_filter"]).map(|names| names.into_iter().map(str::to_owned).collect()),
            ..SearchQuery::new(input["query"].as_str().unwrap())
        };
        let hits = store.search(&query).unwrap();
        let mut found: Vec<(&str, u64)> = hits.iter().map(|hit| places[&hit.message]).collect();
        let mut wanted: Vec<(&str, u64)> = expected["hits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| (hit[0].as_str().unwrap(), hit[1].as_u64().unwrap()))
            .collect();
        let mut contexts: Vec<usize> =
            hits.iter().map(|hit| 1 + usize::from(hit.before.is_some()) + usize::from(hit.after.is_some())).collect();
        let mut wanted_contexts: Vec<usize> =
            expected["context_lengths"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        if sort == Sort::Rank {
            found.sort_unstable();
            wanted.sort_unstable();
            contexts.sort_unstable();
            wanted_contexts.sort_unstable();
        }
        if let Some((_, ours, _)) = SEARCHES_THAT_DIFFER.iter().find(|(differing, ..)| *differing == name) {
            assert_eq!(found, *ours, "{name}");
            continue;
        }
        assert_eq!(found, wanted, "{name}");
        assert_eq!(contexts, wanted_contexts, "{name}");
        passed += 1;
        // The same words are marked, but the text around them is cut differently.
        let marked = |text: &str| -> Vec<String> {
            let parts = text.split(">>>").skip(1).filter_map(|part| part.split_once("<<<"));
            parts.map(|(inside, _)| inside.to_owned()).collect()
        };
        let mut wanted: Vec<Vec<String>> =
            expected["snippets"].as_array().unwrap().iter().map(|text| marked(text.as_str().unwrap())).collect();
        let mut ours: Vec<Vec<String>> = hits
            .iter()
            .map(|hit| hit.snippet.iter().filter(|part| part.matched).map(|part| part.text.clone()).collect())
            .collect();
        wanted.sort();
        ours.sort();
        assert_eq!(ours, wanted, "{name}");
    }
    println!("fts_search: {passed} passed, {} differ", SEARCHES_THAT_DIFFER.len());
}

/// Cases with a different count: the actual count and the reason.
const VISIBILITY_THAT_DIFFERS: [(&str, usize, &str); 2] = [
    ("compacted-twice", 0, "a summary is part of a view, not a message: the summarised messages are found instead"),
    ("cjk-like-not", 1, "an excluded term excludes on every route"),
];

fn found_after(steps: &Value, query: &str) -> usize {
    let (_home, store) = store();
    let session = store.create_session(new_session()).unwrap().id;
    for (at, step) in (1_u64..).zip(steps.as_array().unwrap()) {
        match step[0].as_str().unwrap() {
            "append" => {
                let draft = draft(step[1].as_str().unwrap(), &step[2], &Value::Null, at);
                store.append(&session, &[draft]).unwrap();
            }
            "rewind_to" => rewind(&store, &session, step[1].as_u64().unwrap() as usize),
            // A compaction creates a view; the log does not change.
            "compact" => {}
            unknown => panic!("unknown step {unknown}"),
        }
    }
    store.search(&SearchQuery::new(query)).unwrap().len()
}

/// Rewinds to the message at a position.
fn rewind(store: &Store, session: &SessionId, position: usize) {
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    for message in &store.conversation(session).unwrap()[position..] {
        let sql = "INSERT OR IGNORE INTO rewound (session_id, message_id, rewound_at) VALUES (?1, ?2, 1)";
        connection.execute(sql, (session.as_str(), message.id.0.cast_signed())).unwrap();
    }
}

#[test]
fn visible_messages_are_found_as_recorded() {
    let Some(suite) = suite("fts_visibility") else { return };
    let mut passed = 0;
    for (name, input, expected) in cases(&suite) {
        let found = found_after(&input["steps"], input["query"].as_str().unwrap());
        match VISIBILITY_THAT_DIFFERS.iter().find(|(differing, ..)| *differing == name) {
            Some((_, ours, _)) => assert_eq!(found, *ours, "{name}"),
            None => {
                assert_eq!(found as u64, expected["found"].as_u64().unwrap(), "{name}");
                passed += 1;
            }
        }
        if name == "compacted-twice" {
            assert_eq!(found_after(&input["steps"], "needle"), 2, "folded messages are found");
        }
    }
    println!("fts_visibility: {passed} passed, {} differ", VISIBILITY_THAT_DIFFERS.len());
}
