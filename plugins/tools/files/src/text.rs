//! The text of a file with its encoding and line ends, so that a change keeps both.
//!
//! A change replaces the bytes of the changed parts alone. What is around them stays byte by byte, also if the encoding was guessed
//! wrongly or the file has bytes that its encoding does not allow.

use std::borrow::Cow;
use std::ops::Range;

use hermes_charset::{Charset, Found, NoText, Refused, detect};
use hermes_plugin::Error;

/// What stands for bytes that are invalid in the file's encoding.
pub(crate) const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    charset: Charset,
    marked: bool,
    /// Without the byte order mark. `None` if the content has the same bytes: a large file fills the memory of a plugin.
    stored: Option<Vec<u8>>,
    /// What the bytes say, with its line ends.
    pub(crate) content: String,
}

/// A part of a text, in bytes of its content, and what takes its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edit {
    pub(crate) part: Range<usize>,
    pub(crate) new: String,
}

impl Edit {
    /// Without what both sides have at their beginning and end, so that it stays as it is in the file.
    pub(crate) fn narrowed(&self, text: &str) -> Self {
        let (old, new) = (&text[self.part.clone()], &self.new);
        let length = |(letter, _): (char, char)| letter.len_utf8();
        let same = |pair: &(char, char)| pair.0 == pair.1;
        let before: usize = old.chars().zip(new.chars()).take_while(same).map(length).sum();
        let (old, new) = (&old[before..], &new[before..]);
        let after: usize = old.chars().rev().zip(new.chars().rev()).take_while(same).map(length).sum();
        let part = self.part.start + before..self.part.end - after;
        Self { part, new: new[..new.len() - after].to_owned() }
    }
}

impl Text {
    /// The content of a new file.
    pub(crate) fn new(content: String) -> Self {
        Self { charset: Charset::Utf8, marked: false, stored: None, content }
    }

    /// Reads the bytes of the file at `path`. A binary file is refused.
    pub(crate) fn decode(path: &str, bytes: &[u8]) -> Result<Self, Error> {
        let Found { charset, mark } = detect(bytes, true).map_err(|why| no_text(path, why, "changed"))?;
        Ok(Self::of(charset, mark > 0, Cow::Borrowed(&bytes[mark..])))
    }

    /// A file of any kind, to be moved or removed as it is.
    pub(crate) fn opaque(bytes: &[u8]) -> Self {
        Self::of(Charset::Unknown, false, Cow::Borrowed(bytes))
    }

    fn of(charset: Charset, marked: bool, bytes: Cow<'_, [u8]>) -> Self {
        let content = charset.decode(&bytes).into_owned();
        let stored = (content.as_bytes() != &*bytes).then(|| bytes.into_owned());
        Self { charset, marked, stored, content }
    }

    /// The bytes without the byte order mark.
    fn bytes(&self) -> &[u8] {
        self.stored.as_deref().unwrap_or(self.content.as_bytes())
    }

    pub(crate) fn charset(&self) -> Charset {
        self.charset
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mark = if self.marked { self.charset.mark() } else { b"" };
        [mark, self.bytes()].concat()
    }

    /// How many bytes the file has.
    pub(crate) fn size(&self) -> usize {
        self.bytes().len() + if self.marked { self.charset.mark().len() } else { 0 }
    }

    /// Whether it begins with a byte order mark.
    pub(crate) fn has_mark(&self) -> bool {
        self.marked
    }

    /// The same file after edits that are in order and do not overlap.
    pub(crate) fn edited(&self, path: &str, edits: &[Edit]) -> Result<Self, Error> {
        if edits.is_empty() {
            return Ok(self.clone());
        }
        let tied = || {
            Error::invalid(format!(
                "{path} {}, where this part cannot be changed alone: {}",
                self.charset.is_in(),
                self.way_out(path)
            ))
        };
        if self.charset.is_stateful() {
            return Err(tied());
        }
        let edits: Vec<Edit> = edits.iter().map(|edit| edit.narrowed(&self.content)).collect();
        self.admit(path, edits.iter().map(|edit| edit.new.as_str()))?;
        let ends: Vec<usize> = edits.iter().flat_map(|edit| [edit.part.start, edit.part.end]).collect();
        if self.charset == Charset::Utf8 {
            let mut content = String::with_capacity(self.content.len());
            let mut from = 0;
            for edit in &edits {
                content.push_str(&self.content[from..edit.part.start]);
                content.push_str(&edit.new);
                from = edit.part.end;
            }
            content.push_str(&self.content[from..]);
            return Ok(Self { charset: self.charset, marked: self.marked, stored: None, content });
        }
        let own = self.bytes();
        let places = self.charset.places(own, &self.content, &ends).ok_or_else(tied)?;
        let (mut bytes, mut content) = (Vec::with_capacity(own.len()), String::with_capacity(self.content.len()));
        let (mut from_byte, mut from) = (0, 0);
        for (edit, place) in edits.iter().zip(places.chunks_exact(2)) {
            let replaced = &own[place[0]..place[1]];
            // Some encodings have two forms of a character. Unchanged characters in the replaced part must keep their form.
            if matches!(self.charset, Charset::Legacy(_))
                && self.charset.encode(&self.content[edit.part.clone()]).as_deref() != Some(replaced)
            {
                return Err(tied());
            }
            bytes.extend_from_slice(&own[from_byte..place[0]]);
            bytes.extend(self.stored(path, &edit.new, replaced)?);
            content.push_str(&self.content[from..edit.part.start]);
            content.push_str(&edit.new);
            (from_byte, from) = (place[1], edit.part.end);
        }
        bytes.extend_from_slice(&own[from_byte..]);
        content.push_str(&self.content[from..]);
        let changed = Self::of(self.charset, self.marked, Cow::Owned(bytes));
        // Bytes that were invalid must not become a character together with their new neighbours.
        if changed.content == content { Ok(changed) } else { Err(tied()) }
    }

    /// The same file with another content.
    pub(crate) fn rewritten(&self, path: &str, content: &str, mark: bool) -> Result<Self, Error> {
        self.admit(path, [content].into_iter())?;
        let bytes = self.stored(path, content, b"")?;
        Ok(Self::of(self.charset, self.marked || mark, Cow::Owned(bytes)))
    }

    /// Refuses characters that the file cannot have, or that could become others in it.
    fn admit<'n>(&self, path: &str, new: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        let new: String = new.flat_map(str::chars).filter(|letter| *letter != REPLACEMENT).collect();
        self.charset.admits(&self.content, &new).map_err(|why| Error::invalid(self.refusal(path, why)))
    }

    /// The new text in the file's encoding, to replace `replaced`. Invalid bytes of `replaced` stay where the new text has the
    /// replacement character for them.
    fn stored(&self, path: &str, new: &str, replaced: &[u8]) -> Result<Vec<u8>, Error> {
        if self.charset == Charset::Utf8 {
            return Ok(new.as_bytes().to_vec());
        }
        let mut kept =
            if self.charset.is_stored_as_utf8() { odd_bytes(replaced).into_iter() } else { Vec::new().into_iter() };
        let mut bytes = Vec::with_capacity(new.len());
        for (number, part) in new.split(REPLACEMENT).enumerate() {
            if number > 0 {
                bytes.extend(kept.next().ok_or_else(|| lost(path))?);
            }
            let missing = || Error::invalid(format!("{path} {}, which lacks a character", self.charset.is_in()));
            bytes.extend(self.charset.encode(part).ok_or_else(missing)?);
        }
        Ok(bytes)
    }

    fn refusal(&self, path: &str, why: Refused) -> String {
        let way_out = self.way_out(path);
        match (why, self.charset) {
            (Refused::Missing(letter), _) => {
                let is_in = self.charset.is_in();
                format!("{path} {is_in}, and `{letter}` has no place in it: use other characters, or {way_out}")
            }
            (Refused::Uncertain(letter), Charset::Unknown) => format!(
                "{path} is not in UTF-8, its encoding is not known, and so `{letter}` cannot be written: use ASCII \
                 characters, or {way_out}"
            ),
            (Refused::Uncertain(letter), _) => format!(
                "{path} is not in UTF-8 but probably in {}. That is not certain, and `{letter}` is not yet in the file: use \
                 ASCII characters or those that the file has, or {way_out}",
                self.charset.name()
            ),
        }
    }

    /// What to do about a file that cannot be changed in its own encoding.
    fn way_out(&self, path: &str) -> String {
        let (from, doubt) = match self.charset {
            Charset::Unknown => ("ENCODING", ""),
            charset if charset.is_guess() => (charset.name(), ", if it is in that encoding"),
            charset => (charset.name(), ""),
        };
        format!("ask the user whether to convert the file to UTF-8 (`iconv -f {from} -t UTF-8 {path}`{doubt})")
    }
}

/// The error for a file that is not a text.
pub(crate) fn no_text(path: &str, why: NoText, what: &str) -> Error {
    let why = match why {
        NoText::Binary => {
            format!("{path} contains NUL bytes and is not in UTF-16, so it is binary: only text can be {what}")
        }
        NoText::Utf32 => format!(
            "{path} is in UTF-32, which cannot be {what}: convert it with the user's consent (`iconv -f UTF-32 -t UTF-8 {path}`)"
        ),
    };
    Error::invalid(why).with_code("binary")
}

/// The error for new text with signs for bytes that it does not replace.
pub(crate) fn lost(path: &str) -> Error {
    Error::invalid(format!(
        "new text for {path} contains �, which stands for bytes that are not text and cannot be written: keep as many as the \
         replaced text has, or choose a part without them"
    ))
}

/// What the replacement characters of the decoded bytes stand for.
fn odd_bytes(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut odd = Vec::new();
    for chunk in bytes.utf8_chunks() {
        // The sign itself can be in the file.
        odd.extend(chunk.valid().matches(REPLACEMENT).map(|sign| sign.as_bytes().to_vec()));
        odd.extend((!chunk.invalid().is_empty()).then(|| chunk.invalid().to_vec()));
    }
    odd
}

/// A line of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line<'t> {
    /// Without its end.
    pub(crate) text: &'t str,
    /// A line feed with all carriage returns before it, `"\r"`, or empty for a last line without an end.
    pub(crate) end: &'static str,
    /// Where it begins, in bytes.
    pub(crate) start: usize,
}

impl Line<'_> {
    /// The bytes of the line, with its end.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.start..self.start + self.text.len() + self.end.len()
    }
}

/// The most carriage returns that belong to the end of a line. Some programs write `CR CR LF`.
const MOST_RETURNS: usize = 16;
const ENDS: &str = "\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\r\n";

/// A line without the carriage returns before its line feed, and this line end.
pub(crate) fn without_end(line: &str) -> (&str, &'static str) {
    let returns = line.bytes().rev().take(MOST_RETURNS).take_while(|byte| *byte == b'\r').count();
    (&line[..line.len() - returns], &ENDS[MOST_RETURNS - returns..])
}

/// The name of a line end, such as `CR LF`.
pub(crate) fn end_name(end: &str) -> String {
    end.chars().map(|letter| if letter == '\r' { "CR" } else { "LF" }).collect::<Vec<_>>().join(" ")
}

/// The same text with `\n` at the end of each line.
pub(crate) fn with_feeds(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => {
                plain.push_str(without_end(line).0);
                plain.push('\n');
            }
            None => plain.push_str(line),
        }
    }
    plain
}

/// The lines of a text. A carriage return alone ends a line only where no line ends in a line feed, as on a classic Macintosh.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let end = if has_lone_returns(text) { b'\r' } else { b'\n' };
    // Room for all of them at once: a vector that grows needs three times as much.
    let mut lines = Vec::with_capacity(text.bytes().filter(|byte| *byte == end).count() + 1);
    lines.extend(each_line(text));
    lines
}

/// The same one by one.
pub(crate) fn each_line(text: &str) -> impl Iterator<Item = Line<'_>> {
    let is_mac = has_lone_returns(text);
    let mut start = 0;
    text.split_inclusive(if is_mac { '\r' } else { '\n' }).map(move |whole| {
        let (text, end) = match whole.strip_suffix('\n') {
            None if is_mac => whole.strip_suffix('\r').map_or((whole, ""), |text| (text, "\r")),
            None => (whole, ""),
            Some(text) => without_end(text),
        };
        let line = Line { text, end, start };
        start += whole.len();
        line
    })
}

/// Whether the lines end in carriage returns alone.
pub(crate) fn has_lone_returns(text: &str) -> bool {
    text.contains('\r') && !text.contains('\n')
}

/// The line end for a line that is put in at this number: that of its neighbours.
pub(crate) fn end_at(lines: &[Line<'_>], at: usize) -> &'static str {
    let above = lines[..at.min(lines.len())].iter().rev();
    let near = lines.get(at).into_iter().chain(above).chain(lines.iter());
    near.map(|line| line.end).find(|end| !end.is_empty()).unwrap_or("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: &[u8]) -> Text {
        Text::decode("a", bytes).unwrap()
    }

    /// The bytes after the first `old` was replaced by `new`.
    fn replaced(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, String> {
        let text = text(bytes);
        let at = text.content.find(old).unwrap();
        let edit = Edit { part: at..at + old.len(), new: new.to_owned() };
        text.edited("a", &[edit]).map(|text| text.encode()).map_err(|error| error.message)
    }

    #[test]
    fn new_text_is_stored_as_the_file_stores_it() {
        let windows = b"caf\xe9 d\xe9j\xe0";
        assert_eq!(replaced(windows, "d", "t\u{e0}").unwrap(), b"caf\xe9 t\xe0\xe9j\xe0");
        assert!(replaced(windows, "d", "\u{17c}").unwrap_err().contains("`\u{17c}` has no place in it"));
        // UTF-8 with a stray byte, which stays.
        let mixed = "für über grün schön é".bytes().chain(*b" \xe9 x").collect::<Vec<u8>>();
        let expected = "für über grün schön é".bytes().chain("€ \u{e9}".bytes()).chain(*b"\xe9 x").collect::<Vec<u8>>();
        assert_eq!(replaced(&mixed, " \u{fffd} ", "€ é\u{fffd} ").unwrap(), expected);
        assert!(replaced(&mixed, " \u{fffd} ", "\u{fffd}\u{fffd}").unwrap_err().contains("�"));
        assert_eq!(replaced(b"\xff\xfea\0\n\0", "a", "\u{20ac}").unwrap(), b"\xff\xfe\xac\x20\n\0");
    }

    #[test]
    fn an_unknown_encoding_takes_only_ascii() {
        let odd = b"\xc3\xa9 \xe9 x";
        assert_eq!(replaced(odd, "x", "y").unwrap(), b"\xc3\xa9 \xe9 y");
        let error = replaced(odd, "x", "é").unwrap_err();
        assert!(error.contains("not known") && error.contains("iconv"), "{error}");
    }

    #[test]
    fn bytes_do_not_join_into_other_characters() {
        // Without the letter between them, the two bytes would be one character.
        let error = replaced(b"\xef\xbb\xbf\xc3x\xa9", "x", "").unwrap_err();
        assert!(error.contains("cannot be changed alone"), "{error}");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [&b"a\0b"[..], b"\x7fELF\0\x01", b"\xff\xfe\0\0a\0\0\0"] {
            assert_eq!(Text::decode("a", bytes).unwrap_err().code, "binary", "{bytes:?}");
            assert_eq!(Text::opaque(bytes).encode(), bytes);
        }
    }

    #[test]
    fn lines_know_their_ends() {
        let ends = |text| lines(text).iter().map(|line| (line.text.to_owned(), line.end)).collect::<Vec<_>>();
        assert_eq!(
            ends("a\r\nb\n\nc"),
            [("a".into(), "\r\n"), ("b".into(), "\n"), ("".into(), "\n"), ("c".into(), "")]
        );
        let many = format!("a\r\r\nb\r{}\nc\r", "\r".repeat(MOST_RETURNS));
        assert_eq!(ends(&many), [("a".into(), "\r\r\n"), ("b\r".into(), ENDS), ("c\r".into(), "")]);
        assert_eq!(with_feeds("a\r\r\nb\r\n\nc\r"), "a\nb\n\nc\r");
        assert_eq!((end_name("\r\r\n"), end_name("\r")), ("CR CR LF".to_owned(), "CR".to_owned()));
        assert_eq!(ends("a\rb"), [("a".into(), "\r"), ("b".into(), "")]);
        assert_eq!(ends("a\rb\n"), [("a\rb".into(), "\n")]);
        assert_eq!(ends(""), []);
        let text = "a\r\nb\nc";
        assert_eq!((end_at(&lines(text), 0), end_at(&lines(text), 2), end_at(&[], 0)), ("\r\n", "\n", "\n"));
    }

    proptest! {
        #[test]
        fn every_file_comes_back_byte_by_byte(bytes in prop::collection::vec(1_u8.., 0..40)) {
            if let Ok(text) = Text::decode("a", &bytes) {
                prop_assert_eq!(text.encode(), bytes);
            }
        }

        #[test]
        fn an_edit_keeps_all_other_bytes(
            before in prop::collection::vec(1_u8.., 0..40),
            after in prop::collection::vec(1_u8.., 0..40),
        ) {
            let bytes = [&before[..], b"\nQQ\n", &after[..]].concat();
            let Ok(text) = Text::decode("a", &bytes) else { return Ok(()) };
            let Some(at) = text.content.find("\nQQ\n") else { return Ok(()) };
            let edit = Edit { part: at + 1..at + 3, new: "z".to_owned() };
            if let Ok(changed) = text.edited("a", &[edit]) {
                prop_assert_eq!(changed.encode(), [&before[..], b"\nz\n", &after[..]].concat());
            }
        }

        #[test]
        fn lines_cover_the_text(text in "[a\r\n]{0,20}") {
            let joined: String = lines(&text).iter().map(|line| format!("{}{}", line.text, line.end)).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
