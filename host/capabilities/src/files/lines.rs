//! Reads the lines of a file as UTF-8, whatever it is encoded in, and however long the file and its lines are.

use std::borrow::Cow;
use std::io::{self, Read};

use hermes_charset::{Found, NoText, Stream, detect};

use super::MAX_HASHED;

/// The beginning of a file that decides about its encoding. Smaller files are read at once.
const HEAD: u64 = MAX_HASHED;
/// The bytes of a larger file that are read at once.
const PART: u64 = 1 << 20;
/// The most bytes of a line that are held in memory.
const MAX_LINE: usize = 64 << 20;

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All lines were read, or the visitor has seen enough.
    Done,
    /// The rest of the file, or of a line, was not read.
    Cut,
    /// It is not a text.
    NoText(NoText),
}

/// Calls `visit` with each line until it returns false. `budget` counts the bytes after the beginnings of files.
pub(super) fn each_line<E>(
    mut file: impl Read,
    budget: &mut u64,
    visit: &mut dyn FnMut(&[u8]) -> Result<bool, E>,
) -> io::Result<Result<Reading, E>> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    let mut ended = (head.len() as u64) < HEAD;
    let Found { charset, mark } = match detect(&head, ended) {
        Ok(found) => found,
        Err(why) => return Ok(Ok(Reading::NoText(why))),
    };
    let mut stream = Stream::new(charset);
    let decoded = match stream.feed(&head[mark..], ended) {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    };
    let mut text = decoded.unwrap_or_else(|| head.split_off(mark));
    // As on a classic Macintosh.
    let line_end = if text.contains(&b'\r') && !text.contains(&b'\n') { b'\r' } else { b'\n' };
    loop {
        let mut from = 0;
        while let Some(length) = memchr::memchr(line_end, &text[from..]) {
            let line = &text[from..from + length];
            match visit(without_returns(line)) {
                Ok(true) => {}
                enough => return Ok(enough.map(|_| Reading::Done)),
            }
            from += length + 1;
        }
        text.drain(..from);
        let is_cut = !ended && (*budget == 0 || text.len() > MAX_LINE);
        if ended || is_cut {
            // An empty text after the last line end is not a line.
            let seen = if text.is_empty() { Ok(true) } else { visit(without_returns(&text)) };
            return Ok(seen.map(|_| if is_cut { Reading::Cut } else { Reading::Done }));
        }
        let mut part = Vec::new();
        let limit = PART.min(*budget);
        file.by_ref().take(limit).read_to_end(&mut part)?;
        *budget -= part.len() as u64;
        ended = (part.len() as u64) < limit;
        let part = stream.feed(&part, ended);
        if part.contains(&0) {
            return Ok(Ok(Reading::Cut));
        }
        text.extend_from_slice(&part);
    }
}

/// A line without the carriage returns at its end. Some programs write two.
fn without_returns(line: &[u8]) -> &[u8] {
    let length = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    &line[..length]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], budget: u64) -> (Vec<String>, Reading) {
        let (mut lines, mut budget) = (Vec::new(), budget);
        let reading = each_line::<()>(bytes, &mut budget, &mut |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            Ok(true)
        });
        (lines, reading.unwrap().unwrap())
    }

    #[test]
    fn lines_are_decoded_and_end_as_their_file_ends_them() {
        let utf16 = "\u{feff}ü\r\nb".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (bytes, lines) in [
            (&b"a\r\nb\n\nc\n"[..], &["a", "b", "", "c"][..]),
            (b"a\r\r\nb\r\r\n\r\r\n", &["a", "b", ""]),
            (b"a\rb\r", &["a", "b"]),
            (b"a\rb\nc", &["a\rb", "c"]),
            (b"caf\xe9\nb\n", &["café", "b"]),
            (b"\xef\xbb\xbfa", &["a"]),
            (&utf16, &["ü", "b"]),
            (b"", &[]),
        ] {
            assert_eq!(
                read(bytes, 0),
                (lines.iter().map(|line| (*line).to_owned()).collect(), Reading::Done),
                "{bytes:?}"
            );
        }
        assert_eq!(read(b"\x7fELF\0\x01\0", 0).1, Reading::NoText(NoText::Binary));
    }

    #[test]
    fn a_large_file_is_read_to_its_end_or_as_far_as_the_budget_goes() {
        let line = "é".repeat(500) + "\n";
        let count = usize::try_from(HEAD).unwrap() / line.len() + 3_000;
        let utf16: Vec<u8> = line.repeat(count).encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [line.repeat(count).as_bytes(), &[b"\xfe\xff", &utf16[..]].concat()] {
            let (lines, reading) = read(bytes, u64::MAX);
            assert!(lines.len() == count && lines.iter().all(|read| read.len() == 1_000), "{}", lines.len());
            assert_eq!(reading, Reading::Done);
            let (lines, reading) = read(bytes, PART + 10);
            assert!(lines.len() < count && reading == Reading::Cut);
        }
    }
}
