use std::fs::File;

use hermes_tests::{Call, Home, KEY, Reply, Server, dead_endpoint};
use serde_json::{Value, json};

use super::Screens;

/// A model that always gives this reply.
fn model(reply: Reply) -> Server {
    Server::answering(move |_, _| reply.clone())
}

/// A server that asks for a very short wait before the next try.
fn at_once(reply: Reply) -> Reply {
    reply.header("retry-after-ms", "1")
}

fn refusal(status: u16, code: &str, message: &str) -> Reply {
    Reply::json(status, &json!({"error": {"message": message, "code": code}}))
}

/// A stream that says something and then this, so that it is not tried again.
fn events(data: &str) -> Reply {
    let first = json!({"choices": [{"index": 0, "delta": {"content": "Well."}}]});
    Reply::raw(200, "text/event-stream", format!("data: {first}\n\ndata: {data}\n\n"))
}

#[test]
fn replies_of_models() {
    let mut screens = Screens::default();
    let home = Home::with(&model(Reply::text("Nobody asks.")));
    home.use_endpoint(&dead_endpoint());
    screens.error("a refused connection", &home, home.hermes(&["-z", "hello"]));
    for (situation, reply) in [
        ("401", Reply::error(401, &format!("incorrect API key provided: {KEY}"))),
        ("402", Reply::error(402, "your balance is empty")),
        ("403", Reply::error(403, "this key may not use the model")),
        ("404", Reply::error(404, "the model does not exist")),
        ("429, also when asked again", at_once(Reply::error(429, "too many requests in this minute"))),
        ("429 for a used-up quota", refusal(429, "insufficient_quota", "you exceeded your quota")),
        ("500, also when asked again", at_once(Reply::error(500, "something broke"))),
        ("400", Reply::error(400, "temperature must not be set")),
        ("400 by a policy", refusal(400, "content_policy_violation", "this was flagged")),
        ("400 for a prompt that is too long", refusal(400, "context_length_exceeded", "at most 8192 tokens")),
        ("a redirect", Reply::raw(307, "text/plain", "").header("location", "http://127.0.0.1:9/v1/chat/completions")),
        ("a web page", Reply::raw(200, "text/html", "<html><body>It works!</body></html>")),
        ("a stream that is not JSON", events("{\"choices\": [")),
        ("an error in the stream", events("{\"error\": {\"message\": \"out of memory\", \"code\": 500}}")),
        ("a connection that is closed in the middle", Reply::text("This answer has no end.").disconnect_after(2)),
        ("an empty answer, twice", Reply::text("")),
    ] {
        let server = model(reply);
        let home = Home::with(&server);
        screens.error(situation, &home, home.hermes(&["-z", "hello"]));
    }
    let server = model(at_once(Reply::error(529, "we are overloaded")));
    let home = Home::with_anthropic(&server);
    screens.error("529 of Anthropic's messages", &home, home.hermes(&["-z", "hello"]));
    let server = Server::answering(|_, number| match number {
        0 => at_once(Reply::error(503, "a short break")),
        _ => Reply::text("Hello."),
    });
    let home = Home::with(&server);
    screens.notice("a failure that passes", &home, home.hermes(&["-z", "hello"]));
    insta::assert_snapshot!(screens.text());
}

#[test]
fn messages_that_cannot_be_answered() {
    let mut screens = Screens::default();
    let read = Reply::calls([Call::new("call_0", "read_file", &json!({"path": "notes.txt"}))]);
    let server = model(read);
    let home = Home::with(&server);
    home.write_workspace("notes.txt", "hello");
    home.set("agent.max_turns", json!(2));
    screens.error("as many requests as a turn may make", &home, home.hermes(&["-z", "Read."]));
    let server = model(Reply::text("Hello."));
    let home = Home::with(&server);
    home.set("model.context_length", json!(8_000));
    home.write_workspace("long.txt", "");
    let long = home.hermes(&["-z"]).stdin(&"All of this is one message. ".repeat(2_000));
    screens.error("a message that is longer than the window", &home, long);

    let home = Home::with(&server);
    home.write_workspace("chart.gif", b"GIF89a\x01\0\x01\0 a very small chart");
    home.write_workspace("empty.png", "");
    home.write_workspace("notes.png", "These are words.");
    File::create(home.workspace().join("huge.png")).unwrap().set_len(21_000_000).unwrap();
    for (situation, file) in [
        ("an image that does not exist", "missing.png"),
        ("an empty image", "empty.png"),
        ("an image that is text", "notes.png"),
        ("an image that is too large", "huge.png"),
        ("a folder as image", "."),
    ] {
        screens.error(situation, &home, home.hermes(&["-z", "What is this?", "--image", file]));
    }
    home.set("model.default", json!("deepseek-chat"));
    screens.error(
        "an image for a model without vision",
        &home,
        home.hermes(&["-z", "What is this?", "--image", "chart.gif"]),
    );
    insta::assert_snapshot!(screens.text());
}

#[test]
fn logins() {
    let mut screens = Screens::default();
    let server = model(Reply::text("Hello."));
    let home = Home::with(&server);
    home.set("model.api_key", Value::Null);
    home.set("model.auth", json!("work"));
    let mut error = |situation: &str| screens.error(situation, &home, home.hermes(&["-z", "hello"]));
    error("a login without auth.json");
    home.write("auth.json", "{");
    error("auth.json that is not JSON");
    home.write("auth.json", json!({"logins": {"home": {}}}).to_string());
    error("a login that is not in auth.json");
    home.write("auth.json", json!({"logins": {"work": {"client_id": "hermes-test"}}}).to_string());
    error("a login without its refresh token");
    let login = |token_url: &str, refresh_token: &str| {
        let login = json!({"token_url": token_url, "client_id": "hermes-test", "refresh_token": refresh_token,
            "access_token": "access-0", "expires_at": 1});
        json!({"logins": {"work": login}}).to_string()
    };
    home.write("auth.json", login(&server.token_url(), "refresh-replaced"));
    error("a refresh token that was replaced");
    home.write("auth.json", login(&dead_endpoint(), "refresh-0"));
    error("a token server that does not answer");
    insta::assert_snapshot!(screens.text());
}
