//! When a view is replaced (late, deferred, or by the host's own rule), and what engines and memory providers insert.

use std::time::Duration;

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::wire::{SentMessage, last_user_text};
use hermes_tests::{Call, Home, Reply, Request, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::fixtures::journal::{long_text, texts};
use crate::fixtures::planner::{self, chat, chat_with, context, is_compacted, long_turn, outcomes};

fn assert_all_valid(turns: &[Request]) {
    turns.iter().for_each(|request| assert_valid_request(&request.body));
}

#[test]
fn a_session_above_85_percent_is_folded_before_a_turn_even_if_the_engine_declines() {
    // The window is measured by the provider's count.
    let server = Server::answering(|body, number| {
        let bytes = body.to_string().len() as u64;
        Reply::text(format!("Answer {number}.")).usage(bytes / 4, 3)
    });
    // The engine is called when the window is nearly full, and has nothing to propose.
    let home = planner::home(&server, json!({"timing": "never", "keep_turns": 10_000}));
    home.set("model.context_length", json!(100_000));
    let (heavy, full) = (85_000, 100_000 - 8_192);
    let mut fullest = 0;
    for number in 0..60 {
        let text = (0..10).map(|part| long_text("turn", number * 10 + part)).collect::<String>();
        let arguments = ["-z", "Read this:", "--continue"];
        let output = home.hermes(if number == 0 { &arguments[..2] } else { &arguments }).stdin(&text).run().success();
        let compacted = planner::lines(&output, "compacted by Hermes itself");
        let now = context(&home);
        let counted = now["tokens_counted"].as_u64().unwrap();
        if compacted.is_empty() {
            assert_eq!(now["views"], json!([]));
            fullest = counted;
            continue;
        }
        assert!(fullest <= heavy, "turn {number}: {fullest}");
        assert_eq!(compacted.len(), 1, "{output}");
        // The window was not yet so full that a compaction was required.
        let before = now["views"][0]["before"].as_u64().unwrap();
        let fixed = now["sums"]["tools"].as_u64().unwrap() + now["sums"]["system_prompt"].as_u64().unwrap();
        let scale = counted as f64 / now["tokens"].as_u64().unwrap() as f64;
        let then = (before + fixed) as f64 * scale;
        assert!(then > f64::from(heavy as u32) * 0.97 && then < f64::from(full) * 1.01, "{then}");
        assert!(counted <= 62_000, "{counted}");
        assert_eq!(texts(&home.messages(), "user").len(), number + 1);
        assert_all_valid(&server.turns());
        return;
    }
    panic!("nothing was ever folded: {fullest}");
}

/// Each question calls a tool before it is answered, so a turn has two requests. The answer to `three` is slow.
fn caller(body: &Value, number: usize) -> Reply {
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let asked = last_user_text(body);
    if last["role"] != "tool" {
        return Reply::calls([Call::new(&format!("call_{number}"), "read_file", &json!({"path": "notes.txt"}))]);
    }
    let answer = Reply::text(format!("Answer {number}."));
    if asked.starts_with("three") { answer.in_steps_of(1).every(Duration::from_millis(300)) } else { answer }
}

#[test]
fn a_late_plan_delays_no_turn_and_is_adopted_with_newer_messages() {
    let server = Server::answering(caller);
    // Far longer than a turn waits, and shorter than the answer to `three`.
    let home = planner::home(&server, json!({"timing": "boundary", "fold_turns": 1, "slow_ms": 1_500, "slow": 1}));
    home.write_workspace("notes.txt", "The harbour office closes at five.\n");
    let long: Vec<String> = (0..6).map(long_turn).collect();
    let output = chat(&home, &[&long.join(" "), "two", "three", "four"]).success();
    let turns = server.turns();
    assert_eq!(turns.len(), 8);
    assert_all_valid(&turns);
    // The plan is requested at the beginning of the second turn. Four requests leave without it, unchanged.
    for pair in turns[..6].windows(2) {
        assert_extends(&pair[0].body, &pair[1].body);
    }
    assert_eq!(planner::lines(&output, "compacted by `planner`").len(), 1, "{output}");
    assert!(is_compacted(&turns[6]), "{output}");
    // The first turn was folded: question, call, result and answer. Everything since then follows verbatim.
    let (before, after) = (turns[5].conversation(), turns[6].conversation());
    let texts_of = |messages: &[SentMessage]| messages.iter().map(|message| message.text.clone()).collect::<Vec<_>>();
    let kept = texts_of(&before[4..]);
    let shown = texts_of(&after);
    let begins = shown.iter().position(|text| *text == kept[0]);
    let begins = begins.unwrap_or_else(|| panic!("{kept:?}\nis not in\n{shown:?}\n{:?}\n{output}", outcomes(&home)));
    assert_eq!(shown[begins..begins + kept.len()], kept);
    assert!(shown[..begins].iter().all(|text| !text.contains("On turn 0")), "{shown:?}");
    assert_eq!(shown.last().unwrap(), "four");
    assert_eq!(outcomes(&home)[0], "adopted");
}

#[test]
fn a_plan_that_does_not_pay_waits_until_the_cache_is_cold() {
    let server = planner::server();
    // Only the first turn is folded, so everything after it would be written again.
    let home = planner::home(&server, json!({"timing": "boundary", "fold_turns": 1}));
    let say = |text: &str, moment: &str, more: &[&str]| {
        home.hermes(&[&["-z", text], more].concat()).at(moment).run().success()
    };
    say(&long_turn(0), "2026-11-22T10:00:00Z", &[]);
    for minute in 1..5 {
        say(&long_turn(minute), &format!("2026-11-22T10:0{minute}:00Z"), &["--continue"]);
    }
    let warm = outcomes(&home);
    assert_eq!(warm, ["deferred"; 4]);
    let turns = server.turns();
    turns.windows(2).for_each(|pair| assert_extends(&pair[0].body, &pair[1].body));

    let cold = say("And now?", "2026-11-22T10:30:00Z", &["--continue"]);
    assert_eq!(planner::lines(&cold, "compacted by `planner`").len(), 1, "{cold}");
    assert!(is_compacted(&server.last_turn()));
    assert_all_valid(&server.turns());
}

#[test]
fn the_memory_context_reaches_the_engine_before_it_folds() {
    let server = planner::server();
    let home = planner::home(&server, json!({}));
    home.install_guest("keeper", "keeper", json!({"keep": "the berth is number nine"}));
    home.set("memory.provider", json!("keeper"));
    let [one, two, three] = [0, 1, 2].map(long_turn);
    chat(&home, &[&one, &two, &three, "/compress", "go on"]).success();
    let log = home.messages();
    // The engine is asked about everything that may be folded: the visible messages except the last turn.
    let expected = format!("the berth is number nine (of {} to {})", log[0]["id"], log[3]["id"]);
    assert_eq!(home.read("data/planner/documents/prepared.txt"), expected);
    let sent = server.last_turn();
    assert!(sent.conversation().iter().any(|message| message.text.contains(&format!("kept: {expected}"))), "{sent:?}");
}

#[test]
fn preparation_receives_the_memory_context() {
    let server = planner::server();
    let home = planner::home(&server, json!({"prepare": true}));
    home.install_guest("keeper", "keeper", json!({"keep": "the tide turns at six"}));
    home.set("memory.provider", json!("keeper"));
    // One-shot processes let background work finish.
    home.hermes(&["-z", &long_turn(0)]).run().success();
    home.hermes(&["-z", &long_turn(1), "--continue"]).run().success();
    let prepared = home.read("data/planner/documents/prepared.txt");
    assert!(prepared.starts_with("the tide turns at six (of "), "{prepared}");
}

const MARKED: &str = "The code of berth nine is 4711-äöü.";

/// A conversation whose first message contains a marked line and is folded.
fn folded_home(server: &Server, more: Value) -> Home {
    let mut config = json!({"marker": "The code of berth"});
    for (name, value) in more.as_object().unwrap() {
        config[name] = value.clone();
    }
    let home = planner::home(server, config);
    home.write_workspace("notes.txt", "please recall the code\n");
    home.hermes(&["-z", "Note this:"]).stdin(&format!("{}\n{MARKED}\n{}", long_turn(0), long_turn(1))).run().success();
    let output = chat_with(&home, &["--continue"], &[&long_turn(2), "/compress"]).success();
    assert_eq!(planner::lines(&output, "compacted by `planner`").len(), 1, "{output}");
    home
}

/// Reads the notes when asked to look.
fn reader(body: &Value, number: usize) -> Reply {
    if is_auxiliary(body) {
        return Reply::text("Nothing.");
    }
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let looks = last["role"] == "user" && last["content"].as_str().unwrap_or_default().starts_with("Look");
    if looks {
        Reply::calls([Call::new(&format!("call_{number}"), "read_file", &json!({"path": "notes.txt"}))])
    } else {
        Reply::text(format!("Answer {number}."))
    }
}

#[test]
fn passages_from_assist_are_appended_verbatim_and_stay() {
    for question in ["Do you recall it?", "Look into the notes."] {
        let server = Server::answering(reader);
        let home = folded_home(&server, json!({}));
        let begun = server.turns().len();
        chat_with(&home, &["--continue"], &[question, "Recall nothing more.", "Thanks."]).success();
        let turns = server.turns();
        assert_all_valid(&turns);
        let holds = |request: &Request| {
            request.conversation().iter().filter(|message| message.text.contains("<earlier-context ")).count()
        };
        let with: Vec<usize> = turns[begun..].iter().map(holds).collect();
        // After a tool result, the passage comes with the second request of the turn.
        let expected: &[usize] = if question.starts_with("Look") { &[0, 1, 1, 1] } else { &[1, 1, 1] };
        assert_eq!(with, expected, "{question}");
        turns[begun..].windows(2).for_each(|pair| assert_extends(&pair[0].body, &pair[1].body));

        let messages = turns.last().unwrap().conversation();
        let message = messages.iter().find(|message| message.text.contains("<earlier-context ")).unwrap();
        assert_eq!(message.role, if question.starts_with("Look") { "tool" } else { "user" });
        assert!(message.text.contains(&format!("the user:\n{MARKED}\n")), "{}", message.text);
        assert!(!message.text.contains("On turn 0"), "more than the line was brought back: {}", message.text);
        // The log stores the message and the inserted passage separately, once.
        let log = home.messages();
        let sent: Vec<&Value> = log
            .iter()
            .filter(|message| message["sent"].as_str().is_some_and(|sent| sent.contains("<earlier-context ")))
            .collect();
        assert_eq!(sent.len(), 1);
        assert!(!sent[0]["content"].as_str().unwrap().contains("earlier-context"));
    }
}

#[test]
fn a_late_or_failing_assist_does_no_harm() {
    for (wrong, expected) in
        [(json!({"assist_ms": 900}), None), (json!({"assist_fails": true}), Some("no passages today"))]
    {
        let server = Server::answering(reader);
        let home = folded_home(&server, wrong);
        let output =
            chat_with(&home, &["--continue"], &["Do you recall it?", "Look into the notes.", "Thanks."]).success();
        let turns = server.turns();
        assert_all_valid(&turns);
        let shown: String = turns.last().unwrap().conversation().into_iter().map(|message| message.text).collect();
        assert!(!shown.contains("<earlier-context "), "{output}");
        assert_eq!(
            planner::lines(&output, "no earlier passages were added").len(),
            usize::from(expected.is_some()),
            "{output}"
        );
        if let Some(expected) = expected {
            output.says(&["planner", expected]);
        }
        // This does not count as a failure of its plans.
        assert_eq!(context(&home)["faults"], json!([]));
        assert_eq!(texts(&home.messages(), "user").last(), Some(&"Thanks."));
    }
}
