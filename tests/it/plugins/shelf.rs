//! Tools that have no room in the prompt: the model finds them with `tool_search` and calls them with `tool_use`.

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::outside::shown;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/mcp/tests/server.py");
const PARCEL: &str = "mcp_shop_send_parcel";
const PART: &str = "mcp_shop_part_299";

/// A model that looks for a tool and calls what it found, in each turn.
fn model() -> Server {
    let calls = [
        Call::new("call_0", "tool_search", &json!({"query": "ship the order to an address"})),
        Call::new("call_1", "tool_use", &json!({"name": PARCEL, "arguments": {"grams": 7}})),
        Call::new("call_2", "tool_use", &json!({"name": PARCEL, "arguments": {"address": "Oak Lane 1", "grams": "7"}})),
    ];
    Server::answering(move |body, _| {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let asked = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
        let made = messages[asked..].iter().filter(|message| message["role"] == "assistant").count();
        calls.get(made).map_or_else(|| Reply::text("Done."), |call| Reply::calls([call.clone()]))
    })
}

fn home_with_shop(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("model.context_length", json!(40_000));
    home.set("mcp_servers.shop", json!({"command": "python3", "args": [shown(&home, SCRIPT), "--do", "shop"]}));
    home
}

/// The tools of a request, as text.
fn tools(body: &Value) -> String {
    body["tools"].to_string()
}

/// Whether a request has a tool.
fn has(body: &Value, name: &str) -> bool {
    body["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["function"]["name"] == name))
}

fn results(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn hundreds_of_tools_have_two_in_the_prompt_and_each_can_be_called() {
    let server = model();
    let home = home_with_shop(&server);
    home.set("approvals.allow", json!(["shop"]));
    home.hermes(&["-z", "post it"]).run().success();
    let first = server.last_turn().body;
    assert!(tools(&first).contains("- shop: ") && !has(&first, PARCEL), "{}", tools(&first));
    let results = results(&first);
    assert!(results[0].starts_with(&format!("## {PARCEL}\n")), "{}", results[0]);
    assert!(results[1].contains("\"address\" is a required property"), "{}", results[1]);
    // The call is one of the tool itself: its arguments are fitted to its schema.
    assert!(results[2].contains(r#"{"address": "Oak Lane 1", "grams": 7}"#), "{}", results[2]);
    // A resumed session has the same prompt, and opens the shelf again.
    home.hermes(&["--continue", "-z", "again"]).run().success();
    let resumed = server.last_turn().body;
    assert_eq!(tools(&resumed), tools(&first));
    assert_eq!(resumed["messages"][0], first["messages"][0]);
    // A new session in this folder has room for what was used here.
    home.hermes(&["-z", "post another one"]).run().success();
    assert!(has(&server.last_turn().body, PARCEL));
}

#[test]
fn rules_and_approvals_are_those_of_the_tool_on_the_shelf() {
    let server = model();
    let home = home_with_shop(&server);
    home.set("approvals.deny", json!([format!("shop/{PARCEL}")]));
    home.hermes(&["-z", "post it"]).run().success();
    let denied = results(&server.last_turn().body)[2].clone();
    assert!(denied.contains("approvals.deny") && !denied.contains("Oak Lane"), "{denied}");
    // Nobody can be asked, and nothing allows it.
    home.set("approvals.deny", json!([]));
    home.hermes(&["-z", "post it"]).run().success();
    let unasked = results(&server.last_turn().body)[2].clone();
    assert!(!unasked.contains("Oak Lane"), "{unasked}");
}

#[test]
fn the_user_sees_what_tools_take_and_decides_which_stay() {
    let server = model();
    let home = home_with_shop(&server);
    home.hermes(&["mcp", "test", "shop"]).run().success();
    let list = home.hermes(&["mcp", "list"]).run().success();
    let words = format!("{}{}", list.stdout, list.stderr);
    assert!(words.contains("tokens") && words.contains("the prompt has room for 4,000"), "{words}");
    home.set("tool_search.pinned", json!([PARCEL]));
    home.hermes(&["-z", "hello"]).run().success();
    let pinned = server.last_turn().body;
    assert!(has(&pinned, PARCEL) && has(&pinned, "tool_search") && !has(&pinned, PART), "{}", tools(&pinned));
    // Everything, in a window that has room for it.
    home.set("tool_search", json!({"enabled": false}));
    home.set("model.context_length", json!(200_000));
    home.hermes(&["-z", "hello"]).run().success();
    let whole = server.last_turn().body;
    assert!(has(&whole, PART) && !has(&whole, "tool_search"));
    home.set("tool_search", Value::Null);
    home.set("model.context_length", json!(2_000_000));
    home.hermes(&["-z", "hello"]).run().success();
    assert!(has(&server.last_turn().body, PART));
}
