//! Whether a text that arrives in pieces is a whole JSON object. Each byte is looked at once, and the text is parsed at most
//! once, when its last bracket closes.

use crate::wire::is_object;

/// The state of the scan.
#[derive(Debug, Default)]
pub(super) struct ObjectScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No bracket yet, or not all of them are closed.
    #[default]
    Open,
    Object,
    /// No continuation can make the text a single object.
    Other,
}

impl ObjectScan {
    /// Takes the last `more` bytes of the text so far.
    pub(super) fn take(&mut self, text: &str, more: usize) {
        let bytes = text.as_bytes();
        for at in bytes.len().saturating_sub(more)..bytes.len() {
            match self.state {
                State::Other => return,
                State::Object if is_blank(bytes[at]) => {}
                State::Object => self.state = State::Other,
                State::Open => self.step(bytes[at], &bytes[..=at]),
            }
        }
    }

    fn step(&mut self, byte: u8, text: &[u8]) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                if self.depth == 0 {
                    let is_object = std::str::from_utf8(text).is_ok_and(is_object);
                    self.state = if is_object { State::Object } else { State::Other };
                }
            }
            b'"' if self.depth > 0 => self.in_string = true,
            _ if self.depth == 0 && !is_blank(byte) => self.state = State::Other,
            _ => {}
        }
    }

    /// Whether the text so far is one JSON object.
    pub(super) fn is_object(&self) -> bool {
        self.state == State::Object
    }
}

/// White space in JSON.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_scan_in_pieces_finds_what_a_parser_finds(
            pieces in proptest::collection::vec(
                prop_oneof![
                    "[{}\\[\\]\",: 1a\\\\]{0,6}",
                    Just("{\"a\":1}".to_owned()),
                    Just("{\"a\":\"}\"}".to_owned()),
                    Just("{\"\\\\\\\"".to_owned()),
                ],
                0..6,
            ),
        ) {
            let (mut scan, mut text) = (ObjectScan::default(), String::new());
            for piece in pieces {
                text.push_str(&piece);
                scan.take(&text, piece.len());
                prop_assert_eq!(scan.is_object(), is_object(&text), "{}", text);
            }
        }
    }
}
