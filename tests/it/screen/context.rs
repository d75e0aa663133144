//! The output of `hermes context`, `/context` and `/compress`.

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Home, Reply, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::fixtures::journal::{long_text, texts};
use crate::fixtures::planner::{self, chat, context, is_compacted, long_turn};

fn tokens(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no count: {value}"))
}

#[test]
fn a_view_is_drawn_by_stretches_that_account_for_every_message() {
    let server = planner::server();
    let home = planner::home(&server, json!({}));
    let [one, two, three] = [0, 1, 2].map(long_turn);
    let output = chat(&home, &[&one, &two, &three, "/compress", "and now?"]).success();
    let compacted = planner::lines(&output, "compacted by `planner`");
    assert_eq!(compacted.len(), 1, "{output}");
    assert!(compacted[0].contains("as it was configured"), "{output}");
    assert!(is_compacted(&server.last_turn()));

    let context = context(&home);
    assert_eq!((&context["engine"], &context["window"]), (&json!("planner"), &json!(128_000)));
    let log = home.messages();
    let stretches = context["stretches"].as_array().unwrap();
    let kinds: Vec<&str> = stretches.iter().map(|stretch| stretch["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tools", "system_prompt", "summarised", "verbatim"]);
    let (summary, verbatim) = (&stretches[2], &stretches[3]);
    assert_eq!(summary["by"], "planner");
    assert_eq!((&summary["messages"], &verbatim["messages"]), (&json!(4), &json!(4)));
    assert_eq!(summary["covers"], json!([{"first": log[0]["id"], "last": log[3]["id"]}]));
    assert_eq!(verbatim["ids"], json!({"first": log[4]["id"], "last": log[7]["id"]}));
    assert!(tokens(&summary["said_tokens"]) > 4 * tokens(&summary["tokens"]), "{summary}");
    let sum: u64 = stretches.iter().map(|stretch| tokens(&stretch["tokens"])).sum();
    assert_eq!(sum, tokens(&context["tokens"]));

    let views = context["views"].as_array().unwrap();
    assert_eq!(views.len(), 1);
    assert_eq!((&views[0]["by"], &views[0]["reason"]), (&json!("planner"), &json!("as it was configured")));
    // The figures reported at the compaction equal those shown later.
    let grouped = |count: &Value| {
        let digits = count.to_string();
        if digits.len() > 3 {
            format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..])
        } else {
            digits
        }
    };
    let shown = format!("from about {} to {} tokens", grouped(&views[0]["before"]), grouped(&views[0]["after"]));
    assert!(compacted[0].contains(&shown), "`{shown}` is not in: {}", compacted[0]);

    let shown = home.hermes(&["context"]).run().success();
    for text in [
        "summary of 4 messages, by planner since",
        "4 full messages",
        "which count those of all",
        "as it was configured",
    ] {
        assert!(shown.stdout.contains(text), "`{text}` is not in\n{shown}");
    }
    assert!(!shown.stdout.contains("breaker"), "no engine has failed\n{shown}");
    assert!(!shown.stdout.contains('\u{1b}'), "colours in a pipe\n{shown}");
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 160), "{shown}");
    let bar = shown.stdout.lines().find(|line| line.starts_with('▓')).unwrap();
    assert_eq!(bar.chars().count(), 64, "{shown}");
}

#[test]
fn what_a_summary_says_can_be_read() {
    let server = planner::server();
    let home = planner::home(&server, json!({}));
    let [one, two, three] = [0, 1, 2].map(long_turn);
    let early = chat(&home, &["/context summary", "hello", "/context summary"]);
    assert!(early.stdout.contains("so there is no summary"), "{early}");
    assert!(early.stderr.contains("there is no summary to show") && early.stderr.contains("/compress"), "{early}");
    let output =
        chat(&home, &[&one, &two, &three, "/compress", "/context summary", "/context summary 1", "/context summary 2"]);
    let stretches = context(&home)["stretches"].clone();
    let text = stretches.as_array().unwrap().iter().find_map(|stretch| stretch["text"].as_str()).unwrap().to_owned();
    assert!(!text.trim().is_empty(), "{stretches}");
    // All of them, and the first.
    assert_eq!(output.stdout.matches(text.trim()).count(), 2, "{text}\n{output}");
    assert_eq!(output.stdout.matches("1  summary of 4 messages, by planner since").count(), 2, "{output}");
    assert!(output.stderr.contains("the request has 1 summary"), "{output}");

    let shown = home.hermes(&["context", "--summary"]).run().success();
    assert!(shown.stdout.contains(text.trim()) && !shown.stdout.contains("breaker"), "{shown}");
    home.hermes(&["context", "--summary", "2"]).run().exits(1).says(&["there is no summary to show"]);
    home.hermes(&["context", "--summary", "--json"]).run().exits(2);
}

#[test]
fn hermes_context_works_while_another_process_holds_the_session() {
    let server = Server::answering(|_, number| match number {
        1 => Reply::text("Never to be finished.").hang_after(3),
        number => Reply::text(format!("Answer {number}.")),
    });
    let home = planner::home(&server, json!({}));
    home.hermes(&["-z", "one"]).run().success();
    let holder = home.hermes(&["-z", "two", "--continue", "--stream-json"]).spawn();
    holder.wait_for_stdout("Never");

    let refused = home.hermes(&["-z", "three", "--continue"]).run().refused().exits(7);
    let refused = refused.says(&["the session cannot be opened", "process"]);
    assert!(refused.stderr.lines().count() == 3, "{refused}");
    let context = context(&home);
    assert_eq!(context["sums"]["verbatim"]["messages"], 3);
    assert!(context.get("live").is_none(), "{context}");
    holder.kill();
    home.hermes(&["-z", "three", "--continue"]).run().success();
}

#[test]
fn an_empty_session_is_reported_as_such() {
    let server = planner::server();
    let home = planner::home(&server, json!({}));
    let output = chat(&home, &["/context", "/compress", "/compress --preview"]).success();
    assert!(output.stdout.contains("the conversation is empty"), "{output}");
    assert_eq!(
        output.stdout.matches("the conversation has 0 messages, and compaction needs at least 4").count(),
        2,
        "{output}"
    );
    assert_eq!(server.requests().len(), 0);
    home.hermes(&["context"]).run().refused().exits(1);
}

#[test]
fn slash_context_includes_the_engines_status() {
    let server = planner::server();
    let home = planner::home(&server, json!({}));
    let output = chat(&home, &["one", "/context"]).success();
    for text in ["engine    planner", "timing: never", "messages: 2", "views     none"] {
        assert!(output.stdout.contains(text), "`{text}` is not in\n{output}");
    }
}

#[test]
fn a_preview_shows_a_compaction_without_doing_it() {
    let server = planner::server();
    let home = planner::home(&server, json!({}));
    let [one, two, three] = [0, 1, 2].map(long_turn);
    let output = chat(&home, &[&one, &two, &three, "/compress --preview"]).success();
    assert!(output.stdout.contains("`planner` would compact messages from about "), "{output}");
    assert!(output.stdout.contains("summary of 4 messages"), "{output}");
    assert_eq!(context(&home)["views"], json!([]));
    assert_eq!(server.requests().len(), 3, "a model was asked for a preview");
    assert_eq!(planner::outcomes(&home), ["deferred"]);

    let shown = output.stdout.split("would compact ").nth(1).unwrap().split(" tokens").next().unwrap().to_owned();
    let output = planner::chat_with(&home, &["--continue"], &["/compress"]).success();
    output.says(&[&format!("compacted by `planner`, {shown} tokens")]);
}

#[test]
fn a_preview_of_an_invalid_plan_says_why_and_is_not_a_failure() {
    let server = planner::server();
    let home = planner::home(&server, json!({"bad": 1}));
    let output = chat(&home, &["one", "two", "/compress --preview"]).success();
    let output = output.says(&["would be refused", "neither shown nor covered"]);
    assert!(output.stdout.contains("the conversation is unchanged"), "{output}");
    assert_eq!(context(&home)["faults"], json!([]));
}

#[test]
fn an_impossible_compaction_says_why() {
    let server = planner::server();
    let home = planner::home(&server, json!({"keep_turns": 9}));
    let short = chat(&home, &["one", "/compress"]).success();
    assert!(short.stdout.contains("the conversation has 2 messages, and compaction needs at least 4"), "{short}");
    let nothing = planner::chat_with(&home, &["--continue"], &["two", "/compress"]).success();
    assert!(nothing.stdout.contains("compaction would save too little"), "{nothing}");
    home.set("compression.enabled", json!(false));
    let off = planner::chat_with(&home, &["--continue"], &["/compress", "/compress --preview", "/context"]).success();
    assert_eq!(off.stdout.matches("compression.enabled is false in config.yaml").count(), 2, "{off}");
    assert!(off.stdout.contains("not in use: compression.enabled is false"), "{off}");
    assert_eq!(planner::outcomes(&home), [""; 0]);
}

#[test]
fn hermes_context_shows_summaries_and_shortened_messages() {
    let server = Server::answering(|body, number| match is_auxiliary(body) {
        true => Reply::text("The user reports delays of ferries; the assistant keeps count."),
        false => Reply::text(long_text("answer", number)).in_steps_of(200),
    });
    let home = Home::with(&server);
    home.set("model.context_length", json!(12_000));
    for number in 0..12 {
        let text = long_turn(number);
        let arguments = ["-z", text.as_str(), "--continue"];
        home.hermes(if number == 0 { &arguments[..2] } else { &arguments }).run().success();
    }
    assert_valid_request(&server.last_turn().body);
    let context = context(&home);
    assert!(!context["views"].as_array().unwrap().is_empty(), "nothing was compacted");
    let messages = |kind: &str| tokens(&context["sums"][kind]["messages"]);
    let all = messages("verbatim") + messages("shortened") + messages("summarised");
    assert_eq!(all, home.messages().len() as u64);
    assert!(messages("summarised") > 0);
    assert_eq!(texts(&home.messages(), "user").len(), 12);
    for view in context["views"].as_array().unwrap() {
        assert!(tokens(&view["after"]) < tokens(&view["before"]), "{view}");
    }
}
