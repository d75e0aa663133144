//! What becomes of a login: it expires while a reply arrives, is revoked at the provider, or is ended by `hermes logout`.

use std::time::Duration;

use hermes_tests::{Home, Reply, Server, dead_endpoint};
use serde_json::{Value, json};

use crate::fixtures::identity::{Identity, refused};
use crate::fixtures::service::Answer;

/// A home that is logged in to `work`, whose model is the server.
fn home(identity: &Identity, server: &Server) -> Home {
    let home = Home::with(server);
    home.set("model.api_key", Value::Null);
    home.set("model.auth", json!("work"));
    home.set("logins.work", identity.section("device"));
    identity.approve();
    home.hermes(&["login", "work"]).run().success();
    home
}

/// The tokens of the requests of the conversation, in order.
fn sent(server: &Server) -> Vec<String> {
    let header = |request: &hermes_tests::Request| request.header("authorization").unwrap().to_owned();
    server.turns().iter().map(header).collect()
}

fn refreshes(identity: &Identity) -> usize {
    identity.forms("/token").iter().filter(|form| form["grant_type"] == "refresh_token").count()
}

#[test]
fn a_token_that_expires_while_a_reply_arrives_is_refreshed_before_the_next_request() {
    let identity = Identity::start();
    identity.issue_for(2);
    let server = Server::answering(|_, number| match number {
        0 => Reply::text("a slow reply that arrives in many pieces").in_steps_of(4).every(Duration::from_millis(300)),
        _ => Reply::text("and a quick one"),
    });
    let home = home(&identity, &server);
    let mut chat = home.hermes(&[]).talking().spawn();
    chat.say("one");
    chat.wait_for_stdout("in many pieces");
    chat.say("two");
    chat.wait_for_stdout("a quick one");
    let output = chat.wait().success();
    assert!(output.stdout.contains("a slow reply that arrives in many pieces"), "{output}");
    // The reply takes longer than its token lives, so the next request needs another one.
    let sent = sent(&server);
    assert!(sent.len() == 2 && sent[0] != sent[1] && refreshes(&identity) >= 1, "{sent:?}");
}

#[test]
fn a_stream_that_is_refused_before_its_first_word_is_asked_for_again_with_a_new_token() {
    let identity = Identity::start();
    let server = Server::answering(|_, number| match number {
        0 => stream(&[json!({"error": {"code": 401, "message": "the token access-secret-1 has expired"}})]),
        _ => Reply::text("Good morning."),
    });
    let home = home(&identity, &server);
    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "Good morning.\n");
    assert_eq!(sent(&server), ["Bearer access-secret-1", "Bearer access-secret-2"]);
}

#[test]
fn a_stream_that_is_refused_in_the_middle_ends_the_turn_and_the_next_turn_has_a_new_token() {
    let identity = Identity::start();
    let server = Server::answering(|_, number| match number {
        0 => stream(&[
            json!({"choices": [{"index": 0, "delta": {"content": "half a rep"}}]}),
            json!({"error": {"code": 401, "message": "the token access-secret-1 has expired"}}),
        ]),
        1 => Reply::error(401, "the token access-secret-1 has expired"),
        _ => Reply::text("Good morning."),
    });
    let home = home(&identity, &server);
    let output = home.hermes(&["-z", "hello"]).run().exits(4);
    assert!(output.stderr.contains("the login `work`") && !format!("{output}").contains("-secret-"), "{output}");
    assert_eq!(sent(&server).len(), 1, "what was shown is not asked for twice");
    let output = home.hermes(&["-z", "hello again", "--continue"]).run().success();
    assert_eq!(output.stdout, "Good morning.\n");
    assert_eq!(sent(&server)[1..], ["Bearer access-secret-1", "Bearer access-secret-2"]);
    let stored = json!(home.messages()).to_string();
    assert!(stored.contains("hello again") && !stored.contains("half a rep"), "half a reply is not stored: {stored}");
}

/// A stream of chat completions that ends after these events.
fn stream(events: &[Value]) -> Reply {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::raw(200, "text/event-stream", body)
}

#[test]
fn a_login_that_the_provider_revoked_is_replaced_while_the_chat_runs() {
    let identity = Identity::start();
    identity.issue_for(1);
    let server = Server::answering(|_, _| Reply::text("Good morning."));
    let home = home(&identity, &server);
    identity.issue_for(3_600);
    identity.revoke_all();
    std::thread::sleep(Duration::from_millis(1_100));
    let mut chat = home.hermes(&[]).talking().spawn();
    chat.say("one");
    chat.wait_for_stderr("log in with `hermes login work`");
    home.hermes(&["login", "work"]).run().success();
    chat.say("two");
    chat.wait_for_stdout("Good morning.");
    chat.wait();
    assert_eq!((refreshes(&identity), sent(&server).len()), (1, 1));
}

#[test]
fn a_logout_revokes_both_tokens_and_removes_the_login() {
    let (identity, server) = (Identity::start(), Server::answering(|_, _| Reply::text("Good morning.")));
    let home = home(&identity, &server);
    let other = json!({"token_url": "https://other.test/token", "client_id": "c", "refresh_token": "r"});
    let mut file: Value = serde_json::from_str(&home.read("auth.json")).unwrap();
    file["logins"]["other"] = other.clone();
    home.write("auth.json", file.to_string());

    let output = home.hermes(&["logout", "work"]).run().success();
    assert!(output.stdout.contains("logged out of `work`; its tokens are revoked"), "{output}");
    let revoked: Vec<(String, String)> = identity
        .forms("/revoke")
        .into_iter()
        .map(|mut form| (form.remove("token_type_hint").unwrap(), form.remove("token").unwrap()))
        .collect();
    let expected = [("access_token", "access-secret-1"), ("refresh_token", "refresh-secret-1")];
    assert_eq!(revoked, expected.map(|(kind, token)| (kind.to_owned(), token.to_owned())));
    let file: Value = serde_json::from_str(&home.read("auth.json")).unwrap();
    assert_eq!(file["logins"], json!({"other": other}));
    let output = home.hermes(&["-z", "hello"]).run().exits(4);
    assert!(output.stderr.contains("log in with `hermes login work`"), "{output}");
    let output = home.hermes(&["logout", "work"]).run().exits(1);
    assert!(output.stderr.contains("there is no login `work`") && output.stderr.contains("login --list"), "{output}");
    assert!(server.turns().is_empty());
}

#[test]
fn a_login_whose_tokens_could_not_be_revoked_stays_until_the_user_says_otherwise() {
    let (identity, server) = (Identity::start(), Server::answering(|_, _| Reply::text("Good morning.")));
    let home = home(&identity, &server);
    let quoting = json!({"error": "server_error", "error_description": "cannot revoke access-secret-1\u{1b}[2J"});
    for (answer, why) in [
        (Answer::Json(503, quoting), "did not revoke its access_token (status 503): server_error: cannot revoke ***"),
        (refused("invalid_client"), "(status 400): invalid_client"),
        (Answer::Broken, "did not answer"),
        (Answer::Moved("https://evil.test/revoke".to_owned()), "redirects to another address"),
    ] {
        identity.answer_revocation_with(answer);
        let output = home.hermes(&["logout", "work"]).run().exits(4);
        assert!(output.stderr.contains("[login.not-revoked]") && output.stderr.contains(why), "{why} in {output}");
        assert!(output.stderr.contains("`hermes logout work --local`"), "{output}");
        assert!(!output.stderr.contains("-secret-") && !output.stderr.contains('\u{1b}'), "{output}");
    }
    assert_eq!(home.hermes(&["-z", "hello"]).run().success().stdout, "Good morning.\n");

    let asked = identity.forms("/revoke").len();
    let output = home.hermes(&["logout", "work", "--local"]).run().success();
    assert!(output.stdout.contains("its tokens stay valid until they expire"), "{output}");
    assert_eq!(identity.forms("/revoke").len(), asked, "with --local nobody is asked");
    let file: Value = serde_json::from_str(&home.read("auth.json")).unwrap();
    assert_eq!(file["logins"], json!({}));

    // Servers that cannot revoke access tokens, logins without an address for that, and logins that are no longer usable.
    home.hermes(&["login", "work"]).run().success();
    identity.answer_revocation_with(refused("unsupported_token_type"));
    assert!(home.hermes(&["logout", "work"]).run().success().stdout.contains("are revoked"));
    let half = json!({"client_id": "hermes-test", "refresh_token": 5});
    let kept = json!({"token_url": format!("{}/token", dead_endpoint()), "client_id": "c", "refresh_token": "r"});
    home.write("auth.json", json!({"logins": {"half": half, "kept": kept}}).to_string());
    assert!(home.hermes(&["logout", "half"]).run().success().stdout.contains("logged out of `half`"));
    assert!(home.hermes(&["logout", "kept"]).run().success().stdout.contains("it has no revoke_url"));
}
