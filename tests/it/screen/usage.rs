//! `hermes usage`, `/usage` and the prices of a file.

use hermes_tests::{Call, Home, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

/// A model that lets the guest `inquirer` ask it for a picture once, with ten thousand tokens in the conversation and a thousand
/// for the plugin.
fn server() -> Server {
    Server::answering(|body, _| {
        let has_results = body["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "tool");
        let reply = match () {
            () if is_auxiliary(body) => return Reply::text("A lamp.").usage(1_000, 100).without_cache_counters(),
            () if has_results => Reply::text("Done."),
            () => Reply::calls([Call::new("call_1", "look", &json!({"how": ""}))]),
        };
        reply.usage(10_000, 100).without_cache_counters()
    })
}

fn home(server: &Server) -> Home {
    let home = Home::with(server);
    home.install_guest("inquirer", "inquirer", json!({}));
    home.set("plugins.enabled", json!(["inquirer"]));
    home.set("model.provider", json!("openai"));
    home.set("model.api_mode", json!("chat_completions"));
    home.set("model.default", json!("gpt-4.1"));
    home
}

fn usage(home: &Home, arguments: &[&str]) -> Value {
    let arguments = [&["usage", "--json"], arguments].concat();
    let shown = home.hermes(&arguments).at("2026-11-23T09:00:00Z").run().success();
    serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("no JSON: {error}\n{shown}"))
}

fn cost(value: &Value) -> f64 {
    value["cost"].as_f64().unwrap_or_else(|| panic!("no cost: {value}"))
}

#[test]
fn usage_is_shown_by_day_session_model_and_plugin() {
    let server = server();
    let home = home(&server);
    home.hermes(&["-z", "First day."]).at("2026-11-21T23:50:00Z").run().success();
    home.hermes(&["-z", "Second day.", "--continue"]).at("2026-11-22T00:10:00Z").run().success();

    let by_day = usage(&home, &[]);
    let days: Vec<&Value> = by_day["rows"].as_array().unwrap().iter().collect();
    assert_eq!((&days[0]["day"], &days[1]["day"]), (&json!("2026-11-21"), &json!("2026-11-22")), "{by_day}");
    // Two requests of the turn and one of the plugin, at 2 and 8 dollars per million tokens.
    assert_eq!((&days[0]["requests"], &days[0]["input"], &days[0]["output"]), (&json!(3), &json!(21_000), &json!(300)));
    assert!((cost(days[0]) - 0.0444).abs() < 1e-9, "{by_day}");
    // The second turn needed no picture.
    assert_eq!((&days[1]["requests"], &by_day["total"]["requests"]), (&json!(1), &json!(4)));
    let last_day = usage(&home, &["--days", "2"]);
    assert_eq!(last_day["rows"].as_array().unwrap().len(), 1, "{last_day}");

    let by_plugin = usage(&home, &["--by", "plugin"]);
    let askers: Vec<&Value> = by_plugin["rows"].as_array().unwrap().iter().map(|row| &row["plugin"]).collect();
    assert_eq!(askers, [&Value::Null, &json!("inquirer")], "{by_plugin}");
    assert!((cost(&by_plugin["rows"][1]) - 0.0028).abs() < 1e-9, "{by_plugin}");
    assert_eq!(usage(&home, &["--by", "model"])["rows"][0]["model"], "openai/gpt-4.1");
    assert_eq!(usage(&home, &["--by", "session"])["rows"][0]["session"], home.newest_session());

    let shown = home.hermes(&["usage", "--by", "plugin"]).at("2026-11-23T09:00:00Z").run().success();
    for words in
        ["(conversation)", "inquirer", "████", "4 requests: 31,000 tokens in (0 from caches), 400 out, $0.0652"]
    {
        assert!(shown.stdout.contains(words), "{words}\n{shown}");
    }
    let chat = home.hermes(&["--continue"]).stdin("/usage\n/exit\n").run().success();
    for words in ["asked by", "(conversation)", "inquirer", "openai/gpt-4.1", "4 requests: 31,000 tokens in"] {
        assert!(chat.stdout.contains(words), "{words}\n{chat}");
    }
}

#[test]
fn nothing_was_used_yet() {
    let home = Home::new();
    home.hermes(&["usage"]).run().success().says(&["no request was sent in the last 30 days"]);
    assert_eq!(usage(&home, &["--by", "model"])["rows"], json!([]));
    let chat = home.hermes(&[]).stdin("/usage\n/exit\n").run().success();
    assert!(chat.stdout.contains("the conversation is empty"), "{chat}");
}

#[test]
fn prices_of_a_file_count_from_then_on_and_never_by_surprise() {
    let said = || Reply::text("Yes.").usage(1_000_000, 0).without_cache_counters();
    let server = Server::scripted([said(), said(), said()]);
    let home = home(&server);
    let ask = |text: &str| home.hermes(&["-z", text]).run().success();
    ask("One.");
    home.write_workspace(
        "mine.json",
        r#"{"as_of": "2026-11-20", "models": [{"vendor": "openai", "model": "gpt-4.1", "input": 7, "output": 9}]}"#,
    );
    let kept = home.hermes(&["usage", "prices", "mine.json"]).run().success();
    kept.says(&["1 price of 2026-11-20 from now on", "costs in the ledger stay as they are"]);
    ask("Two.");
    let costs = |home: &Home| {
        let mut costs: Vec<f64> =
            usage(home, &["--by", "session", "--days", "0"])["rows"].as_array().unwrap().iter().map(cost).collect();
        costs.sort_by(f64::total_cmp);
        costs
    };
    assert_eq!(costs(&home), [2.0, 7.0]);
    let shown = home.hermes(&["usage", "prices"]).run().success();
    assert!(shown.stdout.contains("prices.json") && shown.stdout.contains("built in"), "{shown}");

    // A file that cannot be right changes nothing.
    home.write_workspace("wrong.json", r#"{"as_of": "soon", "models": []}"#);
    home.hermes(&["usage", "prices", "wrong.json"]).run().refused().exits(1).says(&["as_of is `soon`"]);
    assert!(home.read("prices.json").contains("2026-11-20"));
    // A damaged one is not used, and doctor says so.
    home.write("prices.json", "{");
    ask("Three.");
    assert_eq!(costs(&home), [2.0, 2.0, 7.0]);
    let doctor = home.hermes(&["doctor"]).run();
    assert!(doctor.stdout.contains("prices.json is not used, so the built-in prices count"), "{doctor}");
    home.hermes(&["usage", "prices", "--built-in"]).run().success();
    assert!(!home.path().join("prices.json").exists());
}
