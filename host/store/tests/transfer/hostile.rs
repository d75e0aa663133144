//! Files that are not what an export writes.

use super::*;

#[test]
fn a_truncated_file_is_refused_completely() {
    let (_home, from) = store();
    family(&from);
    let file = exported(&from, None);
    let (_home, to) = store();
    let ends: Vec<usize> = (0..file.len()).step_by(97).chain([file.len() - 2]).collect();
    for end in ends {
        let error = import(&to, &file[..end]).unwrap_err();
        assert!(matches!(error, StoreError::Transfer(TransferError::Import { .. })), "{end}: {error}");
    }
    assert_eq!(to.sessions().unwrap(), []);
}

/// A name, a change of the records of a valid export, and the expected error.
type Attack = (&'static str, fn(&mut Vec<Value>), &'static str);

fn nth<'a>(records: &'a mut [Value], kind: &str, nth: usize) -> &'a mut Value {
    let at = at(records, kind, nth);
    &mut records[at]
}

const ATTACKS: &[Attack] = &[
    ("another program's file", |r| r[0]["format"] = json!("other"), "the header is missing"),
    ("a later version", |r| r[0]["version"] = json!(3), "version 3, and this version of Hermes reads versions up to 2"),
    ("no header", |r| drop(r.remove(0)), "the header is missing"),
    ("two headers", |r| r.insert(1, r[0].clone()), "a second header"),
    ("an unknown record", |r| r.insert(1, json!({"type": "trigger"})), "it is not a record of an export"),
    ("no object", |r| r.insert(1, json!([1])), "it is not a record of an export"),
    ("a wrong type", |r| r[1]["started_at"] = json!("now"), "it is not a record of an export"),
    ("a part before all sessions", |r| r.swap(1, 2), "before the first session"),
    ("something after the end", |r| r.push(r[1].clone()), "continues after its end"),
    (
        "fewer messages than counted",
        |r| drop(r.remove(at(r, "message", 11))),
        "the file contains 4 sessions and 11 messages",
    ),
    ("a session twice", |r| r.insert(at(r, "end", 0), r[1].clone()), "appears twice"),
    ("an id with a path", |r| r[1]["id"] = json!("../../etc/passwd"), "a session id may contain only"),
    ("an id with a NUL", |r| r[1]["id"] = json!("a\0"), "a session id may contain only"),
    ("an empty id", |r| r[1]["id"] = json!(""), "a session id may contain only"),
    ("an id with the name of a lock", |r| r[1]["id"] = json!("State"), "a session id may contain only"),
    ("a title that is too long", |r| r[1]["title"] = json!("x".repeat(101)), "101 characters"),
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
    ("an unknown message", |r| nth(r, "session", 1)["parent"]["through"] = json!(999), "has no message 999"),
    ("an unknown view", |r| nth(r, "session", 1)["parent"]["view"] = json!(9), "has no view 9"),
    ("an unknown rewind", |r| nth(r, "session", 1)["parent"]["rewind"] = json!(9), "has no rewind 9"),
    ("an unknown kind of child", |r| nth(r, "session", 1)["parent"]["kind"] = json!("twin"), "it is not a record"),
    (
        "a delegate with messages of its parent",
        |r| nth(r, "session", 3)["parent"]["through"] = json!(1),
        "a delegate has no messages",
    ),
    ("a system message", |r| nth(r, "message", 0)["role"] = json!("system"), "a system message"),
    ("a message twice", |r| nth(r, "message", 1)["id"] = nth(r, "message", 0)["id"].clone(), "does not follow"),
    ("a message number 0", |r| nth(r, "message", 0)["id"] = json!(0), "does not follow"),
    ("a number beyond all", |r| nth(r, "message", 11)["id"] = json!(u64::MAX), "does not follow"),
    ("an answer before its question", |r| nth(r, "message", 8)["id"] = json!(1), "does not come after message"),
    (
        "a prompt after the messages",
        |r| {
            let p = r.remove(at(r, "prompt", 0));
            r.insert(at(r, "rewind", 0), p);
        },
        "comes after records that have",
    ),
    ("a prompt twice", |r| nth(r, "prompt", 1)["number"] = json!(1), "does not follow"),
    (
        "rewinding an unknown message",
        |r| nth(r, "rewind", 0)["messages"] = json!([999]),
        "message 999 is not part of this",
    ),
    ("rewinding twice", |r| nth(r, "rewind", 0)["messages"] = json!([5, 5]), "rewound twice"),
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
        "an unknown summary",
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
    ("a request with an unknown view", |r| nth(r, "request", 0)["view"] = json!(77), "the view 77 is not part of this"),
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
        "a view that is too long",
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
        assert!(
            matches!(error, StoreError::Transfer(TransferError::Import { line, .. }) if line >= 1),
            "{name}: {error}"
        );
        assert!(error.to_string().contains(told), "{name}: {error}");
        assert_eq!(to.sessions().unwrap(), [], "{name}");
    }
    for garbage in [&b""[..], b"\n\n", b"\xff\xfe\0", b"SQLite format 3\0", b"{\"type\":\"header\"", b"[[[[[[[["] {
        assert!(matches!(import(&to, garbage), Err(StoreError::Transfer(TransferError::Import { .. }))), "{garbage:?}");
    }
    let deep = [b"{\"a\":".repeat(100_000), b"1".to_vec()].concat();
    assert!(matches!(import(&to, &deep), Err(StoreError::Transfer(TransferError::Import { line: 1, .. }))));
    let surrogate = String::from_utf8(lines(&sound)).unwrap().replacen("second", "\\ud800", 1);
    assert!(matches!(import(&to, surrogate.as_bytes()), Err(StoreError::Transfer(TransferError::Import { .. }))));
    assert_eq!(to.sessions().unwrap(), []);
    import(&to, &lines(&sound)).unwrap();
}

#[test]
fn a_chain_of_branches_is_limited_to_a_thousand() {
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
