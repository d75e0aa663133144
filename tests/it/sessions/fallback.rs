//! The models of `fallback_providers`: when they answer, when they do not, and the way back to the first model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_request};
use hermes_tests::{Call, Home, KEY, Output, Reply, Server, dead_endpoint};
use serde_json::{Value, json};

const OTHER_KEY: &str = "sk-second-0123456789abcdef";
/// Exit code of a configuration that cannot be used.
const CONFIGURATION: i32 = 3;

/// A server that refuses every request until the switch is on.
fn recovering(works: &Arc<AtomicBool>, refusal: Reply) -> Server {
    let works = Arc::clone(works);
    Server::answering(move |_, _| if works.load(Ordering::Relaxed) { Reply::text("First.") } else { refusal.clone() })
}

fn second() -> Server {
    Server::answering(|_, _| Reply::text("Second."))
}

/// A home with `first` as its model, and these fallbacks.
fn home(first: &Server, others: &[&Server]) -> Home {
    let home = Home::with(first);
    let entries: Vec<Value> = others
        .iter()
        .zip(2..)
        .map(|(server, number)| {
            json!({"provider": format!("house-{number}"), "base_url": server.url(), "model": format!("model-{number}"),
                "api_key": OTHER_KEY, "context_length": 64_000})
        })
        .collect();
    home.set("fallback_providers", json!(entries));
    home
}

/// Provider, model and wire format of each request in the ledger.
fn ledger(home: &Home) -> Vec<(String, String, String)> {
    let store = rusqlite::Connection::open(home.state_db()).unwrap();
    let mut rows = store.prepare("SELECT provider, model, api_mode FROM requests ORDER BY number").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Sends these lines in one session.
fn chat(home: &Home, lines: &[&str]) -> Output {
    home.hermes(&["chat"]).stdin(&lines.join("\n")).run().success()
}

fn lines_with<'a>(output: &'a Output, text: &str) -> Vec<&'a str> {
    output.stderr.lines().filter(|line| line.contains(text)).collect()
}

#[test]
fn a_fallback_answers_while_the_first_model_rests() {
    let (first, second) = (recovering(&Arc::default(), Reply::error(402, "your balance is empty")), second());
    let home = home(&first, &[&second]);
    let output = chat(&home, &["one", "two"]);
    assert_eq!(output.stdout.matches("Second.").count(), 2, "{output}");
    assert_eq!((first.turns().len(), second.turns().len()), (1, 2), "the first was asked during its rest\n{output}");
    let told = lines_with(&output, "answers in place of");
    let [line] = told[..] else { panic!("{output}") };
    for part in [
        "balance is empty",
        "`model-2` of house-2 answers in place of `scripted-model` of custom",
        "top up the account",
    ] {
        assert!(line.contains(part), "`{part}` is missing: {line}");
    }
    let keys = |server: &Server| server.turns()[0].header("authorization").unwrap_or_default().to_owned();
    assert_eq!((keys(&first), keys(&second)), (format!("Bearer {KEY}"), format!("Bearer {OTHER_KEY}")));
    // The prompt is not built anew for the other model.
    let prompt = |server: &Server| server.turns()[0].messages()[0].clone();
    assert_eq!(prompt(&first), prompt(&second));
    let rows = ledger(&home);
    assert!(
        rows.len() == 2 && rows.iter().all(|(provider, model, _)| provider == "house-2" && model == "model-2"),
        "{rows:?}"
    );
}

#[test]
fn the_first_model_is_asked_again_in_a_later_turn() {
    let works = Arc::new(AtomicBool::new(false));
    let (first, second) = (recovering(&works, Reply::error(401, "who are you")), second());
    let home = home(&first, &[&second]);
    home.set("model.cooldown", json!(0));
    let mut chat = home.hermes(&["chat"]).talking().spawn();
    chat.say("one");
    chat.wait_for_stdout("Second.");
    chat.say("two");
    chat.wait_for_stdout_times("Second.", 2);
    works.store(true, Ordering::Relaxed);
    chat.say("three");
    chat.wait_for_stdout("First.");
    chat.say("/quit");
    let output = chat.wait();
    let again = lines_with(&output, "asking `scripted-model` of custom again, which failed");
    // The terminal shows a line that says the same once.
    assert!(!again.is_empty() && again.iter().all(|line| line.contains("who are you")), "{output}");
    assert_eq!(lines_with(&output, "answers in place of").len(), 1, "{output}");
    // Each refusal costs one request: the key has not changed.
    assert_eq!((first.turns().len(), second.turns().len()), (3, 2));
    let (refused, answered) = (&first.turns()[0], first.last_turn());
    assert_eq!(refused.messages()[0], answered.messages()[0], "the prompt stays as it was");
    assert!(answered.raw_member("messages").contains("Second."), "{answered:?}");
    let models: Vec<String> = ledger(&home).into_iter().map(|(_, model, _)| model).collect();
    assert_eq!(models, ["model-2", "model-2", "scripted-model"]);
}

#[test]
fn a_turn_goes_on_in_another_wire_format_without_sealed_reasoning() {
    let thinking = |signature: &str| json!({"type": "thinking", "thinking": "Hm.", "signature": signature});
    let read = Call::new("a_1", "read_file", &json!({"path": "notes.txt"}));
    let server = Server::scripted([
        Reply::text("Hello.").thinking([thinking("alpha-1")]),
        Reply::calls([read]).thinking([thinking("alpha-2")]),
        Reply::error(402, "your balance is empty"),
        Reply::text("Five."),
        Reply::text("Back."),
    ]);
    let home = Home::with_anthropic(&server);
    home.set("model.cooldown", json!(0));
    home.set("model.provider", json!("alpha"));
    home.set(
        "fallback_providers",
        json!([{"provider": "beta", "base_url": server.url(), "model": "small", "api_mode": "chat_completions"}]),
    );
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    let output = chat(&home, &["Hello", "When does it close?", "Are you back?"]);
    for answer in ["Hello.", "Five.", "Back."] {
        assert!(output.stdout.contains(answer), "{output}");
    }
    let turns = server.turns();
    let [hello, called, refused, other, back] = &turns[..] else { panic!("{} requests\n{output}", turns.len()) };
    [hello, called, refused, back].iter().for_each(|request| assert_valid_anthropic_request(&request.body));
    assert_valid_request(&other.body);
    assert_eq!(other.body["model"], "small");
    let sent = other.raw_member("messages");
    assert!(sent.contains("closes at five") && !sent.contains("alpha-"), "{sent}");
    let sent = back.raw_member("messages");
    assert!(sent.contains("alpha-1") && sent.contains("alpha-2") && sent.contains("Five."), "{sent}");
    let formats: Vec<String> = ledger(&home).into_iter().map(|(_, _, format)| format).collect();
    assert_eq!(formats, ["anthropic_messages", "anthropic_messages", "chat_completions", "anthropic_messages"]);
}

#[test]
fn what_the_request_causes_and_half_an_answer_bring_no_fallback() {
    for (reply, code) in [
        (Reply::error(400, "temperature must not be set"), "[model.bad-request]"),
        (Reply::json(400, &json!({"error": {"message": "no", "code": "content_policy_violation"}})), "[model.refused]"),
        (Reply::text("This answer has no end.").disconnect_after(2), "[model.cut]"),
        (Reply::error(413, "request entity too large"), "[session.window-full]"),
    ] {
        let (first, second) = (recovering(&Arc::default(), reply), second());
        let home = home(&first, &[&second]);
        let output = home.hermes(&["-z", "hello"]).run().refused();
        assert!(output.stderr.contains(code), "{output}");
        assert!(second.requests().is_empty(), "{code}: {output}");
    }
}

#[test]
fn unattended_work_falls_back_before_it_waits_long() {
    let limited = Reply::error(429, "slow down").header("retry-after", "3600");
    let (first, second) = (recovering(&Arc::default(), limited), second());
    let home = home(&first, &[&second]);
    home.set("model.retry_for", json!(7_200));
    let output = home.hermes(&["-z", "hello"]).run().success();
    assert_eq!(output.stdout, "Second.\n");
    assert_eq!(first.requests().len(), 1, "{output}");
}

#[test]
fn the_next_fallback_follows_one_that_fails_too() {
    let (first, third) = (recovering(&Arc::default(), Reply::error(404, "no such model")), second());
    let home = home(&first, &[&third]);
    home.set(
        "fallback_providers",
        json!([
            {"base_url": dead_endpoint(), "model": "small"},
            {"provider": "groq", "model": "keyless"},
            {"provider": "house-3", "base_url": third.url(), "model": "model-3", "api_key": OTHER_KEY},
        ]),
    );
    let output = home.hermes(&["-z", "hello"]).run().success();
    assert_eq!(output.stdout, "Second.\n");
    let told = lines_with(&output, "answers in place of");
    assert!(told.len() == 2 && told[1].contains("no connection to") && told[1].contains("`model-3`"), "{output}");
    output.says(&["`fallback_providers[1]` uses groq, and there is no key for it, so it is left out", "GROQ_API_KEY"]);
}

#[test]
fn if_no_model_answers_the_first_error_counts_and_what_may_pass_is_asked_again() {
    let refusing = || recovering(&Arc::default(), Reply::error(401, "who are you"));
    let (first, other) = (recovering(&Arc::default(), Reply::error(402, "your balance is empty")), refusing());
    let home_of = |first: &Server, other: &Server| home(first, &[other]);
    let output = home_of(&first, &other).hermes(&["-z", "hello"]).run().refused();
    assert!(output.stderr.contains("[model.billing]"), "{output}");
    assert_eq!(lines_with(&output, "`model-2` of house-2 does not answer either").len(), 1, "{output}");
    assert_eq!((first.requests().len(), other.requests().len()), (1, 1));

    // Three tries, then the fallback, then the first again.
    let first = Server::answering(|_, number| match number {
        0..3 => Reply::error(503, "a break").header("retry-after-ms", "1"),
        _ => Reply::text("First."),
    });
    let other = refusing();
    let output = home_of(&first, &other).hermes(&["-z", "hello"]).run().success();
    assert_eq!(output.stdout, "First.\n");
    assert_eq!(lines_with(&output, "`scripted-model` of custom is asked again").len(), 1, "{output}");
    assert_eq!((first.requests().len(), other.requests().len()), (4, 1));
}

#[test]
fn the_keys_of_a_provider_take_turns_before_a_fallback_answers() {
    const KEYS: [&str; 2] = ["sk-empty-0123456789abcdef", "sk-full-0123456789abcdefg"];
    let server = Server::answering(|_, number| match number {
        0 => Reply::error(402, "your balance is empty"),
        _ => Reply::text("First."),
    });
    let other = second();
    let home = home(&server, &[&other]);
    home.write(".env", format!("HOUSE_KEYS={}\n", KEYS.join(",")));
    home.set("model.api_key", json!("${HOUSE_KEYS}"));
    let output = chat(&home, &["one", "two"]);
    assert_eq!(output.stdout.matches("First.").count(), 2, "{output}");
    let output = output.says(&["balance is empty", "; key 1 of 2 is on cooldown for 60 min, and key 2 is used"]);
    let used: Vec<String> =
        server.turns().iter().map(|request| request.header("authorization").unwrap_or_default().to_owned()).collect();
    assert_eq!(used, [KEYS[0], KEYS[1], KEYS[1]].map(|key| format!("Bearer {key}")));
    assert!(other.requests().is_empty());
    // The list in the configuration says the same.
    home.set("model.api_key", Value::Null);
    home.set("model.api_keys", json!(KEYS));
    let doctor = home.hermes(&["doctor"]).run().success();
    assert!(doctor.stdout.contains("2 keys sk-emp...cdef, sk-ful...defg from model.api_key"), "{doctor}");
    let shown = home.hermes(&["config", "show"]).run().success();
    for key in KEYS {
        assert!(![&output, &doctor, &shown].iter().any(|output| format!("{output}").contains(key)), "{key} is shown");
    }
}

/// What `hermes doctor` shows.
fn doctor(home: &Home) -> String {
    home.hermes(&["doctor", "--no-request"]).run().success().stdout
}

#[test]
fn a_key_rests_in_later_processes_too_until_it_is_set_again() {
    const KEYS: &str = "sk-empty-0123456789abcdef,sk-full-0123456789abcdefg";
    let server = Server::answering(|_, number| match number {
        0 => Reply::error(402, "your balance is empty"),
        _ => Reply::text("First."),
    });
    let home = Home::with(&server);
    home.write(".env", format!("HOUSE_KEYS={KEYS}\n"));
    home.set("model.api_key", json!("${HOUSE_KEYS}"));
    for _ in 0..2 {
        home.hermes(&["-z", "hello"]).run().success();
    }
    let used = || -> Vec<bool> {
        server.turns().iter().map(|turn| turn.header("authorization").unwrap_or_default().contains("empty")).collect()
    };
    assert_eq!(used(), [true, false, false], "the second process used the key that rests");
    let file = home.read("rests.json");
    assert!(file.contains("balance is empty") && !file.contains("0123456789"), "{file}");
    let shown = doctor(&home);
    for part in [
        "key 1 of 2 (sk-emp...cdef) for custom",
        "is on cooldown until",
        "60 min more",
        "balance is empty",
        "rests.json",
    ] {
        assert!(shown.contains(part), "`{part}` is not shown\n{shown}");
    }
    let set = home.hermes(&["config", "set", "HOUSE_KEYS", "-"]).stdin(KEYS).run().success();
    set.says(&["it is used again"]);
    assert!(!doctor(&home).contains("is on cooldown until"));
    home.hermes(&["-z", "hello"]).run().success();
    assert_eq!(used(), [true, false, false, true]);
}

#[test]
fn a_model_rests_in_later_processes_too_until_it_is_chosen_again() {
    let works = Arc::new(AtomicBool::new(false));
    let (first, second) = (recovering(&works, Reply::error(402, "your balance is empty")), second());
    let home = home(&first, &[&second]);
    let ask = || home.hermes(&["-z", "hello"]).run().success();
    assert_eq!(ask().stdout, "Second.\n");
    works.store(true, Ordering::Relaxed);
    let output = ask();
    assert_eq!((output.stdout.as_str(), first.turns().len()), ("Second.\n", 1));
    output.says(&["`scripted-model` of custom failed and is asked again in 5 min", "balance is empty"]);
    assert!(doctor(&home).contains("`scripted-model` of custom is on cooldown until"));
    home.hermes(&["model", "use", "scripted-model"]).run().success();
    assert!(!doctor(&home).contains("is on cooldown until"));
    assert_eq!(ask().stdout, "First.\n");
    assert_eq!(first.turns().len(), 2);
}

#[test]
fn a_damaged_or_future_list_of_rests_keeps_no_model_away() {
    let (first, second) = (recovering(&Arc::default(), Reply::error(402, "your balance is empty")), second());
    let home = home(&first, &[&second]);
    let ask = || assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "Second.\n");
    ask();
    let mut file: Value = serde_json::from_str(&home.read("rests.json")).unwrap();
    for rest in file["rests"].as_object_mut().unwrap().values_mut() {
        // As if the clock had been a year ahead when it began.
        for moment in ["began", "until"] {
            rest[moment] = json!(rest[moment].as_u64().unwrap() + 365 * 24 * 3_600_000);
        }
    }
    for (damaged, asked) in [(file.to_string(), 2), ("{".to_owned(), 3)] {
        home.write("rests.json", damaged);
        ask();
        assert_eq!(first.turns().len(), asked);
        ask();
        assert_eq!(first.turns().len(), asked, "the new rest is not kept");
    }
}

#[test]
fn the_doctor_lists_each_fallback_and_a_mistake_is_refused() {
    let (first, second) = (second(), second());
    let home = home(&first, &[&second]);
    let mut entries = json!([{"provider": "groq"}]);
    let own: Value = serde_json::from_str(&home.read("config.yaml")).unwrap();
    entries.as_array_mut().unwrap().insert(0, own["fallback_providers"][0].clone());
    home.set("fallback_providers", entries);
    let output = home.hermes(&["doctor", "--no-request"]).run().success();
    let shown = &output.stdout;
    let usable = format!("model-2 of house-2 at {} (from config.yaml), key sk-s", second.url());
    for part in [
        usable.as_str(),
        "from fallback_providers[0].api_key, window of 64,000 tokens",
        "`fallback_providers[1]` uses groq",
    ] {
        assert!(shown.contains(part), "`{part}` is not shown\n{output}");
    }
    assert!(shown.contains("GROQ_API_KEY") && !shown.contains(OTHER_KEY), "{output}");
    home.set("fallback_providers", json!([{"provider": "nobody"}]));
    let refused = home.hermes(&["-z", "hi"]).run().refused().exits(CONFIGURATION);
    refused.says(&["a fallback model cannot be used", "`fallback_providers[0].provider` is `nobody`", "openrouter"]);
    assert!(first.requests().is_empty());
}
