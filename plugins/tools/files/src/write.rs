//! `write_file`: writes a whole file. One that exists keeps its line ends, byte order mark and encoding.

use hermes_charset::{Charset, NoText, detect};
use hermes_plugin::Error;
use hermes_plugin::files::{self, Kind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::read::{MAX_WHOLE, peek};
use crate::text::{REPLACEMENT, Text, each_line, end_name};
use crate::{ROOT, count, parameters as schema, path};

pub(crate) const DESCRIPTION: &str = "Write a file of the workspace, creating it and its folders, or replacing all that \
    it held. Give the whole content, without line numbers.";

pub(crate) fn parameters() -> Value {
    schema(
        json!({
            "path": { "type": "string", "description": "In the workspace." },
            "content": { "type": "string" },
        }),
        &["path", "content"],
    )
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    path: String,
    content: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<String, Error> {
    let path = path::locate_file(&arguments.path)?;
    let before = match files::stat(ROOT, &path) {
        Ok(entry) if entry.kind == Kind::Directory => {
            let name = if path.is_empty() { "the workspace" } else { &path };
            return Err(Error::invalid(format!("{name} is a folder: give the path of a file in it")));
        }
        Ok(entry) => Some(entry.size),
        Err(error) if error.code == "not-found" => None,
        Err(error) => return Err(error),
    };
    let known = match before.map(|_| peek(&path)) {
        Some(Err(error)) if error.code == "conflict" => return Err(error),
        // The host says why a file cannot be replaced that cannot be read.
        Some(slice) => slice.ok().filter(|slice| slice.total == slice.content.len() as u64),
        None => None,
    };
    let kept = match &known {
        Some(slice) => kept(&path, &slice.content, &arguments.content)?,
        None => {
            let lost = "it was too large for its line ends and encoding to be kept";
            Kept { lost: before.map(|_| lost.to_owned()), ..Kept::nothing(&arguments.content) }
        }
    };
    if kept.bytes.len() > MAX_WHOLE as usize {
        let why = format!(
            "{path} would have {} bytes, more than the {MAX_WHOLE} that can be written at once",
            kept.bytes.len()
        );
        return Err(Error::invalid(why).with_code("too-large"));
    }
    files::write(ROOT, &path, &kept.bytes, known.as_ref().map(|slice| slice.version.as_str()))?;
    Ok(answer(&path, &kept, before))
}

/// A content as it is written.
struct Kept {
    bytes: Vec<u8>,
    lines: u64,
    /// The properties of the old file that the new one keeps.
    of_file: Vec<String>,
    /// The property of the old file that is lost.
    lost: Option<String>,
}

impl Kept {
    fn nothing(content: &str) -> Self {
        Self {
            bytes: content.as_bytes().to_vec(),
            lines: content.lines().count() as u64,
            of_file: Vec::new(),
            lost: None,
        }
    }
}

/// The content with the line ends, mark and encoding of the file that it replaces. Content that already has CR LF keeps it,
/// because the model wrote it on purpose.
fn kept(path: &str, before: &[u8], content: &str) -> Result<Kept, Error> {
    let mut kept = Kept::nothing(content);
    let file = match detect(before, true) {
        Ok(_) => Text::decode(path, before)?,
        // A binary file has no form that a text could keep.
        Err(NoText::Binary) => return Ok(kept),
        Err(NoText::Utf32) => {
            kept.lost = Some("it was in UTF-32, and is in UTF-8 now".to_owned());
            return Ok(kept);
        }
    };
    let has_mark = content.starts_with('\u{feff}');
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut ends = each_line(&file.content).map(|line| line.end).filter(|end| !end.is_empty());
    let end = ends.next().filter(|first| *first != "\n" && ends.all(|end| end == *first));
    let content = match end.filter(|_| content.contains('\n') && !content.contains('\r')) {
        Some(end) => {
            kept.of_file.push(format!("{} line ends", end_name(end)));
            content.replace('\n', end)
        }
        None => content.to_owned(),
    };
    let charset = file.charset();
    if charset != Charset::Utf8 && content.contains(REPLACEMENT) {
        return Err(Error::invalid(format!(
            "{path} is not in UTF-8, and {REPLACEMENT} in the content stands for bytes of it that would be lost: change the file \
             with patch, which keeps them"
        )));
    }
    if matches!(charset, Charset::Mixed | Charset::Unknown) && !content.is_ascii() {
        kept.lost = Some("its encoding was not clear, and is UTF-8 now".to_owned());
        let mark = if file.has_mark() || has_mark { charset.mark() } else { b"" };
        kept.bytes = [mark, content.as_bytes()].concat();
        return Ok(kept);
    }
    let is_seen = matches!(charset, Charset::Utf16Le | Charset::Utf16Be) || !content.is_ascii();
    if is_seen && charset != Charset::Utf8 {
        let doubt = if charset.is_guess() { "probably " } else { "" };
        kept.of_file.push(format!("{doubt}{} encoding", charset.name()));
    }
    if file.has_mark() && !has_mark {
        kept.of_file.push("byte order mark".to_owned());
    }
    kept.bytes = file.rewritten(path, &content, has_mark)?.encode();
    Ok(kept)
}

fn answer(path: &str, kept: &Kept, before: Option<u64>) -> String {
    let size = format!("{}, {}", count(kept.bytes.len() as u64, "byte"), count(kept.lines, "line"));
    let of_file = match kept.of_file.as_slice() {
        [] => String::new(),
        kept => format!("; kept of the file: {}", kept.join(", ")),
    };
    match before {
        None => format!("created {path}: {size}"),
        Some(before) => {
            let lost = kept.lost.as_ref().map(|lost| format!("; {lost}")).unwrap_or_default();
            format!("overwrote {path}: {size}, in place of {}{of_file}{lost}", count(before, "byte"))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_was_overwritten() {
        assert_eq!(answer("a/b.txt", &Kept::nothing("ü\nb"), None), "created a/b.txt: 4 bytes, 2 lines");
        assert_eq!(
            answer("b.txt", &Kept::nothing("x"), Some(9)),
            "overwrote b.txt: 1 byte, 1 line, in place of 9 bytes"
        );
        let kept = kept("b.txt", b"\xef\xbb\xbfa\r\n", "x\ny\n").unwrap();
        assert_eq!(
            answer("b.txt", &kept, Some(6)),
            "overwrote b.txt: 9 bytes, 2 lines, in place of 6 bytes; kept of the file: CR LF line ends, byte order mark"
        );
    }

    #[test]
    fn a_file_keeps_its_line_ends_mark_and_encoding() {
        let cases: [(&[u8], &str, &[u8]); 19] = [
            (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
            (b"a\r\nb", "x", b"x"),
            (b"a\nb\n", "x\ny", b"x\ny"),
            // Mixed ends have no rule, and CR LF of the model is its own.
            (b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
            (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n"),
            (b"a\nb\n", "x\r\n", b"x\r\n"),
            (b"", "x\n", b"x\n"),
            (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
            (b"\xef\xbb\xbfa\n", "\u{feff}x\n", b"\xef\xbb\xbfx\n"),
            (b"a\n", "\u{feff}x\n", b"\xef\xbb\xbfx\n"),
            (b"caf\xe9\r\n", "th\u{e9}\n", b"th\xe9\r\n"),
            (b"caf\xe9\n", "tea\n", b"tea\n"),
            (b"a\rb\r", "x\ny\n", b"x\ry\r"),
            (b"a\r\r\nb\r\r\n", "x\ny\n", b"x\r\r\ny\r\r\n"),
            (b"a\r\r\nb\r\n", "x\ny\n", b"x\ny\n"),
            (b"\xff\xfea\0\n\0", "\u{fc}\n", b"\xff\xfe\xfc\0\n\0"),
            (b"\0a\0\n\0b", "xy", b"\0x\0y"),
            // A mixture of encodings has none that could be kept.
            (b"\xc3\xa9 \xe9\n", "\u{20ac}\n", b"\xe2\x82\xac\n"),
            (b"\x7fELF\0\r\n", "x\n", b"x\n"),
        ];
        for (before, content, expected) in cases {
            let kept = kept("a", before, content).unwrap();
            assert_eq!(kept.bytes, expected, "{content:?} over {before:?}");
        }
    }

    #[test]
    fn characters_that_the_file_cannot_have_are_refused() {
        for (content, words) in [
            ("5 \u{17c}\n", "windows-1252, and `\u{17c}` has no place in it"),
            ("5 \u{20ac}\n", "not certain"),
            ("caf\u{fffd}\n", "patch"),
        ] {
            let error = kept("a", b"caf\xe9\n", content).err().unwrap();
            assert!(error.message.contains(words), "{error}");
        }
    }

    #[test]
    fn the_answer_says_which_encoding_is_lost() {
        for (before, words) in [(&b"\xc3\xa9 \xe9\n"[..], "is UTF-8 now"), (b"\xff\xfe\0\0a\0\0\0", "in UTF-32")] {
            let kept = kept("a", before, "\u{20ac}\n").unwrap();
            let answer = answer("a", &kept, Some(9));
            assert!(answer.contains(words), "{answer}");
        }
    }
}
