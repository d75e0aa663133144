//! A plugin's access to the web through the binary: the guest `tests/guests/courier` sends what the scripted model requests.

use hermes_tests::{Call, Home, Output, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::listener::{Listener, Received};

/// The secret. No output, log, message or stored file may ever contain it.
const TOKEN: &str = "courier-token-0123456789abcdef";

/// The token that the server gives for the one above.
const RENEWED: &str = "renewed-token-fedcba9876543210";

/// A server that echoes and records every request. For `/v1/renew`, it answers with a new token.
struct Echo(Listener);

impl Echo {
    fn start() -> Self {
        Self(Listener::start(|request| match request.whole() {
            renewal if renewal.contains(" /v1/renew") => json!({ "token": RENEWED }).to_string(),
            request => request,
        }))
    }

    fn url(&self, path: &str) -> String {
        self.0.url(path)
    }

    fn heads(&self) -> Vec<String> {
        self.0.received().iter().map(Received::whole).collect()
    }
}

fn home(server: &Server, permissions: Value, config: Value) -> Home {
    let home = Home::with(server);
    home.install_guest("courier", "courier", config);
    let manifest =
        json!({ "name": "courier", "version": "0.1.0", "component": "courier.wasm", "permissions": permissions });
    // JSON is YAML.
    home.write("plugins/courier/plugin.yaml", manifest.to_string());
    home.grant("courier");
    home.set("plugins.enabled", json!(["courier"]));
    home
}

/// A turn in which the model calls one tool of the guest. Returns the tool's result and what the user saw.
fn called(permissions: Value, config: Value, tool: &str, arguments: Value) -> (Value, Output) {
    let server = Server::scripted([Reply::calls([Call::new("call_1", tool, &arguments)]), Reply::text("Done.")]);
    let reaches_web = permissions.get("http").is_some();
    let home = home(&server, permissions, config);
    let output = home
        .hermes(&["-z", "go"])
        .env("COURIER_TOKEN", TOKEN)
        .env("COURIER_REGION", "eu-1")
        .env("COURIER_OTHER", "not for plugins")
        // A dead proxy: a request through it would fail.
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("http_proxy", "http://127.0.0.1:9")
        .env("ALL_PROXY", "http://127.0.0.1:9")
        .run()
        .success();
    home.lacks(TOKEN);
    let last = server.last_turn();
    assert!(!last.body.to_string().contains(TOKEN) && !output.stderr.contains(TOKEN), "{output}");
    // What a plugin with the permission says comes from outside, whatever it says about its tools.
    let is_fenced = |(_, text): &(&str, &str)| text.starts_with("<untrusted-text mark=");
    assert!(last.trailing_results_as_sent().iter().all(|result| is_fenced(result) == reaches_web), "{last:?}");
    let results = last.trailing_results();
    let (_, result) = results.first().unwrap_or_else(|| panic!("no result: {output}"));
    (serde_json::from_str(result).unwrap_or_else(|error| panic!("{result}: {error}")), output)
}

#[test]
fn a_secret_reaches_its_audience_and_not_the_plugin() {
    let echo = Echo::start();
    let permissions = json!({
        "http": [{ "url": echo.url("/v1/") }],
        "secrets": [{ "name": "token", "env": "COURIER_TOKEN", "audience": echo.url("/") }],
    });
    let arguments = json!({ "url": echo.url("/v1/items"), "secrets": { "authorization": "token" } });
    let (answer, output) = called(permissions, json!({}), "send", arguments);
    assert_eq!(answer["status"], json!(200), "{answer} {output}");
    let heads = echo.heads();
    assert_eq!(heads.len(), 1);
    assert!(heads[0].contains(&format!("authorization: Bearer {TOKEN}")), "{}", heads[0]);
    let body = answer["body"].as_str().unwrap_or_default();
    assert!(body.contains("authorization: Bearer [REDACTED]"), "{body}");
}

#[test]
fn a_renewed_token_is_kept_by_the_host_and_used_by_later_sessions() {
    let echo = Echo::start();
    let permissions = json!({
        "http": [{ "url": echo.url("/v1/"), "methods": ["GET", "POST"] }],
        "secrets": [{ "name": "token", "env": "COURIER_TOKEN", "audience": echo.url("/"), "writable": true }],
    });
    let form = json!({ "grant_type": "refresh_token", "refresh_token": { "secret": "token" } });
    let renew = json!({ "name": "token", "method": "POST", "url": echo.url("/v1/renew"), "form": form });
    let query = json!({ "url": echo.url("/v1/items"), "query": { "key": { "secret": "token" } } });
    let json = json!({
        "method": "POST", "url": echo.url("/v1/json"), "json": { "auth": "" }, "places": { "/auth": "token" },
    });
    let calls = [("renew", renew), ("send", query), ("send", json)];
    let server = Server::answering(move |_, number| match calls.get(number) {
        Some((tool, arguments)) => Reply::calls([Call::new(&format!("call_{number}"), tool, arguments)]),
        None => Reply::text("Done."),
    });
    let home = home(&server, permissions.clone(), json!({}));
    let run = || home.hermes(&["-v", "-z", "go"]).env("COURIER_TOKEN", TOKEN).run().success();
    let mut printed = run().to_string();
    assert_eq!(echo.heads().len(), 3, "{printed}");
    assert!(
        echo.heads()[0].ends_with(&format!("grant_type=refresh_token&refresh_token={TOKEN}")),
        "{:?}",
        echo.heads()
    );
    assert!(echo.heads()[1].starts_with(&format!("GET /v1/items?key={RENEWED} ")), "{:?}", echo.heads());
    assert!(echo.heads()[2].ends_with(&format!(r#"{{"auth":"{RENEWED}"}}"#)), "{:?}", echo.heads());
    // The value is in one file, which only the user can read.
    let with_token =
        |token: &str| -> Vec<_> { home.files_with(token).iter().map(|path| path.display().to_string()).collect() };
    let stored = with_token(RENEWED);
    assert!(stored.len() == 1 && stored[0].starts_with("data/courier/secrets/token-"), "{stored:?}");
    assert_eq!(with_token(TOKEN), Vec::<String>::new());
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(home.path().join(&stored[0])).expect("the file exists").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // Another process, and then a user who sets another value.
    for (given, used) in [(TOKEN, RENEWED), ("set-by-the-user-0123456789", "set-by-the-user-0123456789")] {
        let server = Server::scripted([
            Reply::calls([Call::new(
                "call_1",
                "send",
                &json!({
                    "url": echo.url("/v1/again"), "secrets": { "authorization": "token" },
                }),
            )]),
            Reply::text("Done."),
        ]);
        home.use_endpoint(&server.url());
        let output = home.hermes(&["-v", "-z", "go"]).env("COURIER_TOKEN", given).run().success();
        printed.push_str(&output.to_string());
        assert!(echo.heads().last().is_some_and(|head| head.contains(&format!("authorization: Bearer {used}"))));
        assert!(server.last_turn().body.to_string().contains("Bearer [REDACTED]"));
    }
    assert!(!printed.contains(RENEWED) && !printed.contains(TOKEN), "{printed}");
}

#[test]
fn an_address_of_the_configuration_is_open_until_it_leads_elsewhere() {
    let (first, second) = (Echo::start(), Echo::start());
    let permissions = json!({
        "http": [{ "url": "${config.base_url}/v1/" }],
        "secrets": [{ "name": "token", "env": "COURIER_TOKEN", "audience": "${config.base_url}" }],
    });
    let asks = |echo: &Echo| -> Server {
        let arguments = json!({ "url": echo.url("/v1/items"), "secrets": { "authorization": "token" } });
        Server::scripted([Reply::calls([Call::new("call_1", "send", &arguments)]), Reply::text("Done.")])
    };
    let server = asks(&first);
    let home = home(&server, permissions, json!({ "base_url": first.url("/") }));
    let answer = |server: &Server| -> (Value, Output) {
        home.use_endpoint(&server.url());
        let output = home.hermes(&["-z", "go"]).env("COURIER_TOKEN", TOKEN).run().success();
        let request = server.last_turn();
        let result = request.trailing_results().last().expect("there is a result").1.to_owned();
        (serde_json::from_str(&result).expect("the result is JSON"), output)
    };
    let (open, output) = answer(&server);
    assert_eq!(open["status"], json!(200), "{open} {output}");
    assert!(!output.stderr.contains("may not send requests"), "{output}");

    home.set("plugins.entries.courier.base_url", json!(second.url("")));
    for echo in [&first, &second] {
        let (closed, output) = answer(&asks(echo));
        assert_eq!((&closed["kind"], &closed["code"]), (&json!("ErrorKind::Denied"), &json!("grant")), "{closed}");
        output.says(&[&second.url("/v1/"), &first.url("/v1/"), "hermes plugins grant courier"]);
    }
    assert_eq!((first.heads().len(), second.heads().len()), (1, 0));

    home.grant("courier");
    let (open, output) = answer(&asks(&second));
    assert_eq!(open["status"], json!(200), "{open} {output}");
    assert!(second.heads()[0].contains(&format!("authorization: Bearer {TOKEN}")), "{:?}", second.heads());
    let (closed, _) = answer(&asks(&first));
    assert_eq!(closed["code"], json!("grant"), "{closed}");
}

#[test]
fn a_secret_that_is_not_writable_stays() {
    let permissions = json!({
        "secrets": [{ "name": "token", "env": "COURIER_TOKEN", "audience": "https://api.example.org/" }],
    });
    let (answer, _) = called(permissions, json!({}), "replace", json!({ "name": "token", "value": RENEWED }));
    assert_eq!((&answer["kind"], &answer["code"]), (&json!("ErrorKind::Denied"), &json!("secret")), "{answer}");
    assert!(answer["message"].as_str().is_some_and(|message| message.contains("writable")), "{answer}");
}

#[test]
fn a_denied_call_says_that_a_grant_is_missing() {
    let echo = Echo::start();
    let elsewhere = json!([{ "url": echo.url("/v2/") }]);
    for permissions in [json!({}), json!({ "http": elsewhere })] {
        let (answer, _) = called(permissions, json!({}), "send", json!({ "url": echo.url("/v1/items") }));
        assert_eq!((&answer["kind"], &answer["code"]), (&json!("ErrorKind::Denied"), &json!("grant")), "{answer}");
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("grant the plugin `courier` its permissions") && message.contains("/v1/items"),
            "{message}"
        );
    }
    assert!(echo.heads().is_empty());
}

#[test]
fn a_plugin_is_configured_only_with_granted_variables() {
    let permissions = json!({
        "env": ["COURIER_REGION"],
        "secrets": [{ "name": "token", "env": "COURIER_TOKEN", "audience": "http://127.0.0.1:9/" }],
    });
    let config = json!({ "region": "${COURIER_REGION}", "token": "${COURIER_TOKEN}", "other": "${COURIER_OTHER}" });
    let (answer, output) = called(permissions, config, "config", json!({}));
    let config: Value = serde_json::from_str(answer.as_str().unwrap_or_default()).expect("its configuration is JSON");
    assert_eq!(config, json!({ "region": "eu-1", "token": "${COURIER_TOKEN}", "other": "${COURIER_OTHER}" }));
    output.says(&["COURIER_TOKEN", "secret", "COURIER_OTHER", "hermes plugins grant courier"]);
}

#[test]
fn a_secret_is_redacted_in_the_plugins_log() {
    let secret = json!([{ "name": "token", "env": "COURIER_TOKEN", "audience": "http://127.0.0.1:9/" }]);
    let server = Server::scripted([Reply::calls([Call::new("call_1", "config", &json!({}))]), Reply::text("Done.")]);
    let home = home(&server, json!({ "secrets": secret }), json!({ "pasted": TOKEN }));
    let output = home.hermes(&["-z", "go"]).env("COURIER_TOKEN", TOKEN).run().success();
    assert!(!output.stderr.contains(TOKEN), "{output}");
    let log = home.read("logs/courier.jsonl");
    assert!(log.contains("[REDACTED]") && !log.contains(TOKEN), "{log}");
}
