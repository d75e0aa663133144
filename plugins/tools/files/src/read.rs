//! `read_file`: a page of numbered lines, or a picture.

use hermes_charset::{Charset, NoText, Stream, detect};
use hermes_plugin::tools::Output;
use hermes_plugin::{Error, files};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::picture::{self, Format};
use crate::text::no_text;
use crate::{ROOT, count, number, parameters as schema, path};

const LINES: u64 = 500;
const MOST_LINES: u64 = 2_000;
/// Most characters shown of a line.
const LINE: usize = 2_000;
/// Characters of a page (about 25,000 tokens). The host would cut a longer answer in the middle.
const PAGE: usize = 100_000;
/// Bytes per read: the host's maximum, because it may look at the whole file each time.
const SLICE: u32 = 8 << 20;
/// The most bytes of a file that is read at once.
pub(crate) const MAX_WHOLE: u32 = SLICE;
/// Files up to this many bytes are read to the end, to count their lines.
const COUNTED: u64 = 64 << 20;

pub(crate) fn description() -> String {
    format!(
        "Read a text file of the workspace, or look at a picture (PNG, JPEG, GIF, WebP). Lines come as `number|text`; the numbers are not part of the file. Up to \
         {LINES} lines unless limit says otherwise (at most {MOST_LINES}); the last line of the answer says how to read on."
    )
}

pub(crate) fn parameters() -> Value {
    schema(
        json!({
            "path": { "type": "string", "description": "In the workspace." },
            "offset": { "type": "integer", "minimum": 1, "description": "The first line; default 1." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MOST_LINES },
        }),
        &["path"],
    )
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    path: String,
    #[serde(default, deserialize_with = "number")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Output, Error> {
    let (root, path) = path::locate_readable(&arguments.path)?;
    let mut page = Page::new(arguments.offset, arguments.limit);
    let mut offset = 0;
    let mut version = None;
    loop {
        let slice = files::read(root, &path, offset, SLICE)?;
        if version.get_or_insert_with(|| slice.version.clone()) != &slice.version {
            return Err(Error::conflict(format!("{path} changed while it was read: read it again")));
        }
        if offset == 0
            && let Some(format) = Format::of(&slice.content)
        {
            return picture::show(&path, format, slice.content, slice.total);
        }
        offset += slice.content.len() as u64;
        let ended = slice.content.is_empty() || offset >= slice.total;
        page.take(&path, &slice.content, ended)?;
        if ended || page.binary || (page.full && slice.total > COUNTED) {
            return page.show(&path, slice.total, ended).map(Output::text);
        }
    }
}

/// Reads a file of at most [`MAX_WHOLE`] bytes without showing it to the model. The host counts a file as read if it was read from
/// its beginning to its end; read in this order, it asks the user before the file is lost.
pub(crate) fn peek(path: &str) -> Result<files::Slice, Error> {
    let rest = files::read(ROOT, path, 1, SLICE)?;
    let mut first = files::read(ROOT, path, 0, 1)?;
    if rest.version != first.version {
        return Err(Error::conflict(format!("{path} changed while it was read: try again")));
    }
    first.content.extend(rest.content);
    Ok(first)
}

/// Builds a page while the file's bytes arrive.
struct Page {
    /// The encoding, and what turns it into UTF-8; known from the first bytes on.
    encoding: Option<(Charset, Stream)>,
    /// What ends a line.
    line_end: u8,
    first: u64,
    /// One past the last line to show.
    end: u64,
    shown: String,
    /// Characters in `shown`.
    chars: usize,
    /// Number of the line that the next byte belongs to.
    line: u64,
    /// The bytes of that line kept so far.
    partial: Vec<u8>,
    /// Whether the line has any bytes yet.
    begun: bool,
    /// Whether the line is longer than `partial`.
    long: bool,
    /// Whether all requested lines have arrived.
    full: bool,
    binary: bool,
    lossy: bool,
    /// The most carriage returns before a line feed.
    carriage_returns: usize,
    /// Whether carriage returns stand within lines.
    stray_returns: bool,
}

impl Page {
    fn new(offset: Option<u64>, limit: Option<u64>) -> Self {
        let first = offset.unwrap_or(1).max(1);
        let lines = limit.unwrap_or(LINES).clamp(1, MOST_LINES);
        Self {
            encoding: None,
            line_end: b'\n',
            first,
            end: first.saturating_add(lines),
            shown: String::new(),
            chars: 0,
            line: 1,
            partial: Vec::new(),
            begun: false,
            long: false,
            full: false,
            binary: false,
            lossy: false,
            carriage_returns: 0,
            stray_returns: false,
        }
    }

    /// The next bytes of the file; `last` if they are the end. The first decide about the encoding.
    fn take(&mut self, path: &str, bytes: &[u8], last: bool) -> Result<(), Error> {
        let mut mark = 0;
        let is_first = self.encoding.is_none();
        if is_first {
            let found = detect(bytes, last).map_err(|why| not_shown(path, why))?;
            mark = found.mark;
            self.encoding = Some((found.charset, Stream::new(found.charset)));
        }
        let Some((_, stream)) = &mut self.encoding else { return Ok(()) };
        let text = stream.feed(&bytes[mark..], last);
        if is_first && text.contains(&b'\r') && !text.contains(&b'\n') {
            self.line_end = b'\r';
        }
        self.feed(&text);
        Ok(())
    }

    fn feed(&mut self, bytes: &[u8]) {
        let line_end = self.line_end;
        for piece in bytes.split_inclusive(|byte| *byte == line_end) {
            let (text, ends) = match piece.split_last() {
                Some((last, text)) if *last == line_end => (text, true),
                _ => (piece, false),
            };
            self.begun = true;
            if !self.full {
                self.binary |= text.contains(&0);
                if self.line >= self.first {
                    // A character has at most four bytes; a few more reveal that the line continues.
                    let room = (LINE * 4 + 8).saturating_sub(self.partial.len());
                    self.long |= text.len() > room;
                    self.partial.extend_from_slice(&text[..text.len().min(room)]);
                }
            }
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if !self.full && self.line >= self.first {
            let bytes = std::mem::take(&mut self.partial);
            let returns = match self.long {
                false => bytes.iter().rev().take_while(|byte| **byte == b'\r').count(),
                true => 0,
            };
            self.carriage_returns = self.carriage_returns.max(returns);
            let bytes = &bytes[..bytes.len() - returns];
            self.stray_returns |= bytes.contains(&b'\r');
            let mut text = String::from_utf8_lossy(bytes);
            // A character split by our own cut is not invalid UTF-8 in the file.
            self.lossy |= !self.long && matches!(text, std::borrow::Cow::Owned(_));
            if let Some((cut, _)) = text.char_indices().nth(LINE) {
                text = format!("{}… [line cut at {LINE} characters]", &text[..cut]).into();
            }
            let line = format!("{}|{text}\n", self.line);
            let chars = line.chars().count();
            if self.chars + chars > PAGE && self.line > self.first {
                self.end = self.line;
                self.full = true;
            } else {
                self.chars += chars;
                self.shown.push_str(&line);
                self.full = self.line + 1 >= self.end;
            }
        }
        self.line += 1;
        self.begun = false;
        self.long = false;
    }

    /// The page and a status line. `ended` is true if the whole file of `bytes` bytes was read.
    fn show(mut self, path: &str, bytes: u64, ended: bool) -> Result<String, Error> {
        if self.binary {
            return Err(not_shown(path, NoText::Binary));
        }
        // A last line without a line break counts.
        if self.begun {
            self.end_line();
        }
        let lines = self.line - 1;
        if ended && lines == 0 {
            return Ok(format!("[{path} is empty]"));
        }
        if ended && self.first > lines {
            return Err(Error::invalid(format!(
                "{path} has {}, so there is no line {}",
                count(lines, "line"),
                self.first
            )));
        }
        let last = (self.end - 1).min(lines);
        let mut about = match (ended, self.first) {
            (true, 1) if last == lines => count(lines, "line"),
            (true, first) if first == last => format!("line {first} of {lines}"),
            (true, first) => format!("lines {first} to {last} of {lines}"),
            (false, first) => {
                format!("lines {first} to {last}; the file has {bytes} bytes and was not counted to its end")
            }
        };
        if !ended || last < lines {
            about.push_str(&format!("; continue with offset {}", last + 1));
        }
        match self.carriage_returns {
            0 => {}
            1 => about.push_str("; lines end in CR LF"),
            2 => about.push_str("; lines end in CR CR LF"),
            _ => about.push_str("; lines end in several CR and LF"),
        }
        if self.line_end == b'\r' {
            about.push_str("; lines end in CR alone");
        } else if self.stray_returns {
            about.push_str("; lines contain CR characters");
        }
        match self.encoding.as_ref().map_or(Charset::Utf8, |(charset, _)| *charset) {
            Charset::Unknown => {
                about.push_str("; it is not in UTF-8, and its encoding is not known: other bytes are shown as �")
            }
            Charset::Legacy(encoding) => {
                about.push_str(&format!("; it is not in UTF-8 but probably in {}, shown decoded", encoding.name()));
            }
            charset @ (Charset::Utf16Le | Charset::Utf16Be) => {
                about.push_str(&format!("; it is in {}, shown decoded", charset.name()));
            }
            Charset::Utf8 | Charset::Mixed if self.lossy => {
                about.push_str("; it contains invalid UTF-8, shown as �");
            }
            Charset::Utf8 | Charset::Mixed => {}
        }
        self.shown.push_str(&format!("[{about}]"));
        Ok(self.shown)
    }
}

fn not_shown(path: &str, why: NoText) -> Error {
    no_text(path, why, "shown")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The answer for a file with these bytes, read in slices of `step`.
    fn read_in(step: usize, bytes: &[u8], offset: Option<u64>, limit: Option<u64>) -> Result<String, Error> {
        let mut page = Page::new(offset, limit);
        let (first, rest) = bytes.split_at(bytes.len().min(step.max(16)));
        page.take("a.txt", first, rest.is_empty())?;
        for slice in rest.chunks(step) {
            page.feed(slice);
        }
        page.show("a.txt", bytes.len() as u64, true)
    }

    fn read(text: &str, offset: Option<u64>, limit: Option<u64>) -> String {
        read_in(1 << 20, text.as_bytes(), offset, limit).unwrap()
    }

    #[test]
    fn pages_have_this_format() {
        let cases = [
            ("a\nb\n", None, None, "1|a\n2|b\n[2 lines]"),
            ("a\nb", None, None, "1|a\n2|b\n[2 lines]"),
            ("a\n\nb\n", Some(2), None, "2|\n3|b\n[lines 2 to 3 of 3]"),
            ("a\nb\nc\nd\n", Some(2), Some(2), "2|b\n3|c\n[lines 2 to 3 of 4; continue with offset 4]"),
            ("a\nb\n", Some(0), Some(1), "1|a\n[line 1 of 2; continue with offset 2]"),
            ("a\r\nb\r\n", None, None, "1|a\n2|b\n[2 lines; lines end in CR LF]"),
            ("", None, None, "[a.txt is empty]"),
            ("\n", None, None, "1|\n[1 line]"),
        ];
        for (text, offset, limit, expected) in cases {
            assert_eq!(read(text, offset, limit), expected, "{text:?}");
        }
    }

    #[test]
    fn slice_boundaries_make_no_difference() {
        let text = "grüße\r\n\n€ 3\nlast".repeat(3);
        let whole = read(&text, Some(2), Some(4));
        for step in 1..9 {
            assert_eq!(read_in(step, text.as_bytes(), Some(2), Some(4)).unwrap(), whole, "{step}");
        }
    }

    #[test]
    fn long_lines_are_cut_with_a_mark() {
        for letter in ["x", "€", "🦀"] {
            let shown = read(&format!("{}\nshort\n", letter.repeat(LINE + 1)), None, None);
            let (line, rest) = shown.split_once('\n').unwrap();
            assert_eq!(line.matches(letter).count(), LINE, "{letter}");
            assert!(line.ends_with("… [line cut at 2000 characters]") && rest == "2|short\n[2 lines]", "{rest}");
        }
        let exact = "🦀".repeat(LINE);
        assert_eq!(read(&exact, None, None), format!("1|{exact}\n[1 line]"));
    }

    #[test]
    fn a_page_is_limited_in_characters() {
        let text = format!("{}\n", "x".repeat(1_990)).repeat(100);
        let shown = read(&text, None, None);
        assert!(shown.chars().count() <= PAGE + 100);
        assert!(shown.ends_with("[lines 1 to 50 of 100; continue with offset 51]"), "{}", &shown[shown.len() - 80..]);
    }

    #[test]
    fn binary_files_are_refused() {
        let error = read_in(4, b"\x7fELF\x00\x01", None, None).unwrap_err();
        assert_eq!(error.code, "binary");
        assert!(error.message.contains("a.txt") && error.message.contains("binary"), "{error}");
    }

    #[test]
    fn text_that_is_not_utf8_is_decoded_with_a_note() {
        let utf16 = "a\r\nü\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let stray = ["grün schön für Tür".as_bytes(), b" \xe9\n"].concat();
        for (bytes, expected) in [
            (&b"caf\xe9\n"[..], "1|café\n[1 line; it is not in UTF-8 but probably in windows-1252, shown decoded]"),
            (&utf16, "1|a\n2|ü\n[2 lines; lines end in CR LF; it is in UTF-16LE, shown decoded]"),
            (&stray, "1|grün schön für Tür \u{fffd}\n[1 line; it contains invalid UTF-8, shown as \u{fffd}]"),
            (
                b"\xc3\xbc \xe9\n",
                "1|ü \u{fffd}\n[1 line; it is not in UTF-8, and its encoding is not known: other bytes are shown as \u{fffd}]",
            ),
            (b"\xef\xbb\xbfa\n", "1|a\n[1 line]"),
            (b"a\r\r\nb\r\r\n", "1|a\n2|b\n[2 lines; lines end in CR CR LF]"),
            (b"a\r\r\r\nb\n", "1|a\n2|b\n[2 lines; lines end in several CR and LF]"),
            (b"a\rb\r", "1|a\n2|b\n[2 lines; lines end in CR alone]"),
            (b"a\rb\n", "1|a\rb\n[1 line; lines contain CR characters]"),
        ] {
            assert_eq!(read_in(64, bytes, None, None).unwrap(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn an_offset_past_the_end_reports_the_files_length() {
        let error = read_in(64, b"a\nb\n", Some(3), None).unwrap_err();
        assert!(error.message.contains("has 2 lines"), "{error}");
    }

    #[test]
    fn a_huge_file_that_was_not_read_to_the_end_says_so() {
        let mut page = Page::new(None, Some(1));
        page.feed(b"a\nb\nc");
        assert!(page.full);
        let shown = page.show("a.log", 1 << 40, false).unwrap();
        assert_eq!(
            shown,
            "1|a\n[lines 1 to 1; the file has 1099511627776 bytes and was not counted to its end; continue with offset 2]"
        );
    }
}
