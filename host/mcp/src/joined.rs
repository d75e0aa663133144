//! The lines of a server as messages: several on one line, and one on several lines.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream};

use crate::bounded::Scan;
use crate::limits;
use crate::mended::messages;

/// The most bytes that wait between the server and the protocol.
const PIPE: usize = 64 << 10;

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
    loop {
        read.clear();
        let found = match input.read_until(b'\n', &mut read).await {
            // A last line without its end is one.
            Ok(1..) => lines.feed(&read),
            Ok(0) | Err(_) => lines.end(),
        };
        for message in found {
            let mut text = message.to_string().into_bytes();
            text.push(b'\n');
            if output.write_all(&text).await.is_err() {
                return;
            }
        }
        if read.is_empty() {
            return;
        }
    }
}

/// Puts a value together that a server writes on several lines.
#[derive(Debug, Default)]
struct Lines {
    /// A value that has begun.
    begun: Vec<u8>,
    depth: Depth,
}

impl Lines {
    /// The messages that end with a line.
    fn feed(&mut self, line: &[u8]) -> Vec<Value> {
        let own = messages(line);
        if !self.begun.is_empty() {
            let is_too_long = self.begun.len() + line.len() > limits::MESSAGE;
            if own.is_empty() && !is_too_long {
                self.begun.extend_from_slice(line);
                line.iter().for_each(|byte| _ = self.depth.step(*byte));
                return if self.depth.is_open() { Vec::new() } else { self.end() };
            }
            // A line that is a message by itself is no part of another one.
            let mut found = self.end();
            found.extend(own);
            return found;
        }
        let text = String::from_utf8_lossy(line);
        let mut depth = Depth::default();
        values(&text).last().unwrap_or(&"").bytes().for_each(|byte| _ = depth.step(byte));
        if depth.is_open() && !says_what_it_answers(line) {
            line.clone_into(&mut self.begun);
            self.depth = depth;
        }
        own
    }

    /// The messages in what has begun.
    fn end(&mut self) -> Vec<Value> {
        messages(&std::mem::take(&mut self.begun))
    }
}

/// Whether a cut answer has its id already, so that its call need not wait for the rest.
fn says_what_it_answers(line: &[u8]) -> bool {
    let mut scan = Scan::default();
    scan.feed(line);
    scan.answered().is_some()
}

/// The texts of the objects and lists on a line. The last one can be cut. Only what means nothing stands before and between them: a
/// log that quotes a message is none.
pub(crate) fn values(text: &str) -> Vec<&str> {
    let mut values = Vec::new();
    let mut rest = after_nothing(text);
    while rest.starts_with(['{', '[']) {
        let length = length(rest).unwrap_or(rest.len());
        values.push(&rest[..length]);
        rest = after_nothing(&rest[length..]);
    }
    values
}

/// The text behind blanks, control characters with the sequences of terminals, and marks between values.
fn after_nothing(text: &str) -> &str {
    let means_nothing = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | ',' | ';');
    let mut rest = text;
    loop {
        rest = match rest.strip_prefix("\u{1b}[") {
            // A letter or a similar sign ends the sequence.
            Some(sequence) => match sequence.find(|c: char| ('@'..='~').contains(&c)) {
                Some(end) if sequence[..end].bytes().all(|byte| (b' '..=b'?').contains(&byte)) => &sequence[end + 1..],
                _ => return rest,
            },
            None => match rest.chars().next() {
                Some(first) if means_nothing(first) => &rest[first.len_utf8()..],
                _ => return rest,
            },
        };
    }
}

/// The length of the object or the list at the beginning of a text. `None` if it does not end.
fn length(text: &str) -> Option<usize> {
    let mut depth = Depth::default();
    text.bytes().position(|byte| depth.step(byte)).map(|last| last + 1)
}

/// Where a part of a JSON text is: within how many objects and lists, and whether within a string.
#[derive(Debug, Default)]
struct Depth {
    open: usize,
    in_text: bool,
    escaped: bool,
}

impl Depth {
    /// Takes a byte. True if it ends the outermost value.
    fn step(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'{' | b'[' => self.open += 1,
            b'}' | b']' if self.open > 0 => {
                self.open -= 1;
                return self.open == 0;
            }
            _ => {}
        }
        false
    }

    fn is_open(&self) -> bool {
        self.open > 0
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
        let pretty = serde_json::to_string_pretty(&json!({"jsonrpc": "2.0", "id": 7, "result": {"a": [1, {"b": "x\ny"}]}}));
        let pretty = pretty.unwrap();
        let eight = r#"{"id":8,"result":1}"#;
        for (text, ids) in [
            (format!("{pretty}\n{eight}\n"), vec![7, 8]),
            (pretty.replace('\n', "\r\n"), vec![7]),
            (format!("ready\n{pretty}{eight}"), vec![7, 8]),
            (format!("[\n{eight}\n]\n"), vec![8]),
            // Noise that looks like a beginning costs no message behind it.
            (format!("{{oops\n{eight}\n"), vec![8]),
            (format!("[INFO ready\n[debug\n{eight}\n{pretty}"), vec![8, 7]),
        ] {
            let found: Vec<Value> = read(&text).await.into_iter().map(|(id, _)| id).collect();
            assert_eq!(found, ids, "{text}");
        }
    }

    #[tokio::test]
    async fn a_cut_answer_ends_its_call() {
        for text in [
            "{\"id\":7,\"result\":{\"a\":\"b\n",
            "{\n\"id\":7,\n\"result\":{\n\"a\":\"b",
            "{\n\"id\":7,\n\"result\":{\n\"a\":1\n{\"id\":8,\"result\":1}\n",
        ] {
            let read = read(text).await;
            let (id, words) = &read[0];
            assert!(*id == json!(7) && words.as_deref().unwrap().contains("cannot be read"), "{text}: {read:?}");
        }
    }
}
