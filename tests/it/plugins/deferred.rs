//! Tools on the shelf where the provider defers tools itself: their definitions travel with each request, the result of a search loads those
//! that it found, and the model calls them by their own names.

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_responses_request};
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::outside::shown;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/mcp/tests/server.py");
const PARCEL: &str = "mcp_shop_send_parcel";

/// A model that searches, searches for a tool that is not there, and calls what it found by its own name, in each turn.
fn model() -> Server {
    model_that(vec![
        search(),
        Call::new("call_1", "tool_search", &json!({"query": "xyzzy"})),
        Call::new("call_2", PARCEL, &json!({"address": "Oak Lane 1", "grams": "7"})),
    ])
}

fn search() -> Call {
    Call::new("call_0", "tool_search", &json!({"query": "ship the order to an address"}))
}

/// A model that makes these calls in each turn.
fn model_that(calls: Vec<Call>) -> Server {
    Server::answering(move |body, _| {
        let made = made(body);
        calls.get(made).map_or_else(|| Reply::text("Done."), |call| Reply::calls([call.clone()]))
    })
}

/// How many replies a turn has so far, in each format.
fn made(body: &Value) -> usize {
    let messages =
        [&body["messages"], &body["input"]].into_iter().find_map(Value::as_array).cloned().unwrap_or_default();
    let is_asked = |message: &Value| {
        let is_text = |content: &Value| content.is_string() || content[0]["type"] == "text";
        message["role"] == "user" && is_text(&message["content"])
    };
    let is_reply = |message: &&Value| {
        let is_call = |kind: &str| matches!(kind, "function_call" | "tool_search_call");
        message["role"] == "assistant" || message["type"].as_str().is_some_and(is_call)
    };
    let asked = messages.iter().rposition(is_asked).unwrap_or_default();
    messages[asked..].iter().filter(is_reply).count()
}

fn home_with_shop(server: &Server) -> Home {
    let home = Home::with_anthropic(server);
    home.set("model.provider", json!("anthropic"));
    home.set("model.default", json!("claude-sonnet-4-5"));
    home.set("model.context_length", json!(40_000));
    home.set("mcp_servers.shop", json!({"command": "python3", "args": [shown(&home, SCRIPT), "--do", "shop"]}));
    home.set("approvals.allow", json!(["shop"]));
    home
}

fn tool<'b>(body: &'b Value, name: &str) -> Option<&'b Value> {
    body["tools"].as_array()?.iter().find(|tool| tool["name"] == name)
}

/// The contents of all results, in their order.
fn results(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].clone()).collect()
}

#[test]
fn a_search_loads_what_it_found_and_the_model_calls_it_by_its_own_name() {
    let server = model();
    let home = home_with_shop(&server);
    home.hermes(&["-z", "post it"]).run().success();
    let turns = server.turns();
    for request in &turns {
        assert_valid_anthropic_request(&request.body);
        assert_eq!(request.raw_member("tools"), turns[0].raw_member("tools"), "the prefix never changes");
        assert_eq!(request.body["system"], turns[0].body["system"]);
    }
    let last = &turns.last().expect("there are requests").body;
    let parcel = tool(last, PARCEL).expect("its definition travels");
    assert_eq!(parcel["defer_loading"], true);
    assert!(parcel["input_schema"]["properties"]["address"].is_object(), "{parcel}");
    for name in ["tool_search", "tool_use", "read_file"] {
        assert_eq!(tool(last, name).expect("it is in the prompt").get("defer_loading"), None, "{name}");
    }
    let deferred = last["tools"].as_array().expect("a list").iter().filter(|tool| tool["defer_loading"] == true);
    assert!(deferred.count() > 290);
    let results = results(last);
    let references = results[0].as_array().expect("it loads tools");
    assert_eq!(references[0], json!({"type": "tool_reference", "tool_name": PARCEL}));
    assert!(references.len() <= 5 && references.iter().all(|part| part["type"] == "tool_reference"), "{references:?}");
    assert!(results[1].as_str().is_some_and(|text| text.starts_with("No tool has any of these words")), "{results:?}");
    // A call like any other: its arguments are fitted to its schema.
    assert!(results[2].to_string().contains("Oak Lane 1") && results[2].to_string().contains("7"), "{}", results[2]);
    // The log has the words that every model understands, and the name of the tool.
    let log = home.messages();
    let found = log.iter().find(|message| message["tool_name"] == "tool_search").expect("a result of a search");
    assert!(found["content"].as_str().is_some_and(|text| text.starts_with(&format!("## {PARCEL}\n"))), "{found}");
    assert!(log.iter().any(|message| message["tool_name"] == PARCEL));
}

/// Whether the last request has the definition of a tool that has to be found, and how the first search of the turn was answered.
fn last_form(server: &Server) -> (bool, Value) {
    let body = server.last_turn().body;
    if body["system"].is_array() {
        assert_valid_anthropic_request(&body);
        return (tool(&body, PARCEL).is_some(), results(&body)[0].clone());
    }
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let found = messages.iter().find(|message| message["role"] == "tool").expect("a result");
    (tools.iter().any(|tool| tool["function"]["name"] == PARCEL), found["content"].clone())
}

fn is_text(found: &Value) -> bool {
    found.as_str().is_some_and(|text| text.starts_with(&format!("## {PARCEL}\n")) && text.ends_with("`tool_use`."))
}

#[test]
fn approvals_of_a_deferred_tool_are_those_of_the_tool() {
    let server = model();
    let home = home_with_shop(&server);
    home.set("approvals.deny", json!([format!("shop/{PARCEL}")]));
    home.hermes(&["-z", "post it"]).run().success();
    let denied = results(&server.last_turn().body)[2].to_string();
    assert!(denied.contains("approvals.deny") && !denied.contains("Oak Lane"), "{denied}");
}

#[test]
fn a_session_keeps_its_tools_and_another_model_gets_them_in_the_common_form() {
    let server = model();
    let home = home_with_shop(&server);
    home.hermes(&["-z", "post it"]).run().success();
    let first = server.last_turn();
    // The form is part of the prompt: what the user wants now counts for new sessions.
    home.set("tool_search.deferred", json!(false));
    home.hermes(&["--continue", "-z", "again"]).run().success();
    let resumed = server.last_turn();
    assert_eq!(resumed.raw_member("tools"), first.raw_member("tools"));
    assert_eq!(last_form(&server), (true, results(&first.body)[0].clone()));
    // A model without the form gets the text of the search, and calls with `tool_use`.
    home.set("model.api_mode", json!("chat_completions"));
    home.set("model.base_url", json!(server.url()));
    home.hermes(&["--continue", "-z", "once more"]).run().success();
    let (has_definition, found) = last_form(&server);
    assert!(!has_definition && is_text(&found), "{found}");
    assert!(server.last_turn().tool_names().contains(&"tool_use"));
    // And back: the bytes are those of before.
    home.set("model.api_mode", json!("anthropic_messages"));
    home.set("model.base_url", json!(server.anthropic_url()));
    home.hermes(&["--continue", "-z", "and again"]).run().success();
    assert_eq!(server.last_turn().raw_member("tools"), first.raw_member("tools"));
    assert_eq!(last_form(&server), (true, results(&first.body)[0].clone()));
}

#[test]
fn a_session_that_began_in_the_common_form_keeps_it() {
    // What was called stays in the prompt of the next session, so this model only searches.
    let server = model_that(vec![search()]);
    let home = home_with_shop(&server);
    home.set("tool_search.deferred", json!(false));
    home.hermes(&["-z", "post it"]).run().success();
    let common = server.last_turn();
    let (has_definition, found) = last_form(&server);
    assert!(!has_definition && is_text(&found), "{found}");
    home.set("tool_search.deferred", json!(true));
    home.hermes(&["--continue", "-z", "again"]).run().success();
    assert_eq!(server.last_turn().raw_member("tools"), common.raw_member("tools"));
    assert!(is_text(&last_form(&server).1));
    // A prompt that the user has rebuilt is a new one, and loads what the searches of before have found.
    let session = home.newest_session();
    home.hermes(&["prompt", "--rebuild", &session]).run().success();
    home.hermes(&["--continue", "-z", "now"]).run().success();
    let (has_definition, found) = last_form(&server);
    assert!(has_definition && found[0]["tool_name"] == PARCEL, "{found}");
}

#[test]
fn a_fallback_without_the_form_means_the_common_form_for_the_session() {
    let server = model();
    let home = home_with_shop(&server);
    let other =
        json!({"provider": "house", "base_url": server.url(), "model": "m", "api_key": "k", "context_length": 40_000});
    home.set("fallback_providers", json!([other]));
    home.hermes(&["-z", "post it"]).run().success();
    let (has_definition, found) = last_form(&server);
    assert!(!has_definition && is_text(&found), "{found}");
}

#[test]
fn definitions_that_no_model_reads_are_no_tokens_of_the_prompt() {
    let server = model();
    let tokens = |deferred: bool| {
        let home = home_with_shop(&server);
        home.set("tool_search.deferred", json!(deferred));
        home.hermes(&["-z", "post it"]).run().success();
        let shown = home.hermes(&["context", "--json"]).run().success();
        let context: Value = serde_json::from_str(&shown.stdout).expect("JSON");
        let prompt = home.hermes(&["prompt", "--json", &home.newest_session()]).run().success();
        let prompt: Value = serde_json::from_str(&prompt.stdout).expect("JSON");
        assert_eq!(prompt["tool_tokens"], context["sums"]["tools"]);
        context["sums"]["tools"].as_u64().unwrap_or_else(|| panic!("no tokens of tools in {context}"))
    };
    let (with, without) = (tokens(true), tokens(false));
    assert!(without > 1_000 && with.abs_diff(without) < 100, "{with} and {without}");
}

#[test]
fn a_proxy_that_refuses_deferred_tools_is_named_with_the_way_out() {
    let refuses = |body: &Value| body["tools"].to_string().contains("defer_loading");
    let server = Server::answering(move |body, _| match refuses(body) {
        true => Reply::error(400, "tools.3.custom.defer_loading: Extra inputs are not permitted"),
        false => Reply::text("Fine."),
    });
    let home = home_with_shop(&server);
    let failed = home.hermes(&["-z", "post it"]).run().refused();
    let words = failed.stderr.clone();
    assert!(words.contains("tool_search.deferred: false") && !words.contains("tools.exclude"), "{words}");
    home.set("tool_search.deferred", json!(false));
    home.hermes(&["prompt", "--rebuild", &home.newest_session()]).run().success();
    home.hermes(&["--continue", "-z", "post it"]).run().success();
}

#[test]
fn the_responses_api_gets_the_definitions_in_the_output_of_the_search() {
    let server = model();
    let home = home_with_shop(&server);
    home.set("model.provider", json!("openai"));
    home.set("model.default", json!("gpt-5.5"));
    home.set("model.api_mode", json!("codex_responses"));
    home.set("model.base_url", json!(server.url()));
    home.hermes(&["-z", "post it"]).run().success();
    let turns = server.turns();
    for request in &turns {
        assert_valid_responses_request(&request.body);
        assert_eq!(request.raw_member("tools"), turns[0].raw_member("tools"), "the prefix never changes");
    }
    let last = &turns.last().expect("there are requests").body;
    assert_eq!(tool(last, PARCEL), None, "no definition travels before a search has found it");
    let is_search = |tool: &&Value| tool["type"] == "tool_search";
    assert_eq!(last["tools"].as_array().expect("a list").iter().filter(is_search).count(), 1);
    let items = last["input"].as_array().expect("items");
    let of = |kind: &str| items.iter().filter(|item| item["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("tool_search_call")[0]["arguments"]["query"], "ship the order to an address");
    let outputs = of("tool_search_output");
    assert_eq!(
        (&outputs[0]["tools"][0]["name"], &outputs[0]["tools"][0]["defer_loading"]),
        (&json!(PARCEL), &json!(true))
    );
    assert_eq!(outputs[1]["tools"], json!([]));
    let words = items.iter().find(|item| item["role"] == "developer").expect("why nothing was found");
    assert!(
        words["content"].as_str().is_some_and(|text| text.starts_with("No tool has any of these words")),
        "{words}"
    );
    let result = of("function_call_output")[0]["output"].to_string();
    assert!(result.contains("Oak Lane 1"), "{result}");
    // Another model of the provider gets the same conversation in the common form.
    home.set("model.default", json!("gpt-4.1"));
    home.hermes(&["--continue", "-z", "again"]).run().success();
    let common = server.last_turn().body;
    assert_valid_responses_request(&common);
    let items = common["input"].as_array().expect("items");
    assert!(items.iter().all(|item| item["type"] != "tool_search_output"));
    assert!(items.iter().any(|item| item["output"].as_str().is_some_and(|text| text.ends_with("`tool_use`."))));
}
