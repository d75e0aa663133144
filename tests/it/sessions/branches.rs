//! A branch begins with its parent's bytes, so they share the provider's cache.

use hermes_tests::{Home, Request, Server};
use serde_json::{Value, json};

use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

/// A session of one turn; returns its id.
fn begun(server: &Server) -> (Home, String) {
    let home = workday::home(Home::with(server));
    workday::turn(&home, 0, &[]).run().success();
    let id = home.newest_session();
    (home, id)
}

/// Creates an empty branch; returns its id.
fn branch(home: &Home, of: &str, minute: usize) -> String {
    let before = home.sessions_json();
    home.hermes(&["--resume", of, "--branch"]).stdin("/exit\n").at(&workday::moment(minute)).run().success();
    let is_new = |session: &Value| before.iter().all(|known| known["id"] != session["id"]);
    let new: Vec<Value> = home.sessions_json().into_iter().filter(is_new).collect();
    assert_eq!(new.len(), 1, "one branch: {new:?}");
    new[0]["id"].as_str().unwrap().to_owned()
}

/// A turn in a session; returns its first request.
fn go_on(home: &Home, server: &Server, id: &str, number: usize, more: &[&str]) -> Request {
    let sent = server.turns().len();
    let text = format!("Turn {number}: go on.");
    let arguments = [&["-z", &text, "--resume", id], more].concat();
    home.hermes(&arguments).at(&workday::moment(number)).run().success();
    server.turns().swap_remove(sent)
}

/// The messages without their closing bracket.
fn open(request: &Request) -> &str {
    request.raw_member("messages").trim_end_matches(']')
}

#[test]
fn a_branch_with_another_model_changes_only_the_last_line() {
    let server = Server::answering(workday::partner);
    let (home, parent) = begun(&server);
    // Changed inputs affect only sessions that ask for them.
    workday::add_skill(&home);
    let branched = go_on(&home, &server, &parent, 2, &["--branch", "-m", "other-model"]);
    let turns = server.turns();
    let prompts = [&turns[0], &branched].map(Request::system_text);
    let [(kept, first), (same, second)] = [0, 1].map(|at| prompts[at].rsplit_once('\n').unwrap());
    assert_eq!(kept, same);
    assert!(first.contains("scripted-model") && !first.contains("other-model"), "{first}");
    assert!(second.contains("other-model") && !second.contains("scripted-model"), "{second}");
    assert_eq!(turns[0].raw_member("tools"), branched.raw_member("tools"));
    // Nothing else changed: the parent's messages follow as they were sent.
    assert_eq!(branched.messages()[1..4], turns[1].messages()[1..4]);
    assert_eq!(Ledger::of(&home).causes(), [Some("model-change"), None]);
    // The parent is unchanged.
    let resumed = go_on(&home, &server, &parent, 3, &[]);
    assert_eq!(resumed.system_text(), prompts[0]);
}

#[test]
fn a_branchs_first_request_reports_the_cause_of_its_break() {
    type Change = (&'static str, fn(&Home, &str));
    let changes: [Change; 2] = [
        ("prompt-rebuilt", |home, branch| {
            workday::add_skill(home);
            home.hermes(&["prompt", "--rebuild", branch]).run().success();
        }),
        ("ephemeral-layer", |home, _| home.set("prompt.ephemeral_system_prompt", json!("Answer in one line today."))),
    ];
    for (cause, change) in changes {
        let server = Server::answering(workday::partner);
        let (home, parent) = begun(&server);
        let branch = branch(&home, &parent, 1);
        change(&home, &branch);
        let first = go_on(&home, &server, &branch, 2, &[]);
        let ledger = Ledger::of_session(&home, &branch);
        assert_eq!(ledger.causes(), [Some(cause), None], "{:?}", ledger.requests);
        assert!(ledger.requests[0]["culprit"].is_string(), "{cause}: {}", ledger.requests[0]);
        assert!(!open(&first).starts_with(open(&server.turns()[1])), "{cause}: nothing moved");
    }
}

#[test]
fn a_branch_begins_with_its_parents_prefix_even_if_the_parent_continued() {
    let server = Server::answering(workday::partner);
    let (home, parent) = begun(&server);
    let child = branch(&home, &parent, 1);
    let grandchild = branch(&home, &child, 2);
    go_on(&home, &server, &parent, 3, &[]);
    go_on(&home, &server, &parent, 5, &[]);
    let shared = server.turns()[1].clone();
    let sent = Ledger::of_session(&home, &parent).requests[1]["bytes"].clone();
    // First the grandchild, whose parent has sent no request of its own; then the child, after its own child has continued.
    for (id, number) in [(&grandchild, 6), (&child, 8)] {
        let first = go_on(&home, &server, id, number, &[]);
        assert_eq!(first.raw_member("tools"), shared.raw_member("tools"));
        assert!(open(&first).starts_with(open(&shared)), "{}", first.raw_member("messages"));
        let ledger = Ledger::of_session(&home, id);
        assert_eq!(ledger.causes(), [None, None], "{:?}", ledger.requests);
        assert_eq!(ledger.requests[0]["prefix_bytes"], sent, "{}", ledger.requests[0]);
    }
    // And a branch after requests of its parent's own.
    let late = branch(&home, &child, 9);
    let last = server.turns().pop().unwrap();
    go_on(&home, &server, &child, 11, &[]);
    let first = go_on(&home, &server, &late, 12, &[]);
    assert!(open(&first).starts_with(open(&last)), "{}", first.raw_member("messages"));
    assert_eq!(Ledger::of_session(&home, &late).causes(), [None, None]);
}

#[test]
fn a_list_counts_the_messages_that_a_branch_has_from_its_parent() {
    let server = Server::answering(|_, _| hermes_tests::Reply::text("Of course."));
    let home = Home::with(&server);
    home.hermes(&["-z", "green tea"]).run().success();
    let parent = home.newest_session();
    let branch = branch(&home, &parent, 1);
    let row = |id: &str| -> Value { home.sessions_json().into_iter().find(|session| session["id"] == id).unwrap() };
    let counts = |id: &str| (row(id)["message_count"].clone(), row(id)["conversation_messages"].clone());
    assert_eq!((counts(&parent), counts(&branch)), ((json!(2), json!(2)), (json!(0), json!(2))));
    assert_eq!(row(&branch)["preview"], "green tea");
    let listed = home.hermes(&["sessions", "list"]).run().success().stdout;
    let line = listed.lines().find(|line| line.starts_with(&branch)).unwrap();
    assert!(line.contains("2 messages") && line.ends_with(&format!("from {parent} · green tea")), "{line}");
    go_on(&home, &server, &branch, 2, &[]);
    assert_eq!(counts(&branch), (json!(2), json!(4)));
    // What the list to resume shows, without a terminal.
    let shown = home.hermes(&[]).stdin("/resume\n/exit\n").run().success().stdout;
    let line = shown.lines().find(|line| line.starts_with(&branch)).unwrap();
    assert!(line.contains("4 messages"), "{line}");
}
