//! A plugin's access to the web through the binary: the guest `tests/guests/courier` sends what the scripted model requests.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_tests::{Call, Home, Output, Reply, Server};
use serde_json::{Value, json};

/// The secret. No output, log, message or stored file may ever contain it.
const TOKEN: &str = "courier-token-0123456789abcdef";

/// A server that echoes and records the head of every request.
struct Echo {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback can be bound");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.extend_from_slice(&byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{head}", head.len());
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, heads }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    for (path, content) in home.snapshot() {
        assert!(!String::from_utf8_lossy(&content).contains(TOKEN), "{} has the secret", path.display());
    }
    let last = server.last_turn();
    assert!(!last.body.to_string().contains(TOKEN) && !output.stderr.contains(TOKEN), "{output}");
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
