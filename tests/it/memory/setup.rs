//! `hermes memory setup`, without a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

fn home() -> (Server, Home) {
    let server = Server::answering(|_, _| Reply::text("Hello."));
    let home = Home::with(&server);
    (server, home)
}

#[test]
fn a_provider_is_set_up_by_flags_and_its_secrets_are_private() {
    let (_server, home) = home();
    let arguments =
        ["memory", "setup", "honcho", "--set", "timeout=20", "--secret", "HONCHO_API_KEY", "--yes", "--no-test"];
    let output = home.hermes(&arguments).stdin("hch-0123456789\n").run().success();
    assert!(!format!("{output}").contains("hch-0123456789"), "{output}");
    assert_eq!(home.read(".env"), "HONCHO_API_KEY='hch-0123456789'\n");
    let mode = fs::metadata(home.path().join(".env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let config = home.read("config.yaml");
    assert!(config.contains("honcho") && config.contains("timeout") && !config.contains("hch-"), "{config}");
    assert!(home.hermes(&["memory", "status"]).run().success().stdout.contains("honcho"));
}

#[test]
fn the_connection_test_asks_the_provider_once() {
    let (_server, home) = home();
    let arguments = ["memory", "setup", "honcho", "--set", "mode=local", "--yes"];
    home.hermes(&arguments).run().success().says(&["the connection test succeeded"]);
    // What the test stored is gone.
    assert!(!home.path().join("data/honcho/data.db").exists());
}

#[test]
fn a_setup_that_cannot_work_changes_nothing() {
    let (_server, home) = home();
    let before = home.read("config.yaml");
    for (arguments, words) in [
        (&["memory", "setup"][..], &["cannot ask for the provider", "honcho"][..]),
        (&["memory", "setup", "builtin"], &["always on"]),
        (&["memory", "setup", "files"], &["not a memory provider", "honcho"]),
        (&["memory", "setup", "honchp"], &["there is no plugin `honchp`"]),
        (&["memory", "setup", "honcho", "--set", "mod=local"], &["no setting `mod`", "`mode`"]),
        (&["memory", "setup", "honcho", "--set", "mode=cloud"], &["plugins.entries.honcho.mode"]),
        (&["memory", "setup", "honcho", "--set", "timeout=soon"], &["`timeout`", "JSON"]),
        (&["memory", "setup", "honcho", "--secret", "OTHER"], &["no secret `OTHER`", "HONCHO_API_KEY"]),
        (&["memory", "setup", "honcho", "--secret", "HONCHO_API_KEY"], &["no usable line"]),
    ] {
        home.hermes(arguments).run().refused().says(words);
        assert_eq!(home.read("config.yaml"), before, "{arguments:?}");
        assert!(!home.path().join(".env").exists(), "{arguments:?}");
    }
}

#[test]
fn a_second_provider_is_refused() {
    let (_server, home) = home();
    home.set("memory.provider", json!(["honcho", "mem0"]));
    home.hermes(&["-z", "hello"]).run().refused().says(&["memory.provider"]);
}
