//! The host's tool `delegate_task`: subagents in sessions of their own.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hermes_conversation::SessionId;
use hermes_store::{Delegation, DelegationState, ParentKind, Store};
use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Request, Server};
use serde_json::{Value, json};

const PROMPT: &str = "> ";
/// Shown when an answer to a question for approval counts.
const READY: &str = "[d]eny (enter)? ";
/// In the message to a subagent.
const MARK: &str = "[You are a subagent";
/// A message after which the model calls nothing.
const LATER: &str = "And now?";

/// The messages of a request.
fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[][..], Vec::as_slice)
}

/// The task of a subagent's request: the first line of its message; `None` for a request of the user's conversation.
fn task(body: &Value) -> Option<&str> {
    let said = messages(body).iter().find(|message| message["role"] == "user")?["content"].as_str()?;
    said.contains(MARK).then(|| said.lines().next().unwrap_or_default())
}

/// The results since the last message of the user.
fn results(body: &Value) -> Vec<&str> {
    let messages = messages(body);
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    let results = messages[since..].iter().filter(|message| message["role"] == "tool");
    results.filter_map(|message| message["content"].as_str()).collect()
}

/// A model that makes these calls one after the other in the user's conversation, and answers a subagent's requests with
/// `subagent`, which gets the task and the results so far.
fn model(
    calls: Vec<(&'static str, Value)>,
    subagent: impl Fn(&str, &[&str]) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::answering(move |body, number| {
        let results = results(body);
        // Results of subagents may follow the words of the user.
        let last = messages(body).last().and_then(|message| message["content"].as_str()).unwrap_or_default();
        let is_later = last.starts_with(LATER);
        match (task(body), calls.get(results.len()).filter(|_| !is_later)) {
            (Some(task), _) => subagent(task, &results),
            (None, Some((name, arguments))) => Reply::calls([Call::new(&format!("call_{number}"), name, arguments)]),
            (None, None) => Reply::text("Done."),
        }
    })
}

fn delegate(arguments: Value) -> (&'static str, Value) {
    ("delegate_task", arguments)
}

fn call(name: &str, arguments: Value) -> Reply {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let id = format!("child_{}", CALLS.fetch_add(1, Ordering::Relaxed));
    Reply::calls([Call::new(&id, name, &arguments)])
}

/// What the user's conversation got for its calls.
#[track_caller]
fn answers(server: &Server) -> Vec<String> {
    let turns = server.turns();
    let last = turns.iter().rev().find(|request| task(&request.body).is_none()).expect("the user said something");
    assert_valid_request(&last.body);
    results(&last.body).into_iter().map(str::to_owned).collect()
}

/// The results of the tasks of a call.
#[track_caller]
fn reported(answer: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    report["results"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

/// The requests of subagents.
fn of_subagents(server: &Server) -> Vec<Request> {
    server.turns().into_iter().filter(|request| task(&request.body).is_some()).collect()
}

/// The session of the user, and the tasks that it delegated.
fn delegated(home: &Home) -> (Store, SessionId, Vec<Delegation>) {
    let store = Store::open(&home.path()).unwrap();
    let parent = store.conversations(None).unwrap()[0].id.clone();
    let tasks = store.delegations(&parent).unwrap();
    (store, parent, tasks)
}

#[test]
fn ten_subagents_three_of_which_fail_and_one_is_stopped() {
    let tasks: Vec<Value> = (1..=10).map(|number| json!({"goal": format!("task {number}")})).collect();
    let server = model(vec![delegate(json!({"tasks": tasks}))], |task, _| match task {
        "task 2" | "task 5" | "task 8" => Reply::error(400, "no such luck"),
        "task 10" => Reply::text("This never ends.").hang_after(1),
        _ => Reply::text(format!("Result of {task}.")).usage(1_000, 10),
    });
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Delegate.\r");
    server.wait_for_faults(1);
    for number in (1..=9).filter(|number| ![2, 5, 8].contains(number)) {
        terminal.wait_for(&format!("subagent {number}: task {number} · done (1 request, 1,010 tokens"), 1);
    }
    for number in [2, 5, 8] {
        terminal.wait_for(&format!("subagent {number}: task {number} · failed: "), 1);
    }
    terminal.press("/stop 11\r");
    terminal.wait_for("no task 11 runs", 1);
    terminal.press("/stop 10\r");
    terminal.wait_for("subagent 10: task 10 · stopped: the user stopped it", 1);
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/usage\r");
    terminal.wait_for("(subagents)", 1);
    terminal.wait_for(PROMPT, 3);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());

    let results = reported(&answers(&server)[0]);
    for (number, result) in (1..).zip(&results) {
        assert_eq!(result["task"], number);
        let (status, text) = match number {
            2 | 5 | 8 => ("failed", result["error"].as_str().filter(|why| why.contains("no such luck"))),
            10 => ("stopped", result["error"].as_str().filter(|why| *why == "the user stopped it")),
            _ => ("done", result["summary"].as_str().filter(|text| **text == *format!("Result of task {number}."))),
        };
        assert_eq!(result["status"], status, "{result}");
        assert!(text.is_some(), "{result}");
    }
    assert_eq!(results.len(), 10);

    // Each is a delegate of the session, from the call; none is a conversation of its own.
    let (store, parent, tasks) = delegated(&home);
    assert_eq!(store.conversations(None).unwrap().len(), 1);
    assert_eq!(tasks.len(), 10);
    let calling = store.conversation(&parent).unwrap()[1].id;
    for (task, result) in tasks.iter().zip(&results) {
        let child = store.session(task.child.as_ref().unwrap()).unwrap();
        let of = child.parent.unwrap();
        assert_eq!((of.id, of.kind), (parent.clone(), ParentKind::Delegate));
        assert_eq!(child.source, "subagent");
        assert_eq!((task.call.clone(), result["session"].as_str()), (format!("{calling}.0"), Some(child.id.as_str())));
        assert_eq!(result["status"], task.state.as_str());
        assert!(task.ended_at >= Some(task.started_at));
    }

    // What they used counts once, for the session that delegated.
    let usage = |by: &str| -> Value {
        serde_json::from_str(&home.hermes(&["usage", "--by", by, "--json"]).run().success().stdout).unwrap()
    };
    let by_session = usage("session");
    assert_eq!(by_session["rows"].as_array().map(Vec::len), Some(1), "{by_session}");
    assert_eq!(by_session["rows"][0]["session"], parent.as_str());
    assert_eq!(by_session["rows"][0]["input"], by_session["total"]["input"]);
    let by_plugin = usage("plugin");
    let rows = by_plugin["rows"].as_array().unwrap();
    let of_subagents = rows.iter().find(|row| row["plugin"] == "(subagents)").unwrap();
    // The seventh was stopped, so nothing of it was reported.
    assert_eq!((&of_subagents["requests"], &of_subagents["input"]), (&json!(7), &json!(6_000)));
    let sum = rows.iter().filter_map(|row| row["requests"].as_u64()).sum::<u64>();
    assert_eq!(json!(sum), by_plugin["total"]["requests"]);
    assert_eq!(sum, 9);
}

#[test]
fn at_most_three_run_at_once_and_calls_of_one_reply_share_the_places() {
    let tasks =
        |from: u32| -> Value { (from..from + 4).map(|number| json!({"goal": format!("task {number}")})).collect() };
    let server = Server::answering(move |body, _| match task(body) {
        Some(task) => Reply::text(format!("Result of {task}, which takes a while."))
            .in_steps_of(4)
            .every(Duration::from_millis(40)),
        None if results(body).is_empty() => Reply::calls([
            Call::new("call_a", "delegate_task", &json!({"tasks": tasks(1)})),
            Call::new("call_b", "delegate_task", &json!({"tasks": tasks(5)})),
        ]),
        None => Reply::text("Done."),
    });
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "Delegate.", "--stream-json"]).run().success();
    let mut running = std::collections::BTreeSet::new();
    let mut most = 0;
    for line in output.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let task = &event["kind"]["task"];
        match task["state"].as_str() {
            Some("running") => drop(running.insert(task["number"].as_u64())),
            Some("done") => drop(running.remove(&task["number"].as_u64())),
            _ => {}
        }
        most = most.max(running.len());
    }
    assert_eq!((most, running.len()), (3, 0));
    let answers = answers(&server);
    assert_eq!(answers.iter().map(|answer| reported(answer).len()).collect::<Vec<_>>(), [4, 4]);
    assert!(delegated(&home).2.iter().all(|task| task.state == DelegationState::Done));
}

#[test]
fn a_subagent_has_its_own_prompt_the_chosen_tools_and_a_budget() {
    let wanted =
        json!({"goal": "read", "context": "It is about offices.", "toolsets": ["read_file"], "max_iterations": 2});
    let server = model(vec![delegate(wanted)], |_, results| match results.last() {
        Some(last) if last.contains("calls in that reply are not run") => Reply::text("Read twice."),
        _ => call("read_file", json!({"path": "notes.txt"})),
    });
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "The office closes at five.");
    home.write("SOUL.md", "You are Ada.");
    home.hermes(&["-z", "Delegate."]).run().success();
    let results = reported(&answers(&server)[0]);
    assert_eq!((&results[0]["status"], &results[0]["summary"]), (&json!("out-of-budget"), &json!("Read twice.")));
    let requests = of_subagents(&server);
    assert_eq!(requests.len(), 3);
    requests.iter().for_each(|request| assert_valid_request(&request.body));
    assert_eq!(requests[0].tool_names(), ["read_file"]);
    let said = requests[0].last_user_text().to_owned();
    assert!(said.starts_with("read\n\nContext:\nIt is about offices.\n\n[You are a subagent"), "{said}");
    let own = server.turns()[0].system_text();
    assert!(own.contains("You are Ada.") && requests[0].system_text().contains("You are Ada."));
    assert!(server.turns()[0].tool_names().contains(&"delegate_task"));
}

#[test]
fn without_a_choice_a_subagent_has_its_parents_tools_but_those_for_the_user_and_for_delegating() {
    let server = model(vec![delegate(json!({"goal": "nest"}))], |_, results| match results.last() {
        None => call("delegate_task", json!({"goal": "deeper"})),
        Some(refused) => Reply::text(*refused),
    });
    let home = Home::with(&server);
    home.hermes(&["-z", "Delegate."]).run().success();
    let (own, child) = (server.turns()[0].clone(), of_subagents(&server)[0].clone());
    let lacks = |name: &&str| !["clarify", "delegate_task", "memory", "skill_manage"].contains(name);
    assert_eq!(child.tool_names(), own.tool_names().into_iter().filter(lacks).collect::<Vec<_>>());
    let results = reported(&answers(&server)[0]);
    assert!(results[0]["summary"].as_str().unwrap().contains("there is no tool `delegate_task`"), "{results:?}");

    home.set("delegation.max_spawn_depth", json!(2));
    home.hermes(&["-z", "Delegate."]).run().success();
    let results = reported(&answers(&server)[0]);
    assert_eq!(results[0]["status"], "done");
    // The subagent of the subagent may not delegate either.
    assert!(results[0]["summary"].as_str().unwrap().contains("there is no tool `delegate_task`"), "{results:?}");
    let (store, _, tasks) = delegated(&home);
    assert_eq!(store.delegations(tasks[0].child.as_ref().unwrap()).unwrap().len(), 1);

    home.set("delegation.max_spawn_depth", json!(0));
    home.hermes(&["-z", "Delegate."]).run().success();
    assert!(answers(&server)[0].contains("there is no tool `delegate_task`"));
}

#[test]
fn a_long_result_is_cut_for_the_model_and_kept_whole() {
    let long: String = (0..4_000).map(|number| format!("finding {number}\n")).collect();
    let told = long.clone();
    let server = model(vec![delegate(json!({"goal": "find"}))], move |_, _| Reply::text(told.clone()));
    let home = Home::with(&server);
    home.set("delegation.max_summary_chars", json!(1_000));
    home.hermes(&["-z", "Delegate."]).run().success();
    let results = reported(&answers(&server)[0]);
    let summary = results[0]["summary"].as_str().unwrap();
    assert!(summary.starts_with("finding 0\n") && summary.contains("characters are left out here"), "{summary}");
    assert!(summary.chars().count() < 1_100 && summary.trim_end().ends_with("finding 3999"), "{summary}");
    let kept = fs::read_to_string(results[0]["full_summary"].as_str().unwrap()).unwrap();
    assert_eq!(kept.trim_end(), long.trim_end());
}

#[test]
fn a_file_that_a_subagent_changed_is_named_and_must_be_read_again() {
    let write = |text: &str| json!({"path": "notes.txt", "content": text});
    let calls = vec![
        ("read_file", json!({"path": "notes.txt"})),
        delegate(json!({"goal": "rewrite"})),
        ("write_file", write("mine\n")),
    ];
    let server = model(calls, move |_, results| match results.len() {
        0 => call("read_file", json!({"path": "notes.txt"})),
        1 => call("write_file", write("theirs\n")),
        2 => call("write_file", json!({"path": "new.txt", "content": "new\n"})),
        _ => Reply::text("Rewritten."),
    });
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "before\n");
    home.hermes(&["-z", "Delegate."]).run().success();
    let answers = answers(&server);
    let results = reported(&answers[1]);
    assert_eq!(results[0]["changed_files"], json!(["new.txt", "notes.txt"]), "{results:?}");
    assert_eq!(results[0]["read_again"], json!(["notes.txt"]));
    assert!(answers[2].contains("has not read what it contains now"), "{}", answers[2]);
    assert_eq!(fs::read_to_string(home.workspace().join("notes.txt")).unwrap(), "theirs\n");
}

#[test]
fn the_user_decides_what_a_subagent_may_do_and_nobody_means_no() {
    let server = model(vec![delegate(json!({"goal": "run"}))], |_, results| match results.last() {
        None => call("terminal", json!({"command": "echo ran"})),
        Some(result) => Reply::text(*result),
    });
    let home = Home::with(&server);
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Delegate.\r");
    terminal.wait_for(READY, 1);
    assert!(terminal.shown().contains("subagent 1 asks:"), "{}", terminal.shown());
    terminal.press("o");
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    let allowed = reported(&answers(&server)[0]);
    assert!(allowed[0]["summary"].as_str().unwrap().contains("ran"), "{allowed:?}");

    home.hermes(&["-z", "Delegate."]).run().success();
    let refused = reported(&answers(&server)[0]);
    assert!(refused[0]["summary"].as_str().unwrap().contains("needs the user's approval"), "{refused:?}");
}

/// Unattended sessions keep trying for minutes, and their subagents do not: the agent that delegated can do something else.
#[test]
fn a_subagent_whose_model_is_down_fails_after_three_tries() {
    let server = model(vec![delegate(json!({"goal": "count"}))], |_, _| Reply::error(500, "down for repairs"));
    let home = Home::with(&server);
    home.hermes(&["-z", "Delegate."]).run().success();
    let [result] = &reported(&answers(&server)[0])[..] else { panic!("one task") };
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result.to_string().contains("down for repairs"), "{result}");
    assert_eq!(of_subagents(&server).len(), 3);
}

#[test]
fn a_stopped_turn_stops_its_subagents() {
    let server = model(vec![delegate(json!({"tasks": ["one", "two", "three", "four"]}))], |_, _| {
        Reply::text("This never ends.").hang_after(1)
    });
    let home = Home::with(&server);
    let running = home.hermes(&["-z", "Delegate."]).spawn();
    server.wait_for_faults(3);
    running.interrupt();
    running.wait().exits(130);
    let states: Vec<DelegationState> = delegated(&home).2.iter().map(|task| task.state).collect();
    assert_eq!(states, [DelegationState::Stopped; 4]);
    home.hermes(&["--continue", "-z", LATER]).run();
    server.turns().iter().for_each(|request| assert_valid_request(&request.body));
}

#[test]
fn a_task_that_takes_too_long_is_stopped() {
    let server = model(vec![delegate(json!({"goal": "wait"}))], |_, _| Reply::text("Never.").hang_after(1));
    let home = Home::with(&server);
    home.set("delegation.child_timeout_seconds", json!(1));
    home.hermes(&["-z", "Delegate."]).run().success();
    let results = reported(&answers(&server)[0]);
    assert_eq!(results[0]["status"], "timed-out");
    assert!(results[0]["error"].as_str().unwrap().contains("delegation.child_timeout_seconds"), "{results:?}");
}

#[test]
fn nothing_of_a_killed_parent_goes_on() {
    let server = model(vec![delegate(json!({"tasks": ["one", "two"]}))], |task, results| match results.len() {
        0 => call(
            "terminal",
            json!({"command": format!("echo $$ > {task}.pid; sleep 600 & echo $! > {task}.child; wait")}),
        ),
        _ => Reply::text("Ran."),
    });
    let home = Home::with(&server);
    home.set("approvals.allow", json!(["terminal/process:bash"]));

    let running = home.hermes(&["-z", "Delegate."]).spawn();
    let files: Vec<_> = ["one.pid", "one.child", "two.pid", "two.child"].map(|name| home.workspace().join(name)).into();
    let begun = Instant::now();
    while !files.iter().all(|file| fs::read_to_string(file).is_ok_and(|pid| pid.ends_with('\n'))) {
        assert!(begun.elapsed() < Duration::from_secs(600), "the programs did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let workspace = home.workspace().canonicalize().unwrap();
    assert!(in_folder(&workspace) >= 4, "the programs are not found");
    running.kill();
    let begun = Instant::now();
    while in_folder(&workspace) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(600), "{} processes are left", in_folder(&workspace));
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = of_subagents(&server).len();
    home.hermes(&["--continue", "-z", LATER]).run();
    server.turns().iter().for_each(|request| assert_valid_request(&request.body));
    assert!(delegated(&home).2.iter().take(2).all(|task| task.state == DelegationState::Interrupted));
    assert!(of_subagents(&server).len() >= before);
}

/// The number of processes that work in a folder.
fn in_folder(folder: &std::path::Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|at| at == folder)).count()
}

#[test]
fn results_of_the_background_come_with_the_next_result_or_the_next_message() {
    let calls = vec![
        delegate(json!({"tasks": ["quick", "slow"], "background": true})),
        ("terminal", json!({"command": "until [ -e seen ]; do sleep 0.1; done"})),
        ("read_file", json!({"path": "seen"})),
    ];
    let server = model(calls, |task, results| match (task, results.len()) {
        ("quick", _) => Reply::text("Quickly found."),
        (_, 0) => call("terminal", json!({"command": "until [ -e go ]; do sleep 0.1; done"})),
        _ => Reply::text("Slowly found."),
    });
    let home = Home::with(&server);
    home.set("approvals.allow", json!(["terminal/process:bash"]));
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Delegate.\r");
    terminal.wait_for("subagent 1: quick · done", 1);
    home.write_workspace("seen", "yes");
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    let first = answers(&server);
    let started: Value = serde_json::from_str(&first[0]).unwrap();
    assert_eq!(started["started"], json!([1, 2]));
    assert_eq!(first[1].matches("Quickly found.").count(), 1, "{first:?}");
    assert!(first[1].contains("<subagent-results ") && !first[2].contains("subagent-results"), "{first:?}");
    terminal.press("/tasks\r");
    terminal.wait_for("subagent 2: slow · running: terminal", 1);
    home.write_workspace("go", "yes");
    let begun = Instant::now();
    while delegated(&home).2.iter().any(|task| !task.state.is_over()) {
        assert!(begun.elapsed() < Duration::from_secs(600), "the second task does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    terminal.press(&format!("{LATER}\r"));
    terminal.wait_for("Done.", 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    let said = server.last_turn().last_user_text().to_owned();
    assert!(
        said.starts_with(&format!("{LATER}\n\n<subagent-results mark=")) && said.contains("Slowly found."),
        "{said}"
    );
    let tasks = delegated(&home).2;
    assert!(tasks.iter().all(|task| task.delivered_in.is_some() && task.state == DelegationState::Done), "{tasks:?}");
}

#[test]
fn a_result_of_the_background_outlives_hermes_and_so_does_the_news_of_an_interruption() {
    let calls = vec![delegate(json!({"tasks": ["quick", "endless"], "background": true}))];
    let server = model(calls, |task, _| match task {
        "quick" => Reply::text("Quickly found."),
        _ => Reply::text("This never ends.").hang_after(1),
    });
    let home = Home::with(&server);
    let terminal = home.hermes(&[]).talking();
    let mut running = terminal.spawn();
    running.say("Delegate.");
    running.wait_for_stdout("Done.");
    server.wait_for_faults(1);
    let begun = Instant::now();
    while delegated(&home).2.iter().filter(|task| task.state == DelegationState::Done).count() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(600), "the first task does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    running.kill();
    let output = home.hermes(&["--continue", "-z", LATER]).run().success();
    output.says(&["a task of subagents in the background ended with Hermes"]);
    let said = server.last_turn().last_user_text().to_owned();
    assert!(said.contains("Quickly found.") && said.contains("Hermes ended while it ran"), "{said}");
    home.hermes(&["--continue", "-z", LATER]).run().success();
    assert_eq!(server.last_turn().last_user_text(), LATER, "a result came twice");
    let states: Vec<DelegationState> = delegated(&home).2.iter().map(|task| task.state).collect();
    assert_eq!(states, [DelegationState::Done, DelegationState::Interrupted]);
}
