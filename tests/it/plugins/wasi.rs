//! What a plugin gets of WASI, through the binary. The guest is `tests/guests/greedy`: a tool that reaches for everything
//! that a standard library offers, as the runtimes of Python, JavaScript and Go do.

use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// Makes the tool calls in one turn, and returns their results.
fn grab(home: impl Fn(&Server) -> Home, calls: &[(&str, &str)]) -> (Home, Vec<String>) {
    let calls: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(at, (what, of))| Call::new(&format!("call_{at}"), "grab", &json!({"what": what, "of": of})))
        .collect();
    let server = Server::scripted([Reply::calls(calls), Reply::text("Done.")]);
    let home = home(&server);
    home.hermes(&["-z", "Take what you can."]).run().success();
    let results = server.turns()[1].trailing_results().into_iter().map(|(_, text)| text.to_owned()).collect();
    (home, results)
}

fn home(server: &Server, config: Value) -> Home {
    let home = Home::with(server);
    home.install_guest("greedy", "greedy", json!({}));
    home.set("plugins.enabled", json!(["greedy"]));
    home.set("plugins.settings", json!({ "greedy": config }));
    home
}

fn plain(server: &Server) -> Home {
    home(server, json!({}))
}

#[test]
fn files_sockets_environment_and_arguments_are_empty_and_no_error_harms_the_session() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let calls = [
        ("read", "/etc/passwd"),
        ("read", "plugin.yaml"),
        ("write", "/tmp/hermes-greedy"),
        ("list", "/"),
        ("list", "."),
        ("connect", address.as_str()),
        ("listen", "127.0.0.1:0"),
        ("datagram", "127.0.0.1:0"),
        ("resolve", "localhost:80"),
        ("environment", ""),
        ("arguments", ""),
        ("input", ""),
    ];
    let (_, results) = grab(plain, &calls);
    assert_eq!(results.len(), calls.len());
    for ((what, of), result) in calls.iter().zip(&results) {
        match *what {
            "environment" => assert_eq!(result, "0 variables"),
            "arguments" => assert_eq!(result, "0 arguments"),
            "input" => assert_eq!(result, "0 bytes of input"),
            _ => assert!(!result.contains("got it") && !result.contains("root:"), "{what} {of}: {result}"),
        }
    }
    for result in &results[..9] {
        assert!(result.to_lowercase().contains("error") || result.contains("failed"), "{result}");
        // The plugin itself reports the failure: it did not crash.
        assert!(!result.contains("crashed"), "{result}");
    }
    assert!(listener.accept().is_err(), "nothing has connected");
}

#[test]
fn clocks_are_real_and_random_numbers_differ_between_processes() {
    let draw = || grab(plain, &[("random", ""), ("clock", ""), ("sleep", "120")]).1;
    let (first, second) = (draw(), draw());
    assert_ne!(first[0], second[0]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let shown: u64 = second[1].parse().unwrap();
    assert!((now - 600..=now).contains(&shown), "{shown} at {now}");
    let slept: u64 = second[2].strip_prefix("slept ").unwrap().parse().unwrap();
    assert!(slept >= 119, "{slept}");
}

#[test]
fn sleeping_ends_at_the_deadline() {
    let limited = |server: &Server| home(server, json!({"limits": {"tool_time": "1s"}}));
    let (_, results) = grab(limited, &[("sleep", "3600000"), ("clock", "")]);
    assert!(results[0].contains("`tool_time`"), "{}", results[0]);
    assert!(results[1].parse::<u64>().is_ok(), "{}", results[1]);
}

#[test]
fn printed_lines_are_logged_and_a_crash_is_explained_in_the_log_and_not_to_the_model() {
    let (home, results) =
        grab(plain, &[("print", "hello"), ("exit", "3"), ("traceback", "no such thing"), ("clock", "")]);
    assert_eq!(results[0], "printed");
    for result in &results[1..3] {
        let sentence =
            "`grab` of the plugin `greedy` crashed and gave no answer; `hermes plugins logs greedy` shows the user why";
        assert!(result.contains(sentence) && result.len() < 200, "{result}");
    }
    assert!(results[3].parse::<u64>().is_ok(), "{}", results[3]);
    let log = home.read("logs/greedy.jsonl");
    for line in [
        "to stdout: hello",
        "to stderr: hello",
        "without an end",
        "ValueError: no such thing",
        "Traceback (most recent call last):",
    ] {
        assert!(log.contains(&format!("\"{line}\"")), "{line} in {log}");
    }
    assert!(log.contains("it crashed: it ended itself by calling `exit`"), "{log}");
    assert!(log.contains("it crashed: ValueError: no such thing"), "{log}");
}
