//! Invalid input is refused with its position and a fix, and nothing is lost or overwritten.

use hermes_tests::{Home, KEY, Reply, Server, dead_endpoint};
use rusqlite::Connection;
use serde_json::json;

// The exit codes of docs/use/exit-codes.md.
const USAGE: i32 = 2;
const CONFIGURATION: i32 = 3;
const MODEL: i32 = 4;
const PLUGIN: i32 = 5;
const STORE: i32 = 6;

fn server() -> Server {
    Server::answering(|_, _| Reply::text("Fine."))
}

#[test]
fn broken_yaml_is_refused_with_file_line_and_reason() {
    let home = Home::new();
    home.config("model:\n  provider: offline\n\tdefault: x\n");
    let before = home.snapshot();
    let output = home.hermes(&["-z", "hi"]).run().refused().exits(CONFIGURATION).says(&["config.yaml"]);
    let stderr = output.stderr.to_lowercase();
    assert!(stderr.contains("config.yaml:3:"), "the line is not named\n{output}");
    assert_eq!(home.read("config.yaml").as_bytes(), before[std::path::Path::new("config.yaml")]);
}

#[test]
fn a_value_of_the_wrong_type_is_refused_by_name() {
    let server = server();
    for (path, value) in [
        ("model.context_length", json!("plenty")),
        ("model.base_url", json!(["http://127.0.0.1:1/v1"])),
        ("plugins.enabled", json!("audit")),
        ("context.engine", json!({"name": "compressor"})),
        ("input.while_busy", json!(true)),
    ] {
        let home = Home::with(&server);
        home.set(path, value);
        let key = path.rsplit('.').next().unwrap();
        home.hermes(&["-z", "hi"]).run().refused().exits(CONFIGURATION).says(&["config.yaml", key]);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_name_that_is_not_offered_is_refused_with_the_names_that_are() {
    let home = Home::with(&server());
    home.set("input.while_busy", json!("wait"));
    let why = "`input.while_busy` is `wait`; it must be `queue`, `interrupt` or `steer`";
    home.hermes(&["-z", "hi"]).run().refused().exits(CONFIGURATION).says(&["config.yaml", why]);
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest_one() {
    let server = server();
    let home = Home::with(&server);
    home.set("model.contxt_length", json!(5));
    home.set("pluggins", json!({}));
    let output = home.hermes(&["-z", "hi"]).run().success();
    assert_eq!(output.stdout, "Fine.\n");
    output.says(&["contxt_length", "context_length", "pluggins", "plugins"]);
}

#[test]
fn a_missing_engine_is_refused_with_a_list_of_the_available_ones() {
    let server = server();
    let home = Home::with(&server);
    home.set("context.engine", json!("nope"));
    home.hermes(&["-z", "hi"]).run().refused().exits(PLUGIN).says(&["nope", "compressor"]);
    assert!(server.requests().is_empty(), "another engine was taken in its place");
}

#[test]
fn an_unreachable_endpoint_is_reported_within_seconds() {
    let home = Home::new();
    let url = dead_endpoint();
    home.use_endpoint(&url);
    let address = url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let output = home.hermes(&["-z", "Are you there?"]).run().refused().exits(MODEL);
    let output = output.says(&[&address]);
    assert!(output.stdout.is_empty(), "something answered in its place\n{output}");
}

#[test]
fn a_refused_key_is_reported_without_showing_it() {
    let server = Server::answering(|_, _| Reply::error(401, &format!("incorrect API key provided: {KEY}")));
    let home = Home::with(&server);
    let output = home.hermes(&["-z", "hi"]).run().refused().exits(MODEL).says(&["401"]);
    assert!(!output.stderr.contains(KEY), "the key is shown\n{output}");
    assert_eq!(server.requests().len(), 1, "a key that was refused is not tried again");
}

#[test]
fn an_answer_that_is_not_an_api_response_is_reported() {
    let server = Server::answering(|_, _| Reply::raw(200, "text/html", "<html><body>It works!</body></html>"));
    let home = Home::with(&server);
    home.hermes(&["-z", "hi"]).run().refused().exits(MODEL);
}

#[test]
fn keys_are_never_shown_with_the_configuration() {
    let server = server();
    let home = Home::with(&server);
    for arguments in
        [&["config", "show"][..], &["config", "get", "model.api_key"], &["config", "get", "model"], &["doctor"]]
    {
        let output = home.hermes(arguments).run();
        assert!(!format!("{output}").contains(KEY), "{arguments:?} shows the key");
    }
    let path = home.hermes(&["config", "path"]).run().success();
    assert_eq!(path.stdout.trim_end(), home.path().join("config.yaml").to_str().unwrap());
    let model = home.hermes(&["config", "get", "model.default"]).run().success();
    assert_eq!(model.stdout, "scripted-model\n");
}

#[test]
fn the_database_of_another_program_is_not_touched() {
    let server = server();
    let home = Home::with(&server);
    let database = Connection::open(home.state_db()).unwrap();
    database.execute_batch("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs');").unwrap();
    drop(database);
    let before = home.snapshot();
    home.hermes(&["-z", "hi"]).run().refused().exits(STORE).says(&["state.db", "HERMES_HOME"]);
    assert_eq!(home.snapshot(), before);
    assert!(server.requests().is_empty());
}

#[test]
fn the_home_of_another_program_is_not_touched() {
    let home = Home::new();
    home.config("_config_version: 33\nmodel:\n  provider: openrouter\n");
    home.write("SOUL.md", "theirs");
    home.write("memories/MEMORY.md", "theirs");
    let before = home.snapshot();
    for arguments in [&["-z", "hi"][..], &["sessions", "list"], &["doctor"]] {
        let output = home.hermes(arguments).run();
        assert!(format!("{output}").contains("HERMES_HOME"), "{arguments:?} offers no other home\n{output}");
        assert_eq!(home.snapshot(), before, "{arguments:?} wrote into it");
    }
    home.hermes(&["-z", "hi"]).run().refused();
}

#[test]
fn a_store_of_a_newer_version_is_left_as_it_is() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["-z", "hi"]).run().success();
    let database = Connection::open(home.state_db()).unwrap();
    database.pragma_update(None, "user_version", 9_999).unwrap();
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    drop(database);
    let before = std::fs::read(home.state_db()).unwrap();
    home.hermes(&["-z", "hi", "--continue"]).run().refused().exits(STORE).says(&["state.db", "newer"]);
    assert_eq!(std::fs::read(home.state_db()).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn a_home_is_made_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    home.hermes(&["-z", "hi"]).run().success();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.path()), 0o700);
    assert_eq!(mode(&home.state_db()), 0o600);
    for log in std::fs::read_dir(home.path().join("logs")).into_iter().flatten().flatten() {
        assert_eq!(mode(&log.path()), 0o600, "{}", log.path().display());
    }
}

#[test]
fn an_unknown_option_is_refused() {
    let home = Home::new();
    home.hermes(&["--no-such-option"]).run().refused().exits(USAGE).says(&["--no-such-option"]);
    assert!(!home.path().exists(), "a mistyped command made a home");
}

#[test]
fn the_version_is_printed_without_a_home() {
    let home = Home::new();
    let output = home.hermes(&["--version"]).run().success();
    assert_eq!(output.stdout.trim_end(), format!("hermes {}", env!("CARGO_PKG_VERSION")));
    assert!(!home.path().exists());
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_fresh_home() {
    let server = server();
    let home = Home::with(&server);
    home.hermes(&["doctor"]).run().success();
}
