//! Follows the end of a plugin's log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// Reads the lines that are appended to a file of JSON lines.
pub(super) struct Tail {
    path: PathBuf,
    at: u64,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
}

/// Most bytes to read at once.
const MOST: u64 = 1 << 20;

impl Tail {
    pub(super) fn at_end(path: PathBuf) -> Self {
        let at = std::fs::metadata(&path).map_or(0, |found| found.len());
        Self { path, at, rest: Vec::new() }
    }

    /// The new lines, formatted for people.
    pub(super) fn lines(&mut self) -> Vec<String> {
        let Ok(mut file) = File::open(&self.path) else { return Vec::new() };
        if file.metadata().is_ok_and(|found| found.len() < self.at) {
            // The file was truncated or replaced.
            (self.at, self.rest) = (0, Vec::new());
        }
        let mut read = Vec::new();
        let read_on = file.seek(SeekFrom::Start(self.at)).and_then(|_| file.take(MOST).read_to_end(&mut read));
        self.at += read_on.unwrap_or(0) as u64;
        self.rest.append(&mut read);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        String::from_utf8_lossy(&whole).lines().map(shown).collect()
    }
}

/// Time of day, level and text. A line in another format is returned unchanged.
fn shown(line: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return line.to_owned() };
    let mut take = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let (time, level, text) = (take("time"), take("level"), take("text"));
    take("session");
    let clock = time.split_once('T').map_or(time.as_str(), |(_, clock)| clock.get(..8).unwrap_or(clock));
    let rest = if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() };
    [clock, level.as_str(), text.as_str(), rest.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn old_lines_are_skipped_and_incomplete_lines_are_left_for_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.jsonl");
        std::fs::write(&path, "{\"text\":\"old\"}\n").unwrap();
        let mut tail = Tail::at_end(path.clone());
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(br#"{"time":"2026-11-22T10:11:12.345Z","level":"info","session":"s","text":"ne"#).unwrap();
        assert!(tail.lines().is_empty());
        file.write_all(b"w\"}\n{\"level\":\"info\",\"tool\":\"x\"}\nplain\n").unwrap();
        assert_eq!(tail.lines(), ["10:11:12 info new", r#"info {"tool":"x"}"#, "plain"]);
        assert!(tail.lines().is_empty());
        std::fs::write(&path, "again\n").unwrap();
        assert_eq!(tail.lines(), ["again"]);
    }
}
