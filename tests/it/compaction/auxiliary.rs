//! Summaries by a model with its own address and key, and what happens when it does not answer.
//!
//! Two servers: one for the session, one for the summaries. The sessions are long-lived, because `/compress` waits for its summary.

use hermes_tests::{Home, KEY, Output, Reply, Request, Server, dead_endpoint};
use serde_json::{Value, json};

use crate::fixtures::journal::long_text;

/// The key of the summary server. No output may show it, and the session's server must never receive it.
const OWN_KEY: &str = "sk-summaries-fedcba9876543210fedcba98";
const CONFIGURATION: i32 = 3;
/// Turns before each compaction, so that some messages lie outside the protected ones.
const TURNS: usize = 12;

const SUMMARY: &str = "## Goal\nThe user reports delays of ferries, berth by berth, and the assistant keeps count of all of \
                       them.\n## Open\nNothing.";

/// Answers at length. Its summaries name their author.
fn partner(name: &'static str) -> Server {
    Server::answering(move |body, number| {
        if hermes_tests::is_auxiliary(body) {
            Reply::text(format!("{SUMMARY}\n## Written by\n{name}"))
        } else {
            Reply::text(long_text("answer", number)).in_steps_of(400)
        }
    })
}

fn summariser(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::answering(move |_, _| reply())
}

fn home(session: &Server, section: Value) -> Home {
    let home = Home::with(session);
    home.set("model.context_length", json!(64_000));
    home.set("auxiliary.compression", section);
    home
}

/// Chats and compacts the given number of times in one process.
fn converse(home: &Home, compactions: usize) -> Output {
    let mut input = String::new();
    for compaction in 0..compactions {
        for turn in 0..TURNS {
            input.push_str(&format!("{}\n", long_text("turn", compaction * TURNS + turn)));
        }
        input.push_str("/compress\n");
    }
    let output = home.hermes(&["chat"]).stdin(&input).run().success();
    let shown = format!("{output}");
    assert!(!shown.contains(KEY) && !shown.contains(OWN_KEY), "a key is shown\n{output}");
    for log in std::fs::read_dir(home.path().join("logs")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(log.path()).unwrap();
        assert!(!text.contains(KEY) && !text.contains(OWN_KEY), "a key is in {}", log.path().display());
    }
    output
}

fn summaries(server: &Server) -> Vec<Request> {
    server.requests().into_iter().filter(Request::is_auxiliary).collect()
}

/// Panics unless every request carries this key, and none contains the other one.
#[track_caller]
fn assert_only_key(requests: &[Request], own: Option<&str>, other: &str) {
    for request in requests {
        assert_eq!(request.header("authorization"), own.map(|key| format!("Bearer {key}")).as_deref());
        assert!(request.headers.iter().all(|(_, value)| !value.contains(other)), "{:?}", request.headers);
        assert!(!String::from_utf8_lossy(&request.raw).contains(other));
    }
}

fn notices(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.contains("in place of the configured model")).collect()
}

#[test]
fn summaries_use_their_own_model_and_key() {
    let (session, own) = (partner("session"), partner("own"));
    let home = home(&session, json!({"base_url": own.url(), "model": "small", "api_key": OWN_KEY}));
    let output = converse(&home, 1);
    let summary_requests = summaries(&own);
    assert!(!summary_requests.is_empty(), "nothing was summed up\n{output}");
    assert_eq!(own.requests().len(), summary_requests.len(), "it was asked for more than summaries");
    assert!(summary_requests.iter().all(|request| request.body["model"] == "small"));
    assert!(summaries(&session).is_empty());
    assert_only_key(&summary_requests, Some(OWN_KEY), KEY);
    assert_only_key(&session.requests(), Some(KEY), OWN_KEY);
    assert!(notices(&output).is_empty(), "{output}");
}

#[test]
fn a_task_has_its_own_effort() {
    let (session, own) = (partner("session"), partner("own"));
    let section = json!({"base_url": own.url(), "model": "gpt-5.4", "reasoning_effort": "low"});
    let home = home(&session, section.clone());
    home.set("model.reasoning_effort", json!("high"));
    converse(&home, 1);
    let efforts = |requests: Vec<Request>| -> Vec<Value> {
        requests.into_iter().map(|request| request.body["reasoning_effort"].clone()).collect()
    };
    let of_summaries = efforts(summaries(&own));
    assert!(!of_summaries.is_empty() && of_summaries.iter().all(|effort| effort == "low"), "{of_summaries:?}");
    // The session's model is not known to think.
    assert!(efforts(session.requests()).iter().all(Value::is_null));

    home.set("auxiliary.compression", json!({"reasoning_effort": "much"}));
    let refused = home.hermes(&["-z", "hello"]).run().refused().exits(CONFIGURATION);
    refused.says(&["auxiliary.compression.reasoning_effort", "minimal"]);
}

#[test]
fn the_sessions_key_goes_to_no_other_address() {
    let (session, own) = (partner("session"), partner("own"));
    let home = home(&session, json!({"base_url": own.url(), "model": "small"}));
    home.write(".env", format!("OPENAI_API_KEY={OWN_KEY}\n"));
    home.set("model.provider", json!("custom"));
    converse(&home, 1);
    assert!(!summaries(&own).is_empty());
    assert_only_key(&own.requests(), None, KEY);
    assert_only_key(&own.requests(), None, OWN_KEY);
}

#[test]
fn a_summary_key_can_be_a_variable_and_use_another_wire_format() {
    let (session, own) = (partner("session"), partner("own"));
    let section = json!({
        "base_url": own.anthropic_url(), "model": "small", "key_env": "SUMMARY_KEY", "api_mode": "anthropic_messages",
    });
    let home = home(&session, section);
    home.write(".env", format!("SUMMARY_KEY={OWN_KEY}\n"));
    converse(&home, 1);
    let summary_requests = summaries(&own);
    assert!(!summary_requests.is_empty());
    assert!(summary_requests.iter().all(|request| request.header("x-api-key") == Some(OWN_KEY)));
    assert!(summaries(&session).is_empty());
}

#[test]
fn an_unreachable_summary_model_is_followed_by_its_fallback_with_one_notice() {
    let (session, next) = (partner("session"), partner("next"));
    let down = dead_endpoint();
    let section = json!({
        "base_url": down, "model": "small", "api_key": OWN_KEY,
        "fallback_chain": [
            {"provider": "groq", "model": "keyless"},
            {"base_url": next.url(), "model": "second", "api_key": OWN_KEY},
        ],
    });
    let home = home(&session, section);
    home.set("auxiliary.transient_retries", json!(0));
    let output = converse(&home, 2);
    let summary_requests = summaries(&next);
    assert!(
        summary_requests.len() >= 2 && summary_requests.iter().all(|request| request.body["model"] == "second"),
        "{output}"
    );
    assert!(summaries(&session).is_empty());
    assert_only_key(&summary_requests, Some(OWN_KEY), KEY);
    let reported = notices(&output);
    assert_eq!(reported.len(), 1, "{output}");
    let address = down.trim_start_matches("http://").trim_end_matches("/v1");
    for words in ["second", address, "auxiliary.compression", "hermes doctor"] {
        assert!(reported[0].contains(words), "`{words}` is not reported: {}", reported[0]);
    }
    output.says(&["auxiliary.compression.fallback_chain[0]", "GROQ_API_KEY"]);
}

#[test]
fn the_sessions_model_is_the_last_fallback() {
    let session = partner("session");
    let next = summariser(|| Reply::error(401, &format!("bad key {OWN_KEY}")));
    let section = json!({
        "base_url": dead_endpoint(), "model": "small",
        "fallback_chain": [{"base_url": next.url(), "model": "second", "api_key": OWN_KEY}],
    });
    let home = home(&session, section);
    home.set("auxiliary.transient_retries", json!(0));
    let output = converse(&home, 1);
    let summary_requests = summaries(&session);
    assert_eq!(summary_requests.len(), summaries(&next).len(), "{output}");
    assert!(
        !summary_requests.is_empty()
            && summary_requests.iter().all(|request| request.body["model"] == "scripted-model")
    );
    assert_only_key(&next.requests(), Some(OWN_KEY), KEY);
    assert_only_key(&session.requests(), Some(KEY), OWN_KEY);
    assert_eq!(notices(&output).len(), 1, "{output}");
}

#[test]
fn a_silent_summary_model_times_out() {
    let session = partner("session");
    let silent = summariser(|| Reply::text("never").hang_after(0));
    let home = home(&session, json!({"base_url": silent.url(), "model": "small", "timeout": 1}));
    let output = converse(&home, 1);
    assert_eq!(silent.requests().len(), summaries(&session).len(), "a timeout was tried again\n{output}");
    let reported = notices(&output);
    assert_eq!(reported.len(), 1, "{output}");
    assert!(reported[0].contains("did not answer within 1 s"), "{}", reported[0]);
}

#[test]
fn a_provider_that_demands_payment_is_asked_once() {
    let session = partner("session");
    let unpaid = summariser(|| Reply::error(402, "top up"));
    let home = home(&session, json!({"base_url": unpaid.url(), "model": "small"}));
    let output = converse(&home, 3);
    assert!(summaries(&session).len() >= 2, "{output}");
    assert_eq!(unpaid.requests().len(), 1, "an empty account was called again");
    assert_eq!(notices(&output).len(), 1, "{output}");
}

#[test]
fn an_empty_summary_reply_counts_as_a_failure() {
    let session = partner("session");
    let empty = summariser(|| Reply::text(""));
    let home = home(&session, json!({"base_url": empty.url(), "model": "small"}));
    let output = converse(&home, 1);
    assert_eq!(empty.requests().len(), summaries(&session).len());
    assert!(notices(&output)[0].contains("gave an empty answer"), "{output}");
}

#[test]
fn a_failing_server_is_retried_before_the_fallback() {
    let session = partner("session");
    let own =
        Server::answering(|_, number| if number == 0 { Reply::error(503, "a moment") } else { Reply::text(SUMMARY) });
    let home = home(&session, json!({"base_url": own.url(), "model": "small"}));
    let output = converse(&home, 1);
    assert!(own.requests().len() >= 2 && summaries(&session).is_empty(), "{output}");
    assert!(notices(&output).is_empty(), "{output}");
}

#[test]
fn a_configuration_mistake_is_reported_before_anything_is_sent() {
    let session = partner("session");
    for (section, words) in [
        (json!({"provider": "nobody"}), &["auxiliary.compression.provider", "nobody", "openrouter"][..]),
        (json!({"base_url": "ftp://x"}), &["auxiliary.compression.base_url", "http://"]),
        (json!({"api_mode": "morse", "model": "m"}), &["auxiliary.compression.api_mode", "chat_completions"]),
        (json!({"fallback_chain": [{"provider": "custom", "model": 4}]}), &["fallback_chain[0].model", "a string"]),
        (json!({"timeout": "2m"}), &["auxiliary.compression.timeout", "whole number"]),
    ] {
        let home = home(&session, section);
        home.hermes(&["-z", "hi"]).run().refused().exits(CONFIGURATION).says(words);
    }
    assert!(session.requests().is_empty());
}

#[test]
fn a_missing_key_is_reported_at_first_use() {
    let session = partner("session");
    let home = home(&session, json!({"provider": "groq"}));
    let quiet = home.hermes(&["-z", "hi"]).run().success();
    assert!(!quiet.stderr.contains("GROQ_API_KEY"), "{quiet}");
    let output = converse(&home, 1);
    assert!(!summaries(&session).is_empty());
    assert!(notices(&output)[0].contains("GROQ_API_KEY"), "{output}");

    home.set("model", json!({"provider": "offline"}));
    home.hermes(&["-z", "hi"]).run().refused().exits(CONFIGURATION).says(&["auxiliary.compression", "GROQ_API_KEY"]);
}

#[test]
fn the_doctor_shows_which_model_serves_each_task() {
    let session = partner("session");
    let section = json!({
        "base_url": "http://127.0.0.1:1/v1", "model": "small", "api_key": OWN_KEY,
        "fallback_chain": [{"provider": "groq"}],
    });
    let home = home(&session, section);
    home.set("auxiliary.memory", json!({"model": "tiny"}));
    let output = home.hermes(&["doctor"]).run().success();
    let shown = output.stdout.as_str();
    for words in
        ["compression: small of custom at http://127.0.0.1:1/v1", "memory: tiny of custom", "then the session's model"]
    {
        assert!(shown.contains(words), "`{words}` is not shown\n{output}");
    }
    assert!(shown.contains("GROQ_API_KEY") && !shown.contains(OWN_KEY), "{output}");
}

#[test]
fn a_notice_at_the_end_of_a_single_turn_is_shown() {
    let session = partner("session");
    let home = home(&session, json!({}));
    home.set("compression.enabled", json!(false));
    let input: Vec<String> = (0..TURNS).map(|turn| long_text("turn", turn)).collect();
    home.hermes(&["chat"]).stdin(&input.join("\n")).run().success();

    // The answer arrives long before the summary request times out.
    let silent = summariser(|| Reply::text("never").hang_after(0));
    home.set("auxiliary.compression", json!({"base_url": silent.url(), "model": "small", "timeout": 2}));
    home.set("compression.enabled", json!(true));
    // The conversation lies far from both ends of the range in which summaries are prepared, however long the prompt is.
    home.set("plugins.entries.compressor.prepare_at", json!(0.2));
    home.set("model.context_length", json!(32_000));
    let output = home.hermes(&["chat", "--continue", "-q", "and now?"]).run().success();
    assert!(!silent.requests().is_empty(), "nothing was prepared\n{output}");
    assert_eq!(notices(&output).len(), 1, "{output}");
}

#[test]
fn a_window_that_a_summary_model_names_is_kept_for_later_sessions() {
    const WINDOW: usize = 2_500;
    let session = partner("session");
    let narrow = Server::answering(|body, _| {
        let tokens = body.to_string().len() / 4;
        if tokens <= WINDOW {
            return Reply::text(SUMMARY);
        }
        let message = format!("This model's maximum context length is {WINDOW} tokens, and you sent {tokens}.");
        Reply::json(400, &json!({"error": {"message": message, "code": "context_length_exceeded"}}))
    });
    let refused = || narrow.requests().iter().filter(|sent| sent.body.to_string().len() / 4 > WINDOW).count();
    let section = json!({"base_url": narrow.url(), "model": "small"});
    let home = home(&session, section.clone());
    let output = converse(&home, 1);
    assert_eq!(refused(), 1, "{output}");
    assert!(!summaries(&session).is_empty(), "the session's model takes more, and was not asked\n{output}");
    output.says(&["for the task `compression`, Hermes keeps to 2500 tokens for small of custom"]);

    // Another session keeps to it from the start.
    converse(&home, 1);
    assert_eq!(refused(), 1);
    let doctor = home.hermes(&["doctor"]).run().success();
    assert!(doctor.stdout.contains("window of 2,500 tokens, as the provider said; then"), "{doctor}");

    // The configured window applies. The user is told once that the provider named a smaller one.
    let mut wide = section;
    wide["context_length"] = json!(50_000);
    home.set("auxiliary.compression", wide);
    let told = "`auxiliary.compression.context_length` is 50000, but the provider of `small` said on 20";
    let output = home.hermes(&["-z", "hello"]).run().success();
    assert_eq!(format!("{output}").matches(told).count(), 1, "{output}");
    output.says(&["set `auxiliary.compression.context_length` to 2500, or remove it"]);
    let doctor = home.hermes(&["doctor"]).run().success();
    assert!(doctor.stdout.contains(told), "{doctor}");
}
