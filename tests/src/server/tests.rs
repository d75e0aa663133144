#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::*;
use crate::billing::{BreakpointCache, ImplicitCache};

/// Posts a body like a simple client. The second value is false if the connection broke.
fn post(server: &Server, body: &Value) -> (String, bool) {
    post_to(server, "/v1/chat/completions", body)
}

fn post_to(server: &Server, path: &str, body: &Value) -> (String, bool) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-test: yes\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reply = String::new();
    let read = stream.read_to_string(&mut reply).is_ok();
    (reply.clone(), read && reply.ends_with("0\r\n\r\n"))
}

fn ask(streaming: bool) -> Value {
    json!({"model": "m", "stream": streaming, "tools": [{}], "messages": [{"role": "user", "content": "hi"}]})
}

#[test]
fn a_reply_is_streamed_or_whole_as_the_request_asks() {
    let server = Server::answering(|_, number| Reply::text(format!("reply number {number}")));
    let (streamed, complete) = post(&server, &ask(true));
    assert!(complete && streamed.contains("text/event-stream") && streamed.contains("data: [DONE]\n\n"), "{streamed}");
    assert!(streamed.matches("\ndata: ").count() >= 3, "{streamed}");
    let (whole, _) = post(&server, &ask(false));
    assert!(whole.contains("application/json") && whole.contains("reply number 1"), "{whole}");
    server.wait_for_finished(2);
    let requests = server.requests();
    assert_eq!(requests[0].last_user_text(), "hi");
    assert_eq!(requests[0].header("x-test"), Some("yes"));
    assert_eq!(requests[1].raw, ask(false).to_string());
}

#[test]
fn a_script_serves_only_the_conversation_and_ends() {
    let server = Server::scripted([Reply::text("first"), Reply::error(429, "slow down").header("retry-after", "7")]);
    assert!(post(&server, &json!({"messages": []})).0.contains("nothing is open"));
    assert!(post(&server, &ask(true)).0.contains("first"));
    let (refused, _) = post(&server, &ask(true));
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 7"), "{refused}");
    assert!(post(&server, &ask(true)).0.contains("no more replies"));
    assert_eq!((server.requests().len(), server.turns().len()), (4, 3));
}

#[test]
fn a_request_with_a_fault_is_refused_and_takes_no_reply() {
    let server = Server::scripted([Reply::text("the only reply").in_steps_of(100)]).checking(|wire, body| {
        match body["model"].as_str() {
            Some("m") => Ok(()),
            other => Err(format!("{} knows no model {other:?}", wire.name())),
        }
    });
    let mut wrong = ask(true);
    wrong["model"] = json!("n");
    let (refused, _) = post(&server, &wrong);
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("chat_completions knows no model"), "{refused}");
    assert!(post(&server, &ask(true)).0.contains("the only reply"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn one_script_serves_all_apis() {
    let server = Server::answering(|_, number| match number {
        0..6 => Reply::text("the same words").in_steps_of(100),
        _ => Reply::error(529, "overloaded"),
    });
    let ends = [
        ("/v1/chat/completions", "data: [DONE]\n"),
        ("/v1/messages", "event: message_stop\ndata: {"),
        ("/v1/responses", "event: response.completed\ndata: {"),
    ];
    for streaming in [true, false] {
        for (path, _) in ends {
            let (response, _) = post_to(&server, path, &ask(streaming));
            assert!(response.contains("the same words"), "{response}");
            for (of, end) in ends {
                assert_eq!(response.contains(end), streaming && path == of, "{response}");
            }
        }
    }
    let (refused, _) = post_to(&server, "/v1/messages", &ask(true));
    assert!(refused.starts_with("HTTP/1.1 529") && refused.contains("overloaded_error"), "{refused}");
    assert!(post_to(&server, "/v1/v1/messages", &ask(true)).0.starts_with("HTTP/1.1 404"));
    let wires: Vec<Wire> = server.requests().iter().map(|request| request.wire).collect();
    let [chat, anthropic, responses] = [Wire::ChatCompletions, Wire::AnthropicMessages, Wire::Responses];
    assert_eq!(wires, [chat, anthropic, responses, chat, anthropic, responses, anthropic]);
}

#[test]
fn a_server_with_a_cache_bills_and_reports() {
    let server = Server::answering(|_, number| if number == 0 { Reply::error(500, "no") } else { Reply::text("hi") });
    let server = server.with_cache(BreakpointCache::new());
    let mut body = ask(false);
    body["messages"][0]["content"] = json!([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]);
    for read in [false, false, true] {
        let (response, _) = post_to(&server, "/v1/messages", &body);
        let bill = server.requests().pop().unwrap().bill;
        assert_eq!(bill.is_some_and(|bill| bill.read > 0), read, "{response}");
        if let Some(bill) = bill {
            assert_eq!(bill.read + bill.written, bill.prompt);
            assert!(response.contains(&format!("\"cache_read_input_tokens\":{}", bill.read)), "{response}");
            assert!(response.contains("\"input_tokens\":0"), "{response}");
        }
    }
    server.advance(Duration::from_secs(300));
    post_to(&server, "/v1/messages", &body);
    assert_eq!(server.requests().pop().unwrap().billed().read, 0);

    let server = Server::answering(|_, _| Reply::text("hi")).with_cache(ImplicitCache::new());
    let first = post(&server, &ask(false)).0;
    let second = post(&server, &ask(false)).0;
    let prompt = server.requests()[0].billed().prompt;
    assert!(first.contains("\"cached_tokens\":0"), "{first}");
    assert!(second.contains(&format!("\"cached_tokens\":{prompt}")), "{second}");
}

#[test]
fn a_script_can_report_another_cache_or_none() {
    let server = Server::answering(|_, number| {
        let reply = Reply::text("hi").usage(100, 1);
        if number < 3 { reply.cached(80, 5) } else { reply.without_cache_counters() }
    });
    let server = server.with_cache(BreakpointCache::new());
    let body_of = |path: &str| post_to(&server, path, &ask(false)).0;
    let chat = body_of("/v1/chat/completions");
    assert!(chat.contains("\"prompt_tokens\":100") && chat.contains("\"cached_tokens\":80"), "{chat}");
    let anthropic = body_of("/v1/messages");
    for count in ["\"input_tokens\":15", "\"cache_read_input_tokens\":80", "\"cache_creation_input_tokens\":5"] {
        assert!(anthropic.contains(count), "{anthropic}");
    }
    let responses = body_of("/v1/responses");
    for count in ["\"input_tokens\":100", "\"cached_tokens\":80", "\"total_tokens\":101"] {
        assert!(responses.contains(count), "{responses}");
    }
    for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses"] {
        let silent = body_of(path);
        assert!(silent.contains("_tokens\":100") && !silent.contains("cache"), "{silent}");
    }
}

#[test]
fn a_cut_reply_ends_after_its_frames() {
    let server = Server::scripted([Reply::text("12345678abcdefgh").disconnect_after(2)]);
    let (reply, complete) = post(&server, &ask(true));
    assert!(reply.contains("12345678") && !reply.contains("abcdefgh") && !complete, "{reply}");
    server.wait_for_faults(1);
}

#[test]
fn a_hanging_reply_keeps_the_connection_until_the_server_stops() {
    let server = Server::scripted([Reply::text("12345678abcdefgh").hang_after(2)]);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let body = ask(true).to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("12345678") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the reply ended before its second frame");
    }
    server.wait_for_faults(1);
    drop(server);
    let mut rest = String::new();
    drop(reader.read_to_string(&mut rest));
    assert!(!rest.contains("abcdefgh"), "{rest}");
}

#[test]
fn a_dead_endpoint_has_no_listener() {
    let url = dead_endpoint();
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    assert!(TcpStream::connect(address).is_err());
}
