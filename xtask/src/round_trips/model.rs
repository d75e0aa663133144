//! A model on loopback that calls `read_file` again and again, and measures the time until the next request.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// The time between a reply with a call and the request with its result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trip {
    pub(crate) to_first_byte: Duration,
    /// Until the whole request has arrived.
    pub(crate) to_last_byte: Duration,
}

#[derive(Default)]
struct State {
    /// When the last reply with a call was sent.
    replied: Option<Instant>,
    trips: Vec<Trip>,
}

/// A server that runs until the process ends.
pub(crate) struct Model {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Model {
    /// A model that calls so many times before it answers.
    pub(crate) fn start(trips: usize) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client may close the connection early.
                thread::spawn(move || drop(serve(stream, &shared, trips)));
            }
        });
        Ok(Self { port, state })
    }

    /// The value for `model.base_url`.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn trips(&self) -> Vec<Trip> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).trips.clone()
    }
}

/// What the model reads of a request. A whole document of a long conversation takes milliseconds to drop, and these would
/// count as the host's.
#[derive(Deserialize)]
struct Asked {
    tools: Option<Vec<IgnoredAny>>,
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, state: &Mutex<State>, trips: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(1 << 20, stream);
    loop {
        if reader.fill_buf()?.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let body = read_request(&mut reader)?;
        let ended = Instant::now();
        let offers_tools = serde_json::from_slice::<Asked>(&body).is_ok_and(|asked| asked.tools.is_some());
        drop(body);
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(replied) = state.replied.take() {
            let trip = Trip { to_first_byte: begun - replied, to_last_byte: ended - replied };
            state.trips.push(trip);
        }
        let calls = offers_tools && state.trips.len() < trips;
        let content = if calls { call(state.trips.len()) } else { chunk(&json!({"content": "Done."}), "stop") };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length";
        // Taken before the reply is written: this thread may have to wait for a processor after it.
        state.replied = calls.then(Instant::now);
        write!(writer, "{head}: {}\r\n\r\n{content}", content.len())?;
        writer.flush()?;
    }
}

/// The body of the next request.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let (mut line, mut length) = (String::new(), 0);
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
    Ok(body)
}

fn call(number: usize) -> String {
    let function = json!({"name": "read_file", "arguments": "{\"path\":\"notes.txt\"}"});
    let call = json!({"index": 0, "id": format!("call_b{number}"), "type": "function", "function": function});
    chunk(&json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
}

/// A whole reply as a stream of one event.
fn chunk(delta: &Value, finish: &str) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let event =
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]});
    format!("data: {event}\n\ndata: [DONE]\n\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_model_calls_as_often_as_wanted_and_measures_each_time() {
        let model = Model::start(2).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", model.port)).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for (called, calls) in [(0, true), (1, true), (2, false)] {
            let body = r#"{"tools":[]}"#;
            write!(stream, "POST /v1 HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            let reply = String::from_utf8(read_request(&mut reader).unwrap()).unwrap();
            assert_eq!(reply.contains("read_file"), calls, "{reply}");
            assert_eq!(model.trips().len(), called);
        }
        assert!(model.trips().iter().all(|trip| trip.to_first_byte <= trip.to_last_byte));
    }
}
