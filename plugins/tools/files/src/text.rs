//! The text of a file with its encoding and line ends, so that a change keeps both.

use std::ops::Range;

use hermes_plugin::Error;

const BOM: &[u8] = "\u{feff}".as_bytes();
/// What `read_file` shows in place of bytes that are not UTF-8.
pub(crate) const REPLACEMENT: char = '\u{fffd}';

/// How characters are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// Not UTF-8, and no character has several bytes.
    Latin1,
    /// A mixture: each byte is one character of the text, also those of UTF-8.
    Bytes,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) encoding: Encoding,
    bom: bool,
    /// Without the byte order mark, with its line ends.
    pub(crate) content: String,
}

impl Text {
    /// The content of a new file.
    pub(crate) fn new(content: String) -> Self {
        Self { encoding: Encoding::Utf8, bom: false, content }
    }

    /// Reads the bytes of the file at `path`. A binary file is refused.
    pub(crate) fn decode(path: &str, bytes: &[u8]) -> Result<Self, Error> {
        if bytes.contains(&0) {
            let why = format!(
                "{path} contains NUL bytes, so it is binary or in an encoding such as UTF-16: only text can be changed"
            );
            return Err(Error::invalid(why).with_code("binary"));
        }
        let (bom, bytes) = bytes.strip_prefix(BOM).map_or((false, bytes), |bytes| (true, bytes));
        if let Ok(content) = std::str::from_utf8(bytes) {
            return Ok(Self { encoding: Encoding::Utf8, bom, content: content.to_owned() });
        }
        let has_utf8 = bom || bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii());
        let encoding = if has_utf8 { Encoding::Bytes } else { Encoding::Latin1 };
        Ok(Self { encoding, bom, content: bytes.iter().copied().map(char::from).collect() })
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = if self.bom { BOM.to_vec() } else { Vec::new() };
        match self.encoding {
            Encoding::Utf8 => bytes.extend_from_slice(self.content.as_bytes()),
            // `admit` lets in no other characters.
            Encoding::Latin1 | Encoding::Bytes => {
                bytes.extend(self.content.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')));
            }
        }
        bytes
    }

    /// A text of the model in the characters of this file. The replacement character stays, since it stands for a byte.
    pub(crate) fn admit(&self, path: &str, text: &str) -> Result<String, Error> {
        match self.encoding {
            Encoding::Utf8 => Ok(text.to_owned()),
            Encoding::Latin1 => match text.chars().find(|letter| *letter > '\u{ff}' && *letter != REPLACEMENT) {
                None => Ok(text.to_owned()),
                Some(letter) => Err(Error::invalid(format!(
                    "{path} is not in UTF-8 but has one byte for each character (Latin-1), and `{letter}` has no place in it: \
                     use other characters, or ask the user whether to convert the file"
                ))),
            },
            Encoding::Bytes => Ok(text
                .chars()
                .flat_map(|letter| match letter {
                    REPLACEMENT => vec![letter],
                    _ => letter.to_string().bytes().map(char::from).collect(),
                })
                .collect()),
        }
    }

    /// A part of the content as the model sees it.
    pub(crate) fn shown(&self, part: &str) -> String {
        match self.encoding {
            Encoding::Utf8 | Encoding::Latin1 => part.to_owned(),
            Encoding::Bytes => {
                let bytes: Vec<u8> = part.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
        }
    }

    /// Whether it begins with a byte order mark.
    pub(crate) fn has_mark(&self) -> bool {
        self.bom
    }

    /// The same file, with a byte order mark if it has one or gets one.
    pub(crate) fn with_mark(&self, mark: bool) -> Self {
        Self { bom: self.bom || mark, ..self.clone() }
    }

    /// The same file with this content.
    pub(crate) fn with(&self, content: String) -> Self {
        Self { content, ..self.clone() }
    }
}

/// A line of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line<'t> {
    /// Without its end.
    pub(crate) text: &'t str,
    /// `"\n"`, `"\r\n"`, or empty for a last line without an end.
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

/// The lines of a text.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|whole| {
            let (text, end) = match whole.strip_suffix('\n') {
                None => (whole, ""),
                Some(text) => text.strip_suffix('\r').map_or((text, "\n"), |text| (text, "\r\n")),
            };
            let line = Line { text, end, start };
            start += whole.len();
            line
        })
        .collect()
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

    #[test]
    fn the_encoding_is_recognised() {
        for (bytes, encoding, bom) in [
            ("grüße".as_bytes(), Encoding::Utf8, false),
            ("\u{feff}grüße".as_bytes(), Encoding::Utf8, true),
            (b"gr\xfc\xdfe", Encoding::Latin1, false),
            (b"gr\xc3\xbc\xdfe", Encoding::Bytes, false),
        ] {
            let text = Text::decode("a", bytes).unwrap();
            assert_eq!((text.encoding, text.bom), (encoding, bom), "{bytes:?}");
        }
        assert_eq!(Text::decode("a", b"a\0b").unwrap_err().code, "binary");
    }

    #[test]
    fn a_text_of_the_model_is_stored_as_the_file_stores_it() {
        let latin = Text::decode("a", b"caf\xe9").unwrap();
        assert_eq!(latin.with(latin.admit("a", "tür").unwrap()).encode(), b"t\xfcr");
        assert!(latin.admit("a", "€").unwrap_err().message.contains("`€`"));
        let mixed = Text::decode("a", b"\xc3\xa9 \xe9").unwrap();
        assert_eq!(mixed.with(mixed.admit("a", "é€").unwrap()).encode(), "é€".as_bytes());
        assert_eq!(mixed.shown(&mixed.content), "é \u{fffd}");
    }

    #[test]
    fn lines_know_their_ends() {
        let ends = |text| lines(text).iter().map(|line| (line.text.to_owned(), line.end)).collect::<Vec<_>>();
        assert_eq!(
            ends("a\r\nb\n\nc"),
            [("a".into(), "\r\n"), ("b".into(), "\n"), ("".into(), "\n"), ("c".into(), "")]
        );
        assert_eq!(ends(""), []);
        let text = "a\r\nb\nc";
        assert_eq!((end_at(&lines(text), 0), end_at(&lines(text), 2), end_at(&[], 0)), ("\r\n", "\n", "\n"));
    }

    proptest! {
        #[test]
        fn every_file_comes_back_byte_by_byte(bytes in prop::collection::vec(1_u8.., 0..40)) {
            prop_assert_eq!(Text::decode("a", &bytes).unwrap().encode(), bytes);
        }

        #[test]
        fn lines_cover_the_text(text in "[a\r\n]{0,20}") {
            let joined: String = lines(&text).iter().map(|line| format!("{}{}", line.text, line.end)).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
