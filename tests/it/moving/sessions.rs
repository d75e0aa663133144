//! Sessions of the peer: imported once, found, and continued.

use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::peer::{Peer, calls, summary};

const ZEBRA: &str = "20260921_101010_aaaaaa";

fn homes() -> (Server, Home, Peer) {
    let server = Server::answering(|_, _| Reply::text("As you wish."));
    let home = Home::with(&server);
    let peer = Peer::at(&home.user().join(".hermes"));
    peer.session(
        ZEBRA,
        &[("title", "'Zebra file'"), ("cwd", "'/tmp'"), ("input_tokens", "1200"), ("actual_cost_usd", "0.25")],
    );
    peer.says(ZEBRA, &[">Please read zebra.txt"]);
    let made =
        calls(&[("c1", "read_file", json!({"path": "zebra.txt"})), ("c2", "terminal", json!({"command": "ls"}))]);
    peer.row(ZEBRA, "assistant", "", &[("tool_calls", &made), ("reasoning", "I should look.")]);
    peer.row(ZEBRA, "tool", "stripes everywhere", &[("tool_call_id", "c1"), ("tool_name", "read_file")]);
    peer.row(ZEBRA, "tool", "zebra.txt", &[("tool_call_id", "c2"), ("tool_name", "terminal")]);
    peer.says(ZEBRA, &["The zebra has stripes."]);
    (server, home, peer)
}

fn report(home: &Home, arguments: &[&str]) -> Value {
    let output = home.hermes(&[&["import", "peer", "--json"], arguments].concat()).run().success();
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{output}"))
}

fn lines(report: &Value, kind: &str) -> String {
    let lines = report["parts"].as_array().unwrap().iter().flat_map(|part| part[kind].as_array().unwrap());
    lines.map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn sessions_are_listed_searched_and_continued_and_the_peer_is_unchanged() {
    let (server, home, peer) = homes();
    let before = peer.files();
    // The peer still has the database open, with its newest messages in the log beside it.
    assert!(before.keys().any(|file| file.ends_with("state.db-wal")));
    let output = home.hermes(&["import", "peer", "--yes"]).run().success();
    assert!(output.stdout.contains("1 session with 5 messages"), "{output}");
    assert!(before == peer.files(), "the peer's home was written");

    let session = home.session_json("Zebra file");
    assert_eq!(session["session"]["id"], format!("peer_{ZEBRA}"));
    assert_eq!(
        (&session["session"]["totals"]["input"], &session["session"]["totals"]["cost"]),
        (&json!(1200), &json!(0.25))
    );
    assert_eq!(session["messages"][1]["reasoning"], "I should look.");
    assert_eq!(session["messages"][0]["created_at"], 1_790_000_000_000_u64);
    let found = home.hermes(&["sessions", "search", "stripes", "everywhere"]).run().success();
    assert!(found.stdout.contains(ZEBRA), "{found}");

    home.hermes(&["--resume", "peer_20260921", "-z", "and the tail?"]).run().success();
    let request = server.last_turn();
    assert_eq!(request.body["model"], "scripted-model");
    let sent = request.messages();
    let roles: Vec<&str> = sent.iter().skip(1).map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user"]);
    assert_eq!(sent[2]["tool_calls"][0]["function"]["arguments"], r#"{"path":"zebra.txt"}"#);
    assert_eq!((&sent[3]["content"], &sent[4]["tool_call_id"]), (&json!("stripes everywhere"), &json!("c2")));
    // The folder of the peer's database is not used without agreement.
    assert_ne!(home.session_json("Zebra file")["session"]["workspace"], "/tmp");
}

#[test]
fn a_dry_run_and_a_run_without_a_person_write_nothing() {
    let (_server, home, peer) = homes();
    let output = home.hermes(&["import", "peer", "--dry-run"]).run().success();
    assert!(output.stdout.contains("would take 1 session with 5 messages"), "{output}");
    assert!(!home.state_db().exists());
    home.hermes(&["import", "peer"]).run().exits(2).says(&["standard input is not a terminal", "--yes"]);
    assert!(!home.state_db().exists());
    drop(peer);
}

#[test]
fn a_question_is_asked_once_on_a_terminal_of_sixty_columns() {
    let (_server, home, _peer) = homes();
    let answered = |answer: &str| {
        let mut terminal = home.hermes(&["import", "peer"]).at_terminal_of(60, 40);
        terminal.wait_for("[y/N]", 1);
        terminal.press(answer);
        (terminal.wait().success(), terminal.shown())
    };
    let (done, shown) = answered("n\n");
    assert!(!done && shown.contains("nothing was imported"), "{shown}");
    assert!(!home.state_db().exists());
    let (done, shown) = answered("y\n");
    assert!(done && shown.contains("taken"), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 60), "{shown}");
    assert_eq!(home.sessions_json().len(), 1);
}

#[test]
fn a_second_run_changes_nothing_and_takes_what_has_grown() {
    let (server, home, peer) = homes();
    report(&home, &["--yes"]);
    let before = home.snapshot();
    let again = report(&home, &["--yes"]);
    assert_eq!(
        (lines(&again, "taken").as_str(), lines(&again, "known").as_str()),
        ("", "1 session imported before, without news")
    );
    let untouched =
        |name: &str| home.snapshot().get(std::path::Path::new(name)) == before.get(std::path::Path::new(name));
    assert!(untouched("config.yaml"));

    peer.says(ZEBRA, &[">and how many?", "Forty."]);
    peer.session("20260930_101010_bbbbbb", &[("title", "'Zebra file #2'")]);
    peer.says("20260930_101010_bbbbbb", &[">new", "yes"]);
    let grown = report(&home, &["--dry-run"]);
    assert_eq!(lines(&grown, "taken"), lines(&report(&home, &["--yes"]), "taken"));
    assert_eq!(
        lines(&grown, "taken"),
        format!("1 session with 2 messages\n2 new messages of session peer_{ZEBRA}, which continued")
    );
    assert_eq!(home.session_json(&format!("peer_{ZEBRA}"))["messages"].as_array().unwrap().len(), 7);

    // Its sums follow, also without a new message.
    let sums = || home.session_json(&format!("peer_{ZEBRA}"))["session"]["totals"].clone();
    let set = |columns: &str| peer.database.execute_batch(&format!("UPDATE sessions SET {columns}")).unwrap();
    set("input_tokens = 2000, actual_cost_usd = 0.5");
    let summed = report(&home, &["--yes"]);
    assert_eq!(lines(&summed, "taken"), "the newer sums of tokens and costs of 2 sessions");
    assert_eq!((sums()["input"].as_u64(), sums()["cost"].as_f64()), (Some(2000), Some(0.5)));
    assert_eq!(lines(&report(&home, &["--yes"]), "taken"), "");

    // A session that went on in both programs stays as it is here.
    home.hermes(&["--resume", &format!("peer_{ZEBRA}"), "-z", "here"]).run().success();
    assert!(server.last_turn().body["messages"].to_string().contains("Forty."));
    peer.says(ZEBRA, &[">there", "And there."]);
    let apart = report(&home, &["--yes"]);
    assert!(lines(&apart, "left").contains("it went on here and changed there"), "{apart}");
    assert!(sums()["input"].as_u64().unwrap() > 2000, "{}", sums());
    assert_eq!(home.session_json(&format!("peer_{ZEBRA}"))["messages"].as_array().unwrap().len(), 9);
}

#[test]
fn compacted_sessions_keep_all_messages_and_continue_with_the_summary() {
    let (server, home, peer) = homes();
    let (in_place, parent, child) = ("20260922_101010_bbbbbb", "20260923_101010_cccccc", "20260924_101010_dddddd");
    let said = [">first quokka", "one", ">second quokka", "two", ">third quokka", "three"];
    peer.session(in_place, &[("title", "'In place'")]);
    peer.says(in_place, &said);
    let summary = summary("Quokkas were counted.");
    let shortened = [">first quokka", "one", &format!(">{summary}"), ">third quokka", "three", ">what next?", "four"];
    peer.compacts(in_place, &shortened);
    peer.session(parent, &[("title", "'Rotated'"), ("end_reason", "'compression'"), ("ended_at", "1790000100.0")]);
    peer.says(parent, &said);
    peer.session(child, &[("title", "'Rotated #2'"), ("parent_session_id", &format!("'{parent}'"))]);
    peer.says(child, &shortened);

    let report = report(&home, &["--yes"]);
    assert!(lines(&report, "changed").contains("2 sessions continue with the summary of the peer"), "{report}");
    assert!(lines(&report, "changed").contains("1 session joined from the parts"), "{report}");
    assert_eq!(home.sessions_json().len(), 3);
    for (id, title) in [(in_place, "In place"), (parent, "Rotated #2")] {
        let session = home.session_json(&format!("peer_{id}"));
        assert_eq!(
            (&session["session"]["title"], session["messages"].as_array().unwrap().len()),
            (&json!(title), 8),
            "{session}"
        );
        home.hermes(&["--resume", &format!("peer_{id}"), "-z", "go on"]).run().success();
        let sent = server.last_turn().body["messages"].to_string();
        assert!(sent.contains("Quokkas were counted.") && sent.contains("third quokka"), "{sent}");
        assert!(!sent.contains("second quokka") && !sent.contains("REFERENCE ONLY"), "{sent}");
    }
    let found = home.hermes(&["sessions", "search", "second", "quokka"]).run().success();
    assert!(found.stdout.contains(in_place) && found.stdout.contains(parent), "{found}");
}

#[test]
fn branches_subagents_and_interrupted_turns_are_what_they_were() {
    let (server, home, peer) = homes();
    let of_zebra = format!("'{ZEBRA}'");
    let marked = |name: &str| format!("'{}'", json!({ name: ZEBRA }));
    peer.session("branch", &[("parent_session_id", &of_zebra), ("model_config", &marked("_branched_from"))]);
    peer.says("branch", &[">Please read zebra.txt", "The zebra has stripes.", ">colours?", "Two."]);
    peer.session("child", &[("parent_session_id", &of_zebra), ("model_config", &marked("_delegate_from"))]);
    peer.says("child", &[">count", "40"]);
    peer.session("open", &[]);
    peer.says("open", &[">do it"]);
    peer.row("open", "assistant", "", &[("tool_calls", &calls(&[("x", "terminal", json!({"command": "make"}))]))]);
    peer.session("empty", &[]);

    let report = report(&home, &["--yes"]);
    assert!(lines(&report, "changed").contains("1 session with an interrupted turn"), "{report}");
    assert!(lines(&report, "left").contains("1 session without messages"), "{report}");
    let parent = |id: &str| home.session_json(id)["session"]["parent"].clone();
    assert_eq!(parent("peer_branch")["id"], format!("peer_{ZEBRA}"));
    assert_eq!((&parent("peer_child")["kind"], &parent("peer_open")), (&json!("delegate"), &Value::Null));
    // The peer stores no folder for a subagent, which worked where its parent did.
    assert_eq!(home.session_json("peer_child")["session"]["workspace"], "/tmp");
    // One that is imported later knows its parent, too.
    peer.session("late", &[("parent_session_id", &of_zebra), ("model_config", &marked("_delegate_from"))]);
    peer.says("late", &[">count again", "41"]);
    home.hermes(&["import", "peer", "--yes"]).run().success();
    assert_eq!(parent("peer_late")["id"], format!("peer_{ZEBRA}"));
    assert_eq!(home.session_json("peer_late")["session"]["workspace"], "/tmp");
    home.hermes(&["--resume", "peer_open", "-z", "try again"]).run().success();
    let sent = server.last_turn().body["messages"].to_string();
    assert!(sent.contains("interrupted; it may have run"), "{sent}");
}
