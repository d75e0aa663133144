//! Anthropic's messages against the scripted server.

use hermes_diagnostic::Diagnose as _;
use serde_json::{Value, json};

use super::*;

/// Events with their names, as the vendor sends them.
fn stream(events: &[Value]) -> Script {
    let mut script = vec![head("200 OK", "text/event-stream; charset=utf-8")];
    script.extend(events.iter().map(|event| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message")).into_bytes()
    }));
    script
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"model": "served", "usage":
        {"input_tokens": 12, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": 1}}})
}

fn words(index: u64, words: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": words}})
}

fn stop() -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]
}

fn whole(text: &str) -> Script {
    let [reason, end] = stop();
    stream(&[start(), words(0, text), reason, end])
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn provider(server: &Server) -> Remote {
    let base = format!("http://{}", server.address);
    Remote::new(&route(&base, &[("api_key", KEY), ("api_mode", "anthropic_messages")]), &logins(), BRIEF).unwrap()
}

#[tokio::test]
async fn an_answer_streams_and_the_request_is_what_the_vendors_library_would_send() {
    let [reason, end] = stop();
    let ping = json!({"type": "ping"});
    let server = Server::start(vec![stream(&[start(), words(0, "Hel"), ping, words(0, "lo"), reason, end])]).await;
    let (reply, shown) = ask(&provider(&server)).await;
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.finish, &*reply.model), ("Hello", Finish::Stop, "served"));
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.cache_read, usage.output)), Some((112, 100, 3)));
    assert_eq!(shown, ["Hel", "lo"]);

    let (head, body) = &server.requests()[0];
    assert!(head.starts_with("post /v1/messages http/1.1"), "{head}");
    for header in
        ["anthropic-version: 2023-06-01", &format!("x-api-key: {KEY}"), &format!("authorization: bearer {KEY}")]
    {
        assert!(head.contains(header), "{header} is missing: {head}");
    }
    assert_eq!(
        body,
        concat!(
            r#"{"model":"asked-model","max_tokens":127970,"stream":true,"#,
            r#""system":[{"type":"text","text":"be brief"}],"#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}"#
        )
    );
}

#[tokio::test]
async fn a_reply_needs_no_end_of_the_connection_and_may_come_in_one_piece() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let held = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(&whole("whole").concat()).await.unwrap();
        socket
    });
    // Nothing follows the end of a message, so that nothing is waited for.
    let patience = Patience { rest: Duration::from_secs(3600), ..BRIEF };
    let remote = Remote::new(&route(&base, &[("api_mode", "anthropic_messages")]), &logins(), patience).unwrap();
    assert_eq!(ask(&remote).await.0.unwrap().text, "whole");
    drop(held.await.unwrap());

    let message = json!({"type": "message", "model": "served", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "c", "name": "ls", "input": {"p": 1}}],
        "usage": {"input_tokens": 5, "output_tokens": 2}});
    let server = Server::start(vec![answer("200 OK", "", &message.to_string())]).await;
    let (reply, shown) = ask(&provider(&server)).await;
    let reply = reply.unwrap();
    assert_eq!((reply.finish, &*reply.tool_calls[0].arguments), (Finish::ToolCalls, r#"{"p":1}"#));
    assert_eq!(shown, ["so", "call:ls"]);
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_an_error() {
    let call = json!({"type": "content_block_start", "index": 1,
        "content_block": {"type": "tool_use", "id": "c", "name": "write_file", "input": {}}});
    let [_, end] = stop();
    let half_an_event =
        [stream(&[start(), words(0, "half")]).concat(), b"event: message_stop\ndata: {\"type\":".to_vec()];
    for script in [
        stream(&[start(), words(0, "half")]),
        stream(&[start(), words(0, "half"), call]),
        vec![half_an_event.concat()],
        [stream(&[start(), words(0, "half")]), vec![b"data: [DONE]\n\n".to_vec()]].concat(),
    ] {
        let server = Server::start(vec![script]).await;
        match ask(&provider(&server)).await.0 {
            Err(ModelError::Cut { partial, .. }) => assert_eq!(partial, "half"),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests().len(), 1, "something was shown already");
    }
    // Nothing was shown: an empty stream is tried again.
    let server = Server::start(vec![stream(&[]), stream(&[start(), end]), whole("third")]).await;
    let (reply, _) = ask(&provider(&server)).await;
    assert_eq!(reply.unwrap().text, "", "a message without blocks is whole");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn what_may_pass_is_tried_again_also_from_within_a_stream() {
    let overloaded = stream(&[error("overloaded_error", "Overloaded")]);
    let busy = answer("529 Overloaded", "", &error("overloaded_error", "Overloaded").to_string());
    let limited = answer("429 Too Many Requests", "retry-after: 0\r\n", &error("rate_limit_error", "slow").to_string());
    for first in [overloaded, busy, limited] {
        let server = Server::start(vec![first, whole("awake")]).await;
        let (reply, shown) = ask(&provider(&server)).await;
        assert_eq!(reply.unwrap().text, "awake");
        assert!(shown[0].starts_with("notice:trying again"), "{shown:?}");
        let requests = server.requests();
        assert!(requests.len() == 2 && requests[0].1 == requests[1].1, "the same bytes each time");
    }
    // Not once something was shown.
    let server = Server::start(vec![stream(&[start(), words(0, "so"), error("overloaded_error", "Overloaded")])]).await;
    assert!(matches!(ask(&provider(&server)).await.0, Err(ModelError::Server { status: 529, .. })));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_will_not_pass_is_said_at_once() {
    for (status, kind, message, expected) in [
        ("401 Unauthorized", "authentication_error", "invalid x-api-key sk-secret-0123456789abcdef", "check the key"),
        ("400 Bad Request", "invalid_request_error", "Your credit balance is too low", "no credit or quota left"),
        ("404 Not Found", "not_found_error", "model: asked-model", "has no model `asked-model`"),
        (
            "400 Bad Request",
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            "longer than the model's",
        ),
        ("400 Bad Request", "invalid_request_error", "messages: roles must alternate", "does not accept the request"),
    ] {
        let server = Server::start(vec![answer(status, "", &error(kind, message).to_string())]).await;
        let error = ask(&provider(&server)).await.0.unwrap_err().sentence();
        assert!(error.contains(expected) && !error.contains("0123456789"), "{error}");
        assert_eq!(server.requests().len(), 1, "{message}");
    }
    let chat = r#"{"choices":[{"message":{"content":"hi"}}]}"#;
    let server = Server::start(vec![answer("200 OK", "", chat)]).await;
    let error = ask(&provider(&server)).await.0.unwrap_err().sentence();
    assert!(error.contains("it has no `content`") && error.contains("model.api_mode"), "{error}");
}

#[tokio::test]
async fn a_cap_that_does_not_fit_beside_the_prompt_is_lowered_once() {
    let message = "input length and `max_tokens` exceed context limit: 188240 + 64000 > 200000";
    let refused = answer("400 Bad Request", "", &error("invalid_request_error", message).to_string());
    let server = Server::start(vec![refused.clone(), whole("fits")]).await;
    assert_eq!(ask(&provider(&server)).await.0.unwrap().text, "fits");
    assert!(server.requests()[1].1.contains(r#""max_tokens":11760,"#));

    let server = Server::start(vec![refused]).await;
    assert!(matches!(ask(&provider(&server)).await.0, Err(ModelError::TooLong { .. })));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_prefix_of_another_style_is_not_sent() {
    let server = Server::start(vec![whole("never")]).await;
    let prefix = Prefix::new(crate::Style::PLAIN, "", System::plain("s")).unwrap();
    let request = Request {
        model: "m",
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: None,
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    };
    let error = provider(&server).complete(&request, &mut |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("ChatCompletions") && server.requests().is_empty(), "{error}");
}
