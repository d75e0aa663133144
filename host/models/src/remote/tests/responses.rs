//! The Responses API against the scripted server.

use serde_json::{Value, json};

use super::*;

fn stream(events: &[Value]) -> Script {
    let mut script = vec![head("200 OK", "text/event-stream")];
    script.extend(events.iter().map(|event| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message")).into_bytes()
    }));
    script
}

fn words(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})
}

fn end() -> Value {
    let usage = json!({"input_tokens": 12, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 3});
    json!({"type": "response.completed", "response": {"status": "completed", "model": "served", "usage": usage}})
}

fn failed(code: &str, message: &str) -> Value {
    let error = json!({"code": code, "message": message});
    json!({"type": "response.failed", "response": {"status": "failed", "error": error}})
}

fn provider(server: &Server) -> Remote {
    Remote::new(&server.route(&[("api_key", KEY), ("api_mode", "codex_responses")]), &logins(), BRIEF).unwrap()
}

#[tokio::test]
async fn an_answer_streams_and_needs_no_end_of_the_connection() {
    let server = Server::start(vec![stream(&[words("Hel"), words("lo"), end(), words("!")])]).await;
    let (reply, shown) = ask(&provider(&server)).await;
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.finish, &*reply.model), ("Hello", Finish::Stop, "served"));
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.cache_read, usage.output)), Some((12, 8, 3)));
    assert_eq!(shown, ["Hel", "lo"]);
    let (head, body) = &server.requests()[0];
    assert!(head.starts_with("post /v1/responses http/1.1"), "{head}");
    assert!(head.contains(&format!("authorization: bearer {KEY}")), "{head}");
    assert!(body.ends_with(r#""instructions":"be brief","input":[{"role":"user","content":"hello"}]}"#), "{body}");
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_an_error() {
    let call = json!({"type": "response.output_item.done", "output_index": 1,
        "item": {"type": "function_call", "call_id": "c", "name": "write_file", "arguments": "{}"}});
    let half_an_event = [stream(&[words("half")]).concat(), b"data: {\"type\":\"response.comp".to_vec()];
    for script in [
        stream(&[words("half")]),
        stream(&[words("half"), call]),
        vec![half_an_event.concat()],
        [stream(&[words("half")]), vec![b"data: [DONE]\n\n".to_vec()]].concat(),
    ] {
        let server = Server::start(vec![script]).await;
        match ask(&provider(&server)).await.0 {
            Err(ModelError::Cut { partial, .. }) => assert_eq!(partial, "half"),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests().len(), 1, "something was shown already");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_also_from_within_a_stream() {
    let overloaded = json!({"type": "error", "code": "server_overloaded", "message": "Overloaded"});
    for first in [failed("server_error", "Oops"), failed("rate_limit_exceeded", "Slow down"), overloaded] {
        let server = Server::start(vec![stream(&[first]), stream(&[words("awake"), end()])]).await;
        let (reply, shown) = ask(&provider(&server)).await;
        assert_eq!(reply.unwrap().text, "awake");
        assert!(shown[0].starts_with("notice:trying again"), "{shown:?}");
        let requests = server.requests();
        assert!(requests.len() == 2 && requests[0].1 == requests[1].1, "the same bytes each time");
    }
    let server = Server::start(vec![stream(&[failed("invalid_prompt", "not this")])]).await;
    assert!(matches!(ask(&provider(&server)).await.0, Err(ModelError::BadRequest { status: 400, .. })));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_cap_that_is_too_high_is_lowered_once() {
    let message =
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 4096, but got 9000 instead.";
    let refused = answer("400 Bad Request", "", &json!({"error": {"message": message}}).to_string());
    let server = Server::start(vec![refused, stream(&[words("fits"), end()])]).await;
    assert_eq!(ask(&provider(&server)).await.0.unwrap().text, "fits");
    assert!(server.requests()[1].1.contains(r#""max_output_tokens":4096"#));
}

#[tokio::test]
async fn an_answer_of_another_api_is_named() {
    let chat = r#"{"choices":[{"message":{"content":"hi"}}]}"#;
    let server = Server::start(vec![answer("200 OK", "", chat)]).await;
    let error = ask(&provider(&server)).await.0.unwrap_err().sentence();
    assert!(error.contains("it has no `output`") && error.contains("model.api_mode"), "{error}");
}
