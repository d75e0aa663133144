//! The events of a stream over HTTP. Bytes and lines are counted before they are read as events, so that nothing in a stream is free.

use std::error::Error;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use reqwest::Response;
use rmcp::transport::streamable_http_client::SseError;
use rmcp_sse::{Sse, SseStream};
use tokio::time::Instant;

use crate::flow::Flow;
use crate::{limits, mended};

pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The events of a response, mended. The stream ends when they are too many.
pub(crate) fn events(response: Response, flow: &Flow) -> Events {
    of_bytes(response.bytes_stream(), flow)
}

fn of_bytes<B, E>(bytes: impl Stream<Item = Result<B, E>> + Send + 'static, flow: &Flow) -> Events
where
    B: AsRef<[u8]> + Send + 'static,
    E: Error + Send + Sync + 'static,
{
    let counted = Counted { inner: bytes.boxed(), flow: flow.clone(), lines: Lines::default(), half: Vec::new() };
    SseStream::from_bytes_stream(counted).flat_map(|event| stream::iter(mended_events(event))).boxed()
}

/// An event for each message in an event. Its own wish for the time of a reconnect is bounded.
fn mended_events(event: Result<Sse, SseError>) -> Vec<Result<Sse, SseError>> {
    let mut event = match event {
        Ok(event) => event,
        Err(error) => return vec![Err(error)],
    };
    let most = u64::try_from(limits::LONGEST_REST.as_millis()).unwrap_or(u64::MAX);
    event.retry = event.retry.map(|milliseconds| milliseconds.min(most));
    let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) else { return vec![Ok(event)] };
    let messages = mended::messages(data.as_bytes());
    if messages.is_empty() {
        // No message, but its id is where a later stream goes on.
        return vec![Ok(event)];
    }
    messages.into_iter().map(|message| Ok(event.clone().data(message.to_string()))).collect()
}

/// Counts the lines that carry nothing, and the bytes of an event.
#[derive(Debug, Default)]
struct Lines {
    /// The first byte of the line that has begun.
    first: Option<u8>,
    /// The bytes of the event that has begun, without comments.
    event: usize,
    after_return: bool,
}

impl Lines {
    /// How many lines that carry nothing end in these bytes; `None` if an event is too large.
    fn feed(&mut self, bytes: &[u8]) -> Option<u64> {
        let mut idle = 0;
        for &byte in bytes {
            let is_second = std::mem::replace(&mut self.after_return, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    // Only `data` carries something.
                    idle += u64::from(self.first != Some(b'd'));
                    if self.first.take().is_none() {
                        self.event = 0;
                    }
                }
                _ => {
                    let first = *self.first.get_or_insert(byte);
                    self.event += usize::from(first != b':');
                }
            }
            if self.event > limits::MESSAGE {
                return None;
            }
        }
        Some(idle)
    }
}

/// Bytes below the parser of events: counted, and text.
struct Counted<B, E> {
    inner: BoxStream<'static, Result<B, E>>,
    flow: Flow,
    lines: Lines,
    /// The beginning of a character whose rest is in the next bytes.
    half: Vec<u8>,
}

impl<B: AsRef<[u8]>, E> Stream for Counted<B, E> {
    type Item = Result<Cursor<Vec<u8>>, E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = match ready!(self.inner.poll_next_unpin(context)) {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        };
        let bytes = chunk.as_ref();
        let Some(idle) = self.lines.feed(bytes) else {
            self.flow.end_of_large_event();
            return Poll::Ready(None);
        };
        if !self.flow.admit_stream(bytes.len(), idle) {
            return Poll::Ready(None);
        }
        let mut whole = std::mem::take(&mut self.half);
        whole.extend_from_slice(bytes);
        let end = whole_characters(&whole);
        self.half = whole.split_off(end);
        Poll::Ready(Some(Ok(Cursor::new(String::from_utf8_lossy(&whole).into_owned().into_bytes()))))
    }
}

/// Where the last whole character ends. Bytes that are no text count as whole.
fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let begins = (from..bytes.len()).rev().find(|at| bytes[*at] >= 0xc0);
    match begins {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err_and(|error| error.error_len().is_none()) => at,
        _ => bytes.len(),
    }
}

/// When a server's stream may be opened again. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reopening(Arc<Mutex<Opened>>);

#[derive(Debug, Default)]
struct Opened {
    last: Option<Instant>,
    /// Streams in a row that did not last.
    brief: u32,
}

impl Reopening {
    /// Waits until a stream may be opened again, and counts it as opened. The first reconnect comes when the server wants it.
    pub(crate) async fn turn(&self) {
        let left = {
            let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let since = opened.last.map(|last| now.saturating_duration_since(last));
            opened.brief = match since {
                Some(since) if since < limits::LASTING => opened.brief.saturating_add(1),
                _ => 0,
            };
            let left = pause(opened.brief).saturating_sub(since.unwrap_or_default());
            opened.last = Some(now + left);
            left
        };
        tokio::time::sleep(left).await;
    }
}

fn pause(brief: u32) -> Duration {
    match brief {
        0 | 1 => Duration::ZERO,
        more => (limits::RECONNECT * (1 << (more - 2).min(16))).min(limits::LONGEST_RECONNECT),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::Cause;

    /// The data of the events in a stream that arrives in these pieces, and why the connection ended.
    async fn read(pieces: Vec<Vec<u8>>) -> (Vec<Result<Option<String>, String>>, Option<Cause>) {
        let flow = Flow::new();
        let events = of_bytes(stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>)), &flow);
        let data = |event: Result<Sse, SseError>| match event {
            Ok(event) => Ok(event.data),
            Err(error) => Err(error.to_string()),
        };
        (events.map(data).collect().await, flow.ended())
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_carry_nothing_end_the_connection() {
        for idle in ["\n", "\r\n", "\r", ": ping\n", "retry: 0\n\n", "id: 1\n", "event: x\n\n", ":\r\n"] {
            let lines = u64::from(idle.matches(['\n', '\r']).count() > 1 && !idle.contains('\r')) + 1;
            let few = (limits::IDLE_LINES / lines) as usize;
            let (_, ended) = read(vec![idle.repeat(few).into_bytes()]).await;
            assert_eq!(ended, None, "{idle:?}");
            // Whatever the pieces are.
            let piece = idle.repeat(100).into_bytes();
            let (_, ended) = read(vec![piece; few / 100 + 2]).await;
            let Some(Cause::Flood(why)) = ended else { panic!("{idle:?}: {ended:?}") };
            assert!(why.contains("lines of a stream without content"), "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_in_whatever_lines_they_are() {
        for unit in [": a long comment ", "data: x", "id: "] {
            // A line below the limit of an event for each piece.
            let piece = format!("{unit}{}\n\n", "x".repeat(1 << 20)).into_bytes();
            let (_, ended) = read(vec![piece; 70]).await;
            let Some(Cause::Flood(why)) = ended else { panic!("{unit}: {ended:?}") };
            assert!(why.contains("64 MiB"), "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_too_large_ends_its_stream() {
        let piece = vec![b'd'; 1 << 20];
        let (_, ended) = read(vec![piece; 20]).await;
        assert_eq!(ended, Some(Cause::Flood("a message of more than 16 MiB".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_mended_in_whatever_pieces_they_come() {
        let stream = b"id: 1\ndata:\n\n: ping\n\ndata: {\"id\":7,\"result\":\"caf\xe9 \xf0\x9f\x9a\x80 \\ud83d\"}\n\ndata: noise\n\n\
            data: [{\"method\":\"a\"},{\"method\":\"b\"}]\n\n";
        for size in [1, 2, 3, 1_000] {
            let (read, _) = read(stream.chunks(size).map(<[u8]>::to_vec).collect()).await;
            let data: Vec<String> = read.into_iter().filter_map(|event| event.unwrap()).collect();
            assert_eq!(data.len(), 3, "{size}: {data:?}");
            assert!(
                data[0].contains("caf\u{fffd} \u{1f680} \u{fffd}") && data[2].contains("\"b\""),
                "{size}: {data:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reconnects_become_rare_whatever_the_server_wants() {
        let reopening = Reopening::default();
        let begun = Instant::now();
        let mut at = Vec::new();
        while begun.elapsed() < Duration::from_secs(60) {
            reopening.turn().await;
            at.push(begun.elapsed().as_secs());
        }
        assert_eq!(at, [0, 0, 1, 3, 7, 15, 23, 31, 39, 47, 55, 63]);
        // After a stream that lasted, the next one is not late.
        tokio::time::advance(limits::LASTING).await;
        let begun = Instant::now();
        reopening.turn().await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}
