//! `hermes login` with a browser, against an identity provider on this machine.

use std::time::{Duration, Instant};

use hermes_tests::{Home, Reply, Running, Server};
use serde_json::{Value, json};
use url::Url;

use crate::fixtures::identity::{Identity, ask, fields, open};
use crate::fixtures::service::Answer;

fn home(identity: &Identity) -> Home {
    let home = Home::new();
    home.set("logins.work", identity.section("pkce"));
    home
}

/// The address that a login asks the user to open.
fn address(login: &Running) -> String {
    login.wait_for_stdout("waiting for you");
    let shown = login.stdout();
    let line = shown.lines().find(|line| line.trim_start().starts_with("http://")).unwrap();
    line.trim().to_owned()
}

fn field(address: &str, name: &str) -> String {
    fields(Url::parse(address).unwrap().query().unwrap())[name].clone()
}

#[track_caller]
fn assert_nothing_stored(home: &Home) {
    assert!(!home.path().join("auth.json").exists(), "{}", home.read("auth.json"));
}

#[test]
fn a_browser_logs_in_and_the_session_uses_its_token() {
    let (identity, server) = (Identity::start(), Server::answering(|_, _| Reply::text("Good morning.")));
    let home = Home::with(&server);
    home.set("logins.work", identity.section("pkce"));
    home.set("model.api_key", Value::Null);
    home.set("model.auth", json!("work"));
    let login = home.hermes(&["login", "work"]).spawn();
    let page = address(&login);
    let back = open(&page).location.unwrap();
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    let answer = open(&back);
    assert!(answer.status == 200 && answer.text.contains("return to the terminal"), "{}", answer.text);
    let output = login.wait().success();
    assert!(output.stdout.contains("logged in to `work`"), "{output}");
    let redeemed = &identity.forms("/token")[0];
    assert_eq!(
        (redeemed["redirect_uri"].as_str(), redeemed["client_id"].as_str()),
        (&*field(&page, "redirect_uri"), "hermes-test")
    );
    for hidden in ["-secret", redeemed["code_verifier"].as_str()] {
        assert!(!format!("{output}").contains(hidden), "{hidden} in {output}");
    }
    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "Good morning.\n");
    assert_eq!(server.last_turn().header("authorization"), Some("Bearer access-secret-1"));
}

#[test]
fn requests_of_strangers_neither_end_nor_disturb_a_login() {
    let identity = Identity::start();
    let home = home(&identity);
    let login = home.hermes(&["login", "work"]).spawn();
    let page = address(&login);
    let back = open(&page).location.unwrap();
    let host = Url::parse(&back).unwrap();
    let host = format!("127.0.0.1:{}", host.port().unwrap());
    let state = field(&page, "state");
    let statuses: Vec<u16> = [
        // A wrong state, none, and a state beside the right one.
        format!("GET /callback?code=evil&state=wrong HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET /callback?code=evil HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET /callback?code=evil&state=wrong&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        // Other places, other methods, and a page whose name leads to this machine.
        format!("GET /favicon.ico HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("POST /callback?code=evil&state={state} HTTP/1.1\r\nHost: {host}\r\ncontent-length: 0\r\n\r\n"),
        format!("GET /callback?code=evil&state={state} HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
    ]
    .iter()
    .map(|request| ask(&host, request).status)
    .collect();
    assert_eq!(statuses, [403, 403, 403, 404, 405, 421]);
    assert!(identity.forms("/token").is_empty(), "no code of a stranger is redeemed");
    assert_eq!(open(&back).status, 200);
    login.wait().success();
    assert_eq!(identity.forms("/token")[0]["code"], "code-secret");
}

#[test]
fn a_code_is_worth_nothing_without_the_verifier() {
    let identity = Identity::start();
    let home = home(&identity);
    let login = home.hermes(&["login", "work"]).spawn();
    let page = address(&login);
    // Somebody else's login, begun at the same provider, ends in this terminal.
    let other = open(&page.replace("code_challenge=", "code_challenge=x")).location.unwrap();
    assert_eq!(open(&other).status, 200);
    let output = login.wait().exits(4);
    assert!(output.stderr.contains("[login.refused]") && output.stderr.contains("invalid_grant"), "{output}");
    assert_nothing_stored(&home);
}

#[test]
fn a_login_that_is_refused_in_the_browser_says_so() {
    for (word, code, text) in [
        ("access_denied", "login.denied", "was denied at 127.0.0.1"),
        ("invalid_scope\u{1b}[2J\u{202e}", "login.refused", "invalid_scope"),
    ] {
        let identity = Identity::start();
        let home = home(&identity);
        identity.refuse_with(word);
        let login = home.hermes(&["login", "work"]).spawn();
        let back = open(&address(&login)).location.unwrap();
        assert!(open(&back).text.contains("was not granted"));
        let output = login.wait().exits(4);
        assert!(output.stderr.contains(&format!("[{code}]")) && output.stderr.contains(text), "{output}");
        assert!(!output.stderr.contains(['\u{1b}', '\u{202e}']), "{output:?}", output = output.stderr);
        assert_nothing_stored(&home);
    }
}

#[cfg(unix)]
#[test]
fn a_browser_is_started_only_on_request_and_gets_the_address_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let identity = Identity::start();
    let home = home(&identity);
    let (script, seen) = (home.workspace().join("browser"), home.workspace().join("seen"));
    std::fs::write(
        &script,
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}.new' && mv '{0}.new' '{0}'\n", seen.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = script.to_str().unwrap();
    let login = home.hermes(&["login", "work"]).env("BROWSER", program).spawn();
    let page = address(&login);
    open(&open(&page).location.unwrap());
    login.wait().success();
    assert!(!seen.exists(), "no browser without --browser");

    let login = home.hermes(&["login", "work", "--browser"]).env("BROWSER", program).spawn();
    let page = address(&login);
    let begun = Instant::now();
    while !seen.exists() {
        assert!(begun.elapsed() < Duration::from_secs(600), "the browser was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), format!("{page}\n"));
    open(&open(&page).location.unwrap());
    login.wait().success();

    let login = home.hermes(&["login", "work", "--browser"]).env("BROWSER", "/no/such/browser").spawn();
    let page = address(&login);
    login.wait_for_stderr("open the address yourself");
    open(&open(&page).location.unwrap());
    login.wait().success();
}

#[test]
fn addresses_that_leave_this_machine_in_the_clear_are_refused() {
    let identity = Identity::start();
    let home = home(&identity);
    for (key, value, why) in [
        ("redirect_url", "https://127.0.0.1/callback", "is not an http:// address of this machine"),
        ("redirect_url", "http://example.com/callback", "is not an http:// address of this machine"),
        ("redirect_url", "http://127.0.0.1/callback?next=1", "without a query"),
        ("authorize_url", "http://example.com/authorize", "does not begin with https://"),
        ("authorize_url", "file:///etc/passwd", "does not begin with https://"),
        ("authorize_url", "", "is not set"),
    ] {
        let mut section = identity.section("pkce");
        section[key] = json!(value);
        home.set("logins.work", section);
        let output = home.hermes(&["login", "work"]).run().exits(3);
        let named = format!("`logins.work.{key}` ");
        assert!(output.stderr.contains(&named) && output.stderr.contains(why), "{why} in {output}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut section = identity.section("pkce");
    section["redirect_url"] = json!(format!("http://localhost:{}/back", taken.local_addr().unwrap().port()));
    home.set("logins.work", section);
    let output = home.hermes(&["login", "work"]).run().exits(3);
    assert!(output.stderr.contains("of this machine cannot be used"), "{output}");
    assert!(identity.service().asked().is_empty());
}

#[cfg(unix)]
#[test]
fn ctrl_c_closes_the_port_and_stores_nothing() {
    let identity = Identity::start();
    let home = home(&identity);
    let login = home.hermes(&["login", "work"]).spawn();
    let redirect = Url::parse(&field(&address(&login), "redirect_uri")).unwrap();
    login.interrupt();
    login.wait().exits(130);
    assert!(std::net::TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).is_err());
    assert_nothing_stored(&home);
}

#[test]
fn an_answer_without_end_is_cut() {
    let identity = Identity::start();
    let home = home(&identity);
    let login = home.hermes(&["login", "work"]).spawn();
    let back = open(&address(&login)).location.unwrap();
    identity.answer_token_with(Answer::Raw(200, vec![b' '; 10 << 20]));
    open(&back);
    let output = login.wait().exits(4);
    assert!(output.stderr.contains("has more than 64 KiB"), "{output}");
    assert_nothing_stored(&home);
}
