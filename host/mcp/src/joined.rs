//! The lines of a server as messages: several on one line, and one on several lines.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::time::timeout;

use crate::bounded::Scan;
use crate::limits;
use crate::mended::{messages, of_value};
use crate::values::{Depth, length, values};

/// The most bytes that wait between the server and the protocol.
const PIPE: usize = 64 << 10;
/// How long the end of a line, or the rest of an answer that was cut, is waited for.
const MOMENT: Duration = Duration::from_secs(2);

/// Mends a server's output line by line. Lines that are no messages are left out.
pub(crate) fn lines(input: impl AsyncRead + Send + Unpin + 'static) -> DuplexStream {
    let (passed, output) = tokio::io::duplex(PIPE);
    tokio::spawn(pass(input, passed));
    output
}

/// Ends with the input, or when nobody reads the lines any more. The input bounds the length of a line.
async fn pass(input: impl AsyncRead + Unpin, mut output: DuplexStream) {
    let mut input = BufReader::with_capacity(PIPE, input);
    let mut lines = Lines::default();
    let mut read = Vec::new();
    // Whether the server has been silent since it began a line or an answer.
    let mut is_silent = false;
    loop {
        let is_begun = !is_silent && (!read.is_empty() || lines.is_answer());
        let next = match is_begun {
            true => timeout(MOMENT, input.fill_buf()).await,
            false => Ok(input.fill_buf().await),
        };
        is_silent = next.is_err();
        let (found, is_over) = match next {
            Ok(Ok(chunk)) if !chunk.is_empty() => {
                let end = chunk.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
                let part = &chunk[..end.unwrap_or(chunk.len())];
                read.extend_from_slice(part);
                let length = part.len();
                input.consume(length);
                (if end.is_some() { lines.feed(&std::mem::take(&mut read)) } else { Vec::new() }, false)
            }
            // A last line without its end is one. Why the rest of a cut answer does not come, the end of the connection says.
            Ok(_) => (lines.feed(&read), true),
            // A message whose line does not end, or an answer whose rest does not come.
            Err(_) if ends_whole(&read) => (lines.feed(&std::mem::take(&mut read)), false),
            Err(_) if lines.is_answer() => (lines.end(), false),
            Err(_) => continue,
        };
        for message in found {
            let mut text = message.to_string().into_bytes();
            text.push(b'\n');
            if output.write_all(&text).await.is_err() {
                return;
            }
        }
        if is_over {
            return;
        }
    }
}

/// Whether a line that has begun is a whole value so far.
fn ends_whole(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    values(&text).last().is_some_and(|last| length(last).is_some())
}

/// Puts a value together that a server writes on several lines, or with a line end within a text.
#[derive(Debug, Default)]
struct Lines {
    /// A value that has begun.
    begun: Vec<u8>,
    depth: Depth,
    scan: Scan,
}

impl Lines {
    /// The messages that end with a line.
    fn feed(&mut self, line: &[u8]) -> Vec<Value> {
        if !self.begun.is_empty() {
            let is_too_long = self.begun.len() + line.len() > limits::MESSAGE;
            if !is_too_long && messages(line).is_empty() {
                self.add(line);
                return if self.depth.is_open() { Vec::new() } else { self.end() };
            }
            // A line that is a whole message does not continue another one.
            let mut found = self.end();
            found.extend(self.feed(line));
            return found;
        }
        let text = String::from_utf8_lossy(line);
        let mut values = values(&text);
        if let Some(cut) = values.pop_if(|last| length(last).is_none()) {
            self.add(cut.as_bytes());
        }
        values.into_iter().flat_map(of_value).collect()
    }

    fn add(&mut self, part: &[u8]) {
        self.begun.extend_from_slice(part);
        part.iter().for_each(|byte| _ = self.depth.step(*byte));
        self.scan.feed(part);
    }

    /// The messages in what has begun.
    fn end(&mut self) -> Vec<Value> {
        messages(&std::mem::take(self).begun)
    }

    /// Whether an answer has begun, so that its call waits for the rest.
    fn is_answer(&self) -> bool {
        !self.begun.is_empty() && self.scan.is_answer()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The ids of the messages of an output, and the words of its errors.
    async fn read(text: &str) -> Vec<(Value, Option<String>)> {
        let mut output = BufReader::new(lines(std::io::Cursor::new(text.as_bytes().to_vec())));
        let mut read = Vec::new();
        loop {
            let mut line = String::new();
            if output.read_line(&mut line).await.unwrap() == 0 {
                return read;
            }
            let message: Value = serde_json::from_str(&line).unwrap();
            let words = message["error"]["message"].as_str().map(str::to_owned);
            read.push((message["id"].clone(), words));
        }
    }

    #[tokio::test]
    async fn a_last_line_without_an_end_is_one() {
        let read = read("noise\n{\"id\":7,\"result\":1}\r\n\n{\"id\":8,\"error\":\"x\"}").await;
        assert_eq!(read, [(json!(7), None), (json!(8), Some("x".to_owned()))]);
    }

    #[tokio::test]
    async fn a_message_on_several_lines_is_one() {
        let pretty =
            serde_json::to_string_pretty(&json!({"jsonrpc": "2.0", "id": 7, "result": {"a": [1, {"b": "x\ny"}]}}));
        let pretty = pretty.unwrap();
        let eight = r#"{"id":8,"result":1}"#;
        for (text, ids) in [
            (format!("{pretty}\n{eight}\n"), vec![7, 8]),
            (pretty.replace('\n', "\r\n"), vec![7]),
            (format!("ready\n{pretty}{eight}"), vec![7, 8]),
            (format!("[\n{eight}\n]\n"), vec![8]),
            // Noise that looks like a beginning costs no message behind it.
            (format!("{{oops\n{eight}\n"), vec![8]),
            (pretty.replacen('\n', "", 3), vec![7]),
            ("{\"id\":7,\"result\":\"a text\nwith a line end\"}\n".to_owned(), vec![7]),
            (format!("[INFO ready\n[debug\n{eight}\n{pretty}"), vec![8, 7]),
        ] {
            let found: Vec<Value> = read(&text).await.into_iter().map(|(id, _)| id).collect();
            assert_eq!(found, ids, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_cut_answer_is_not_waited_for_long() {
        let (mut server, input) = tokio::io::duplex(64);
        let mut output = BufReader::new(lines(input));
        server.write_all(b"{\"id\":7,\"result\":{\"a\":1\n{\"id\":8,\"res").await.unwrap();
        let mut line = String::new();
        output.read_line(&mut line).await.unwrap();
        assert!(line.contains("cannot be read") && line.contains("\"id\":7"), "{line}");
        server.write_all(b"ult\":1}\n").await.unwrap();
        line.clear();
        output.read_line(&mut line).await.unwrap();
        assert!(line.contains("\"id\":8") && !line.contains("error"), "{line}");
        // A message without a line end, whose server then waits for the next request.
        server.write_all(b"{\"id\":9,\"result\":1}").await.unwrap();
        line.clear();
        output.read_line(&mut line).await.unwrap();
        assert!(line.contains("\"id\":9"), "{line}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_behind_a_cut_answer_ends_its_call() {
        let read = read("{\n\"id\":7,\n\"result\":{\n\"a\":1\n{\"id\":8,\"result\":1}\n").await;
        let ids: Vec<&Value> = read.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [&json!(7), &json!(8)]);
        assert!(read[0].1.as_deref().unwrap().contains("cannot be read"), "{read:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_the_end_of_the_output_cuts_is_none() {
        // The connection ends with it, and says why.
        for text in ["{\"id\":7,\"result\":{\"a\":\"b\n", "{\n\"id\":7,\n\"result\":{\n\"a\":\"b"] {
            assert_eq!(read(text).await, [], "{text}");
        }
    }
}
