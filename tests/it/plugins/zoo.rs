//! Hostile plugins in a session of the real binary: what the user and the model see, and that the session survives.
//!
//! Single calls of such plugins are tested in the runtime; here it is their effect.

use hermes_tests::oracle::{assert_fits, assert_valid_anthropic_request, assert_valid_request};
use hermes_tests::{Call, Home, Output, Reply, Server};
use hermes_zoo::{LOOP, Offered, Shell};
use serde_json::{Value, json};

use crate::fixtures::grant_untried;

/// Installs and enables a plugin.
fn keep(home: &Home, name: &str, component: &[u8]) {
    home.write(
        &format!("plugins/{name}/plugin.yaml"),
        format!("name: {name}\nversion: 0.1.0\ndescription: a beast\npermissions: {{hooks: true}}\n"),
    );
    home.write(&format!("plugins/{name}/{name}.wasm"), component);
    grant_untried(home, name);
    home.set("plugins.enabled", json!([name]));
    // Short limits, so that deliberately slow plugins end soon.
    home.set(&format!("plugins.settings.{name}.limits"), json!({"cpu": "300ms", "start_time": "5s"}));
}

/// Calls a tool in each reply, then answers.
fn calling(names: &[&str]) -> Server {
    let arguments = json!({"path": "notes.txt"});
    let calls = names.iter().enumerate();
    let replies = calls.map(|(number, name)| Reply::calls([Call::new(&format!("call_{number}"), name, &arguments)]));
    Server::scripted(replies.chain([Reply::text("Done.")]).collect::<Vec<_>>())
}

/// The results of the calls.
fn results(server: &Server) -> Vec<String> {
    let turns = server.turns();
    turns.iter().for_each(|request| assert_valid_request(&request.body));
    let results = turns.iter().skip(1).flat_map(|request| request.trailing_results());
    results.map(|(_, content)| content.to_owned()).collect()
}

fn record(home: &Home, name: &str) -> Value {
    serde_json::from_str(&home.read(&format!("data/{name}/record.json"))).unwrap()
}

fn lines_with<'a>(output: &'a Output, part: &str) -> Vec<&'a str> {
    output.stderr.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn three_failures_in_a_row_suspend_a_plugin_and_the_turn_goes_on() {
    let server = calling(&["bad", "good", "bad", "bad", "bad", "good", "read_file"]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "still here");
    keep(&home, "beast", &hermes_zoo::crashing_tool());
    let output = home.hermes(&["-z", "Go."]).run().success();
    assert_eq!(output.stdout, "Done.\n");
    let reported = lines_with(&output, "is disabled for this session");
    assert!(reported.len() == 1 && reported[0].contains("see `hermes plugins info beast`"), "{output}");
    let results = results(&server);
    assert_eq!(results[1], "good");
    for result in &results[2..5] {
        assert!(result.contains("`beast` crashed and gave no answer"), "{result}");
    }
    assert!(results[5].contains("disabled for this session") && results[6].contains("still here"), "{results:?}");
    let record = record(&home, "beast");
    assert_eq!((&record["failures"], &record["suspended"]["failures"]), (&json!(4), &json!(3)), "{record:#}");
    assert!(record["suspended"]["last"]["cause"].as_str().unwrap().contains("unreachable"), "{record:#}");
    let doctor = home.hermes(&["plugins", "doctor"]).run().exits(1);
    assert!(doctor.stdout.contains("disabled for a session") && doctor.stdout.contains("unreachable"), "{doctor}");

    // In the next session it is called again, and works.
    let server = calling(&["good"]);
    home.use_endpoint(&server.url());
    home.hermes(&["-z", "Again."]).run().success();
    assert_eq!(self::results(&server), ["good"]);
    assert_eq!(self::record(&home, "beast")["suspended"], Value::Null);
    home.hermes(&["plugins", "doctor"]).run().success();

    let server = calling(&["bad"]);
    home.use_endpoint(&server.url());
    home.hermes(&["-z", "Once more."]).run().success();
    let doctor = home.hermes(&["plugins", "doctor"]).run().exits(1);
    assert!(doctor.stdout.contains("it failed once in the last session"), "{doctor}");
}

#[test]
fn on_failure_decides_whether_a_turn_ends_with_a_failing_plugin() {
    let server = calling(&["bad", "bad", "bad", "good"]);
    let home = Home::with(&server);
    keep(&home, "beast", &hermes_zoo::crashing_tool());
    home.set("plugins.settings.beast.on_failure", json!("stop"));
    home.hermes(&["-z", "Go."]).run().refused().exits(5).says(&["beast", "plugins.settings.beast.on_failure"]);
    assert_eq!(server.turns().len(), 3);
    home.set("plugins.enabled", json!([]));
    let server = Server::scripted([Reply::text("Here I am.")]);
    home.use_endpoint(&server.url());
    let output = home.hermes(&["-z", "Still there?", "--continue"]).run().success();
    assert_eq!(output.stdout, "Here I am.\n");
    assert_valid_request(&server.last_turn().body);
}

#[test]
fn a_suspended_hook_blocks_tools_unless_the_user_disables_it() {
    for (policy, runs) in [("fallback", false), ("disable", true)] {
        let server = calling(&["read_file"; 4]);
        let home = Home::with(&server);
        home.write_workspace("notes.txt", "still here");
        keep(&home, "beast", &hermes_zoo::looping_hook());
        home.set("plugins.settings.beast.on_failure", json!(policy));
        home.hermes(&["-z", "Go."]).run().success();
        let results = results(&server);
        assert!(results[..3].iter().all(|result| result.contains("`cpu`")), "{results:?}");
        assert_eq!(results[3].contains("still here"), runs, "{policy}: {results:?}");
    }
}

#[test]
fn without_a_user_a_hook_that_asks_blocks_every_tool() {
    let server = calling(&["read_file", "read_file"]);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "still here");
    keep(&home, "beast", &hermes_zoo::asking_hook());
    home.hermes(&["-z", "Go."]).run().success();
    let refused = |result: &String| result.contains("needs the user's approval") && result.contains("beast/read_file");
    assert!(results(&server).iter().all(refused), "{:?}", results(&server));
}

#[test]
fn a_flooding_or_silent_memory_provider_delays_no_turn() {
    for (component, reported) in [
        (hermes_zoo::flooding_memory(), None),
        (hermes_zoo::memory(LOOP), Some("`cpu`")),
        (hermes_zoo::memory("unreachable"), Some("unreachable")),
    ] {
        let server = Server::answering(|_, _| Reply::text("Yes."));
        let home = Home::with(&server);
        keep(&home, "beast", &component);
        home.set("plugins.enabled", json!([]));
        home.set("memory.provider", json!("beast"));
        let output = home.hermes(&["-z", "Anything?"]).run().success();
        assert_eq!(output.stdout, "Yes.\n");
        if let Some(reported) = reported {
            output.says(&["beast", reported]);
        }
        let request = server.last_turn();
        assert_valid_request(&request.body);
        assert_fits(&request.body, 24_000);
    }
}

#[test]
fn thousands_of_skills_leave_room_in_the_prompt() {
    for (bytes, reported) in [(512, "5000 skills"), (4_096, "`output`")] {
        let server = Server::answering(|_, _| Reply::text("Yes."));
        let home = Home::with(&server);
        keep(&home, "beast", &hermes_zoo::flooding_skills(bytes));
        home.hermes(&["-z", "Anything?"]).run().success().says(&["beast", reported]);
        let request = server.last_turn();
        assert_valid_request(&request.body);
        assert!(request.system_text().len() < 400 << 10, "{} bytes", request.system_text().len());
    }
}

#[test]
fn invalid_tools_of_a_catalog_are_skipped_and_reported() {
    let mut shell = Shell::of("tools-plugin");
    let memory = shell.memory();
    let tools: Vec<Offered> = [Offered::new("good"), Offered::new("read_file"), Offered::new("no good")]
        .into_iter()
        .chain([Offered::new("broken").parameters("{\"type\":"), Offered::new("listed").parameters("[]")])
        .chain((0..1_000).map(|number| Offered::new(&format!("tool_{number}"))))
        .collect();
    let (catalog, answer) = (memory.catalog(&tools), memory.output("good"));
    let shell = shell
        .pages(16, None)
        .body("tools/catalog", &format!("(i32.const {catalog})"))
        .body("tools/call", &format!("(i32.const {answer})"));
    let server = calling(&["good"]);
    let home = Home::with(&server);
    keep(&home, "beast", &shell.build());
    let output = home.hermes(&["-z", "Go."]).run().success();
    output.says(&["1005 tools", "`read_file` is left out", "`no good` is left out", "`broken`", "`listed`"]);
    let names = server.last_turn().tool_names().len();
    assert!((100..140).contains(&names), "{names}");
    assert_eq!(results(&server), ["good"]);
}

#[test]
fn a_tool_with_an_incomplete_schema_does_not_make_the_provider_refuse_every_request() {
    let mut shell = Shell::of("tools-plugin");
    let memory = shell.memory();
    let tools = [Offered::new("empty").parameters("{}"), Offered::new("bare").parameters(r#"{"type":"object"}"#)];
    let (catalog, answer) = (memory.catalog(&tools), memory.output("good"));
    let shell = shell
        .body("tools/catalog", &format!("(i32.const {catalog})"))
        .body("tools/call", &format!("(i32.const {answer})"));
    let complete = json!({"type": "object", "properties": {}});
    for mode in ["chat_completions", "anthropic_messages"] {
        let call = |name: &str| Reply::calls([Call::new(&format!("call_{name}"), name, &json!({}))]);
        let server = Server::scripted([call("empty"), call("bare"), Reply::text("Done."), Reply::text("Done again.")]);
        let home = Home::with(&server);
        if mode == "anthropic_messages" {
            home.set("model.base_url", json!(server.anthropic_url()));
            home.set("model.api_mode", json!(mode));
        }
        keep(&home, "beast", &shell.build());
        let output = home.hermes(&["-z", "Go."]).run().success();
        assert_eq!(output.stdout, "Done.\n", "{mode}");
        home.hermes(&["-z", "Again.", "--continue"]).run().success();
        let turns = server.turns();
        assert_eq!(turns.len(), 4, "{mode}");
        for turn in &turns {
            assert_eq!(turn.raw_member("tools"), turns[0].raw_member("tools"), "the list is frozen");
            for name in ["empty", "bare"] {
                let tools = turn.body["tools"].as_array().unwrap();
                let schema = tools.iter().find_map(|tool| {
                    let function = if mode == "chat_completions" { &tool["function"] } else { tool };
                    let schema = function.get("parameters").or(function.get("input_schema"));
                    schema.filter(|_| function["name"] == name)
                });
                assert_eq!(schema, Some(&complete), "{mode} {name}");
            }
            match mode {
                "chat_completions" => assert_valid_request(&turn.body),
                _ => assert_valid_anthropic_request(&turn.body),
            }
        }
    }
}

#[test]
fn a_plugin_that_does_not_start_is_reported_and_skipped() {
    for (function, deed, reported) in [
        ("lifecycle/configure", LOOP, "`cpu`"),
        ("lifecycle/configure", "unreachable", "unreachable"),
        ("lifecycle/session-start", "unreachable", "unreachable"),
        ("tools/catalog", LOOP, "`cpu`"),
    ] {
        let server = Server::answering(|_, _| Reply::text("Fine."));
        let home = Home::with(&server);
        keep(&home, "beast", &Shell::with_tool("nop").body(function, deed).build());
        let output = home.hermes(&["-z", "hi"]).run().success();
        assert_eq!(output.stdout, "Fine.\n");
        output.says(&["beast", reported]);
        assert!(!server.last_turn().tool_names().contains(&"good"));
    }
}

#[test]
fn a_section_reaches_its_plugin_without_the_defaults_of_the_schema() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    let log = "(call $log/write (i32.const 2) (local.get $p0) (local.get $p1)) (i32.const 1024)";
    let shell = Shell::with_tool("nop").import("log", "write").body("lifecycle/configure", log);
    keep(&home, "beast", &shell.build());
    let schema = "config: {type: object, properties: {region: {type: string}, count: {type: integer, default: 7}}}\n";
    let manifest = home.read("plugins/beast/plugin.yaml") + schema;
    home.write("plugins/beast/plugin.yaml", manifest);
    home.grant("beast");
    home.set("plugins.entries.beast", json!({"region": "eu"}));
    home.hermes(&["-z", "hi"]).run().success();
    // A text that is a JSON object becomes the fields of its line.
    let log = home.read("logs/beast.jsonl");
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["region"], &line["count"], &line["level"]),
        (&json!("eu"), &Value::Null, &json!("info")),
        "{log}"
    );
}

#[test]
fn links_and_pictures_of_a_result_are_not_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("https://{}/lamp.png", listener.local_addr().unwrap());
    let mut shell = Shell::with_tool("nop");
    let links = shell.memory().links(&address);
    let server = calling(&["good"]);
    let home = Home::with(&server);
    keep(&home, "beast", &shell.body("tools/call", &format!("(i32.const {links})")).build());
    home.hermes(&["-z", "Go."]).run().success();
    let sent = server.last_turn().body.to_string();
    assert!(sent.matches(&address).count() >= 2, "{sent}");
    let fetched = listener.accept().map(|(_, from)| from);
    assert!(fetched.is_err(), "{fetched:?}");
}

#[test]
fn an_engine_that_crashes_anywhere_is_named_and_the_turn_goes_on() {
    for function in ["observe", "assess", "propose", "status"] {
        let server = Server::answering(|_, _| Reply::text("Fine."));
        let home = Home::with(&server);
        let deed = if function == "status" { "unreachable" } else { LOOP };
        keep(&home, "beast", &hermes_zoo::engine(function, deed));
        home.set("plugins.enabled", json!([]));
        home.set("context.engine", json!("beast"));
        for arguments in [&["-z", "one"][..], &["-z", "two", "--continue"]] {
            let output = home.hermes(arguments).run().success();
            assert_eq!(output.stdout, "Fine.\n", "{function}");
            if function == "observe" || function == "assess" {
                output.says(&["beast", "`cpu`"]);
            }
        }
        assert_valid_request(&server.last_turn().body);
    }
}

#[test]
fn no_ill_formed_plan_becomes_the_view() {
    for mode in ["bad-order", "bad-split", "bad-key", "huge-plan"] {
        let server = Server::scripted([
            Reply::calls([Call::new("call_1", "read_file", &json!({"path": "notes.txt"}))]),
            Reply::text("First."),
            Reply::text("Second."),
        ]);
        let home = Home::with(&server);
        home.write_workspace("notes.txt", "a note");
        home.install_guest("hostile", "hostile", json!({"mode": mode}));
        home.set("context.engine", json!("hostile"));
        home.hermes(&["-z", "one"]).run().success();
        let output = home.hermes(&["-z", "two", "--continue"]).run().success();
        assert_eq!(output.stdout, "Second.\n", "{mode}");
        output.says(&["hostile"]);
        let last = server.last_turn();
        assert_valid_request(&last.body);
        assert!(last.body.to_string().contains("a note"), "{mode}");
    }
}
