//! A model server on loopback that answers every request at once with the same short text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};

const ANSWER: &str = "Hello.";

/// A server that runs until the process ends.
#[derive(Debug)]
pub(crate) struct Responder {
    port: u16,
}

impl Responder {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client may close the connection early.
                thread::spawn(move || drop(answer(stream)));
            }
        });
        Ok(Self { port })
    }

    /// The value for `model.base_url`.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let is_chat = line.contains("/chat/completions");
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();

    let (status, kind, content) = match (is_chat, request["stream"] == true) {
        (false, _) => ("404 Not Found", "application/json", r#"{"error":{"message":"not served"}}"#.to_owned()),
        (true, true) => ("200 OK", "text/event-stream", streamed()),
        (true, false) => ("200 OK", "application/json", whole()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{content}",
        content.len()
    )
}

fn streamed() -> String {
    let frame = |delta: &str, finish: &str| {
        format!(
            r#"data: {{"id":"c1","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        )
    };
    [
        frame(&format!(r#"{{"role":"assistant","content":"{ANSWER}"}}"#), "null"),
        frame("{}", r#""stop""#),
        "data: [DONE]".to_owned(),
    ]
    .map(|frame| frame + "\n\n")
    .concat()
}

fn whole() -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion","created":1,"model":"bench","choices":[{{"index":0,"message":{{"role":"assistant","content":"{ANSWER}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_is_streamed_or_whole_as_the_request_asks() {
        let port = Responder::start().unwrap().port;
        for (path, body, expected) in [
            ("/v1/chat/completions", r#"{"stream":true}"#, "data: [DONE]"),
            ("/v1/chat/completions", "{}", "chat.completion\""),
            ("/v1/models", "", "not served"),
        ] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            write!(stream, "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            assert!(reply.contains(expected), "{reply}");
        }
    }
}
