//! Reads the database of opencode. It is read from a private copy: SQLite would write beside the original.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::attached::Content;
use super::blocks::{BY_AGENT, COMPACTIONS, OTHER_RECORDS, Said, Scribe};
use super::{Format, Recording, stamp};
use crate::RecordingError;

/// How a database of SQLite begins.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The most bytes of a value. Pictures are in the database.
const MOST: i64 = 64 << 20;

/// Whether a file is a database of SQLite.
pub(super) fn is_database(path: &Path) -> bool {
    let mut start = [0; 16];
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
        && fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == MAGIC
}

/// What a database is.
pub(super) fn described(path: &Path) -> &'static str {
    match read(path) {
        Ok(_) => "it is a database of opencode",
        Err(_) => "it is a database of SQLite",
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<Recording>, RecordingError> {
    let unreadable = |source| RecordingError::Read { path: path.to_owned(), source };
    let foreign = |why: String| RecordingError::Foreign { path: path.to_owned(), why };
    let folder = tempfile::tempdir().map_err(unreadable)?;
    let copy = folder.path().join("copy.db");
    fs::copy(path, &copy).map_err(unreadable)?;
    let log = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push("-wal");
        PathBuf::from(name)
    };
    if log(path).is_file() {
        fs::copy(log(path), log(&copy)).map_err(unreadable)?;
    }
    let recordings = || -> rusqlite::Result<Option<Vec<Recording>>> {
        let connection = Connection::open_with_flags(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cell_size_check = ON;")?;
        let tables: u32 = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('session', 'message', 'part')",
            [],
            |row| row.get(0),
        )?;
        if tables < 3 { Ok(None) } else { sessions(&connection).map(Some) }
    };
    match recordings() {
        Ok(Some(recordings)) => Ok(recordings),
        Ok(None) => Err(foreign("it is a database of SQLite, but not that of opencode".to_owned())),
        Err(error) => Err(foreign(format!("it is a database of SQLite that cannot be read: {error}"))),
    }
}

fn sessions(connection: &Connection) -> rusqlite::Result<Vec<Recording>> {
    let mut parts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut statement = connection
        .prepare("SELECT message_id, data FROM part WHERE octet_length(data) <= ?1 ORDER BY message_id, id")?;
    let mut rows = statement.query([MOST])?;
    while let Some(row) = rows.next()? {
        let (message, data): (String, String) = (row.get(0)?, row.get(1)?);
        parts.entry(message).or_default().push(serde_json::from_str(&data).unwrap_or_default());
    }
    let mut recordings: BTreeMap<String, Recording> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut statement = connection.prepare(
        "SELECT message.session_id, message.id, message.data FROM message JOIN session ON session.id = message.session_id \
         WHERE octet_length(message.data) <= ?1 ORDER BY session.time_created, message.time_created, message.id",
    )?;
    let mut rows = statement.query([MOST])?;
    while let Some(row) = rows.next()? {
        let (session, id, data): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let recording = recordings.entry(session.clone()).or_insert_with(|| {
            order.push(session.clone());
            Recording::empty(session, Format::OpenCode)
        });
        let message: Value = serde_json::from_str(&data).unwrap_or_default();
        add(recording, &message, parts.get(&id).map_or(&[], Vec::as_slice));
    }
    Ok(order.iter().filter_map(|id| recordings.remove(id)).collect())
}

fn add(recording: &mut Recording, message: &Value, parts: &[Value]) {
    let at = message.pointer("/time/created").and_then(stamp::parse).unwrap_or(0);
    if message["summary"] == true || parts.iter().any(|part| part["type"] == "compaction") {
        return recording.note(COMPACTIONS, 1);
    }
    let mut said = Said::default();
    let mut is_of_agent = !parts.is_empty();
    for part in parts {
        match part["type"].as_str() {
            Some("text") if part["synthetic"] == true => continue,
            Some("text") => said.text(part["text"].as_str()),
            Some("reasoning") => said.thought(part["text"].as_str()),
            Some("file") => said.picture(part, recording),
            Some("tool") => tool(&mut said, part, recording),
            _ => {
                recording.note(OTHER_RECORDS, 1);
                continue;
            }
        }
        is_of_agent = false;
    }
    let is_assistant = message["role"] == "assistant";
    let mut scribe = Scribe::of(recording);
    match is_assistant {
        true => scribe.assistant(None, said, at),
        false if is_of_agent => scribe.recording.note(BY_AGENT, 1),
        false => scribe.user(said, at),
    }
}

/// A call with its result.
fn tool(said: &mut Said, part: &Value, recording: &mut Recording) {
    let (id, state) = (part["callID"].as_str(), &part["state"]);
    said.call(id, part["tool"].as_str(), &state["input"]);
    let text = state["output"].as_str().or_else(|| state["error"].as_str());
    if let Some(text) = text {
        let mut content = Content::of_text(text);
        let attached = state["attachments"].as_array().into_iter().flatten();
        attached.for_each(|picture| content.push_picture(picture, recording));
        said.result(id, part["tool"].as_str(), content);
    }
}
