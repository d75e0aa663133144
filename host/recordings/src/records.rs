//! The JSON objects of a file: one per line, the elements of an array, or a single object over many lines.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Fault;
use crate::RecordingError;

/// The largest file that is read, in bytes.
const MOST: u64 = 2 * 1024 * 1024 * 1024;

/// An object and the number of its first line.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) value: Value,
}

pub(super) type Records = Vec<Record>;

pub(super) fn read(path: &Path) -> Result<Records, RecordingError> {
    let unreadable = |source| RecordingError::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > MOST {
        return Err(RecordingError::TooLarge { path: path.to_owned(), bytes, most: MOST });
    }
    let mut content = Vec::new();
    // The length of a pipe is unknown: it is read up to the same limit.
    (&mut file).take(MOST).read_to_end(&mut content).map_err(unreadable)?;
    parse(&content).map_err(|fault| RecordingError::Line { path: path.to_owned(), line: fault.line, why: fault.why })
}

pub(super) fn parse(content: &[u8]) -> Result<Records, Fault> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let text = std::str::from_utf8(content).map_err(|error| {
        let line = line_at(content, error.valid_up_to());
        Fault::new(line, "it is not UTF-8; convert the file")
    })?;
    match text.trim_start().as_bytes().first() {
        Some(b'[') => array(text),
        // A line of a document over many lines may be a whole object, too.
        Some(b'{') if serde_json::from_str::<&RawValue>(text).is_ok() || !first_line_is_whole(text) => one(text),
        _ => lines(text),
    }
}

fn lines(text: &str) -> Result<Records, Fault> {
    let mut records = Records::new();
    for (at, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            records.push(Record { line: at + 1, value: object(line, at + 1)? });
        }
    }
    Ok(records)
}

fn array(text: &str) -> Result<Records, Fault> {
    let members: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| broken(&error, 0))?;
    let start = text.as_ptr() as usize;
    let mut records = Records::new();
    // The elements are in order: each line number is counted from that of the previous element.
    let (mut line, mut counted) = (1, 0);
    for member in members {
        let at = member.get().as_ptr() as usize - start;
        line += text.as_bytes()[counted..at].iter().filter(|byte| **byte == b'\n').count();
        counted = at;
        records.push(Record { line, value: object(member.get(), line)? });
    }
    Ok(records)
}

/// A single object over many lines.
fn one(text: &str) -> Result<Records, Fault> {
    let value: Value = serde_json::from_str(text).map_err(|error| broken(&error, 0))?;
    Ok(vec![Record { line: 1, value }])
}

fn first_line_is_whole(text: &str) -> bool {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // A truncated first line is reported as such if complete lines follow it.
    serde_json::from_str::<&RawValue>(line).is_ok() || text.lines().skip(1).any(|line| object(line, 0).is_ok())
}

fn object(text: &str, line: usize) -> Result<Value, Fault> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Fault::new(line, "it is not a JSON object")),
        Err(error) => Err(broken(&error, line)),
    }
}

fn broken(error: &serde_json::Error, line: usize) -> Fault {
    let line = if line == 0 { error.line().max(1) } else { line };
    let what =
        if error.is_eof() { "it ends in the middle of an object; was the file cut off?" } else { "it is not JSON" };
    Fault::new(line, format!("{what} (column {})", error.column()))
}

fn line_at(content: &[u8], offset: usize) -> usize {
    1 + content[..offset].iter().filter(|byte| **byte == b'\n').count()
}
