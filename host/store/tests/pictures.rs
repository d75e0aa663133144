//! Pictures and files of messages: exports carry them, imports restore them within the limits, deletions free them, and a repair
//! loses none that can be read.
#![allow(clippy::unwrap_used)]

#[path = "pictures/attack.rs"]
mod attack;
mod common;

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::new_session;
use hermes_conversation::{Draft, Media, Message, MessageId, Part, Role, SessionId, ToolResult};
use hermes_store::{
    Depth, Imported, Layout, MAX_STORE_BYTES, NewSession, Outcome, Parent, ParentKind, PruneFilter, Store, StoreError,
    TransferError, Trust, repair,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: u64 = 1_800_000_000_000;

fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

fn bytes(fill: u8) -> Vec<u8> {
    [b"GIF89a\x01\0\x01\0".as_slice(), &[fill; 9]].concat()
}

fn picture(fill: u8) -> Media {
    Media::image(bytes(fill), Some("chart.gif")).unwrap()
}

fn look(fill: u8) -> Draft {
    Draft::of_parts(Role::User, vec![Part::text(format!("look at {fill}")), Part::Image(picture(fill))], 1)
}

/// A tool's result with a picture and a file.
fn shot(fill: u8) -> Draft {
    let file = Media::file(vec![fill; 30], "application/pdf", Some("report.pdf")).unwrap();
    let result = ToolResult {
        call_id: "c".into(),
        tool_name: Some("camera".into()),
        parts: vec![Part::text("a shot"), Part::Image(picture(fill)), Part::File(file)],
        failed: false,
        structured: None,
        reminder: None,
    };
    Draft::of_parts(Role::Tool, vec![Part::ToolResult(result)], 2)
}

fn session(store: &Store, drafts: &[Draft]) -> SessionId {
    let id = store.create_session(new_session()).unwrap().id;
    store.append(&id, drafts).unwrap();
    id
}

fn branch(store: &Store, of: &SessionId, drafts: &[Draft]) -> SessionId {
    let parent = Some(Parent { id: of.clone(), kind: ParentKind::Branch, through: None });
    let id = store.create_session(NewSession { parent, ..new_session() }).unwrap().id;
    store.append(&id, drafts).unwrap();
    id
}

fn exported(store: &Store, layout: Layout) -> Vec<u8> {
    let mut file = Vec::new();
    store.export(None, layout, &mut file).unwrap();
    file
}

fn import(store: &Store, file: &[u8]) -> Result<Imported, StoreError> {
    store.import(&mut Cursor::new(file), NOW, Trust::OwnFiles)
}

fn drafts(store: &Store, session: &SessionId) -> Vec<Draft> {
    store.conversation(session).unwrap().into_iter().map(|message| message.draft).collect()
}

/// The bytes of every picture and file of a session, in order; `None` for lost ones.
fn contents(store: &Store, session: &SessionId) -> Vec<Option<Vec<u8>>> {
    let messages = store.conversation(session).unwrap();
    let media = messages.iter().flat_map(|message| message.media());
    media.map(|media| store.blob(&media.blob().unwrap().hash).unwrap().map(|bytes| bytes.to_vec())).collect()
}

fn problems(store: &Store) -> Vec<String> {
    store.check(Depth::Full).unwrap().problems
}

/// Executes SQL that the store itself would never execute.
fn by_hand(home: &TempDir, sql: &str) {
    let connection = Connection::open(home.path().join("state.db")).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn an_export_carries_the_bytes_and_an_import_restores_them() {
    let (_home, from) = store();
    let parent = session(&from, &[look(1), shot(2), look(1)]);
    let child = branch(&from, &parent, &[look(3)]);
    for layout in [Layout::Lines, Layout::Array] {
        let file = exported(&from, layout);
        let text = String::from_utf8(file.clone()).unwrap();
        assert!(text.contains(&STANDARD.encode(bytes(2))), "{text}");
        let (_other, to) = store();
        assert_eq!(import(&to, &file).unwrap().sessions.len(), 2);
        assert_eq!(to.blobs().unwrap(), (4, 3 * 19 + 30));
        for id in [&parent, &child] {
            assert_eq!(drafts(&to, id), drafts(&from, id));
            let restored = contents(&to, id);
            assert!(restored.iter().all(Option::is_some));
            assert_eq!(restored, contents(&from, id));
        }
        assert_eq!(problems(&to), Vec::<String>::new());
        // A second import of the same file changes nothing.
        assert_eq!(import(&to, &file).unwrap().skipped.len(), 2);
        assert_eq!(to.blobs().unwrap().0, 4);
    }
}

#[test]
fn deleting_and_pruning_free_unshared_pictures() {
    let (_home, store) = store();
    let one = session(&store, &[look(1), look(2)]);
    let two = session(&store, &[look(2), shot(3)]);
    let parent = session(&store, &[look(4)]);
    let child = branch(&store, &parent, &[look(5)]);
    assert_eq!(store.blobs().unwrap().0, 6);
    store.delete(std::slice::from_ref(&one), false).unwrap();
    assert_eq!(store.blobs().unwrap().0, 5);
    assert_eq!(contents(&store, &two)[0], Some(bytes(2)));
    // A rewind hides a message and keeps its picture, because it can be undone.
    let hidden = store.conversation(&two).unwrap()[0].id;
    store.rewind(&two, hidden).unwrap();
    assert_eq!(store.blobs().unwrap().0, 5);
    store.restore(&two).unwrap();
    assert_eq!(contents(&store, &two)[0], Some(bytes(2)));
    // Pruning keeps the newest session of a folder, so another one is created after them.
    let newest = store.create_session(NewSession { started_at: NOW - 1, ..new_session() }).unwrap().id;
    store.append(&newest, &[Draft { created_at: NOW - 1, ..look(6) }]).unwrap();
    let filter = PruneFilter::silent_since(NOW - 2);
    let agreed: Vec<SessionId> = store.pruning(&filter).unwrap().sessions.into_iter().map(|found| found.id).collect();
    assert!(agreed.contains(&two) && agreed.contains(&child) && agreed.contains(&parent), "{agreed:?}");
    store.prune(&filter, &agreed).unwrap();
    assert_eq!((store.blobs().unwrap().0, contents(&store, &newest)), (1, vec![Some(bytes(6))]));
    assert_eq!(problems(&store), Vec::<String>::new());
}

#[test]
fn an_interrupted_import_leaves_no_picture() {
    let (_home, from) = store();
    session(&from, &[look(1), look(2)]);
    let file = exported(&from, Layout::Lines);
    let (home, to) = store();
    // The second picture cannot be stored.
    by_hand(
        &home,
        "CREATE TRIGGER stop BEFORE INSERT ON message_blobs WHEN (SELECT count(*) FROM message_blobs) > 0 \
         BEGIN SELECT RAISE(ABORT, 'stop'); END;",
    );
    import(&to, &file).unwrap_err();
    assert_eq!((to.blobs().unwrap(), to.sessions().unwrap().len()), ((0, 0), 0));
    by_hand(&home, "DROP TRIGGER stop");
    import(&to, &file).unwrap();
    assert_eq!(to.blobs().unwrap().0, 2);
}

type Attack = (&'static str, fn(&mut Value), &'static str);

/// The list of parts of a message, or of its result.
fn parts(message: &mut Value) -> &mut Vec<Value> {
    let first = &mut message["parts"];
    if first[0]["kind"] == "tool_result" { &mut first[0]["parts"] } else { first }.as_array_mut().unwrap()
}

fn image(message: &mut Value) -> &mut Value {
    parts(message).iter_mut().find(|part| part["kind"] == "image").unwrap()
}

const ATTACKS: &[Attack] = &[
    ("another hash", |message| image(message)["blob"]["hash"] = json!("00".repeat(32)), "are not those that it had"),
    ("a hash that is a path", |message| image(message)["blob"]["hash"] = json!("../../x"), "are not those"),
    ("another size", |message| image(message)["blob"]["size"] = json!(18), "are not those that it had"),
    ("no size", |message| image(message)["blob"]["size"] = json!(0), "is empty"),
    ("a size beyond the limit", |message| image(message)["blob"]["size"] = json!(20_000_001), "at most 20000000"),
    ("a size beyond all numbers", |message| image(message)["blob"]["size"] = json!(u64::MAX), "at most 20000000"),
    ("a negative size", |message| image(message)["blob"]["size"] = json!(-1), "is not a record of an export"),
    (
        "no bytes",
        |message| drop(image(message)["blob"].as_object_mut().unwrap().remove("bytes")),
        "are not in the store",
    ),
    ("empty bytes", |message| image(message)["blob"]["bytes"] = json!(""), "are not those that it had"),
    (
        "base64 that was cut off",
        |message| {
            let whole = image(message)["blob"]["bytes"].as_str().unwrap().to_owned();
            image(message)["blob"]["bytes"] = json!(whole[..whole.len() - 5]);
        },
        "is not a record of an export",
    ),
    (
        "bytes that were cut off",
        |message| image(message)["blob"]["bytes"] = json!(STANDARD.encode(&bytes(1)[..12])),
        "are not those that it had",
    ),
    ("no base64", |message| image(message)["blob"]["bytes"] = json!("§§§§"), "is not a record of an export"),
    (
        "a list of numbers",
        |message| image(message)["blob"]["bytes"] = json!([71, 73, 70]),
        "is not a record of an export",
    ),
    (
        "a type of another picture",
        |message| image(message)["media_type"] = json!("image/png"),
        "declared as `image/png`",
    ),
    (
        "a type that is not a picture",
        |message| image(message)["media_type"] = json!("text/html"),
        "declared as `text/html`",
    ),
    (
        "a file of this computer",
        |message| {
            let image = image(message).as_object_mut().unwrap();
            image.remove("blob");
            image.insert("url".into(), json!("file:///etc/passwd"));
        },
        "`file:///etc/passwd` does not begin with `https://`",
    ),
    (
        "a result in a result",
        |message| {
            let inner = message["parts"][0].clone();
            let result = json!({"kind": "tool_result", "call_id": "c", "parts": [inner]});
            message["role"] = json!("tool");
            message["tool_call_id"] = json!("c");
            message["parts"] = json!([result, {"kind": "tool_result", "call_id": "d", "parts": []}]);
        },
        "consists of one result",
    ),
    ("another text than its parts", |message| message["content"] = json!("harmless"), "differ from its parts"),
    ("an unknown part", |message| parts(message).push(json!({"kind": "hologram"})), "is not a record of an export"),
];

#[test]
fn hostile_pictures_are_refused_by_line_and_leave_nothing() {
    let (_home, from) = store();
    session(&from, &[Draft::user("first", 1), look(1)]);
    session(&from, &[shot(2)]);
    let file = String::from_utf8(exported(&from, Layout::Lines)).unwrap();
    let records: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let with_picture = |text: &str| {
        records.iter().position(|record| record["type"] == "message" && record["content"] == text).unwrap()
    };
    let (_other, to) = store();
    session(&to, &[look(9)]);
    let before = to.blobs().unwrap();
    for place in [with_picture("look at 1"), with_picture("a shot")] {
        for (name, attack, problem) in ATTACKS {
            if *name == "a result in a result" && records[place]["role"] == "tool" {
                continue;
            }
            let mut records = records.clone();
            attack(&mut records[place]);
            let file: String = records.iter().map(|record| format!("{record}\n")).collect();
            let error = import(&to, file.as_bytes()).unwrap_err();
            assert!(
                matches!(&error, StoreError::Transfer(TransferError::Import { line, .. }) if *line == place as u64 + 1),
                "{name}: {error}"
            );
            assert!(error.to_string().contains(problem), "{name}: {error}");
            assert_eq!((to.sessions().unwrap().len(), to.blobs().unwrap()), (1, before), "{name}");
        }
    }
    assert_eq!(import(&to, file.as_bytes()).unwrap().sessions.len(), 2);
}

#[test]
fn a_picture_beyond_the_quota_is_refused_before_anything_is_stored() {
    let (_home, from) = store();
    session(&from, &[look(1)]);
    session(&from, &[look(2), look(2)]);
    let file = exported(&from, Layout::Lines);
    let (home, to) = store();
    let full = |free: i64| {
        let used = MAX_STORE_BYTES.cast_signed() - free;
        by_hand(&home, &format!("DELETE FROM blobs; INSERT INTO blobs VALUES ('x', 'image/gif', {used}, x'00')"));
    };
    full(2 * 19 - 1);
    let error = import(&to, &file).unwrap_err();
    assert!(matches!(error, StoreError::BlobQuota { size: 38, .. }), "{error}");
    assert_eq!((to.sessions().unwrap().len(), to.blobs().unwrap().0), (0, 1));
    full(2 * 19);
    assert_eq!(import(&to, &file).unwrap().sessions.len(), 2);
}

/// A store whose pictures are damaged in every way.
#[test]
fn a_check_finds_damaged_pictures_and_a_repair_keeps_the_readable_ones() {
    let (home, store) = store();
    let one = session(&store, &[look(1), look(2), shot(3)]);
    let two = session(&store, &[look(1), look(4)]);
    let ids: Vec<Message> = store.conversation(&two).unwrap();
    let damaged = picture(2).blob().unwrap().hash.clone();
    let missing = picture(4).blob().unwrap().hash.clone();
    assert_eq!(problems(&store), Vec::<String>::new());
    drop(store);
    by_hand(
        &home,
        &format!(
            "DROP TRIGGER blobs_never_change; DROP TRIGGER blobs_leave_with_their_last_message;
             UPDATE blobs SET bytes = x'00010203040506070809000102030405060708' WHERE hash = '{damaged}';
             DELETE FROM blobs WHERE hash = '{missing}';
             DELETE FROM message_blobs WHERE message_id = {};
             INSERT INTO blobs VALUES ('{}', 'image/gif', 3, x'010203');",
            ids[0].id,
            hermes_conversation::BlobId::of(&[1, 2, 3]),
        ),
    );
    let store = Store::open(home.path()).unwrap();
    let found = problems(&store).join("\n");
    for problem in [
        format!("{damaged}: its bytes are damaged"),
        format!("message {}: the reference to its picture", ids[0].id),
        format!("message {}: its picture or file is missing", ids[1].id),
        "no message names it".to_owned(),
    ] {
        assert!(found.contains(&problem), "{problem} in {found}");
    }
    // Damaged bytes are never returned.
    assert_eq!(contents(&store, &one)[1], None);
    drop(store);

    let done = repair(home.path()).unwrap();
    assert_eq!(done.outcome, Outcome::Rebuilt);
    let lost = done.lost.join("\n");
    assert!(lost.contains("the bytes of 2 pictures") && lost.contains("1 pictures or files whose messages"), "{lost}");
    let store = Store::open(home.path()).unwrap();
    assert_eq!(problems(&store), Vec::<String>::new());
    assert_eq!(store.blobs().unwrap().0, 3);
    assert_eq!(contents(&store, &one), [Some(bytes(1)), None, Some(bytes(3)), Some(vec![3; 30])]);
    assert_eq!(contents(&store, &two), [Some(bytes(1)), None]);
    // The references were rebuilt: the picture stays with the last message that names it.
    let file = exported(&store, Layout::Lines);
    store.delete(std::slice::from_ref(&one), false).unwrap();
    assert_eq!(contents(&store, &two), [Some(bytes(1)), None]);
    // A session with a lost picture can be exported: the text of requests replaces the picture.
    let (_other, to) = self::store();
    import(&to, &file).unwrap();
    let moved = drafts(&to, &two);
    assert_eq!(moved[0], drafts(&store, &two)[0]);
    assert_eq!(moved[1].parts[1], Part::text("[image: chart.gif, image/gif]"));
    assert_eq!(problems(&to), Vec::<String>::new());
}

#[test]
fn a_salvage_keeps_the_pictures_of_a_store_with_a_damaged_page() {
    const PAGE: usize = 4096;
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let texts: Vec<Draft> = (0..200).map(|at| Draft::user(format!("{at} {}", "lorem ipsum ".repeat(30)), 1)).collect();
    let one = session(&store, &[vec![look(1)], texts, vec![shot(2)]].concat());
    drop(store);
    let path = home.path().join("state.db");
    let page = {
        let connection = Connection::open(&path).unwrap();
        let sql =
            "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 9";
        usize::try_from(connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()).unwrap()
    };
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[(page - 1) * PAGE..page * PAGE].fill(0x5a);
    std::fs::write(&path, damaged).unwrap();
    let done = repair(home.path()).unwrap();
    assert_eq!(done.outcome, Outcome::Salvaged);
    assert!(done.saved.contains(&("blobs".to_owned(), 3)), "{:?}", done.saved);
    let store = Store::open(home.path()).unwrap();
    assert_eq!(contents(&store, &one), [Some(bytes(1)), Some(bytes(2)), Some(vec![2; 30])]);
    assert_eq!(problems(&store), Vec::<String>::new());
    assert!(store.conversation(&one).unwrap().last().unwrap().id > MessageId(100));
}
