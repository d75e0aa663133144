//! Export and import of sessions, and files that imitate exports.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod attack;
#[path = "../common/mod.rs"]
mod common;
mod concurrency;
mod contents;
mod histories;
mod hostile;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use common::new_session;
use hermes_conversation::{
    Draft, Excerpt, Item, Message, MessageId, MessageRange, SessionId, Summary, ToolCall, Usage, View,
};
use hermes_store::{
    Frozen, Imported, Layout, NewSession, Parent, ParentKind, PromptNumber, RequestRecord, SearchQuery, Session,
    SessionError, Store, StoreError, TransferError, Trust,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A time later than all imported messages.
const NOW: u64 = 1_800_000_000_000;

fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

fn child(store: &Store, of: &Session, kind: ParentKind, through: Option<MessageId>) -> Session {
    let parent = Some(Parent { id: of.id.clone(), kind, through });
    store.create_session(NewSession { parent, ..new_session() }).unwrap()
}

fn exported(store: &Store, which: Option<&[SessionId]>) -> Vec<u8> {
    let mut file = Vec::new();
    store.export(which, Layout::Lines, &mut file).unwrap();
    file
}

fn import(store: &Store, file: &[u8]) -> Result<Imported, StoreError> {
    let planned = store.examine_import(&mut Cursor::new(file));
    let done = store.import(&mut Cursor::new(file), NOW, Trust::OwnFiles);
    if let (Ok(planned), Ok(done)) = (&planned, &done) {
        assert_eq!(planned.sessions, done.sessions);
        assert_eq!((planned.messages, &planned.skipped), (done.messages, &done.skipped));
    }
    done
}

fn records(file: &[u8]) -> Vec<Value> {
    std::str::from_utf8(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(records: &[Value]) -> Vec<u8> {
    records.iter().map(|record| format!("{record}\n")).collect::<String>().into_bytes()
}

fn drafts(store: &Store, session: &SessionId) -> Vec<Draft> {
    store.conversation(session).unwrap().into_iter().map(|message| message.draft).collect()
}

/// The sessions of a store without ids that differ between stores: messages are numbered by their position in the log.
fn canonical(store: &Store, ids: &[SessionId]) -> Vec<Value> {
    let mut records = records(&exported(store, Some(ids)));
    records.remove(0);
    let mut places = BTreeMap::new();
    let mut summaries = BTreeMap::new();
    let mut views = BTreeMap::new();
    for record in &records {
        if record["type"] == "message" {
            places.insert(record["id"].as_u64().unwrap(), places.len());
        }
        if record["type"] == "view" {
            views.insert(record["id"].as_u64().unwrap(), format!("view {}", views.len()));
        }
        for summary in record["summaries"].as_array().into_iter().flatten() {
            summaries.insert(summary["id"].as_u64().unwrap(), summaries.len());
        }
    }
    let place = |value: &mut Value| {
        if let Some(id) = value.as_u64() {
            *value = json!(places[&id]);
        }
    };
    for record in &mut records {
        // Each home has another key.
        record.as_object_mut().unwrap().remove("seal");
        match record["type"].as_str().unwrap() {
            "message" => place(&mut record["id"]),
            "session" if record["parent"].is_object() => place(&mut record["parent"]["through"]),
            "rewind" => record["messages"].as_array_mut().unwrap().iter_mut().for_each(place),
            "request" => {
                place(&mut record["through"]);
                if let Some(view) = views.get(&record["view"].as_u64().unwrap()) {
                    record["view"] = json!(view);
                }
            }
            "view" => {
                record["id"] = json!(views[&record["id"].as_u64().unwrap()]);
                place(&mut record["through"]);
                for summary in record["summaries"].as_array_mut().unwrap() {
                    summary["id"] = json!(summaries[&summary["id"].as_u64().unwrap()]);
                    for range in summary["covers"].as_array_mut().unwrap() {
                        place(&mut range["first"]);
                        place(&mut range["last"]);
                    }
                }
                for item in record["items"].as_array_mut().unwrap() {
                    if let Some(id) = item["summary"].as_u64() {
                        item["summary"] = json!(summaries[&id]);
                    } else if item["excerpt"].is_object() {
                        place(&mut item["excerpt"]["id"]);
                    } else {
                        place(&mut item["messages"]["first"]);
                        place(&mut item["messages"]["last"]);
                    }
                }
            }
            _ => {}
        }
    }
    records
}

/// A session with every kind of record, a branch that uses its summary, a branch of this branch, and a delegate.
fn family(store: &Store) -> [Session; 4] {
    let frozen = Frozen { system_prompt: "You are\0 Hermes.".into(), tools: "[]".into(), ..Frozen::default() };
    let root = store
        .create_session(NewSession { title: Some("Engine".into()), frozen: Some(frozen.clone()), ..new_session() })
        .unwrap();
    let call = ToolCall { id: "c\u{7f}".into(), name: "read".into(), arguments: "{\"p\":\"\\u0000\"}".into() };
    let said = store
        .append(
            &root.id,
            &[
                Draft { sent: Some("with\nmore".into()), ..Draft::user("first 错误 \u{1f600}\0", 1) },
                Draft { reasoning: Some("because".into()), ..Draft::assistant("", vec![call.clone()], 2) },
                Draft::result(&call, "result", 3).by_host(),
                Draft::assistant("done", Vec::new(), 4),
                Draft::user("second", 5),
                Draft::assistant("also done", Vec::new(), 6),
            ],
        )
        .unwrap();
    store.freeze(&root.id, &Frozen { system_prompt: "Another.".into(), ..frozen }, 7).unwrap();
    let covers = vec![MessageRange::new(said[0].id, said[3].id)];
    let summary = Summary { key: "s1".into(), content: "what was said".into(), covers };
    let view = View {
        items: vec![
            Item::Summary(summary.clone()),
            Item::Messages(MessageRange::one(said[4].id)),
            Item::Excerpt(Excerpt {
                id: said[5].id,
                content: Some("also".into()),
                arguments: vec![("c".into(), "{}".into())],
                keep_images: false,
            }),
        ],
        through: Some(said[5].id),
    };
    store.put_view(&root.id, &view, "the window is full", "compressor").unwrap();
    let row = store.view_in_force(&root.id).unwrap().id;
    let usage = Usage { input: 10, output: 2, cache_read: 4, cache_write: 1, reasoning: 0 };
    let request = RequestRecord {
        view: row,
        through: Some(said[5].id),
        usage: Some(usage),
        cost: Some(0.25),
        cause: Some("first request".into()),
        ..RequestRecord::default()
    };
    store.record_request(&root.id, &request).unwrap();
    store.record_request(&root.id, &RequestRecord::default()).unwrap();

    let branch = child(store, &root, ParentKind::Branch, None);
    let more = store.append(&branch.id, &[Draft::user("third", 8), Draft::assistant("yes", Vec::new(), 9)]).unwrap();
    let own = View {
        items: vec![Item::Summary(summary), Item::Messages(MessageRange::new(said[4].id, more[1].id))],
        through: Some(more[1].id),
    };
    store.put_view(&branch.id, &own, "again", "compressor").unwrap();
    store.append(&root.id, &[Draft::user("of the parent alone", 10)]).unwrap();
    store.rewind(&root.id, said[4].id).unwrap();
    store.append(&root.id, &[Draft::user("instead", 11)]).unwrap();
    let nested = child(store, &branch, ParentKind::Branch, Some(more[0].id));
    store.rewind(&nested.id, said[4].id).unwrap();
    store.append(&nested.id, &[Draft::user("deep", 12)]).unwrap();
    let delegate = child(store, &root, ParentKind::Delegate, None);
    store.append(&delegate.id, &[Draft::user("task", 13)]).unwrap();
    [root, branch, nested, delegate].map(|session| store.session(&session.id).unwrap())
}

fn at(records: &[Value], kind: &str, nth: usize) -> usize {
    records.iter().enumerate().filter(|(_, record)| record["type"] == kind).nth(nth).unwrap().0
}
