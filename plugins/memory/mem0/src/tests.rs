//! All modes against the same expectations, with the stand-in in `tests/stand_in.rs` in place of a service.

mod stand_in;

use hermes_plugin::memory_provider::{Query, Turn};
use hermes_plugin::testing::{Answer, Host};
use hermes_plugin::tools::Invocation;
use hermes_plugin::{Error, ErrorKind, MemoryProvider, MemoryRewind, MemoryUpkeep, Progress, Tools, testing};
use serde_json::{Value, json};

use super::*;
use stand_in::{Fault, KEY, Shared, served};

fn section(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Platform => json!({ "user_id": "ada" }),
        Dialect::Server => json!({ "user_id": "ada", "host": "http://nas.lan:8888/" }),
    }
}

fn service(dialect: Dialect) -> (Host, Shared, Mem0) {
    let (host, state) = served(dialect);
    let plugin = host.start(section(dialect)).unwrap();
    (host, state, plugin)
}

fn local(host: &Host) -> Mem0 {
    host.start(json!({ "mode": "local", "user_id": "ada" })).unwrap()
}

fn call(plugin: &mut Mem0, name: &str, arguments: Value) -> Result<Value, Error> {
    plugin.call(&Invocation::new(name, arguments)).map(|output| serde_json::from_str(&output.texts()).unwrap())
}

#[test]
fn the_manifest_describes_the_configuration() {
    testing::check_manifest::<Mem0>();
}

#[test]
fn the_tools_do_the_same_in_every_mode() {
    for mode in [Some(Dialect::Platform), Some(Dialect::Server), None] {
        let (_host, mut plugin) = match mode {
            Some(dialect) => {
                let (host, _, plugin) = service(dialect);
                (host, plugin)
            }
            None => {
                let host = Host::new().database();
                let plugin = local(&host);
                (host, plugin)
            }
        };
        let names: Vec<String> = plugin.catalog().unwrap().into_iter().map(|tool| tool.schema.name).collect();
        assert_eq!(names, ["mem0_search", "mem0_add", "mem0_update", "mem0_delete"]);
        let tea = json!({ "query": "what tea does Ada drink" });
        let none = json!({ "result": "No relevant memories found." });
        assert_eq!(call(&mut plugin, "mem0_search", tea.clone()).unwrap(), none, "{mode:?}");
        let added = call(&mut plugin, "mem0_add", json!({ "content": "Ada likes green tea" })).unwrap();
        assert_eq!(added["result"], "Fact stored.", "{mode:?}");
        let found = call(&mut plugin, "mem0_search", tea.clone()).unwrap();
        assert_eq!((&found["count"], &found["results"][0]["memory"]), (&json!(1), &json!("Ada likes green tea")));
        let id = found["results"][0]["id"].clone();
        assert_eq!(added["id"], id);
        let new = json!({ "memory_id": id, "text": "Ada likes black tea" });
        assert_eq!(call(&mut plugin, "mem0_update", new).unwrap()["previous"], "Ada likes green tea");
        assert_eq!(
            call(&mut plugin, "mem0_search", tea.clone()).unwrap()["results"][0]["memory"],
            "Ada likes black tea"
        );
        let output = plugin.call(&Invocation::new("mem0_delete", json!({ "memory_id": id }))).unwrap();
        assert!(output.extra.iter().any(|(key, write)| key == "memory-write" && write.contains("Ada likes black tea")));
        assert_eq!(call(&mut plugin, "mem0_search", tea).unwrap(), none);
        // A miss is answered with a sentence, even if the id is malformed.
        for id in [id.as_str().unwrap(), "seven", "../../v1/x", ""] {
            for (tool, arguments) in
                [("mem0_delete", json!({ "memory_id": id })), ("mem0_update", json!({ "memory_id": id, "text": "x" }))]
            {
                let said = call(&mut plugin, tool, arguments).unwrap();
                assert!(said["result"].as_str().unwrap().starts_with("Memory not found"), "{mode:?}: {said}");
            }
        }
        for (tool, arguments) in [
            ("mem0_add", json!({ "content": "<memory-context>old</memory-context> " })),
            ("mem0_add", json!({ "content": "x".repeat(5_000) })),
            ("mem0_search", json!({ "query": " " })),
            ("mem0_forget", json!({})),
        ] {
            assert!(call(&mut plugin, tool, arguments).unwrap_err().is(ErrorKind::InvalidInput));
        }
    }
}

#[test]
fn a_recall_keeps_to_its_budget_and_leaves_out_its_own_session() {
    let (_host, state, mut plugin) = service(Dialect::Server);
    {
        let mut state = state.borrow_mut();
        for (number, (text, turn)) in
            [("tea one", None), ("tea own", Some("session-1:1")), ("tea long", Some("session-0:1")), ("tea", None)]
                .into_iter()
                .enumerate()
        {
            let text = if text == "tea long" { format!("tea {}", "x".repeat(400)) } else { text.to_owned() };
            let metadata = json!({ "hermes_turn": turn });
            state
                .memories
                .push(json!({ "id": number.to_string(), "memory": text, "user_id": "ada", "metadata": metadata }));
        }
        state.memories.push(json!({ "id": "9", "memory": "tea of Bob", "user_id": "bob" }));
    }
    let keys = |plugin: &mut Mem0, budget| -> Vec<String> {
        plugin.recall(&Query::new("tea", budget)).unwrap().into_iter().map(|memory| memory.key).collect()
    };
    assert_eq!(keys(&mut plugin, 1_000), ["0", "2", "3"]);
    assert_eq!(keys(&mut plugin, 3), ["0", "3"]);
    assert_eq!(plugin.recall(&Query::new("  ", 1_000)).unwrap(), []);
}

#[test]
fn a_turn_is_stored_once_without_what_was_recalled() {
    for dialect in [Dialect::Platform, Dialect::Server] {
        let (host, state, mut plugin) = service(dialect);
        let turn = Turn::new(2, "I like tea.\n<memory-context>\nold\n</memory-context>", "Noted.");
        plugin.sync_turn(&turn).unwrap();
        plugin.sync_turn(&turn).unwrap();
        let writes = |host: &Host| {
            let requests = host.requests();
            let is_write = |sent: &&testing::Sent| sent.url.ends_with("/memories") || sent.url.ends_with("/add/");
            requests.iter().filter(is_write).map(|sent| sent.json::<Value>().unwrap()).collect::<Vec<_>>()
        };
        let bodies = writes(&host);
        assert_eq!(bodies.len(), 1);
        assert_eq!(bodies[0]["messages"][0]["content"], "I like tea.");
        assert_eq!(bodies[0]["metadata"], json!({ "channel": "cli", "hermes_turn": "session-1:3" }));
        assert_eq!(bodies[0].get("timestamp").is_some(), dialect == Dialect::Platform);

        // The service stores the turn, and its answer is lost: also after a crash the turn is looked up first.
        for fault in [Answer::from(Error::new(ErrorKind::Timeout, "slow")), Answer::status(500)] {
            let before = writes(&host).len();
            state.borrow_mut().faults.push(Fault::After(fault));
            let lost = Turn::new(10 + before as u32, "I like mate.", "Noted.");
            assert!(plugin.sync_turn(&lost).is_err());
            plugin.sync_turn(&lost).unwrap();
            plugin.sync_turn(&lost).unwrap();
            assert_eq!(writes(&host).len(), before + 1, "{dialect:?}");
        }

        // It did not store the turn: once it has surely finished, the turn is sent again.
        let before = writes(&host).len();
        state.borrow_mut().faults.push(Fault::Before(Answer::from(Error::unavailable("reset").with_code("network"))));
        let lost = Turn::new(90, "I like water.", "Noted.");
        assert!(plugin.sync_turn(&lost).unwrap_err().is(ErrorKind::Unavailable));
        let wait = plugin.sync_turn(&lost).unwrap_err();
        assert_eq!((wait.code.as_str(), wait.retry_after_ms), ("settling", Some(30_000)));
        host.advance(30_000);
        plugin.sync_turn(&lost).unwrap();
        assert_eq!(writes(&host).len(), before + 2);
    }
}

#[test]
fn a_service_that_cannot_look_turns_up_leads_to_a_report() {
    for answer in [Answer::status(405), Answer::json(200, json!({ "results": [{ "id": "7", "memory": "other" }] }))] {
        let host = Host::new().database().secret("server_key", KEY);
        let host = host.reply(Error::new(ErrorKind::Timeout, "slow")).reply(answer);
        let mut plugin: Mem0 = host.start(section(Dialect::Server)).unwrap();
        let turn = Turn::new(1, "a", "b");
        assert!(plugin.sync_turn(&turn).unwrap_err().is(ErrorKind::Timeout));
        let error = plugin.sync_turn(&turn).unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Failed, "ambiguous"));
    }
}

#[test]
fn the_answer_of_a_service_decides_what_becomes_of_a_turn() {
    use ErrorKind::{Exhausted, InvalidInput, Timeout, Unavailable};
    let code = |code: &str| Answer::json(502, json!({ "detail": "failed", "code": code, "request_id": "r" }));
    let cases = [
        (Dialect::Server, Answer::status(429).header("retry-after", "7"), Exhausted, Some(7_000)),
        (Dialect::Server, Answer::status(400), InvalidInput, None),
        (Dialect::Server, Answer::status(422), InvalidInput, None),
        (Dialect::Server, Answer::status(413), InvalidInput, None),
        (Dialect::Platform, Answer::status(413), Exhausted, Some(3_600_000)),
        (Dialect::Platform, Answer::status(402), Exhausted, Some(3_600_000)),
        // A wrong key and a wrong address are the user's to mend.
        (Dialect::Platform, Answer::json(401, json!({ "detail": "no" })), Unavailable, Some(600_000)),
        (Dialect::Server, Answer::status(404), Unavailable, Some(600_000)),
        (Dialect::Server, Answer::status(503).header("retry-after", "2"), Unavailable, Some(2_000)),
        (Dialect::Server, Answer::status(504), Timeout, None),
        (Dialect::Server, code("provider_rate_limited"), Exhausted, None),
        (Dialect::Server, code("provider_timeout"), Timeout, None),
        (Dialect::Server, code("provider_bad_request"), InvalidInput, None),
        (Dialect::Server, code("provider_auth_failed"), Unavailable, None),
        (Dialect::Server, code("vector_store_unavailable"), Unavailable, None),
        (Dialect::Server, code("unknown"), Unavailable, None),
    ];
    for (number, (dialect, answer, kind, pause)) in cases.into_iter().enumerate() {
        let (_host, state, mut plugin) = service(dialect);
        state.borrow_mut().faults.push(Fault::Before(answer));
        let error = plugin.sync_turn(&Turn::new(1, "a", "b")).unwrap_err();
        assert_eq!((&error.kind, error.retry_after_ms), (&kind, pause), "case {number}: {error}");
    }
}

#[test]
fn a_turn_that_always_makes_the_server_fail_is_set_aside_at_last() {
    let (host, state, mut plugin) = service(Dialect::Server);
    let turn = Turn::new(1, "a", "b");
    for attempt in 1..=8 {
        let answer = Answer::json(502, json!({ "detail": "failed", "code": "unknown" }));
        state.borrow_mut().faults.push(Fault::Before(answer));
        let error = plugin.sync_turn(&turn).unwrap_err();
        assert_eq!(error.is(ErrorKind::Failed), attempt == 8, "{attempt}: {error}");
        host.advance(60_000);
    }
}

#[test]
fn a_missing_key_is_named_for_the_platform_and_left_out_for_a_server() {
    let host = Host::new().database();
    let mut plugin: Mem0 = host.start(section(Dialect::Platform)).unwrap();
    let error = plugin.sync_turn(&Turn::new(1, "a", "b")).unwrap_err();
    assert!(error.is(ErrorKind::Unavailable) && error.message.contains("MEM0_API_KEY"), "{error}");
    assert!(plugin.recall(&Query::new("a", 10)).unwrap_err().message.contains("MEM0_API_KEY"));
    let host = host.reply(json!({ "results": [] }));
    let mut plugin: Mem0 = host.start(section(Dialect::Server)).unwrap();
    plugin.recall(&Query::new("a", 10)).unwrap();
    assert_eq!(host.requests()[0].header("x-api-key"), None);
}

#[test]
fn queued_work_that_fails_is_reported() {
    let (host, state, mut plugin) = service(Dialect::Platform);
    plugin.sync_turn(&Turn::new(1, "a", "b")).unwrap();
    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
    assert_eq!(host.log().len(), 0, "pending");
    state.borrow_mut().finish("FAILED");
    plugin.upkeep().unwrap();
    plugin.upkeep().unwrap();
    let log: Vec<String> = host.log().into_iter().map(|(_, line)| line).collect();
    assert!(log.len() == 1 && log[0].contains("session-1:1") && log[0].contains("the model refused"), "{log:?}");
    plugin.sync_turn(&Turn::new(2, "a", "b")).unwrap();
    state.borrow_mut().finish("SUCCEEDED");
    plugin.upkeep().unwrap();
    assert_eq!(host.log().len(), 1);
}

#[test]
fn answers_in_another_form_lead_to_errors_and_not_to_crashes() {
    for body in [
        "",
        "null",
        "[]",
        "{\"results\": 7}",
        "[{\"id\": 7, \"memory\": \"x\"}]",
        "{\"results\": [null, {\"memory\": []}]}",
    ] {
        let _host = Host::new().database().reply(body);
        let mut plugin: Mem0 = _host.start(section(Dialect::Server)).unwrap();
        assert!(plugin.recall(&Query::new("a", 10)).is_ok_and(|found| found.is_empty()) || body.is_empty(), "{body}");
    }
    // An older server answers with the list alone.
    let host = Host::new().database().reply(json!([{ "id": "1", "memory": "tea" }]));
    let mut plugin: Mem0 = host.start(section(Dialect::Server)).unwrap();
    assert_eq!(plugin.recall(&Query::new("a", 10)).unwrap().len(), 1);
}

mod locally {
    use super::*;

    const TEA: &str = r#"{"memory": [{"text": "Ada likes green tea.", "attributed_to": "user"},
        {"text": "Ada works in Cork.", "attributed_to": "user"}]}"#;

    fn texts(plugin: &mut Mem0, query: &str) -> Vec<String> {
        let recalled = plugin.recall(&Query::new(query, 1_000)).unwrap();
        recalled.into_iter().map(|memory| memory.text).collect()
    }

    /// An instance in another session.
    fn later(host: Host) -> (Host, Mem0) {
        let mut session = testing::session();
        session.id = "session-2".to_owned();
        let host = host.session(session);
        let plugin = local(&host);
        (host, plugin)
    }

    #[test]
    fn a_model_extracts_facts_and_later_sessions_recall_them() {
        let host = Host::new().database().says(TEA);
        let mut plugin = local(&host);
        let turn = Turn::new(1, "I work in Cork and like green tea.", "Noted.");
        plugin.sync_turn(&turn).unwrap();
        // Delivered again: no further request.
        plugin.sync_turn(&turn).unwrap();
        assert_eq!(host.prompts().len(), 1);
        assert_eq!(texts(&mut plugin, "Which tea?"), Vec::<String>::new(), "the conversation shows it");
        let (_host, mut plugin) = later(host);
        assert_eq!(texts(&mut plugin, "Which tea do I drink?"), ["Ada likes green tea."]);
        assert_eq!(texts(&mut plugin, "Where does Ada work?"), ["Ada works in Cork.", "Ada likes green tea."]);
    }

    #[test]
    fn known_memories_are_shown_to_the_model_and_not_stored_twice() {
        let again =
            r#"{"memory": [{"text": "ada likes the GREEN tea", "attributed_to": "user"}, {"text": "Ada likes mate"}]}"#;
        let host = Host::new().database().says(TEA).says(again);
        let mut plugin = local(&host);
        plugin.sync_turn(&Turn::new(1, "Green tea!", "Noted.")).unwrap();
        plugin.sync_turn(&Turn::new(2, "I said green tea. And mate.", "Yes.")).unwrap();
        let prompt = host.prompts()[1].messages[1].texts();
        assert!(
            prompt.contains("Stored memories: [\"Ada likes green tea.\"") && prompt.contains("Green tea!"),
            "{prompt}"
        );
        let (_host, mut plugin) = later(host);
        assert_eq!(texts(&mut plugin, "green tea mate").len(), 2);
        let known = call(&mut plugin, "mem0_add", json!({ "content": "Ada likes green tea" })).unwrap();
        assert_eq!(known["result"], "This fact is stored already.");
    }

    #[test]
    fn without_a_model_nothing_is_stored_and_the_tools_work() {
        let host = Host::new().database();
        let mut plugin = local(&host);
        plugin.sync_turn(&Turn::new(1, "I like tea.", "Noted.")).unwrap();
        assert_eq!(texts(&mut plugin, "tea"), Vec::<String>::new());
        call(&mut plugin, "mem0_add", json!({ "content": "Ada likes tea" })).unwrap();
        assert_eq!(texts(&mut plugin, "tea"), ["Ada likes tea"]);
    }

    #[test]
    fn a_model_that_fails_delays_the_turn_and_an_answer_without_facts_does_not() {
        let host = Host::new().database().says(Error::unavailable("busy")).says("I have nothing to say.");
        let mut plugin = local(&host);
        let turn = Turn::new(1, "I like tea.", "Noted.");
        assert!(plugin.sync_turn(&turn).unwrap_err().is(ErrorKind::Unavailable));
        plugin.sync_turn(&turn).unwrap();
        plugin.sync_turn(&turn).unwrap();
        assert_eq!(host.prompts().len(), 2);
    }

    #[test]
    fn a_rewind_forgets_its_turns_and_the_history_says_why() {
        let host = Host::new().database().says(TEA).says(r#"{"memory": ["Ada likes mate"]}"#);
        let mut plugin = local(&host);
        plugin.sync_turn(&Turn::new(1, "one", "a")).unwrap();
        plugin.sync_turn(&Turn::new(2, "two", "b")).unwrap();
        plugin.rewound("session-1", 3).unwrap();
        let (_host, mut plugin) = later(host);
        assert_eq!(texts(&mut plugin, "tea mate").len(), 1);
        let events = "SELECT event, before, reason FROM history WHERE event <> 'ADD'";
        let events: Vec<(String, String, String)> = hermes_plugin::sql::query_as(events, vec![]).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].0.as_str(), events[0].1.as_str()), ("DELETE", "Ada likes mate"));
        assert!(events[0].2.contains("took the turn back"));
    }

    #[test]
    fn embeddings_find_what_words_do_not_rank_and_memories_get_vectors_later() {
        let host = Host::new().database();
        let mut plugin = local(&host);
        for fact in ["Ada likes tea", "Bob sails"] {
            call(&mut plugin, "mem0_add", json!({ "content": fact })).unwrap();
        }
        assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
        let count = || -> i64 {
            hermes_plugin::sql::query_one::<(i64,)>("SELECT count(*) FROM vector", vec![]).unwrap().unwrap().0
        };
        assert_eq!(count(), 0);
        let _host = host.embeddings(64);
        plugin.upkeep().unwrap();
        assert_eq!(count(), 2);

        assert_eq!(texts(&mut plugin, "Bob")[0], "Bob sails");
        // A changed text waits for a new vector.
        let id = call(&mut plugin, "mem0_search", json!({ "query": "Bob" })).unwrap()["results"][0]["id"].clone();
        call(&mut plugin, "mem0_update", json!({ "memory_id": id, "text": "Bob rows" })).unwrap();
        assert_eq!(count(), 1);
    }

    #[test]
    fn the_memories_of_users_are_apart() {
        let host = Host::new().database();
        let mut ada = local(&host);
        call(&mut ada, "mem0_add", json!({ "content": "likes tea" })).unwrap();
        let id = call(&mut ada, "mem0_search", json!({ "query": "tea" })).unwrap()["results"][0]["id"].clone();
        let mut bob: Mem0 = host.start(json!({ "mode": "local", "user_id": "bob" })).unwrap();
        assert_eq!(texts(&mut bob, "tea"), Vec::<String>::new());
        let said = call(&mut bob, "mem0_delete", json!({ "memory_id": id })).unwrap();
        assert!(said["result"].as_str().unwrap().starts_with("Memory not found"));
        assert_eq!(texts(&mut ada, "tea"), ["likes tea"]);
    }
}
