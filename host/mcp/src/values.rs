//! The values of JSON in a text: where each begins and ends.

/// The texts of the objects and lists on a line. The last one can be cut. Only characters without meaning may be before and
/// between them, so a log line that quotes a message does not count.
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
pub(crate) fn length(text: &str) -> Option<usize> {
    let mut depth = Depth::default();
    text.bytes().position(|byte| depth.step(byte)).map(|last| last + 1)
}

/// Where a part of a JSON text is: within how many objects and lists, and whether within a string.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    open: usize,
    in_text: bool,
    escaped: bool,
}

impl Depth {
    /// Takes a byte. True if it ends the outermost value.
    pub(crate) fn step(&mut self, byte: u8) -> bool {
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

    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }
}
