//! The lines of a client, without those that are too long: of them only the id is kept, so that they can be answered.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;

/// The most bytes of an id that is read.
const ID: usize = 256;
/// The most bytes that wait between the client and the protocol.
const PIPE: usize = 64 << 10;

/// Reads an input in lines. Returns those of at most this many bytes, and the ids of requests in longer ones.
pub(crate) fn lines(
    input: impl AsyncRead + Send + Unpin + 'static,
    most: usize,
) -> (DuplexStream, mpsc::Receiver<Value>) {
    let (passed, output) = tokio::io::duplex(PIPE);
    let (too_long, ids) = mpsc::channel(1);
    tokio::spawn(pass(input, passed, too_long, most));
    (output, ids)
}

/// Ends with the input, or when nobody reads the lines any more.
async fn pass(input: impl AsyncRead + Unpin, mut output: DuplexStream, too_long: mpsc::Sender<Value>, most: usize) {
    let mut input = BufReader::with_capacity(PIPE, input);
    let mut line = Vec::new();
    let mut scan: Option<Scan> = None;
    loop {
        let chunk = match input.fill_buf().await {
            Ok(chunk) if !chunk.is_empty() => chunk,
            // A last line without its end is one.
            _ => return drop(output.write_all(&line).await),
        };
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        match &mut scan {
            Some(scan) => scan.feed(part),
            None if line.len() + part.len() > most => {
                let mut begun = Scan::default();
                begun.feed(&line);
                begun.feed(part);
                line = Vec::new();
                scan = Some(begun);
            }
            None => line.extend_from_slice(part),
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_none() {
            continue;
        }
        let written = match scan.take().map(Scan::id) {
            Some(Some(id)) => too_long.send(id).await.is_ok(),
            // The line has no id: it is a notification, which gets no answer, or not a message at all.
            Some(None) => true,
            None => {
                line.push(b'\n');
                output.write_all(&line).await.is_ok()
            }
        };
        line.clear();
        if !written {
            return;
        }
    }
}

/// Finds the id of a request or an answer in a JSON text without keeping the text.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// Whether the next text of the outermost object is a value.
    is_value: bool,
    /// The key before it, and the text or the number that is read.
    key: Vec<u8>,
    part: Vec<u8>,
    id: Option<Value>,
    is_request: bool,
    is_answer: bool,
}

impl Scan {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.part.len() < ID {
            self.part.push(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.member_ends();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && !self.is_value => {
                self.key = std::mem::take(&mut self.part);
                self.is_value = true;
                // The value may never end.
                match self.key.trim_ascii() {
                    b"\"method\"" => self.is_request = true,
                    b"\"result\"" | b"\"error\"" => self.is_answer = true,
                    _ => {}
                }
            }
            b',' if self.depth == 1 => self.member_ends(),
            _ => self.keep(byte),
        }
    }

    fn member_ends(&mut self) {
        let (key, value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.part));
        self.is_value = false;
        if key.trim_ascii() == b"\"id\"" {
            let value = serde_json::from_slice(&value).ok();
            self.id = value.filter(|id: &Value| id.is_string() || id.is_number());
        }
    }

    /// Whether the text is an answer whose id is known.
    pub(crate) fn is_answer(&self) -> bool {
        self.id.is_some() && self.is_answer && !self.is_request
    }

    /// The id, if the text is an answer.
    pub(crate) fn answered(self) -> Option<Value> {
        self.id.filter(|_| self.is_answer && !self.is_request)
    }

    /// The id, if the text is a request.
    fn id(self) -> Option<Value> {
        self.id.filter(|_| self.is_request)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_is() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"id":8}}"#, Some(json!(7))),
            (
                r#"{"method":"a","params":{"id":[1,{"id":9}],"b":"\"id\":3,}{"},"jsonrpc":"2.0", "id" : "x\"y" }"#,
                Some(json!("x\"y")),
            ),
            // A notification, an answer, and no message.
            (r#"{"method":"a","params":{"id":8}}"#, None),
            (r#"{"id":8,"result":{"method":1}}"#, None),
            (r#"[{"id":8,"method":"a"}]"#, None),
            (r#"{"id":{"id":8},"method":"a"}"#, None),
            ("xxx\"id\":1,\"method\":2", None),
        ] {
            for size in [1, 3, text.len()] {
                let mut scan = Scan::default();
                text.as_bytes().chunks(size).for_each(|part| scan.feed(part));
                assert_eq!(scan.id(), expected, "{text}");
            }
        }
    }
}
