//! Logins to MCP servers on the web, against a server and a login server on this machine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hermes_tests::{Call, Home, Reply, Running, Server};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::fixtures::identity::{Form, fields, open};
use crate::fixtures::service::{Answer, Asked, Service};

/// What the server does.
#[derive(Default)]
struct State {
    /// The number of the newest access token and refresh token.
    newest: u64,
    /// Whether the newest access token is refused.
    is_revoked: bool,
    /// The code that was given to a browser, with its challenge and its redirect.
    code: Option<(String, String)>,
    /// Members that replace those of the metadata of the resource.
    resource: Value,
    /// Members that replace those of the metadata of the login server.
    issuer: Value,
    /// Whether it describes neither itself nor its login.
    is_silent: bool,
    /// What the newest access token allows, and what calls of tools need.
    granted: String,
    needed: Option<&'static str>,
    /// What it says before a login, if that is no refusal of each request.
    greeting: Option<Greeting>,
}

/// How a server with a login answers a greeting.
#[derive(Debug, Clone, Copy)]
enum Greeting {
    /// It greets anyone.
    Open,
    /// It speaks only versions since 2026-07-28.
    Later,
}

/// An MCP server with its login server; stops when dropped.
struct Guarded {
    service: Service,
    state: Arc<Mutex<State>>,
}

fn with(mut document: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    document
}

impl Guarded {
    fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let own = Arc::clone(&state);
        let service = Service::start_at(0, move |asked| {
            let state = &mut own.lock().unwrap_or_else(PoisonError::into_inner);
            let base = format!("http://{}", asked.header("host").unwrap_or_default());
            match asked.path.as_str() {
                "/mcp" => state.serve(asked),
                path if path.starts_with("/.well-known/") && state.is_silent => Answer::Json(404, json!({})),
                "/.well-known/oauth-protected-resource/mcp" => {
                    let servers = json!([base.clone()]);
                    let own = json!({"resource": format!("{base}/mcp"), "authorization_servers": servers, "scopes_supported": ["read"]});
                    Answer::Json(200, with(own, &state.resource))
                }
                "/.well-known/oauth-authorization-server" => {
                    let own = json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                        "code_challenge_methods_supported": ["S256"]});
                    Answer::Json(200, with(own, &state.issuer))
                }
                "/register" => Answer::Json(201, json!({"client_id": "client-1"})),
                "/authorize" => state.authorize(&fields(&asked.query)),
                "/token" => state.token(&fields(&asked.text)),
                _ => Answer::Json(404, json!({"error": "not_found"})),
            }
        });
        Self { service, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.service.url())
    }

    fn asked(&self, path: &str) -> Vec<Asked> {
        self.service.asked().into_iter().filter(|asked| asked.path == path).collect()
    }
}

impl State {
    fn serve(&mut self, asked: &Asked) -> Answer {
        if let Some(greeting) = self.greeting.filter(|_| self.newest == 0) {
            return match greeting {
                Greeting::Open if asked.body["method"] == "initialize" => {
                    let result =
                        json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}});
                    Answer::Json(200, json!({"jsonrpc": "2.0", "id": 0, "result": result}))
                }
                Greeting::Later if asked.header("mcp-protocol-version").is_none() => {
                    let error = json!({"code": -32020, "message": "Missing MCP-Protocol-Version header"});
                    Answer::Json(400, json!({"jsonrpc": "2.0", "id": 0, "error": error}))
                }
                _ => Answer::With(401, ("www-authenticate", "Bearer scope=\"behind\""), json!({})),
            };
        }
        let right = format!("Bearer access-secret-{}", self.newest);
        if self.newest == 0 || self.is_revoked || asked.header("authorization") != Some(&right) {
            return Answer::With(401, ("www-authenticate", "Bearer error=\"invalid_token\""), json!({}));
        }
        if let Some(needed) =
            self.needed.filter(|needed| asked.body["method"] == "tools/call" && self.granted != *needed)
        {
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            return Answer::With(403, ("www-authenticate", challenge.leak()), json!({}));
        }
        let result = match asked.body["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": asked.body["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "hello from behind the login"}]}),
            _ => return Answer::Raw(202, Vec::new()),
        };
        Answer::Json(200, json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}))
    }

    /// A browser whose user logs in at once.
    fn authorize(&mut self, query: &Form) -> Answer {
        let mut back = Url::parse(&query["redirect_uri"]).expect("it is an address");
        self.granted = query.get("scope").cloned().unwrap_or_default();
        self.code = Some((query["code_challenge"].clone(), query["redirect_uri"].clone()));
        back.query_pairs_mut().append_pair("code", "code-secret").append_pair("state", &query["state"]);
        Answer::Moved(back.to_string())
    }

    fn token(&mut self, form: &Form) -> Answer {
        let refused = || Answer::Json(400, json!({"error": "invalid_grant"}));
        match form["grant_type"].as_str() {
            "authorization_code" => {
                let Some((challenge, redirect)) = self.code.take() else { return refused() };
                let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
                if hash != challenge || form["redirect_uri"] != redirect || form["client_id"] != "client-1" {
                    return refused();
                }
            }
            _ if form["refresh_token"] == format!("refresh-secret-{}", self.newest) => {}
            _ => return refused(),
        }
        self.newest += 1;
        self.is_revoked = false;
        Answer::Json(
            200,
            json!({"access_token": format!("access-secret-{}", self.newest), "token_type": "Bearer", "expires_in": 3_600,
                "refresh_token": format!("refresh-secret-{}", self.newest)}),
        )
    }
}

/// The address that a login asks the user to open.
fn address(login: &Running) -> String {
    login.wait_for_stdout("waiting for you");
    let shown = login.stdout();
    let line = shown.lines().find(|line| line.trim_start().starts_with("http://"));
    line.expect("it shows an address").trim().to_owned()
}

fn log_in(home: &Home) {
    let login = home.hermes(&["mcp", "login", "notes"]).spawn();
    let page = address(&login);
    let back = open(&page).location.expect("the browser is sent back");
    assert_eq!(open(&back).status, 200);
    let output = login.wait().success();
    assert!(output.stdout.contains("logged in to `mcp:notes`"), "{output}");
    assert!(!format!("{output}").contains("-secret"), "{output}");
}

#[test]
fn a_server_that_asks_for_a_login_only_behind_its_greeting_gets_the_scope_that_it_names() {
    for greeting in [Greeting::Open, Greeting::Later] {
        let guarded = Guarded::start();
        guarded.state().greeting = Some(greeting);
        let server = model_that_greets();
        let home = Home::with(&server);
        home.hermes(&["mcp", "add", "notes", "--url", &guarded.url(), "--no-test"]).run().success();
        log_in(&home);
        let page = fields(&guarded.asked("/authorize")[0].query);
        assert_eq!(page["scope"], "behind", "{greeting:?}");
    }
}

#[test]
fn a_server_that_wants_a_login_gets_its_token_and_a_new_one_after_a_refusal() {
    let guarded = Guarded::start();
    let server = model_that_greets();
    let home = Home::with(&server);
    home.hermes(&["mcp", "add", "notes", "--url", &guarded.url()])
        .run()
        .success()
        .says(&["added `notes`; it wants a login: run `hermes mcp login notes`"]);
    home.hermes(&["mcp", "test", "notes"]).run().exits(5).says(&["wants a login", "run `hermes mcp login notes`"]);
    // One line, and the session goes on.
    let output = home.hermes(&["-z", "go"]).run();
    assert_eq!(output.stderr.matches("hermes mcp login notes").count(), 1, "{output}");
    log_in(&home);
    let registered = &guarded.asked("/register")[0].body;
    let redeemed = fields(&guarded.asked("/token")[0].text);
    assert_eq!(registered["redirect_uris"], json!([redeemed["redirect_uri"]]));
    assert_eq!((redeemed["resource"].as_str(), registered["scope"].as_str()), (&*guarded.url(), Some("read")));
    let page = fields(&guarded.asked("/authorize")[0].query);
    assert_eq!((page["resource"].as_str(), page["scope"].as_str()), (&*guarded.url(), "read"));
    assert!(home.hermes(&["mcp", "test", "notes"]).run().success().stdout.contains("mcp_notes_greet"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(home.path().join("auth.json")).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    // The server revokes the token before it expires: a session gets another one and does not notice.
    guarded.state().is_revoked = true;
    // Without its list, the session asks the server at once.
    std::fs::remove_file(home.path().join("mcp/notes.json")).expect("it is kept");
    home.hermes(&["-z", "go"]).run().success();
    let last = fields(&guarded.asked("/token").last().expect("it was refreshed").text);
    assert_eq!((last["grant_type"].as_str(), last["resource"].as_str()), ("refresh_token", &*guarded.url()));
    home.hermes(&["mcp", "logout", "notes"]).run().success();
    home.hermes(&["mcp", "test", "notes"]).run().exits(5).says(&["run `hermes mcp login notes`"]);
}

fn model_that_greets() -> Server {
    Server::answering(|body, _| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        match last["role"] == "user" {
            true => Reply::calls([Call::new("c", "mcp_notes_greet", &json!({}))]),
            false => Reply::text("Done."),
        }
    })
}

#[test]
fn a_call_that_needs_a_wider_login_names_the_command_that_widens_it() {
    let (guarded, server) = (Guarded::start(), model_that_greets());
    let home = Home::with(&server);
    home.set("mcp_servers.notes", json!({"url": guarded.url()}));
    home.set("approvals.allow", json!(["notes"]));
    log_in(&home);
    guarded.state().needed = Some("read write");
    let widen = "hermes mcp login notes --scope 'read write'";
    home.hermes(&["-z", "go"]).run().success().says(&["the login must also allow `read write`", widen]);
    let result =
        |server: &Server| server.last_turn().messages().last().map(|last| last["content"].clone()).unwrap_or_default();
    assert!(
        result(&server).as_str().is_some_and(|text| text.contains("must also allow `read write`")),
        "{}",
        result(&server)
    );
    let login = home.hermes(&["mcp", "login", "notes", "--scope", "read write"]).spawn();
    let back = open(&address(&login)).location.expect("the browser is sent back");
    assert_eq!(open(&back).status, 200);
    login.wait().success();
    home.hermes(&["-z", "go"]).run().success();
    assert!(
        result(&server).as_str().is_some_and(|text| text.contains("hello from behind the login")),
        "{}",
        result(&server)
    );
}

#[test]
fn a_server_of_the_first_version_that_describes_nothing_has_its_login_at_the_usual_places() {
    let guarded = Guarded::start();
    guarded.state().is_silent = true;
    let home = Home::new();
    home.set("mcp_servers.notes", json!({"url": guarded.url()}));
    log_in(&home);
    assert!(home.hermes(&["mcp", "test", "notes"]).run().success().stdout.contains("mcp_notes_greet"));
    assert_eq!(guarded.asked("/register").len(), 1);
}

#[test]
fn a_program_and_a_server_with_a_key_have_no_login() {
    let home = Home::new();
    home.set("mcp_servers.fs", json!({"command": "x"}));
    home.set("mcp_servers.notes", json!({"url": "http://127.0.0.1:9/mcp", "headers": {"authorization": "Bearer x"}}));
    home.hermes(&["mcp", "login", "fs"]).run().exits(2).says(&["`fs` is a program"]);
    home.hermes(&["mcp", "login", "notes"]).run().exits(2).says(&["the header `Authorization` is set"]);
    home.hermes(&["mcp", "login", "other"]).run().refused().says(&["has no server `other`"]);
    home.hermes(&["mcp", "logout", "notes"]).run().refused().says(&["there is no login `mcp:notes`"]);
}

mod attack {
    use super::*;

    #[test]
    fn a_token_goes_to_no_other_address() {
        let (guarded, other) = (Guarded::start(), Guarded::start());
        let home = Home::new();
        home.set("mcp_servers.notes", json!({"url": guarded.url()}));
        log_in(&home);
        for url in [other.url(), format!("{}/other", guarded.service.url())] {
            home.set("mcp_servers.notes.url", json!(url));
            home.hermes(&["mcp", "test", "notes"]).run().exits(5);
        }
        let strangers = other.asked("/mcp").into_iter().chain(guarded.asked("/other"));
        assert!(strangers.map(|asked| asked.header("authorization").map(str::to_owned)).all(|sent| sent.is_none()));
    }

    #[test]
    fn hostile_metadata_ends_the_login_before_a_browser_opens() {
        for (is_issuer, changes, says) in [
            (false, json!({"resource": "https://bank.test/mcp"}), "is about another address"),
            (false, json!({"resource": null}), "is about another address"),
            (false, json!({"authorization_servers": []}), "names no login server"),
            (false, json!({"authorization_servers": ["http://login.test"]}), "does not begin with https://"),
            (true, json!({"issuer": "https://bank.test"}), "is about another login server"),
            (true, json!({"authorization_endpoint": "javascript:alert(1)"}), "does not begin with https://"),
            (true, json!({"token_endpoint": "http://thief.test/token"}), "does not begin with https://"),
            (true, json!({"authorization_endpoint": "https://bank.test@thief.test/"}), "has a user name"),
            (true, json!({"code_challenge_methods_supported": ["plain"]}), "no login with a proof key"),
            (true, json!({"registration_endpoint": null}), "registers no programs"),
            (true, json!({"authorization_endpoint": "x".repeat(60 << 10)}), "is too long"),
        ] {
            let guarded = Guarded::start();
            match is_issuer {
                true => guarded.state().issuer = changes,
                false => guarded.state().resource = changes,
            }
            let home = Home::new();
            home.set("mcp_servers.notes", json!({"url": guarded.url()}));
            let output = home.hermes(&["mcp", "login", "notes"]).run().exits(4).says(&[says, "hermes mcp login notes"]);
            assert!(!output.stdout.contains("open this address"), "{output}");
            assert!(!home.path().join("auth.json").exists());
        }
    }

    #[test]
    fn a_browser_with_another_state_changes_nothing() {
        let guarded = Guarded::start();
        let home = Home::new();
        home.set("mcp_servers.notes", json!({"url": guarded.url()}));
        let login = home.hermes(&["mcp", "login", "notes"]).spawn();
        let page = address(&login);
        let state = fields(Url::parse(&page).expect("it is an address").query().unwrap_or_default())["state"].clone();
        let back = open(&page).location.expect("the browser is sent back");
        assert_eq!(open(&back.replace(&state, "stolen")).status, 403);
        assert!(guarded.asked("/token").is_empty());
        assert_eq!(open(&back).status, 200);
        login.wait().success();
    }
}
