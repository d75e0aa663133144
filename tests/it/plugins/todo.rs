//! The bundled plugin `todo`: the model's list of tasks, also after a compaction, in a resumed session and after a rewind.

use hermes_tests::oracle::{assert_extends, assert_valid_request};
use hermes_tests::wire::last_user_text;
use hermes_tests::{Call, Home, Reply, Request, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::fixtures::planner::{chat_with, context, long_turn};

const KEPT: &str = "[Kept from a result of the tool `todo`.";

/// A model that calls `todo` with what the user says behind this word, and else says little.
fn model() -> Server {
    Server::answering(|body, number| {
        if is_auxiliary(body) {
            return Reply::text("The user has a fence painted.");
        }
        let is_new = body["messages"].as_array().is_some_and(|messages| messages.last().unwrap()["role"] == "user");
        let arguments = last_user_text(body).lines().next().and_then(|line| line.strip_prefix("todo "));
        match arguments.filter(|_| is_new) {
            Some(arguments) => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                Reply::calls([Call::new(&format!("call_{number}"), "todo", &arguments)])
            }
            None => Reply::text(format!("Answer {number}.")),
        }
    })
}

fn todo(arguments: Value) -> String {
    format!("todo {arguments}")
}

/// The answer of the newest call.
#[track_caller]
fn answer(server: &Server) -> Value {
    let request = server.last_turn();
    let results = request.trailing_results();
    assert_eq!(results.len(), 1, "{results:?}");
    serde_json::from_str(results[0].1).unwrap()
}

/// The tasks of an answer, as `id content status`.
fn tasks(answer: &Value) -> Vec<String> {
    let task = |task: &Value| format!("{} {} {}", task["id"], task["content"], task["status"]).replace('"', "");
    answer["todos"].as_array().unwrap().iter().map(task).collect()
}

fn text(request: &Request) -> String {
    request.conversation().into_iter().map(|message| message.text + "\n").collect()
}

const PLAN: [(&str, &str, &str); 4] = [
    ("a", "sand it", "completed"),
    ("b", "paint it", "in_progress"),
    ("c", "let it dry", "pending"),
    ("d", "ask Bo", "cancelled"),
];

fn plan() -> String {
    let todo = |(id, content, status)| json!({ "id": id, "content": content, "status": status });
    self::todo(json!({ "todos": PLAN.map(todo) }))
}

#[test]
fn the_list_is_written_read_and_merged_as_users_of_the_peer_know_it() {
    let server = model();
    let home = Home::with(&server);
    home.hermes(&["-z", &plan()]).run().success();
    let summary = json!({ "total": 4, "pending": 1, "in_progress": 1, "completed": 1, "cancelled": 1 });
    assert_eq!(answer(&server)["summary"], summary);
    let merge =
        json!({ "merge": true, "todos": [{ "id": "b", "status": "completed" }, { "id": "e", "content": "clean up" }] });
    for (arguments, expected) in [
        (
            json!({}),
            vec!["a sand it completed", "b paint it in_progress", "c let it dry pending", "d ask Bo cancelled"],
        ),
        (
            merge,
            vec![
                "a sand it completed",
                "b paint it completed",
                "c let it dry pending",
                "d ask Bo cancelled",
                "e clean up pending",
            ],
        ),
        (json!({ "todos": "[{\"content\": \"start over\"}]" }), vec!["1 start over pending"]),
        (json!({ "todos": [] }), vec![]),
    ] {
        home.hermes(&["-z", &todo(arguments), "--continue"]).run().success();
        assert_eq!(tasks(&answer(&server)), expected);
    }
    server.turns().iter().for_each(|request| assert_valid_request(&request.body));
}

#[test]
fn each_session_and_each_branch_of_it_has_its_own_list() {
    let server = model();
    let home = Home::with(&server);
    home.hermes(&["-z", &plan()]).run().success();
    home.hermes(&["-z", &todo(json!({}))]).run().success();
    assert_eq!(tasks(&answer(&server)), [""; 0], "a new session begins without tasks");
    let more = todo(json!({ "merge": true, "todos": [{ "content": "only here" }] }));
    home.hermes(&["-z", &more, "--continue"]).run().success();
    home.hermes(&["-z", &todo(json!({ "todos": [] })), "--continue", "--branch"]).run().success();
    assert_eq!(tasks(&answer(&server)), [""; 0]);
    let branched_from = home.sessions_json().into_iter().find(|session| !session["parent"].is_null());
    let parent = branched_from.unwrap()["parent"]["id"].as_str().unwrap().to_owned();
    home.hermes(&["-z", &todo(json!({})), "--resume", &parent]).run().success();
    assert_eq!(tasks(&answer(&server)), ["1 only here pending"]);
}

#[test]
fn unfinished_tasks_stay_in_view_after_a_compaction_by_each_engine() {
    for engine in ["compressor", "lossless"] {
        let server = model();
        let home = Home::with(&server);
        home.set("context.engine", json!(engine));
        home.set("model.context_length", json!(16_000));
        let mut lines = vec![plan()];
        lines.extend((0..4).map(long_turn));
        lines.extend(["/compress".to_owned(), "Go on.".to_owned(), "And on.".to_owned()]);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let output = chat_with(&home, &[], &lines).success();
        assert_ne!(context(&home)["views"], json!([]), "{engine} folded nothing\n{output}");
        let turns = server.turns();
        let [.., first, second] = turns.as_slice() else { panic!("{output}") };
        let shown = text(first);
        assert!(
            shown.contains(&format!("{KEPT} A later result of it counts more.]\nUnfinished tasks:\n- [>] b. paint it (in_progress)\n- [ ] c. let it dry (pending)\n")),
            "{engine}: {shown}"
        );
        let (_, kept) = shown.split_once(KEPT).unwrap();
        assert!(!kept.contains("sand it") && !kept.contains("ask Bo"), "{engine}: {kept}");
        assert_eq!(shown.matches(KEPT).count(), 1);
        assert_extends(&first.body, &second.body);

        // Another process sends the same bytes, and the tool still has the whole list.
        let finish = json!({ "merge": true, "todos": [{ "id": "b", "status": "completed" }, { "id": "c", "status": "completed" }] });
        home.hermes(&["-z", &todo(finish), "--continue"]).run().success();
        assert_extends(&second.body, &server.last_turn().body);
        let expected = ["a sand it completed", "b paint it completed", "c let it dry completed", "d ask Bo cancelled"];
        assert_eq!(tasks(&answer(&server)), expected);

        // Nothing is left to be reminded of.
        let mut lines: Vec<String> = (4..8).map(long_turn).collect();
        lines.extend(["/compress".to_owned(), "What is left?".to_owned()]);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        chat_with(&home, &["--continue"], &lines).success();
        assert!(!text(&server.last_turn()).contains(KEPT), "{engine}: {}", text(&server.last_turn()));
        server.turns().iter().for_each(|request| assert_valid_request(&request.body));
    }
}
