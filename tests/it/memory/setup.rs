//! `hermes memory setup`, without a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

use crate::fixtures::backend::{Backend, Kind};
use crate::fixtures::mem0;
use crate::fixtures::service::{Answer, Service};

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

/// Configures `mem0` with a key that works, and another address that does not: `hermes memory setup` must not lose the former.
fn configured(kind: Kind) -> (Server, Service, Home) {
    let (server, backend) = (Server::answering(|_, _| Reply::text("Hello.")), Backend::new(kind));
    let service = backend.serve(0);
    let home = backend.home(&server, &service);
    (server, service, home)
}

#[test]
fn a_setup_whose_connection_test_fails_says_why_and_changes_nothing() {
    // Nobody listens at this address any more.
    let gone = Service::start_at(0, |_| Answer::Broken).url();
    let proxy = Service::start_at(0, |_| Answer::Raw(200, b"<html>Sign in</html>".to_vec()));
    let away = Service::start_at(0, |_| Answer::Json(503, json!({ "detail": "maintenance" })));
    for (kind, provider, key) in [(Kind::Mem0Server, "mem0", "host"), (Kind::Honcho, "honcho", "baseUrl")] {
        let (_server, service, home) = configured(kind);
        let (config, dotenv) = (home.read("config.yaml"), home.read(".env"));
        for (url, why) in [(&gone, "refused"), (&proxy.url(), "JSON"), (&away.url(), "503")] {
            let setting = format!("{key}={url}");
            let output = home.hermes(&["memory", "setup", provider, "--set", &setting, "--yes"]).run().exits(5);
            output.says(&[
                &format!("`{provider}` was not set up, because its connection test failed; nothing was changed"),
                why,
                &format!("run `hermes memory setup {provider}` again"),
                "--no-test",
            ]);
            assert_eq!((home.read("config.yaml"), home.read(".env")), (config.clone(), dotenv.clone()), "{setting}");
        }
        // What was configured before still works.
        home.hermes(&["memory", "setup", provider, "--yes"]).run().success().says(&["the connection test succeeded"]);
        let asked = service.asked().len();
        let setting = format!("{key}={gone}");
        home.hermes(&["memory", "setup", provider, "--set", &setting, "--yes", "--no-test"]).run().success();
        assert!(home.read("config.yaml").contains(&gone));
        assert_eq!(service.asked().len(), asked);
    }
}

#[test]
fn a_key_that_the_server_refuses_replaces_no_key_that_works() {
    for kind in [Kind::Mem0Platform, Kind::Mem0Server] {
        let (_server, service, home) = configured(kind);
        let (config, dotenv) = (home.read("config.yaml"), home.read(".env"));
        let arguments = ["memory", "setup", "mem0", "--set", "top_k=3", "--secret", "MEM0_API_KEY", "--yes"];
        let output = home.hermes(&arguments).stdin("m0-wrong-9876543210\n").run().exits(5);
        let output =
            output.says(&["nothing was changed", "401", "MEM0_API_KEY", "run `hermes memory setup mem0` again"]);
        assert!(!format!("{output}").contains("m0-wrong"), "{output}");
        assert_eq!((home.read("config.yaml"), home.read(".env")), (config, dotenv));
        // The new key reached the server once the old one was not used for it.
        assert!(service.asked().iter().any(|asked| asked.header("x-api-key") == Some("m0-wrong-9876543210")
            || asked.header("authorization") == Some("Token m0-wrong-9876543210")));
        let output = home.hermes(&arguments).stdin(&format!("{}\n", mem0::KEY)).run().success();
        output.says(&["the connection test succeeded", "MEM0_API_KEY stored in .env"]);
        assert!(home.read("config.yaml").contains("top_k"));
    }
}

#[test]
fn another_provider_that_fails_does_not_take_the_place_of_the_selected_one() {
    let (_server, _service, home) = configured(Kind::Honcho);
    let before = home.read("config.yaml");
    let gone = Service::start_at(0, |_| Answer::Broken).url();
    let setting = format!("host={gone}");
    home.hermes(&["memory", "setup", "mem0", "--set", &setting, "--yes"]).run().exits(5).says(&["nothing was changed"]);
    assert_eq!(home.read("config.yaml"), before);
    assert!(home.hermes(&["memory", "status"]).run().success().stdout.contains("honcho"));
}

#[test]
fn settings_that_need_a_right_are_stored_untested_and_the_user_reads_how_to_grant_it() {
    let (_server, home) = home();
    home.put_guest("scribe", "plugins/scribe", "scribe");
    let manifest = home.read("plugins/scribe/plugin.yaml")
        + "permissions: {http: [{url: '${config.url}', methods: [GET]}]}\n\
           config: {type: object, properties: {url: {type: string, default: 'https://a.example.org'}}}\n";
    home.write("plugins/scribe/plugin.yaml", manifest);
    home.grant("scribe");
    let arguments = ["memory", "setup", "scribe", "--yes"];
    home.hermes(&arguments).run().success().says(&["the connection test succeeded"]);
    let elsewhere = [&arguments[..], &["--set", "url=https://b.example.org"]].concat();
    let output = home.hermes(&elsewhere).run().success();
    let output = output.says(&["b.example.org", "hermes plugins grant scribe", "the connection was not tested"]);
    assert!(home.read("config.yaml").contains("b.example.org"), "{output}");
    home.grant("scribe");
    home.hermes(&arguments).run().success().says(&["the connection test succeeded"]);
}

#[test]
fn a_second_provider_is_refused() {
    let (_server, home) = home();
    home.set("memory.provider", json!(["honcho", "mem0"]));
    home.hermes(&["-z", "hello"]).run().refused().says(&["memory.provider"]);
}
