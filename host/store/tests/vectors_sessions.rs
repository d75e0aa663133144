//! Recorded cases of sessions: titles, lifecycle, lineage and loading.

#![allow(clippy::unwrap_used)]

mod recorded;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_conversation::{Conversation, Draft, Media, Model, Part, Role, SessionId, Usage, View, render};
use hermes_store::{Lease, NewSession, Parent, ParentKind, PruneFilter, RequestRecord, Store};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Prunes, and returns the number of deleted sessions.
fn prune(store: &Store, filter: &PruneFilter) -> usize {
    let planned: Vec<SessionId> =
        store.pruning(filter).unwrap().sessions.into_iter().map(|session| session.id).collect();
    store.prune(filter, &planned).unwrap().sessions.len()
}

fn suite(name: &str) -> Option<Vec<Value>> {
    recorded::suite(name).map(|mut suite| serde_json::from_value(suite["cases"].take()).unwrap())
}

/// A case with a different result: its name, the actual result as JSON, and the reason.
type Differing = (&'static str, &'static str, &'static str);

/// Runs every case. Differing cases must be listed by name.
fn check(name: &str, differing: &[Differing], run: fn(&Value) -> Value, expected: fn(&Value) -> Value) {
    let Some(cases) = suite(name) else { return };
    let mut differed = 0;
    for case in &cases {
        let title = case["name"].as_str().unwrap();
        let ours = run(&case["input"]);
        match differing.iter().find(|(differing, ..)| *differing == title) {
            Some((_, instead, _)) => {
                assert_eq!(ours, serde_json::from_str::<Value>(instead).unwrap(), "{title}");
                assert_ne!(ours, expected(&case["expected"]), "{title} differs no longer");
                differed += 1;
            }
            None => assert_eq!(ours, expected(&case["expected"]), "{title}"),
        }
    }
    assert_eq!(differed, differing.len(), "a case that differs is gone");
    eprintln!("{name}: {} cases, {} as recorded, {differed} otherwise", cases.len(), cases.len() - differed);
}

/// A store whose sessions have the names of a case.
struct Fixture {
    _home: TempDir,
    store: Store,
    names: BTreeMap<String, SessionId>,
    leases: BTreeMap<String, Lease>,
}

const BEGUN: u64 = 1_795_300_000_000;

impl Fixture {
    fn empty() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        Self { _home: home, store, names: BTreeMap::new(), leases: BTreeMap::new() }
    }

    fn create(&mut self, name: &str, parent: Option<(&str, ParentKind)>, started_at: u64, source: &str, model: &str) {
        let parent = parent.map(|(name, kind)| Parent { id: self.names[name].clone(), kind, through: None });
        let new = NewSession {
            source: source.into(),
            workspace: "/home/ada".into(),
            engine: "compressor".into(),
            model: Model { provider: "offline".into(), name: model.into(), context_length: 32_000 },
            title: None,
            frozen: None,
            started_at,
            parent,
        };
        let id = self.store.create_session(new).unwrap().id;
        self.names.insert(name.into(), id);
    }

    fn id(&self, name: &Value) -> &SessionId {
        &self.names[name.as_str().unwrap()]
    }

    fn name(&self, id: &SessionId) -> Value {
        self.names.iter().find(|(_, known)| *known == id).map_or(Value::Null, |(name, _)| json!(name))
    }

    /// The store generates session ids, so the ids of a case are set with SQL.
    fn rename(&mut self, name: &str) {
        let other = Connection::open(self.store.path()).unwrap();
        other.execute("UPDATE sessions SET id = ?2 WHERE id = ?1", [self.names[name].as_str(), name]).unwrap();
        self.names.insert(name.into(), SessionId(name.into()));
    }
}

fn whole(expected: &Value) -> Value {
    expected.clone()
}

#[test]
fn session_titles() {
    check("session_titles", &[], title_case, whole);
}

fn title_case(input: &Value) -> Value {
    let mut fixture = Fixture::empty();
    for (at, title) in (0u64..).zip(input["existing"].as_array().into_iter().flatten()) {
        let name = format!("s{at}");
        fixture.create(&name, None, BEGUN + at, "cli", "m");
        fixture.store.set_title(&fixture.names[&name], title.as_str().unwrap()).unwrap();
    }
    match input["op"].as_str().unwrap() {
        "clean" => {
            fixture.create("s", None, BEGUN, "cli", "m");
            let title = fixture.store.set_title(&fixture.names["s"], input["title"].as_str().unwrap());
            title.map_or_else(|_| json!({"error": true}), |title| json!(title))
        }
        "next" => json!(fixture.store.next_title(input["base"].as_str().unwrap()).unwrap()),
        "resolve" => {
            let found = fixture.store.resolve_session(input["query"].as_str().unwrap());
            found.map_or(Value::Null, |id| fixture.name(&id))
        }
        "set" => {
            let mut ended = Vec::new();
            let mut results = Vec::new();
            for step in input["steps"].as_array().unwrap() {
                let name = step[1].as_str().unwrap();
                results.push(match step[0].as_str().unwrap() {
                    "create" => {
                        let parent = step[2].as_str().map(|parent| {
                            // A parent that did not end by compression has another kind of child.
                            assert!(ended.contains(&parent.to_owned()));
                            (parent, ParentKind::Continuation)
                        });
                        fixture.create(name, parent, BEGUN, "cli", "m");
                        Value::Null
                    }
                    "end" => {
                        assert_eq!(step[2], "compression");
                        ended.push(name.to_owned());
                        Value::Null
                    }
                    "title" => {
                        let set = fixture.store.set_title(fixture.id(&step[1]), step[2].as_str().unwrap());
                        set.map_or_else(|_| json!({"error": true}), |_| json!(true))
                    }
                    "auto" => {
                        let set = fixture.store.name_untitled(fixture.id(&step[1]), step[2].as_str().unwrap());
                        json!(set.unwrap().is_some())
                    }
                    other => panic!("unknown step {other}"),
                });
            }
            let title = |id: &SessionId| json!(fixture.store.session(id).unwrap().title);
            let titles: BTreeMap<&String, Value> = fixture.names.iter().map(|(name, id)| (name, title(id))).collect();
            json!({"results": results, "titles": titles})
        }
        other => panic!("unknown operation {other}"),
    }
}

const LIFE: &[Differing] = &[
    (
        "first-end-wins",
        r#"{"results": [null, null, null], "sessions": [["a", "cli", "", null, 0, 0, 0, 0, 0, null, null]]}"#,
        "a session does not end: it can always continue, and its lease shows which process uses it",
    ),
    (
        "prune",
        r#"{"results": [null, null, null, null, null, null, null, null, 1],
            "sessions": [["oldlive", "cli", "", null, 0, 0, 0, 0, 0, null, null], ["new", "cli", "", null, 0, 0, 0, 0, 0, null, null],
                         ["kid", "cli", "", null, 0, 0, 0, 0, 0, null, null]]}"#,
        "the same sessions are deleted and kept, by their leases in place of an end",
    ),
    (
        "delete-if-empty",
        r#"{"results": [null, null, null, true, null, null, 4], "sessions": [["b", "cli", "", null, 1, 0, 0, 0, 0, null, null]]}"#,
        "pruning deletes sessions without messages, titled or not, if no session continues them",
    ),
    (
        "tokens-absolute",
        r#"{"results": [null, null, null], "sessions": [["a", "cli", "", null, 0, 35, 0, 0, 2, null, null]]}"#,
        "counters are the sums over all requests",
    ),
    (
        "lock-expired",
        r#"{"results": [null, true, "h1", false], "sessions": [["a", "cli", "", null, 0, 0, 0, 0, 0, null, null]]}"#,
        "a lease ends with its process, not by a clock",
    ),
];

/// The fields of a recorded row that this store has too, and the reason of its end. The archive flag, the count of tool
/// calls, the billing route and the kind of a child are left out.
#[test]
fn session_lifecycle() {
    check("session_lifecycle", LIFE, life_case, |expected| {
        let row = |row: &Value| {
            json!([
                row["id"],
                row["source"],
                row["model"].as_str().unwrap_or_default(),
                row["parent_session_id"],
                row["message_count"],
                row["input_tokens"],
                row["output_tokens"],
                row["cache_read_tokens"],
                row["api_call_count"],
                row["title"],
                row["end_reason"],
            ])
        };
        let sessions: Vec<Value> = expected["sessions"].as_array().unwrap().iter().map(row).collect();
        json!({"results": expected["results"], "sessions": sessions})
    });
}

const DAY: u64 = 86_400_000;

fn life_case(input: &Value) -> Value {
    let mut fixture = Fixture::empty();
    let steps = input["steps"].as_array().unwrap();
    let steps_of = |kind: &'static str| steps.iter().filter(move |step| step[0] == kind);
    let mut results = Vec::new();
    let mut held = BTreeMap::new();
    for step in steps {
        let name = step[1].as_str().unwrap_or_default();
        results.push(match step[0].as_str().unwrap() {
            "create" => {
                let parent = step[3]["parent_session_id"].as_str().map(|parent| {
                    let config = &step[3]["model_config"];
                    let kind = if config["_delegate_from"].is_string() {
                        ParentKind::Delegate
                    } else if config["_branched_from"].is_string() {
                        ParentKind::Branch
                    } else {
                        ParentKind::Continuation
                    };
                    (parent, kind)
                });
                let age = steps_of("age").find(|age| age[1] == name).map_or(0, |age| age[2].as_u64().unwrap());
                let model = step[3]["model"].as_str().unwrap_or_default();
                fixture.create(name, parent, BEGUN - age * DAY, step[2].as_str().unwrap(), model);
                if steps_of("resolve").next().is_some() {
                    fixture.rename(name);
                }
                // Sessions do not end here; a lease shows that a process works on one.
                if steps_of("prune").next().is_some() && steps_of("end").all(|end| end[1] != name) && age > 0 {
                    fixture.leases.insert(name.into(), fixture.store.lease(&fixture.names[name]).unwrap());
                }
                Value::Null
            }
            "end" | "age" => Value::Null,
            "append" => {
                assert_eq!(step[2], "user");
                let text = step[3].as_str().unwrap();
                fixture.store.append(fixture.id(&step[1]), &[Draft::user(text, BEGUN)]).unwrap();
                // The result is a row number, which is not compared.
                continue;
            }
            "title" => json!(fixture.store.set_title(fixture.id(&step[1]), step[2].as_str().unwrap()).is_ok()),
            "delete" => json!(fixture.store.delete(&[fixture.id(&step[1]).clone()], false).is_ok()),
            "delete_if_empty" => {
                if name != "a" {
                    continue;
                }
                let filter = PruneFilter { max_messages: Some(0), ..PruneFilter::silent_since(BEGUN + 1) };
                json!(prune(&fixture.store, &filter))
            }
            "prune" => {
                let days = step[1].as_u64().unwrap();
                json!(prune(&fixture.store, &PruneFilter::silent_since(BEGUN - days * DAY)))
            }
            "tokens" => {
                let input = u32::try_from(step[2]["input_tokens"].as_u64().unwrap()).unwrap();
                let usage = Some(Usage { input, ..Usage::default() });
                let request = RequestRecord { usage, ..RequestRecord::default() };
                fixture.store.record_request(fixture.id(&step[1]), &request).unwrap();
                Value::Null
            }
            "resolve" => fixture.store.resolve_session(name).map_or(Value::Null, |id| fixture.name(&id)),
            "lock" => match fixture.store.lease(fixture.id(&step[1])) {
                Ok(lease) => {
                    held.insert(name.to_owned(), (step[2].clone(), lease));
                    json!(true)
                }
                Err(_) => json!(false),
            },
            "lock_holder" => held.get(name).map_or(Value::Null, |(holder, _)| holder.clone()),
            other => panic!("unknown step {other}"),
        });
    }
    let mut sessions = Vec::new();
    let mut names: Vec<&str> = steps_of("create").map(|step| step[1].as_str().unwrap()).collect();
    names.dedup();
    for name in names {
        let Ok(session) = fixture.store.session(&fixture.names[name]) else { continue };
        sessions.push(json!([
            name,
            session.source,
            session.model.name,
            session.parent.map_or(Value::Null, |parent| fixture.name(&parent.id)),
            session.message_count,
            session.totals.input,
            session.totals.output,
            session.totals.cache_read,
            session.totals.requests,
            session.title,
            null,
        ]));
    }
    json!({"results": results, "sessions": sessions})
}

const LINEAGE: &[Differing] = &[
    (
        "compressed-with-subagent",
        r#"{"tip": {"a": "b", "d": "d", "b": "b"}, "root": {"a": "a", "d": "a", "b": "a"}, "resume": {"a": "b", "d": "d", "b": "b"},
            "chain": {"a": ["a", "b"], "d": ["d"], "b": ["a", "b"]}, "list": ["b"], "list_children": ["b", "d", "a"]}"#,
        "recorded as a defect: a chain follows only continuations, like the tip",
    ),
    (
        "compressed-continuing-sibling",
        r#"{"tip": {"a": "c", "b": "c", "s": "s", "c": "c"}, "root": {"a": "a", "b": "a", "s": "a", "c": "a"},
            "resume": {"a": "c", "b": "c", "s": "s", "c": "c"},
            "chain": {"a": ["a", "b", "c"], "b": ["a", "b", "c"], "s": ["s"], "c": ["a", "b", "c"]},
            "list": ["c", "s"], "list_children": ["c", "s", "b", "a"]}"#,
        "every session that is not continued is listed, so that no message is hidden",
    ),
    (
        "archived-hidden",
        r#"{"tip": {"a": "a", "b": "b"}, "root": {"a": "a", "b": "b"}, "resume": {"a": "a", "b": "b"},
            "chain": {"a": ["a"], "b": ["b"]}, "list": ["b", "a"], "list_children": ["b", "a"]}"#,
        "there is no archive: a session is listed until it is deleted",
    ),
];

/// The list is in the order of activity and contains the tips of chains, not their roots.
#[test]
fn session_lineage() {
    check("session_lineage", LINEAGE, lineage_case, |expected| {
        json!({
            "tip": expected["tip"],
            "root": expected["root"],
            "resume": expected["resume"],
            "chain": expected["chain"],
            "list": expected["list_active"],
            "list_children": expected["list_children"],
        })
    });
}

fn lineage_case(input: &Value) -> Value {
    let mut fixture = Fixture::empty();
    let sessions = input["sessions"].as_array().unwrap();
    for (at, session) in (0u64..).zip(sessions) {
        let config = &session["config"];
        let kind = match (config["_branched_from"].is_string(), config["_delegate_from"].is_string()) {
            (true, _) => ParentKind::Branch,
            (_, true) => ParentKind::Delegate,
            _ => ParentKind::Continuation,
        };
        let started_at = BEGUN + at * 10;
        let name = session["id"].as_str().unwrap();
        fixture.create(name, session["parent"].as_str().map(|parent| (parent, kind)), started_at, "cli", "m");
        for said in 1..=session["messages"].as_u64().unwrap_or(0) {
            fixture.store.append(&fixture.names[name], &[Draft::user("x", started_at + said)]).unwrap();
        }
    }
    let each = |of: &dyn Fn(&SessionId) -> Value| -> BTreeMap<&String, Value> {
        fixture.names.iter().map(|(name, id)| (name, of(id))).collect()
    };
    let chain = |id: &SessionId| fixture.store.chain(id).unwrap();
    let root = |id: &SessionId| {
        let mut at = id.clone();
        while let Some(parent) = fixture.store.session(&at).unwrap().parent {
            at = parent.id;
        }
        fixture.name(&at)
    };
    let tip = |id: &SessionId| fixture.name(chain(id).last().unwrap());
    let names = |sessions: Vec<hermes_store::SessionSummary>| -> Vec<Value> {
        sessions.iter().map(|session| fixture.name(&session.id)).collect()
    };
    json!({
        "tip": each(&tip),
        "root": each(&root),
        "resume": each(&tip),
        "chain": each(&|id| chain(id).iter().map(|id| fixture.name(id)).collect()),
        "list": names(fixture.store.conversations(None).unwrap()),
        "list_children": names(fixture.store.sessions().unwrap()),
    })
}

const LOADING: &[Differing] = &[
    (
        "ancestors-off",
        r#"[{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"},
            {"role": "user", "content": "two"}, {"role": "assistant", "content": "2"}]"#,
        "the conversation includes the messages of the continued session",
    ),
    (
        "alternation-assistants",
        r#"[{"role": "user", "content": "q"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "Please go on."},
            {"role": "assistant", "content": "two"}, {"role": "user", "content": "n"}]"#,
        "the log is not changed; the host inserts messages only into requests",
    ),
    (
        "review-harness-stripped",
        r#"[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
            {"role": "user", "content": "Review the conversation above and consider saving to memory if appropriate"},
            {"role": "assistant", "content": "curated"}, {"role": "user", "content": "next"}]"#,
        "the log contains no prompts of the host, so none are removed",
    ),
];

#[test]
fn session_loading() {
    check("session_loading", LOADING, loading_case, |expected| expected["messages"].clone());
}

fn parts_of(content: &Value) -> Vec<Part> {
    let part = |part: &Value| match part["image_url"]["url"].as_str() {
        Some(url) => {
            let (_, data) = url.split_once(";base64,").unwrap();
            Part::Image(Media::image(STANDARD.decode(data).unwrap(), None).unwrap())
        }
        None => Part::text(part["text"].as_str().unwrap()),
    };
    content.as_array().unwrap().iter().map(part).collect()
}

/// A part in the recorded form, with its bytes from the store.
fn recorded_part(store: &Store, part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image(image) => {
            let bytes = store.blob(&image.blob().unwrap().hash).unwrap().unwrap();
            let url = format!("data:{};base64,{}", image.media_type, STANDARD.encode(bytes));
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        other => panic!("{other:?}"),
    }
}

fn loading_case(input: &Value) -> Value {
    let mut fixture = Fixture::empty();
    let mut last = String::new();
    for session in input["sessions"].as_array().unwrap() {
        last = session["id"].as_str().unwrap().to_owned();
        let parent = session["parent"].as_str().map(|parent| (parent, ParentKind::Continuation));
        fixture.create(&last, parent, BEGUN, "cli", "m");
        for message in session["messages"].as_array().unwrap() {
            let draft = match (message["role"].as_str().unwrap(), message["content"].as_str()) {
                ("user", Some(content)) => Draft::user(content, 1),
                ("user", None) => Draft::of_parts(Role::User, parts_of(&message["content"]), 1),
                ("assistant", Some(content)) => Draft::assistant(content, Vec::new(), 1),
                (other, _) => panic!("unknown role {other}, or content without text"),
            };
            let sent = message["api_content"].as_str().map(str::to_owned);
            fixture.store.append(&fixture.names[&last], &[Draft { sent, ..draft }]).unwrap();
        }
    }
    let messages = fixture.store.conversation(&fixture.names[&last]).unwrap();
    if input["repair_alternation"] == true {
        let shown = render::render(&Conversation::new(messages), &View::default());
        return shown.iter().map(|shown| json!({"role": shown.role, "content": shown.content})).collect();
    }
    let message = |message: &hermes_conversation::Message| {
        let mut recorded = json!({"role": message.role, "content": message.content});
        if !message.parts.is_empty() {
            recorded["content"] = message.parts.iter().map(|part| recorded_part(&fixture.store, part)).collect();
        }
        if let Some(sent) = &message.sent {
            recorded["api_content"] = json!(sent);
        }
        recorded
    };
    messages.iter().map(message).collect()
}
