//! Files that are no exports, and records that two readers would read differently.

use std::io::Read;

use super::*;

fn sound() -> Vec<u8> {
    let (_home, from) = store();
    family(&from);
    exported(&from, None)
}

/// Imports a file that must be refused, and checks that the store is as before.
fn refused(name: &str, file: &[u8]) -> String {
    let (_home, to) = store();
    let own = to.create_session(new_session()).unwrap();
    let error = import(&to, file).expect_err(name);
    assert!(matches!(error, StoreError::Transfer(TransferError::Import { .. })), "{name}: {error}");
    assert_eq!(to.sessions().unwrap().len(), 1, "{name}");
    assert_eq!(to.blobs().unwrap().0, 0, "{name}");
    assert_eq!(to.session(&own.id).unwrap(), own, "{name}");
    let error = error.to_string();
    assert!(error.len() < 2_000 && !error.contains(['\u{1b}', '\u{7}']), "{name}: {} bytes: {error:?}", error.len());
    error
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let text = String::from_utf8(sound()).unwrap();
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, file) in [
        ("an export in another encoding", [&[0xff, 0xfe][..], &wide].concat()),
        ("a compressed file", [b"\x1f\x8b\x08\0".as_slice(), &[0; 64]].concat()),
        ("an archive", [b"PK\x03\x04".as_slice(), text.as_bytes()].concat()),
        ("a page", format!("<html><pre>{text}</pre></html>").into_bytes()),
        ("a database", [b"SQLite format 3\0".as_slice(), &[0; 4_096]].concat()),
        ("a megabyte of zeros", vec![0; 1 << 20]),
        ("a megabyte of line feeds", vec![b'\n'; 1 << 20]),
        ("opened lists without end", vec![b'['; 1 << 20]),
        ("commas without end", vec![b','; 1 << 20]),
        ("a number", b"7".to_vec()),
        ("a text", b"\"hermes-sessions\"\n".to_vec()),
        ("nothing but an end", b"{\"type\":\"end\",\"sessions\":0,\"messages\":0}\n".to_vec()),
        ("a header alone", text.lines().next().unwrap().as_bytes().to_vec()),
        ("an export twice", [text.as_bytes(), text.as_bytes()].concat()),
        ("an export behind a line", [b"from: a friend\n".as_slice(), text.as_bytes()].concat()),
        ("an export before a line", [text.as_bytes(), b"regards\n"].concat()),
        ("an export without line feeds", text.replace('\n', " ").into_bytes()),
        ("NUL between the lines", text.replace('\n', "\n\0").into_bytes()),
    ] {
        refused(name, &file);
    }
}

/// A change of the text of a valid export.
type Forgery = (&'static str, fn(&str) -> String);

/// Replaces the first occurrence, which must exist.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from:?} in {}", &text[..text.len().min(600)]);
    text.replacen(from, to, 1)
}

const FORGERIES: &[Forgery] = &[
    ("a version of the future", |text| replaced(text, "\"version\":1", "\"version\":4294967295")),
    ("a version that is a text", |text| replaced(text, "\"version\":1", "\"version\":\"1\"")),
    ("a version with a fraction", |text| replaced(text, "\"version\":1", "\"version\":1.5")),
    ("a version below zero", |text| replaced(text, "\"version\":1", "\"version\":-1")),
    ("a type given twice", |text| {
        replaced(text, "{\"type\":\"session\"", "{\"type\":\"session\",\"type\":\"message\"")
    }),
    ("an id given twice", |text| replaced(text, "{\"type\":\"session\"", "{\"type\":\"session\",\"id\":\"other\"")),
    ("a workspace given twice", |text| {
        replaced(text, "{\"type\":\"session\"", "{\"type\":\"session\",\"workspace\":\"/harmless\"")
    }),
    ("a role given twice", |text| replaced(text, "{\"type\":\"message\"", "{\"type\":\"message\",\"role\":\"user\"")),
    ("a type in capitals", |text| replaced(text, "\"type\":\"session\"", "\"type\":\"Session\"")),
    ("a number beyond all", |text| replaced(text, "\"context_length\":", "\"context_length\":1e999,\"x\":")),
    ("a number that is none", |text| replaced(text, "\"context_length\":", "\"context_length\":NaN,\"x\":")),
    ("a list in the place of an id", |text| {
        replaced(text, "{\"type\":\"session\",\"id\":\"", "{\"type\":\"session\",\"id\":[\"")
    }),
    ("a comment", |text| replaced(text, "{\"type\":\"session\"", "{/* hi */\"type\":\"session\"")),
    ("a comma too many", |text| replaced(text, "\"source\":", ",\"source\":")),
    ("half of a letter", |text| replaced(text, "\"workspace\":\"", "\"workspace\":\"\\ud83d")),
    ("a value that nests without end", |text| {
        replaced(
            text,
            "{\"type\":\"session\"",
            &format!("{{\"type\":\"session\",\"x\":{}1{}", "[".repeat(10_000), "]".repeat(10_000)),
        )
    }),
    ("an id of ten thousand letters", |text| {
        replaced(
            text,
            "{\"type\":\"session\",\"id\":\"",
            &format!("{{\"type\":\"session\",\"id\":\"{}", "a".repeat(10_000)),
        )
    }),
    ("an id that climbs", |text| {
        replaced(text, "{\"type\":\"session\",\"id\":\"", "{\"type\":\"session\",\"id\":\"../")
    }),
    ("an id with an escape sequence", |text| {
        replaced(text, "{\"type\":\"session\",\"id\":\"", "{\"type\":\"session\",\"id\":\"\\u001b[2J")
    }),
    ("an id that reads backwards", |text| {
        replaced(text, "{\"type\":\"session\",\"id\":\"", "{\"type\":\"session\",\"id\":\"\\u202e")
    }),
    ("an unknown role with an escape sequence", |text| {
        replaced(text, "\"role\":\"user\"", "\"role\":\"\\u001b]0;owned\\u0007\"")
    }),
    ("more sessions than there are", |text| replaced(text, "\"sessions\":4", "\"sessions\":18446744073709551615")),
    ("fewer sessions than there are", |text| replaced(text, "\"sessions\":4", "\"sessions\":0")),
];

#[test]
fn a_record_that_can_be_read_in_two_ways_is_refused() {
    let text = String::from_utf8(sound()).unwrap();
    for (name, forge) in FORGERIES {
        refused(name, forge(&text).as_bytes());
    }
    let (_home, to) = store();
    assert_eq!(import(&to, text.as_bytes()).unwrap().sessions.len(), 4);
}

/// A file that never ends: a header, and then the same bytes again and again. It counts what was read.
struct Endless {
    text: Vec<u8>,
    repeated: Vec<u8>,
    at: u64,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        for byte in buffer.iter_mut() {
            let at = usize::try_from(self.at).unwrap();
            *byte = match self.text.get(at) {
                Some(byte) => *byte,
                None => self.repeated[(at - self.text.len()) % self.repeated.len()],
            };
            self.at += 1;
        }
        assert!(self.at < 200 << 20, "more and more is read");
        Ok(buffer.len())
    }
}

impl std::io::Seek for Endless {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        let std::io::SeekFrom::Start(at) = to else { return Err(std::io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}

#[test]
fn a_file_without_an_end_is_read_to_a_limit() {
    let text = String::from_utf8(sound()).unwrap();
    let header: String = text.lines().take(1).map(|line| format!("{line}\n")).collect();
    let session: String = text.lines().nth(1).map(|line| format!("{line}\n")).unwrap();
    for (name, text, repeated) in [
        ("a line without an end", header.clone(), "x"),
        ("a text without an end", format!("{header}{{\"type\":\"message\",\"content\":\""), "x"),
        ("a session without an end", format!("{header}{{\"type\":\"session\",\"id\":\""), "\\u0041"),
        ("a session again and again", header, session.as_str()),
    ] {
        let (_home, to) = store();
        let file = Endless { text: text.into_bytes(), repeated: repeated.as_bytes().to_vec(), at: 0 };
        let error = to.examine_import(&mut std::io::BufReader::new(file)).expect_err(name);
        assert!(matches!(error, StoreError::Transfer(TransferError::Import { .. })), "{name}: {error}");
    }
}
