//! Pictures of a session: they move to another home with an export, leave with the session, and need no words beside them. Failed
//! results say that they failed.

use std::fs;

use hermes_tests::oracle::assert_extends;
use hermes_tests::{Call, Home, Reply, Server};
use rusqlite::Connection;
use serde_json::json;

const GIF: &[u8] = b"GIF89a\x01\0\x01\0 a very small chart";
/// `GIF` in base64.
const BASE64: &str = "R0lGODlhAQABACBhIHZlcnkgc21hbGwgY2hhcnQ=";

fn blobs(home: &Home) -> i64 {
    let store = Connection::open(home.state_db()).unwrap();
    store.query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap()
}

/// A session with a picture; returns its id.
fn with_picture(home: &Home) -> String {
    home.write_workspace("chart.gif", GIF);
    home.hermes(&["-z", "What does it show?", "--image", "chart.gif"]).run().success();
    home.newest_session()
}

#[test]
fn a_session_with_a_picture_goes_on_in_another_home_with_the_same_bytes() {
    let server = Server::answering(|_, _| Reply::text("A chart."));
    let (home, other) = (Home::with(&server), Home::with(&server));
    let id = with_picture(&home);
    let file = other.workspace().join("sessions.jsonl");
    home.hermes(&["sessions", "export", &id, "-o", file.to_str().unwrap()]).run().success();
    assert!(fs::read_to_string(&file).unwrap().contains(BASE64));
    other.hermes(&["sessions", "import", "sessions.jsonl", "--trust"]).run().success();
    other.hermes(&["sessions", "check"]).run().success();
    for home in [&home, &other] {
        home.hermes(&["-z", "And now?", "--resume", &id]).run().success();
    }
    let turns = server.turns();
    assert!(turns[0].raw_member("messages").contains(BASE64));
    assert_extends(&turns[0].body, &turns[1].body);
    assert_eq!(turns[1].raw_member("messages"), turns[2].raw_member("messages"));

    home.hermes(&["sessions", "delete", &id, "--yes"]).run().success();
    assert_eq!((blobs(&home), blobs(&other)), (0, 1));
    let changed = fs::read_to_string(&file).unwrap().replace(BASE64, &BASE64.replace("c21hbGw", "bGFyZ2U"));
    fs::write(home.workspace().join("changed.jsonl"), changed).unwrap();
    let refused = home.hermes(&["sessions", "import", "changed.jsonl"]).run().refused();
    assert!(refused.stderr.contains("line ") && refused.stderr.contains("are not those that it had"), "{refused}");
    assert_eq!((home.sessions_json().len(), blobs(&home)), (0, 0));
}

#[test]
fn a_repair_keeps_the_pictures() {
    let server = Server::answering(|_, _| Reply::text("A chart."));
    let home = Home::with(&server);
    let id = with_picture(&home);
    let store = Connection::open(home.state_db()).unwrap();
    store.execute_batch("DROP TRIGGER blobs_leave_with_their_last_message; DELETE FROM message_blobs").unwrap();
    drop(store);
    home.hermes(&["sessions", "check"]).run().refused();
    home.hermes(&["sessions", "repair"]).run().success();
    home.hermes(&["sessions", "check"]).run().success();
    home.hermes(&["-z", "And now?", "--resume", &id]).run().success();
    assert_extends(&server.turns()[0].body, &server.turns()[1].body);
    assert!(server.turns()[1].raw_member("messages").contains(BASE64));
}

#[test]
fn a_picture_can_be_sent_without_words() {
    for (arguments, home) in [
        (&["-z", "", "--image", "chart.gif"][..], Home::with as fn(&Server) -> Home),
        (&["--image", "chart.gif", "-z"], Home::with_anthropic),
    ] {
        let server = Server::answering(|_, _| Reply::text("A chart."));
        let home = home(&server);
        home.write_workspace("chart.gif", GIF);
        let output = home.hermes(arguments).run().success();
        assert_eq!(output.stdout, "A chart.\n");
        let request = server.last_turn();
        let content = &request.messages().last().unwrap()["content"];
        assert_eq!(content.as_array().map(Vec::len), Some(1), "{content}");
        assert!(content.to_string().contains(BASE64));
        home.hermes(&["-z", "And now?", "--continue"]).run().success();
        let kind = if request.body["system"].is_null() { "image_url" } else { "image" };
        assert_eq!(content[0]["type"], kind);
        assert_extends(&request.body, &server.last_turn().body);
    }
    let server = Server::answering(|_, _| Reply::text("Nothing."));
    let home = Home::with(&server);
    home.hermes(&["-z", ""]).run().refused();
    assert!(server.requests().is_empty());
}

#[test]
fn a_failed_result_is_stored_as_failed_and_sent_the_same_way_by_the_next_process() {
    let script = || {
        let call = |id: &str, path: &str| Call::new(id, "read_file", &json!({"path": path}));
        [
            Reply::calls([call("call_there", "notes.txt"), call("call_missing", "missing.txt")]),
            Reply::text("One of them is missing."),
            Reply::text("Still missing."),
        ]
    };
    for home in [Home::with as fn(&Server) -> Home, Home::with_anthropic] {
        let server = Server::scripted(script());
        let home = home(&server);
        home.write_workspace("notes.txt", "hello");
        home.hermes(&["-z", "Read both."]).run().success();
        let log = home.messages();
        let failed: Vec<bool> = log
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["parts"][0]["failed"] == true)
            .collect();
        assert_eq!(failed, [false, true]);
        home.hermes(&["-z", "And now?", "--continue"]).run().success();
        let turns = server.turns();
        assert_extends(&turns[1].body, &turns[2].body);
        let is_anthropic = !turns[1].body["system"].is_null();
        assert_eq!(turns[1].raw_member("messages").matches(r#""is_error":true"#).count(), usize::from(is_anthropic));
        assert_eq!(turns[2].raw_member("messages").matches(r#""is_error":true"#).count(), usize::from(is_anthropic));
    }
}
