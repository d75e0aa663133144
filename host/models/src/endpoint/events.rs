//! The events of a stream: bytes in, JSON out, in whatever form servers write them.
//!
//! Bytes that are not UTF-8 become U+FFFD. An event that ends amid a character waits for the next one, which may have the rest of it.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};

use super::PARSED_AT_ONCE;
use crate::failure::{Stated, complaint};
use crate::json::{self, Flawed};

/// What an event of a stream is.
#[derive(Debug)]
pub(crate) enum Event {
    /// A part of the reply, or what the format makes of it.
    Json(Value),
    /// `[DONE]`.
    Done,
    /// An error, as every format reads it, and its raw data for the format in use.
    Error(Stated, Value),
    /// It begins like JSON but cannot be parsed.
    Broken(serde_json::Error),
}

/// Reads the events of a stream.
pub(crate) struct Events<S> {
    stream: S,
    /// An event that ends amid a character.
    held: Option<(Option<String>, Flawed)>,
    ready: VecDeque<Event>,
    /// Why the stream ended, behind the events that are ready.
    failed: Option<sse_stream::Error>,
}

/// The events of these bytes.
pub(crate) fn events<S, E>(bytes: S) -> Events<impl Stream<Item = Result<Sse, sse_stream::Error>> + Send + Unpin>
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    E: std::error::Error + Send + Sync + 'static,
{
    // Not all servers end their last event with an empty line.
    let closing = stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
    let mut half = Vec::new();
    let text = bytes.chain(closing).map(move |piece| piece.map(|piece| readable(&mut half, piece)));
    Events { stream: SseByteStream::new(text), held: None, ready: VecDeque::new(), failed: None }
}

impl<S: Stream<Item = Result<Sse, sse_stream::Error>> + Unpin> Events<S> {
    /// The next event; none at the end. It can be called again if it was not awaited to its end.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, sse_stream::Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            let event = match self.stream.next().await {
                Some(Ok(event)) => event,
                None if self.held.is_none() => return None,
                // The stream stays ended, and says so when it is asked again.
                ended => {
                    self.release();
                    self.failed = ended.and_then(Result::err);
                    continue;
                }
            };
            let name = event.event.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            for data in parts(event.data.unwrap_or_default().trim()) {
                if let Some(read) = self.read(name.clone(), data.trim()).await {
                    self.release();
                    self.ready.push_back(read);
                }
            }
        }
    }

    /// The event that waits for the rest of a character, if that took too long.
    pub(crate) fn overdue(&mut self) -> Option<Event> {
        self.release();
        self.ready.pop_front()
    }

    /// Releases the event that was held back for the rest of a character.
    fn release(&mut self) {
        if let Some((name, flawed)) = self.held.take() {
            self.ready.push_back(flawed.parse().map_or_else(Event::Broken, |value| Event::Json(named(value, name))));
        }
    }

    /// Reads an event; none for one that says nothing, and for one that waits.
    async fn read(&mut self, name: Option<String>, data: &str) -> Option<Event> {
        if name.as_deref().is_some_and(complaint::is_error_name) {
            return Some(failed(data));
        }
        if is_done(data) || matches!(data, "" | "{}") && name.as_deref().is_some_and(is_done) {
            return Some(Event::Done);
        }
        // Some servers send their comments as data.
        if data.is_empty() || data.starts_with(':') {
            return None;
        }
        let error = match parse(data.as_bytes()).await {
            Ok(value) => return Some(Event::Json(named(value, name))),
            Err(error) => error,
        };
        if let Some(mut flawed) = Flawed::new(data.to_owned()).filter(|flawed| flawed.parse().is_ok()) {
            if let Some((_, before)) = &mut self.held {
                json::join(before, &mut flawed);
            }
            self.release();
            if flawed.is_open() {
                self.held = Some((name, flawed));
                return None;
            }
            return Some(flawed.parse().map_or_else(Event::Broken, |value| Event::Json(named(value, name))));
        }
        let is_json = data.starts_with(['{', '[', '"']);
        match name.as_deref() {
            _ if is_json => Some(Event::Broken(error)),
            // A ping, or whatever else has a name and no JSON.
            Some(name) if name != "message" => None,
            _ => Some(failed(data)),
        }
    }
}

/// The data of an event: one, or several where a server leaves out the empty lines between its events. Comments among them are dropped.
fn parts(data: &str) -> Vec<String> {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !data.contains('\n') || is_json(data) {
        return vec![data.to_owned()];
    }
    let lines: Vec<&str> = data.lines().filter(|line| !line.trim_start().starts_with(':')).collect();
    let joined = lines.join("\n");
    let are_apart = lines.iter().all(|line| is_json(line) || is_done(line));
    if are_apart && !is_json(&joined) { lines.into_iter().map(str::to_owned).collect() } else { vec![joined] }
}

/// Whether a word says that nothing more follows.
fn is_done(word: &str) -> bool {
    word.trim_matches(['[', ']', '"', ' ']).eq_ignore_ascii_case("done")
}

fn failed(data: &str) -> Event {
    let event = json::parse(data.as_bytes()).unwrap_or_else(|_| data.into());
    Event::Error(complaint::plain(&event), event)
}

/// The event with the type that only its name tells.
fn named(mut value: Value, name: Option<String>) -> Value {
    if let (Value::Object(members), Some(name)) = (&mut value, name)
        && name != "message"
        && !members.contains_key("type")
    {
        members.insert("type".to_owned(), name.into());
    }
    value
}

/// Parses JSON, on a thread of its own if it is long. Flaws that can be mended are left to the caller.
async fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    if text.len() <= PARSED_AT_ONCE {
        return serde_json::from_slice(text);
    }
    let text = text.to_vec();
    let parsed = tokio::task::spawn_blocking(move || serde_json::from_slice(&text)).await;
    parsed.unwrap_or_else(|ended| Err(serde::de::Error::custom(ended)))
}

/// Bytes as UTF-8. A character that a piece does not end is kept in `half` for the next piece.
fn readable(half: &mut Vec<u8>, piece: Bytes) -> Bytes {
    if half.is_empty() && std::str::from_utf8(&piece).is_ok() {
        return piece;
    }
    half.extend_from_slice(&piece);
    let whole = match std::str::from_utf8(half) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Behind the last byte that cannot be read there may be the beginning of a character.
        _ => half.len() - half.utf8_chunks().last().map_or(0, |last| unfinished(last.invalid())),
    };
    let rest = half.split_off(whole);
    let text = String::from_utf8_lossy(&std::mem::replace(half, rest)).into_owned();
    Bytes::from(text)
}

/// The length of these bytes, if they begin a character that further bytes can end.
fn unfinished(bytes: &[u8]) -> usize {
    let can_go_on = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    if can_go_on { bytes.len() } else { 0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn read(pieces: Vec<Vec<u8>>) -> Vec<String> {
        let pieces = pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
        let mut events = events(stream::iter(pieces.collect::<Vec<_>>()));
        let mut read = Vec::new();
        while let Some(event) = events.next().await {
            read.push(match event.unwrap() {
                Event::Json(value) => value.to_string(),
                Event::Done => "done".to_owned(),
                Event::Error(stated, _) => format!("error: {}", stated.message),
                Event::Broken(_) => "broken".to_owned(),
            });
        }
        read
    }

    #[tokio::test]
    async fn events_are_read_in_every_form() {
        for (stream, expected) in [
            ("data: {\"a\":1}\n\ndata:[DONE]\n\n", vec!["{\"a\":1}", "done"]),
            (": c\n\nevent: ping\n\nevent: ping\ndata: now\n\ndata: : C\n\ndata:\n\ndata: {}", vec!["{}"]),
            ("event: done\n\n", vec!["done"]),
            ("event: delta\ndata: {\"a\":1}\n\n", vec![r#"{"a":1,"type":"delta"}"#]),
            ("event: message\ndata: {\"a\":1}\n\n", vec![r#"{"a":1}"#]),
            ("event: x\ndata: {\"type\":\"y\"}\n\n", vec![r#"{"type":"y"}"#]),
            ("event: error\ndata: {\"message\":\"it broke\"}\n\n", vec!["error: it broke"]),
            ("event: error\ndata: it broke\n\n", vec!["error: it broke"]),
            ("event: stream-error\ndata: {\"x\":\"y\"}\n\n", vec![r#"error: {"x":"y"}"#]),
            ("event: error\n\n", vec!["error: "]),
            ("data: it broke\n\n", vec!["error: it broke"]),
            ("data: {\"a\":\n\n", vec!["broken"]),
            ("event: chunk\ndata: {\"a\":\n\n", vec!["broken"]),
            (
                "data: {\"a\":\"x\\ud83d\"}\n\n: c\n\ndata: {\"a\":\"\\ude80y\"}\n\n",
                vec![r#"{"a":"x"}"#, r#"{"a":"🚀y"}"#],
            ),
            ("data: {\"a\":\"x\\ud83d\"}\n\ndata: {\"b\":1}\n\n", vec!["{\"a\":\"x\u{fffd}\"}", r#"{"b":1}"#]),
            ("data: {\"a\":\"x\\ud83d\"}\n\ndata: [DONE]\n\n", vec!["{\"a\":\"x\u{fffd}\"}", "done"]),
            ("data: {\"a\":\"x\\ud83d\"}\n\n", vec!["{\"a\":\"x\u{fffd}\"}"]),
            (
                "data: {\"a\":\"\\ud83d\"}\n\ndata: {\"a\":\"\\ude80\\ud83d\"}\n\ndata: {\"a\":\"\\ude80\"}",
                vec![r#"{"a":""}"#, r#"{"a":"🚀"}"#, r#"{"a":"🚀"}"#],
            ),
            ("data: {\"a\":NaN}\n\n", vec![r#"{"a":null}"#]),
            ("data: : C\ndata: {\"a\":1}\n\n", vec![r#"{"a":1}"#]),
            ("data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n\n", vec![r#"{"a":1}"#, r#"{"a":2}"#, "done"]),
            ("data: {\ndata: \"a\":1}\n\n", vec![r#"{"a":1}"#]),
            ("event: error\ndata: it\ndata: broke\n\n", vec!["error: it broke"]),
        ] {
            assert_eq!(read(vec![stream.as_bytes().to_vec()]).await, expected, "{stream:?}");
        }
    }

    #[tokio::test]
    async fn bytes_that_are_not_utf_8_cost_only_themselves() {
        let stream = [&b"data: {\"a\":\"caf\xe9 ok\"}\n\ndata: {\"a\":\"\xf0\x9f"[..], &b"\x9a\x80\"}\n\n"[..]];
        let expected = ["{\"a\":\"caf\u{fffd} ok\"}", r#"{"a":"🚀"}"#];
        assert_eq!(read(stream.map(<[u8]>::to_vec).to_vec()).await, expected);
    }

    proptest! {
        #[test]
        fn bytes_become_the_same_text_however_they_are_split(bytes in prop::collection::vec(any::<u8>(), 0..40), size in 1usize..5) {
            let mut half = Vec::new();
            let mut text: Vec<u8> = bytes.chunks(size).flat_map(|piece| readable(&mut half, Bytes::copy_from_slice(piece))).collect();
            text.extend(String::from_utf8_lossy(&half).bytes());
            prop_assert_eq!(String::from_utf8(text).unwrap(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
