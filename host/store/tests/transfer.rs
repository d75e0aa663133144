//! Sessions that leave one store and come into another, and files that only look like theirs.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use common::new_session;
use hermes_conversation::{
    Draft, Excerpt, Item, Message, MessageId, MessageRange, SessionId, Summary, ToolCall, Usage, View,
};
use hermes_store::{
    Frozen, Imported, Layout, NewSession, Parent, ParentKind, PromptNumber, RequestRecord, SearchQuery, Session,
    SessionError, Store, StoreError,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Later than all that is imported.
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
    let done = store.import(&mut Cursor::new(file), NOW);
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

/// A store's sessions without the numbers that differ from store to store: messages by their place in the log.
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

/// A session with everything, a branch of it that uses its summary, a branch of that, and a delegate.
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

#[test]
fn sessions_are_the_same_in_the_store_that_they_come_into() {
    let (_home, from) = store();
    let family = family(&from);
    let ids = family.each_ref().map(|session| session.id.clone());
    let file = exported(&from, None);

    let (_home, to) = store();
    // So that all numbers differ.
    let before = to.create_session(new_session()).unwrap();
    to.append(&before.id, &[Draft::user("x", 1), Draft::user("y", 2)]).unwrap();
    to.put_view(&before.id, &View::default(), "", "e").unwrap();
    let imported = import(&to, &file).unwrap();
    assert_eq!((imported.sessions.as_slice(), imported.messages), (ids.as_slice(), 12));
    assert_eq!((imported.skipped.len(), imported.renamed.len(), imported.detached.len()), (0, 0, 0));

    assert_eq!(canonical(&to, &ids), canonical(&from, &ids));
    for session in &family {
        assert_eq!(drafts(&to, &session.id), drafts(&from, &session.id));
        let arrived = to.session(&session.id).unwrap();
        let through = arrived.parent.as_ref().and_then(|parent| parent.through);
        let parent = session.parent.clone().map(|parent| Parent { through, ..parent });
        assert_eq!(arrived, Session { parent, ..session.clone() });
        let shape = |store: &Store| {
            let view = store.view(&session.id).unwrap();
            (view.items.len(), view.summaries().cloned().map(|summary| summary.content).collect::<Vec<_>>())
        };
        assert_eq!(shape(&to), shape(&from), "{}", session.id);
    }
    // What was taken back is still there to be restored.
    assert!(matches!(to.restore(&ids[0]), Err(StoreError::Session(SessionError::SaidSince { .. }))));
    assert_eq!(to.requests(&ids[0]).unwrap().len(), 2);
    assert_eq!(to.frozen(&ids[0], PromptNumber(1)).unwrap(), from.frozen(&ids[0], PromptNumber(1)).unwrap());

    // Once more changes nothing.
    let again = import(&to, &file).unwrap();
    assert_eq!((again.sessions.len(), again.skipped.as_slice()), (0, ids.as_slice()));
    assert_eq!(canonical(&to, &ids), canonical(&from, &ids));
}

#[test]
fn a_session_takes_those_with_it_that_its_conversation_needs() {
    let (_home, from) = store();
    let [root, branch, nested, delegate] = family(&from);
    let other = from.create_session(new_session()).unwrap();
    let ids = |file: &[u8]| -> Vec<String> {
        let sessions = records(file).into_iter().filter(|record| record["type"] == "session");
        sessions.map(|record| record["id"].as_str().unwrap().to_owned()).collect()
    };
    let of = |which: &[&Session]| {
        let which: Vec<SessionId> = which.iter().map(|session| session.id.clone()).collect();
        ids(&exported(&from, Some(&which)))
    };
    assert_eq!(of(&[&nested]), [root.id.0.clone(), branch.id.0.clone(), nested.id.0.clone()]);
    assert_eq!(of(&[&delegate]), std::slice::from_ref(&delegate.id.0));
    assert_eq!(of(&[&root, &other]), [root.id.0.clone(), delegate.id.0.clone(), other.id.0]);

    // A delegate without its parent becomes a session of its own, and in a store that has the parent it does not.
    let (_home, to) = store();
    let alone = exported(&from, Some(std::slice::from_ref(&delegate.id)));
    assert_eq!(import(&to, &alone).unwrap().detached, std::slice::from_ref(&delegate.id));
    assert_eq!(to.session(&delegate.id).unwrap().parent, None);
    let (_home, to) = store();
    import(&to, &exported(&from, Some(std::slice::from_ref(&branch.id)))).unwrap();
    assert_eq!(import(&to, &alone).unwrap().detached, []);
    assert_eq!(to.session(&delegate.id).unwrap().parent.unwrap().id, root.id);
    // Its parents are there already: the new one is tied to what they have there.
    let imported = import(&to, &exported(&from, Some(std::slice::from_ref(&nested.id)))).unwrap();
    assert_eq!((imported.sessions.as_slice(), imported.skipped.len()), (std::slice::from_ref(&nested.id), 2));
    assert_eq!(drafts(&to, &nested.id), drafts(&from, &nested.id));
    assert_eq!(drafts(&to, &branch.id), drafts(&from, &branch.id));
    let error = from.export(Some(&[SessionId("nobody".into())]), Layout::Lines, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, StoreError::Session(SessionError::UnknownSession(_))));
}

#[test]
fn a_branch_is_not_tied_to_a_parent_that_says_something_else() {
    let (_home, from) = store();
    let [root, branch, ..] = family(&from);
    let file = exported(&from, Some(std::slice::from_ref(&branch.id)));
    let mut changed = records(&file);
    let message = changed.iter().position(|record| record["type"] == "message").unwrap();
    changed[message]["content"] = json!("something else");
    let (_home, to) = store();
    let without_branch = exported(&from, Some(std::slice::from_ref(&root.id)));
    import(&to, &without_branch).unwrap();
    let done = import(&to, &lines(&changed)).unwrap();
    assert_eq!(done.left_out, [(branch.id.clone(), root.id.clone())]);
    assert!(matches!(to.session(&branch.id), Err(StoreError::Session(SessionError::UnknownSession(_)))));
}

#[test]
fn what_goes_on_from_another_session_is_left_out_and_the_rest_comes_in() {
    let (_home, from) = store();
    let [root, branch, nested, delegate] = family(&from);
    let other = from.create_session(new_session()).unwrap();
    let mut changed = records(&exported(&from, None));
    let message = at(&changed, "message", 0);
    changed[message]["content"] = json!("something else");
    let (_home, to) = store();
    let done = import(&to, &exported(&from, Some(std::slice::from_ref(&root.id)))).unwrap();
    assert_eq!(done.sessions, [root.id.clone(), delegate.id.clone()]);
    let done = import(&to, &lines(&changed)).unwrap();
    assert_eq!(done.left_out, [(branch.id.clone(), root.id), (nested.id, branch.id)]);
    assert_eq!((done.sessions, done.skipped.len()), (vec![other.id], 2));
}

/// A file that tells of the state of a store each time a part of it is read.
struct Watched<'a>(Cursor<&'a [u8]>, &'a mut dyn FnMut());

impl std::io::Read for Watched<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        (self.1)();
        let most = to.len().min(4096);
        self.0.read(&mut to[..most])
    }
}

impl std::io::Seek for Watched<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn others_write_during_an_import_and_see_a_session_only_when_it_is_whole() {
    let (_home, from) = store();
    let session = from.create_session(new_session()).unwrap().id;
    let said: Vec<Draft> = (0..1_000).map(|at| Draft::user(format!("message {at}"), at)).collect();
    from.append(&session, &said).unwrap();
    let file = exported(&from, None);
    let (home, to) = store();
    let other = Store::open(home.path()).unwrap();
    let own = other.create_session(new_session()).unwrap().id;
    let mut looks = 0;
    let mut look = || {
        looks += 1;
        other.append(&own, &[Draft::user("meanwhile", 1)]).unwrap();
        assert_eq!(other.sessions().unwrap().len(), 1);
        for refused in [other.session(&session).map(drop), other.resolve_session(session.as_str()).map(drop)] {
            assert!(matches!(refused, Err(StoreError::Session(SessionError::UnknownSession(_)))));
        }
        assert!(other.lease(&session).is_err());
    };
    let mut watched = std::io::BufReader::new(Watched(Cursor::new(&file), &mut look));
    assert_eq!(to.import(&mut watched, NOW).unwrap().messages, 1_000);
    assert!(looks > 20, "{looks}");
    assert_eq!(drafts(&to, &session), said);
}

#[test]
fn an_import_that_was_cut_off_leaves_nothing_that_the_next_one_does_not_clear() {
    let (_home, from) = store();
    family(&from);
    let file = exported(&from, None);
    let (home, to) = store();
    let cut_off = rusqlite::Connection::open(home.path().join("state.db")).unwrap();
    let id = from.sessions().unwrap()[0].id.clone();
    cut_off
        .execute(
            "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, started_at, \
             updated_at) VALUES (?1, 'import, not finished', '/', '', '', '', 1, 1, 1)",
            [id.as_str()],
        )
        .unwrap();
    to.append(&id, &[Draft::user("halfway", 1)]).unwrap();
    assert_eq!(to.sessions().unwrap(), []);
    assert_eq!(to.search(&SearchQuery::new("halfway")).unwrap(), []);
    let done = to.import(&mut Cursor::new(file), NOW).unwrap();
    assert_eq!((done.sessions.len(), done.skipped.len()), (4, 0));
    assert_eq!(drafts(&to, &id), drafts(&from, &id));
}

#[test]
fn two_imports_of_one_file_at_once_store_each_session_once() {
    let (_home, from) = store();
    let ids = family(&from).map(|session| session.id);
    let file = exported(&from, None);
    let (home, to) = store();
    let done: Vec<Imported> = std::thread::scope(|scope| {
        let import = || Store::open(home.path()).unwrap().import(&mut Cursor::new(&file), NOW).unwrap();
        let threads = [0; 2].map(|_| scope.spawn(import));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    for id in &ids {
        assert_eq!(done.iter().filter(|done| done.sessions.contains(id)).count(), 1, "{done:?}");
        assert_eq!(drafts(&to, id), drafts(&from, id));
    }
}

#[test]
fn a_title_that_is_taken_gets_the_next_number() {
    let (_home, from) = store();
    let [root, ..] = family(&from);
    let (_home, to) = store();
    let holder = to.create_session(NewSession { title: Some("Engine".into()), ..new_session() }).unwrap();
    let imported = import(&to, &exported(&from, None)).unwrap();
    assert_eq!(imported.renamed, [(root.id.clone(), "Engine #2".to_owned())]);
    assert_eq!(to.session(&root.id).unwrap().title.as_deref(), Some("Engine #2"));
    assert_eq!(to.session(&holder.id).unwrap().title.as_deref(), Some("Engine"));
}

#[test]
fn an_export_is_json_either_way_and_both_come_in() {
    let (_home, from) = store();
    let ids = family(&from).map(|session| session.id);
    let mut array = Vec::new();
    let count = from.export(None, Layout::Array, &mut array).unwrap();
    assert_eq!((count.sessions, count.messages), (4, 12));
    let records: Vec<Value> = serde_json::from_slice(&array).unwrap();
    assert_eq!(records[0]["format"], "hermes-sessions");
    assert_eq!(records.last().unwrap(), &json!({"type": "end", "sessions": 4, "messages": 12}));
    let (_home, to) = store();
    import(&to, &array).unwrap();
    assert_eq!(canonical(&to, &ids), canonical(&from, &ids));
    let (_home, empty) = store();
    let nothing = exported(&empty, None);
    assert_eq!(import(&to, &nothing).unwrap(), Imported::default());
}

/// Takes so many bytes and then fails, as a full disk or a reader that has gone.
struct Narrow(usize);

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_that_cannot_be_written_says_so() {
    let (_home, from) = store();
    family(&from);
    for room in [0, 10, 3_000] {
        let error = from.export(None, Layout::Lines, &mut Narrow(room)).unwrap_err();
        assert!(matches!(error, StoreError::Output(source) if source.kind() == std::io::ErrorKind::BrokenPipe));
    }
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_refused_as_a_whole() {
    let (_home, from) = store();
    family(&from);
    let file = exported(&from, None);
    let (_home, to) = store();
    let ends: Vec<usize> = (0..file.len()).step_by(97).chain([file.len() - 2]).collect();
    for end in ends {
        let error = import(&to, &file[..end]).unwrap_err();
        assert!(matches!(error, StoreError::Import { .. }), "{end}: {error}");
    }
    assert_eq!(to.sessions().unwrap(), []);
}

/// What is done to the records of a sound export, and what is said of it.
type Attack = (&'static str, fn(&mut Vec<Value>), &'static str);

fn at(records: &[Value], kind: &str, nth: usize) -> usize {
    records.iter().enumerate().filter(|(_, record)| record["type"] == kind).nth(nth).unwrap().0
}

fn nth<'a>(records: &'a mut [Value], kind: &str, nth: usize) -> &'a mut Value {
    let at = at(records, kind, nth);
    &mut records[at]
}

const ATTACKS: &[Attack] = &[
    ("another program's file", |r| r[0]["format"] = json!("other"), "the header is missing"),
    ("a later version", |r| r[0]["version"] = json!(3), "version 3, and this hermes reads versions up to 2"),
    ("no header", |r| drop(r.remove(0)), "the header is missing"),
    ("two headers", |r| r.insert(1, r[0].clone()), "a second header"),
    ("an unknown record", |r| r.insert(1, json!({"type": "trigger"})), "it is not a record of an export"),
    ("no object", |r| r.insert(1, json!([1])), "it is not a record of an export"),
    ("a wrong type", |r| r[1]["started_at"] = json!("now"), "it is not a record of an export"),
    ("a part before all sessions", |r| r.swap(1, 2), "before the first session"),
    ("something behind the end", |r| r.push(r[1].clone()), "continues after its end"),
    (
        "fewer messages than told",
        |r| drop(r.remove(at(r, "message", 11))),
        "the file contains 4 sessions and 11 messages",
    ),
    ("a session twice", |r| r.insert(at(r, "end", 0), r[1].clone()), "appears twice"),
    ("an id that climbs", |r| r[1]["id"] = json!("../../etc/passwd"), "a session id is not made of"),
    ("an id with a NUL", |r| r[1]["id"] = json!("a\0"), "a session id is not made of"),
    ("an empty id", |r| r[1]["id"] = json!(""), "a session id is not made of"),
    ("an id that names our lock", |r| r[1]["id"] = json!("State"), "a session id is not made of"),
    ("a title without end", |r| r[1]["title"] = json!("x".repeat(101)), "101 characters"),
    ("tokens below zero", |r| r[1]["totals"]["input"] = json!(-1), "it is not a record of an export"),
    ("tokens beyond all sums", |r| r[1]["totals"]["input"] = json!(u64::MAX), "not plausible"),
    ("costs below zero", |r| r[1]["totals"]["cost"] = json!(-1.0), "not plausible"),
    ("a time beyond all clocks", |r| r[1]["updated_at"] = json!(u64::MAX), "not plausible"),
    (
        "its own parent",
        |r| nth(r, "session", 1)["parent"]["id"] = nth(r, "session", 1)["id"].clone(),
        "does not come before it in the file",
    ),
    (
        "a parent that is its child",
        |r| {
            let parent =
                json!({"id": nth(r, "session", 1)["id"], "kind": "branch", "through": 1, "view": 0, "rewind": 0});
            r[1]["parent"] = parent;
        },
        "does not come before it in the file",
    ),
    ("a parent that is nowhere", |r| nth(r, "session", 1)["parent"]["id"] = json!("nobody"), "does not come before it"),
    ("a message of nobody", |r| nth(r, "session", 1)["parent"]["through"] = json!(999), "has no message 999"),
    ("a view of nobody", |r| nth(r, "session", 1)["parent"]["view"] = json!(9), "has no view 9"),
    ("a rewind of nobody", |r| nth(r, "session", 1)["parent"]["rewind"] = json!(9), "has no rewind 9"),
    ("an unknown kind of child", |r| nth(r, "session", 1)["parent"]["kind"] = json!("twin"), "it is not a record"),
    ("a delegate that listens", |r| nth(r, "session", 3)["parent"]["through"] = json!(1), "a delegate has no messages"),
    ("a system message", |r| nth(r, "message", 0)["role"] = json!("system"), "a system message"),
    ("a message twice", |r| nth(r, "message", 1)["id"] = nth(r, "message", 0)["id"].clone(), "does not follow"),
    ("a message number 0", |r| nth(r, "message", 0)["id"] = json!(0), "does not follow"),
    ("a number beyond all", |r| nth(r, "message", 11)["id"] = json!(u64::MAX), "does not follow"),
    ("an answer before its question", |r| nth(r, "message", 8)["id"] = json!(1), "does not come after message"),
    (
        "a prompt behind the messages",
        |r| {
            let p = r.remove(at(r, "prompt", 0));
            r.insert(at(r, "rewind", 0), p);
        },
        "comes after records that have",
    ),
    ("a prompt twice", |r| nth(r, "prompt", 1)["number"] = json!(1), "does not follow"),
    (
        "taking back what is not there",
        |r| nth(r, "rewind", 0)["messages"] = json!([999]),
        "message 999 is not part of this",
    ),
    ("taking back twice", |r| nth(r, "rewind", 0)["messages"] = json!([5, 5]), "rewound twice"),
    ("a view of a stranger's", |r| nth(r, "view", 0)["through"] = json!(12), "message 12 is not part of this"),
    (
        "a view out of order",
        |r| {
            nth(r, "view", 0)["items"] =
                json!([{"messages": {"first": 5, "last": 6}}, {"messages": {"first": 1, "last": 2}}]);
        },
        "twice or out of order",
    ),
    (
        "a message shown twice",
        |r| {
            nth(r, "view", 0)["items"] = json!([{"excerpt": {"id": 5, "content": null, "arguments": []}}, {"messages": {"first": 5, "last": 6}}]);
        },
        "twice or out of order",
    ),
    (
        "a range of nothing",
        |r| {
            nth(r, "view", 0)["items"] = json!([{"messages": {"first": 6, "last": 1}}]);
        },
        "no message of this conversation is in",
    ),
    (
        "an excerpt of a stranger",
        |r| {
            nth(r, "view", 0)["items"] = json!([{"excerpt": {"id": 12, "content": "x", "arguments": []}}]);
        },
        "message 12 is not part of this",
    ),
    (
        "a summary of nobody",
        |r| {
            nth(r, "view", 1)["items"] = json!([{"summary": 77}]);
        },
        "contains the summary 77",
    ),
    (
        "a summary that covers strangers",
        |r| {
            nth(r, "view", 0)["summaries"][0]["covers"] = json!([{"first": 900, "last": 901}]);
        },
        "covers nothing",
    ),
    (
        "a summary twice",
        |r| {
            let s = nth(r, "view", 0)["summaries"][0].clone();
            nth(r, "view", 0)["summaries"] = json!([s.clone(), s]);
        },
        "appears twice",
    ),
    ("a parent's later summary", |r| nth(r, "session", 1)["parent"]["view"] = json!(0), "contains the summary"),
    ("a request of a stranger's", |r| nth(r, "request", 0)["through"] = json!(12), "message 12 is not part of this"),
    (
        "a request with a view of nobody",
        |r| nth(r, "request", 0)["view"] = json!(77),
        "the view 77 is not part of this",
    ),
    (
        "a view twice",
        |r| {
            let id = nth(r, "view", 0)["id"].clone();
            let mut twin = nth(r, "view", 0).clone();
            twin["id"] = id;
            twin["number"] = json!(2);
            twin["summaries"] = json!([]);
            let at = at(r, "request", 0);
            r.insert(at, twin);
        },
        "the view 1 appears twice",
    ),
    ("a prompt that none can follow", |r| nth(r, "prompt", 1)["number"] = json!(i64::MAX), "does not follow"),
    ("a request that none can follow", |r| nth(r, "request", 1)["number"] = json!(i64::MAX), "does not follow"),
    ("a rewind that none can follow", |r| nth(r, "rewind", 0)["number"] = json!(i64::MAX), "does not follow"),
    ("a message beyond all clocks", |r| nth(r, "message", 0)["created_at"] = json!(u64::MAX), "not plausible"),
    ("a prompt beyond all clocks", |r| nth(r, "prompt", 0)["created_at"] = json!(i64::MAX), "not plausible"),
    ("a rewind beyond all clocks", |r| nth(r, "rewind", 0)["rewound_at"] = json!(u64::MAX), "not plausible"),
    ("a view beyond all clocks", |r| nth(r, "view", 0)["created_at"] = json!(u64::MAX), "not plausible"),
    ("bytes beyond all sums", |r| nth(r, "request", 0)["bytes"] = json!(i64::MAX), "not plausible"),
    ("a saving beyond all money", |r| nth(r, "request", 0)["saved"] = json!(1e300), "not plausible"),
    (
        "a view without end",
        |r| nth(r, "view", 0)["items"] = json!(vec![json!({"messages": {"first": 1, "last": 1}}); 140_000]),
        "longer than 4 megabytes",
    ),
    ("a request twice", |r| nth(r, "request", 1)["number"] = json!(1), "does not follow"),
];

#[test]
fn hostile_files_are_refused_by_line_and_leave_nothing() {
    let (_home, from) = store();
    family(&from);
    let sound = records(&exported(&from, None));
    let (_home, to) = store();
    for (name, attack, told) in ATTACKS {
        let mut records = sound.clone();
        attack(&mut records);
        assert_ne!(records, sound, "{name}: nothing was changed");
        let error = import(&to, &lines(&records)).expect_err(name);
        assert!(matches!(error, StoreError::Import { line, .. } if line >= 1), "{name}: {error}");
        assert!(error.to_string().contains(told), "{name}: {error}");
        assert_eq!(to.sessions().unwrap(), [], "{name}");
    }
    for garbage in [&b""[..], b"\n\n", b"\xff\xfe\0", b"SQLite format 3\0", b"{\"type\":\"header\"", b"[[[[[[[["] {
        assert!(matches!(import(&to, garbage), Err(StoreError::Import { .. })), "{garbage:?}");
    }
    let deep = [b"{\"a\":".repeat(100_000), b"1".to_vec()].concat();
    assert!(matches!(import(&to, &deep), Err(StoreError::Import { line: 1, .. })));
    let surrogate = String::from_utf8(lines(&sound)).unwrap().replacen("second", "\\ud800", 1);
    assert!(matches!(import(&to, surrogate.as_bytes()), Err(StoreError::Import { .. })));
    assert_eq!(to.sessions().unwrap(), []);
    import(&to, &lines(&sound)).unwrap();
}

#[test]
fn what_claims_to_come_from_the_future_spoke_when_it_was_imported() {
    let (_home, from) = store();
    let [root, ..] = family(&from);
    let mut records = records(&exported(&from, None));
    records[1]["updated_at"] = json!(NOW + 1);
    let (_home, to) = store();
    import(&to, &lines(&records)).unwrap();
    assert_eq!(to.session(&root.id).unwrap().updated_at, NOW);
}

#[test]
fn a_row_of_a_thousand_branches_is_as_far_as_it_goes() {
    let (_home, to) = store();
    let mut records = vec![json!({"type": "header", "format": "hermes-sessions", "version": 1, "exported_at": 0})];
    let totals =
        json!({"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0, "requests": 0, "cost": 0.0});
    for at in 0..1_001 {
        let parent = (at > 0)
            .then(|| json!({"id": format!("s{}", at - 1), "kind": "branch", "through": at, "view": 0, "rewind": 0}));
        records.push(json!({
            "type": "session", "id": format!("s{at}"), "source": "cli", "title": null, "workspace": "/", "engine": "e",
            "provider": "p", "model": "m", "context_length": 1, "started_at": 1, "updated_at": 1, "totals": totals,
            "parent": parent,
        }));
        let message = Message { id: MessageId(at + 1), draft: Draft::user("x", 1) };
        let mut message = serde_json::to_value(message).unwrap();
        message["type"] = json!("message");
        records.push(message);
    }
    records.push(json!({"type": "end", "sessions": 1_001, "messages": 1_001}));
    let error = import(&to, &lines(&records)).unwrap_err();
    assert!(error.to_string().contains("more than 1000 sessions"), "{error}");
}

#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Rewind(usize, usize),
    Branch(usize, Option<usize>),
    View(usize, bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<usize>().prop_map(Step::Say),
        2 => any::<(usize, usize)>().prop_map(|(session, at)| Step::Rewind(session, at)),
        2 => any::<(usize, Option<usize>)>().prop_map(|(session, at)| Step::Branch(session, at)),
        2 => any::<(usize, bool)>().prop_map(|(session, kept)| Step::View(session, kept)),
    ]
}

fn take(store: &Store, sessions: &mut Vec<Session>, step: Step) {
    let session = |at: usize| sessions[at % sessions.len()].clone();
    match step {
        Step::Say(at) => drop(store.append(&session(at).id, &[Draft::user(format!("said {at}"), 1)]).unwrap()),
        Step::Rewind(at, to) => {
            let session = session(at);
            let conversation = store.conversation(&session.id).unwrap();
            if !conversation.is_empty() {
                store.rewind(&session.id, conversation[to % conversation.len()].id).unwrap();
            }
        }
        Step::Branch(at, through) => {
            let session = session(at);
            let conversation = store.conversation(&session.id).unwrap();
            let through = through.filter(|_| !conversation.is_empty());
            let through = through.map(|through| conversation[through % conversation.len()].id);
            sessions.push(child(store, &session, ParentKind::Branch, through));
        }
        Step::View(at, kept) => {
            let session = session(at);
            let conversation = store.conversation(&session.id).unwrap();
            let (Some(first), Some(last)) = (conversation.first(), conversation.last()) else { return };
            let mut known: Vec<Summary> = store.summaries(&session.id).unwrap().into_values().collect();
            known.sort_by(|a, b| a.key.cmp(&b.key));
            let summary = known.pop().filter(|_| kept).unwrap_or_else(|| Summary {
                key: format!("{}-{}", session.id, last.id),
                content: format!("up to {}", last.content),
                covers: vec![MessageRange::new(first.id, last.id)],
            });
            let view = View { items: vec![Item::Summary(summary)], through: Some(last.id) };
            store.put_view(&session.id, &view, "", "e").unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_happened_to_sessions_comes_in_as_it_was(steps in prop::collection::vec(any_step(), 1..40), half in any::<usize>()) {
        let (_home, from) = store();
        let (_other, to) = store();
        let mut sessions = vec![from.create_session(new_session()).unwrap()];
        let half = half % (steps.len() + 1);
        for (at, step) in steps.into_iter().enumerate() {
            // Some come earlier than others; a session that went on meanwhile stays as it was.
            if at == half {
                import(&to, &exported(&from, None)).unwrap();
            }
            take(&from, &mut sessions, step);
        }
        let early: Vec<SessionId> = to.sessions().unwrap().into_iter().map(|session| session.id).collect();
        // A branch of something that was said, or taken back, after its parent had been imported is left out.
        let left_out: Vec<SessionId> =
            import(&to, &exported(&from, None)).unwrap().left_out.into_iter().map(|(id, _)| id).collect();
        for session in sessions.iter().filter(|session| !early.contains(&session.id)) {
            if left_out.contains(&session.id) {
                prop_assert!(to.session(&session.id).is_err());
            } else {
                prop_assert_eq!(drafts(&to, &session.id), drafts(&from, &session.id));
                let content = |store: &Store| -> Vec<String> {
                    store.view(&session.id).unwrap().summaries().map(|summary| summary.content.clone()).collect()
                };
                prop_assert_eq!(content(&to), content(&from));
            }
        }
        let (_third, fresh) = store();
        import(&fresh, &exported(&from, None)).unwrap();
        let ids: Vec<SessionId> = sessions.iter().map(|session| session.id.clone()).collect();
        prop_assert_eq!(canonical(&fresh, &ids), canonical(&from, &ids));
        for id in &ids {
            prop_assert_eq!(drafts(&fresh, id), drafts(&from, id));
            prop_assert_eq!(fresh.view(id).unwrap().summaries().count(), from.view(id).unwrap().summaries().count());
            prop_assert_eq!(fresh.session(id).unwrap().message_count, from.session(id).unwrap().message_count);
        }
    }
}
