//! Calls of one reply, and results that are too long for the model.

use std::path::Path;
use std::sync::Mutex;

use hermes_tests::oracle::assert_valid_request;
use hermes_tests::{Call, Home, Reply, Server};
use serde_json::json;

use crate::fixtures::journal::texts;

/// The path of the kept file in a shortened result.
fn kept_path(result: &str) -> &str {
    let (_, rest) = result.split_once("The whole text is in ").unwrap_or_else(|| panic!("no path in {result}"));
    rest.split_once(", ").unwrap_or_default().0
}

/// A home whose workspace has a file that is too long for a result.
fn home_with_hay(server: &Server) -> Home {
    let home = Home::with(server);
    home.set("model.context_length", json!(16_000));
    let lines: String = (0..180).map(|n| format!("needle {n} {}\n", "in the hay ".repeat(12))).collect();
    home.write_workspace("hay.txt", &lines);
    home
}

fn find() -> Reply {
    Reply::calls([Call::new("call_find", "search_files", &json!({"pattern": "needle", "limit": 200}))])
}

#[test]
fn the_whole_text_of_a_long_result_can_be_read_in_parts() {
    let server = Server::answering(|body, number| {
        let results: Vec<&str> = body["messages"].as_array().into_iter().flatten().filter_map(tool_text).collect();
        match number {
            0 => find(),
            1 => {
                let path = kept_path(results[0]);
                Reply::calls([
                    Call::new("call_page", "read_file", &json!({"path": path, "offset": 80, "limit": 20})),
                    Call::new("call_again", "search_files", &json!({"path": path, "pattern": "needle 101 "})),
                ])
            }
            _ => Reply::text("Found."),
        }
    });
    let home = home_with_hay(&server);
    let output = home.hermes(&["-z", "Find the needles."]).run().success();
    assert_eq!(output.stdout, "Found.\n");
    server.turns().iter().for_each(|request| assert_valid_request(&request.body));

    let log = home.messages();
    let [whole, page, again] = texts(&log, "tool")[..] else { panic!("{log:?}") };
    assert!(whole.contains("needle 0 ") && whole.contains("needle 179 "), "the log has the whole result");
    let turns = server.turns();
    let sent = turns[1].trailing_results()[0].1;
    assert!(sent.len() < whole.len() / 2 && sent.contains("characters are left out here"), "{sent}");
    let kept = Path::new(kept_path(sent));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), whole);
    assert_eq!(kept.parent().unwrap(), home.path().join("results").join(home.newest_session()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(kept), mode(kept.parent().unwrap())), (0o600, 0o700));
    }
    assert!(page.contains("needle 90 ") && !page.contains("needle 150 "), "{page}");
    assert!(again.contains("needle 101 "), "{again}");

    home.hermes(&["sessions", "delete", &home.newest_session(), "--yes"]).run().success();
    assert!(!kept.parent().unwrap().exists(), "the results outlast their session");
}

#[test]
fn a_session_reads_its_own_kept_results_and_nothing_else_of_the_home() {
    let path = Mutex::new(String::new());
    let server = Server::answering(move |body, number| {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let said = messages.iter().rfind(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap();
        let is_answered = messages.last().is_some_and(|message| message["role"] == "tool");
        let mut path = path.lock().unwrap();
        if is_answered {
            if number == 1 {
                kept_path(messages.last().and_then(tool_text).unwrap()).clone_into(&mut path);
            }
            return Reply::text("Done.");
        }
        if said.contains("Find") {
            return find();
        }
        let (session, name) = path.rsplit_once('/').unwrap();
        let results = session.rsplit_once('/').unwrap().0;
        let home = results.rsplit_once('/').unwrap().0;
        let paths = [
            path.clone(),
            session.to_owned(),
            results.to_owned(),
            format!("{session}/../../config.yaml"),
            format!("{home}/config.yaml"),
            format!("{results}/../config.yaml"),
            format!("../../results/{name}"),
        ];
        let read = |(at, path): (usize, &String)| Call::new(&format!("call_{at}"), "read_file", &json!({"path": path}));
        let reads = paths.iter().enumerate().map(read);
        let write = json!({"path": path.clone(), "content": "forged"});
        let list = json!({"path": results, "pattern": "*", "target": "files"});
        let others = [Call::new("call_write", "write_file", &write), Call::new("call_list", "search_files", &list)];
        Reply::calls(reads.chain(others))
    });
    let home = home_with_hay(&server);
    home.hermes(&["-z", "Find the needles."]).run().success();
    let first = home.newest_session();
    let results_of = |request: &hermes_tests::Request| -> Vec<String> {
        request.trailing_results().into_iter().map(|(_, text)| text.to_owned()).collect()
    };
    let refuses = |results: &[String], what: &str| {
        assert_eq!(results.len(), 9);
        for result in &results[1..] {
            assert!(result.starts_with("error: ") && !result.contains("context_length"), "{what}: {result}");
        }
    };
    // Its own, from the turn before.
    home.hermes(&["--resume", &first, "-z", "Read it."]).run().success();
    let own = results_of(&server.last_turn());
    assert!(own[0].contains("needle 1 "), "{own:?}");
    refuses(&own, "the own session");
    // A branch knows the results of its parent by their paths.
    let branch = home.hermes(&["sessions", "branch", &first]).run().success().stdout.trim().to_owned();
    home.hermes(&["--resume", &branch, "-z", "Read it."]).run().success();
    let inherited = results_of(&server.last_turn());
    assert_eq!(inherited[0], own[0]);
    refuses(&inherited, "a branch");
    // Another session has heard of the path.
    home.hermes(&["-z", "Read it."]).run().success();
    let foreign = results_of(&server.last_turn());
    assert!(foreign[0].starts_with("error: "), "{foreign:?}");
    refuses(&foreign, "another session");
    let left: Vec<_> = std::fs::read_dir(home.path().join("results")).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "a session without kept results leaves a folder: {left:?}");
}

fn tool_text(message: &serde_json::Value) -> Option<&str> {
    message["content"].as_str().filter(|_| message["role"] == "tool")
}
