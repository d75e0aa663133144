//! Tables of answers, without a server.

use serde_json::{Value, json};

use super::*;
use crate::{Flow, LoginSettings};

fn client() -> LoginClient {
    let text = |text: &str| Some(text.to_owned());
    let settings = LoginSettings {
        flow: Some(Flow::Device),
        client_id: text("hermes-test"),
        client_secret: text("client-secret-0123"),
        device_url: text("https://id.test/device"),
        token_url: text("https://id.test/token"),
        ..LoginSettings::default()
    };
    LoginClient::new("work", &settings).unwrap()
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer::new("id.test".to_owned(), status, body.to_string().as_bytes())
}

fn begun(body: &Value) -> Result<Begun, LoginError> {
    let client = client();
    begin(&client, &answer(200, body), &Unsaid::of(&client))
}

/// A usable answer with some fields replaced; a null removes one.
fn with(fields: &Value) -> Value {
    let mut body = json!({"device_code": "device-code-0", "user_code": "WDJB-MJHT",
        "verification_uri": "https://id.test/enter", "expires_in": 600, "interval": 3});
    for (name, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(name)),
            value => body[name] = value.clone(),
        }
    }
    body
}

#[test]
fn a_login_begins_with_what_the_user_needs_to_know() {
    let whole = begun(&with(&json!({"verification_uri_complete": "https://id.test/enter?code=WDJB-MJHT"}))).unwrap();
    assert_eq!((whole.user_code.as_str(), whole.page.as_str()), ("WDJB-MJHT", "https://id.test/enter"));
    assert_eq!(whole.page_with_code.unwrap().as_str(), "https://id.test/enter?code=WDJB-MJHT");
    assert_eq!((whole.valid, whole.interval), (Duration::from_secs(600), Duration::from_secs(3)));
    for (fields, valid, interval) in [
        (json!({"expires_in": null, "interval": null}), 900, 5),
        (json!({"expires_in": 1_000_000_000, "interval": 0}), 3_600, 1),
        (json!({"expires_in": 0, "interval": 1_000_000_000}), 1, 3_600),
        (json!({"expires_in": "300", "interval": -4}), 300, 5),
        (json!({"expires_in": 1e300, "interval": 1e300}), 3_600, 3_600),
    ] {
        let begun = begun(&with(&fields)).unwrap();
        assert_eq!((begun.valid.as_secs(), begun.interval.as_secs()), (valid, interval), "{fields}");
    }
    let older = with(&json!({"verification_uri": null, "verification_url": "https://id.test/older"}));
    assert_eq!(begun(&older).unwrap().page.as_str(), "https://id.test/older");
}

#[test]
fn an_answer_that_lacks_something_or_misleads_ends_the_login() {
    let long = format!("https://id.test/{}", "a".repeat(3_000));
    for (fields, why) in [
        (json!({"device_code": null}), "has no device_code"),
        (json!({"device_code": " "}), "has no device_code"),
        (json!({"user_code": null}), "has no user_code"),
        (json!({"user_code": "\u{1b}\u{7}"}), "has no user_code"),
        (json!({"user_code": "A".repeat(65)}), "too long to be typed"),
        (json!({"verification_uri": null}), "has no verification_uri"),
        (json!({"verification_uri": "enter here"}), "is not a URL"),
        (json!({"verification_uri": "http://id.test/enter"}), "does not begin with https://"),
        (json!({"verification_uri": "file:///etc/passwd"}), "does not begin with https://"),
        (json!({"verification_uri": "javascript:alert(1)"}), "does not begin with https://"),
        (json!({"verification_uri": "https://id.test@evil.test/"}), "has a user name"),
        (json!({"verification_uri": long}), "is too long"),
    ] {
        let error = begun(&with(&fields)).unwrap_err();
        assert!(matches!(error, LoginError::Server { .. }) && error.to_string().contains(why), "{fields}: {error}");
    }
}

#[test]
fn texts_for_the_terminal_hold_no_control_characters() {
    let fields = json!({"user_code": "AB\u{1b}]0;title\u{7}\r\nCD", "verification_uri": "https://id.test/\u{1b}[2J\u{202e}a b",
        "verification_uri_complete": "https://evil.test/?code=AB"});
    let begun = begun(&with(&fields)).unwrap();
    assert!(!begun.user_code.contains(char::is_control), "{:?}", begun.user_code);
    assert!(begun.page.as_str().chars().all(|character| character.is_ascii_graphic()), "{}", begun.page);
    assert_eq!(begun.page_with_code, None, "a page of another server is not offered");
}

#[test]
fn each_answer_to_a_question_has_one_consequence() {
    let error = |word: &str| json!({"error": word, "error_description": "because"});
    let login = || "work".to_owned();
    let host = || "id.test".to_owned();
    let seconds = Duration::from_secs;
    let late = || Next::End(LoginError::Late { login: login(), after: seconds(600) });
    let denied = || Next::End(LoginError::Denied { login: login(), host: host() });
    let refused =
        |message: &str| Next::End(LoginError::Refused { login: login(), host: host(), message: message.to_owned() });
    let pause =
        |status: u16, words: &str| Next::Pause(seconds(6), format!("id.test failed (status {status}): {words}"));
    let granted = Tokens { access: "a".to_owned(), refresh: None, expires_in: None, scope: None };
    let no_token = "the answer of the token server id.test has no access_token".to_owned();
    for (status, body, consequence) in [
        (400, error("authorization_pending"), Next::Ask(seconds(3))),
        // Some servers send errors with the status 200.
        (200, error("authorization_pending"), Next::Ask(seconds(3))),
        (400, error("slow_down"), Next::Ask(seconds(8))),
        (429, error("slow_down"), Next::Ask(seconds(8))),
        (400, error("access_denied"), denied()),
        (403, error("access_denied"), denied()),
        (400, error("expired_token"), late()),
        (400, error("invalid_client"), refused("invalid_client: because (status 400)")),
        (401, json!({}), refused("not authorised (status 401)")),
        (429, json!({}), pause(429, "too many requests")),
        (500, json!({}), pause(500, "an error of the server")),
        (503, error("temporarily_unavailable"), pause(503, "temporarily_unavailable: because")),
        (302, json!({}), pause(302, "it redirects to another address, which Hermes does not follow")),
        (200, json!({"access_token": "a"}), Next::Granted(granted)),
        (200, json!({"token": "a"}), Next::End(client().failed(no_token))),
    ] {
        let next = next(&client(), Ok(answer(status, &body)), seconds(3), seconds(3), seconds(600));
        assert_eq!(next, consequence, "{status} {body}");
    }
}

#[test]
fn a_server_that_fails_is_asked_less_and_less_often_up_to_once_a_minute() {
    let mut pause = Duration::from_secs(5);
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let failed = Err(NoAnswer::Network("no connection".to_owned()));
        match next(&client(), failed, Duration::from_secs(5), pause, Duration::from_secs(600)) {
            Next::Pause(longer, _) => pause = longer,
            other => panic!("{other:?}"),
        }
        pauses.push(pause.as_secs());
    }
    assert_eq!(pauses, [10, 20, 40, 60, 60, 60]);
}
