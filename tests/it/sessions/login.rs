//! `hermes login` against an identity provider on this machine.

use std::fs;
use std::time::Duration;

use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

use crate::fixtures::identity::{Identity, refused};
use crate::fixtures::service::Answer;

/// A home with the login `work`, and no file of logins yet.
fn home(identity: &Identity, flow: &str) -> Home {
    let home = Home::new();
    home.set("logins.work", identity.section(flow));
    home
}

fn kept(home: &Home) -> Value {
    serde_json::from_str(&home.read("auth.json")).unwrap()
}

/// What a login leaves behind when it fails.
#[track_caller]
fn assert_nothing_stored(home: &Home) {
    assert!(!home.path().join("auth.json").exists(), "{}", home.read("auth.json"));
}

#[test]
fn a_device_logs_in_with_a_code_and_the_session_uses_its_token() {
    let (identity, server) = (Identity::start(), Server::answering(|_, _| Reply::text("Good morning.")));
    let home = Home::with(&server);
    home.set("logins.work", identity.section("device"));
    home.set("model.api_key", Value::Null);
    home.set("model.auth", json!("work"));
    let missing = home.hermes(&["-z", "hello"]).run().exits(4);
    assert!(missing.stderr.contains("log in with `hermes login work`"), "{missing}");

    identity.answer_first_with([refused("authorization_pending"), Answer::Json(503, json!({}))]);
    let login = home.hermes(&["login", "work"]).spawn();
    login.wait_for_stdout("WDJB-MJHT");
    login.wait_for_stderr("trying again");
    identity.approve();
    let output = login.wait().success();
    let page = format!("open {}/enter in any browser", identity.service().url());
    for text in [page.as_str(), "valid for 10 minutes", "logged in to `work`", "refreshes its token"] {
        assert!(output.stdout.contains(text), "{text} in {output}");
    }
    let begun = &identity.forms("/device")[0];
    assert_eq!((begun["client_id"].as_str(), begun["scope"].as_str()), ("hermes-test", "models offline"));
    let kept = kept(&home);
    let login = &kept["logins"]["work"];
    assert_eq!(
        (&login["access_token"], &login["refresh_token"]),
        (&json!("access-secret-1"), &json!("refresh-secret-1"))
    );
    assert_eq!(login["scope"], "models", "a refresh asks for no more than was granted");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |name: &str| fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("auth.json"), mode("auth.json.lock")), (0o600, 0o600));
    }

    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "Good morning.\n");
    assert_eq!(server.last_turn().header("authorization"), Some("Bearer access-secret-1"));
    let listed = home.hermes(&["login", "--list", "--json"]).run().success();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        listed,
        json!([{"name": "openrouter", "flow": "key", "state": null}, {"name": "work", "flow": "device", "state": "valid"}])
    );
    let everything = format!("{output}{}", home.hermes(&["login", "--list", "-vv"]).run());
    assert!(!everything.contains("-secret"), "{everything}");
}

#[test]
fn a_second_login_replaces_the_first_and_keeps_the_rest_of_the_file() {
    let identity = Identity::start();
    let home = home(&identity, "device");
    identity.approve();
    let other = json!({"token_url": "https://other.test/token", "client_id": "c", "refresh_token": "r"});
    let old = json!({"token_url": "https://old.test/", "client_id": "c", "client_secret": "old", "note": "mine"});
    home.write("auth.json", json!({"version": 7, "logins": {"work": old, "other": other}}).to_string());
    home.hermes(&["login", "work"]).run().success();
    let kept = kept(&home);
    assert_eq!((&kept["version"], &kept["logins"]["other"]), (&json!(7), &other));
    let work = &kept["logins"]["work"];
    assert_eq!((&work["note"], work.get("client_secret")), (&json!("mine"), None), "{work}");
}

#[test]
fn a_device_that_asks_too_often_waits_longer() {
    let identity = Identity::start();
    let home = home(&identity, "device");
    identity.answer_first_with([refused("slow_down")]);
    identity.approve();
    let begun = std::time::Instant::now();
    home.hermes(&["login", "work"]).run().success();
    assert!(begun.elapsed() >= Duration::from_secs(1 + 6), "{:?}", begun.elapsed());
    assert_eq!(identity.forms("/token").len(), 2);
}

#[test]
fn a_login_that_fails_stores_nothing_and_says_what_to_do() {
    let begun = |fields: Value| {
        let mut body = json!({"device_code": "device-code-secret", "user_code": "WDJB", "interval": 1, "expires_in": 600,
            "verification_uri": "https://id.test/enter"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Some(Answer::Json(200, body))
    };
    let quoting =
        || Answer::Json(400, json!({"error": "invalid_grant", "error_description": "bad device-code-secret"}));
    for (first, asked, code, texts) in [
        (None, Some(refused("access_denied")), "login.denied", vec!["was denied at 127.0.0.1", "`hermes login work`"]),
        (None, Some(refused("expired_token")), "login.late", vec!["within 10 minutes", "`hermes login work`"]),
        (begun(json!({"expires_in": 1})), None, "login.late", vec!["nobody approved the login within 1 second"]),
        (None, Some(quoting()), "login.refused", vec!["invalid_grant: bad ***", "`logins.work`"]),
        (None, Some(Answer::Json(200, json!({"access_token": "a\nb"}))), "login.server", vec!["no header can carry"]),
        (Some(refused("invalid_client")), None, "login.refused", vec!["invalid_client"]),
        (Some(Answer::Raw(200, b"<html>".to_vec())), None, "login.server", vec!["has no device_code"]),
        (
            begun(json!({"verification_uri": "http://id.test/"})),
            None,
            "login.server",
            vec!["does not begin with https://"],
        ),
    ] {
        let identity = Identity::start();
        let home = home(&identity, "device");
        if let Some(first) = first {
            identity.begin_with(first);
        }
        identity.answer_first_with(asked);
        let output = home.hermes(&["login", "work"]).run().exits(4);
        assert!(output.stderr.contains(&format!("[{code}]")), "{code} in {output}");
        for text in texts {
            assert!(output.stderr.contains(text), "{text} in {output}");
        }
        assert!(!format!("{output}").contains("-secret"), "{output}");
        assert_nothing_stored(&home);
    }
}

#[test]
fn a_login_that_nothing_describes_is_refused_before_anything_is_asked() {
    let identity = Identity::start();
    let home = home(&identity, "device");
    let section = |key: &str, value: Value| {
        let mut section = identity.section("device");
        section[key] = value;
        section
    };
    let unknown = home.hermes(&["login", "wrk"]).run().exits(3);
    assert!(
        unknown.stderr.contains("nothing says how to log in to `wrk`")
            && unknown.stderr.contains("one of openrouter, work")
    );
    for (key, value, why) in [
        ("flow", json!(null), "`logins.work.flow` is not set"),
        ("client_id", json!(" "), "`logins.work.client_id` is not set"),
        ("device_url", json!(null), "`logins.work.device_url` is not set"),
        ("token_url", json!("http://id.test/token"), "`logins.work.token_url` does not begin with https://"),
        ("device_url", json!("ftp://id.test/"), "`logins.work.device_url` does not begin with https://"),
        ("revoke_url", json!("id.test"), "`logins.work.revoke_url` is not a URL"),
    ] {
        home.set("logins.work", section(key, value));
        let output = home.hermes(&["login", "work"]).run().exits(3);
        assert!(output.stderr.contains("[login.settings]") && output.stderr.contains(why), "{why} in {output}");
    }
    home.set("logins.work", section("client_secret", json!("${HERMES_TEST_SECRET}")));
    home.write("auth.json", "{\"logins\": secret");
    let output = home.hermes(&["login", "work"]).env("HERMES_TEST_SECRET", "very-secret").run().exits(3);
    assert!(output.stderr.contains("not valid JSON at line 1") && !output.stderr.contains("secret"), "{output}");
    assert!(identity.service().asked().is_empty(), "nobody should log in for a file that cannot take the tokens");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_login_at_once() {
    let identity = Identity::start();
    let home = home(&identity, "device");
    let login = home.hermes(&["login", "work"]).spawn();
    login.wait_for_stdout("waiting for you");
    login.interrupt();
    let output = login.wait().exits(130);
    assert!(output.stderr.contains("you pressed ctrl-c"), "{output}");
    assert_nothing_stored(&home);
}

#[test]
fn a_hostile_answer_neither_fills_the_memory_nor_reaches_the_terminal() {
    let identity = Identity::start();
    let home = home(&identity, "device");
    identity.begin_with(Answer::Raw(200, vec![b' '; 10 << 20]));
    let output = home.hermes(&["login", "work"]).run().exits(4);
    assert!(output.stderr.contains("has more than 64 KiB"), "{output}");

    let words = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}evil\r\nerror: fake";
    identity.begin_with(Answer::Json(
        200,
        json!({"device_code": "device-code-secret", "user_code": words, "interval": 1,
            "verification_uri": format!("https://id.test/{words}"), "verification_uri_complete": "https://evil.test/"}),
    ));
    identity.answer_first_with([Answer::Json(400, json!({"error": "invalid_grant", "error_description": words}))]);
    let output = home.hermes(&["login", "work"]).run().exits(4);
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']) && !shown.contains("evil.test"), "{shown:?}");
    assert!(!shown.lines().any(|line| line.starts_with("error: fake")), "{shown}");

    // The redirect of a token server is not followed: the form would go along.
    let elsewhere = Identity::start();
    identity.begin_with(Answer::Moved(format!("{}/device", elsewhere.service().url())));
    let output = home.hermes(&["login", "work"]).run().exits(4);
    assert!(
        output.stderr.contains("redirects to another address") && elsewhere.service().asked().is_empty(),
        "{output}"
    );
    assert_nothing_stored(&home);
}
