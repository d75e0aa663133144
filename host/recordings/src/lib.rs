//! Reads recorded conversations: exports of this program, bodies of requests, and the sessions of other agents.
//!
//! Everything except messages is left out and counted. An invalid conversation is repaired as the host repairs it after a
//! crash: a call without a result gets a result that says so.

#![forbid(unsafe_code)]

mod attached;
mod blocks;
mod claude;
mod documents;
mod error;
mod export;
mod foreign;
mod gemini;
mod items;
mod mend;
mod openai;
mod opencode;
mod pi;
mod records;
mod stamp;

use std::path::Path;

use hermes_conversation::{Draft, Origin, Role};
use serde::Serialize;

pub use self::error::{RecordingError, codes};
use self::records::Records;

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The output of `hermes sessions export`.
    Hermes,
    /// Messages in the format of chat completions.
    OpenAi,
    /// Messages with the blocks of the Messages API: bodies of requests, and sessions of Cline.
    Messages,
    /// Bodies of requests of the Responses API.
    Responses,
    /// Session files of the pi coding agent.
    Pi,
    /// Session files of Claude Code.
    ClaudeCode,
    /// Session files of Codex.
    Codex,
    /// The database of opencode.
    OpenCode,
    /// Session files of Gemini CLI.
    Gemini,
    /// Session files of Qwen Code.
    Qwen,
    /// Session files of Continue.
    Continue,
}

impl Format {
    /// What it is, for people.
    pub fn described(self) -> &'static str {
        match self {
            Self::Hermes => "Hermes export",
            Self::OpenAi => "OpenAI-style JSON lines",
            Self::Messages => "conversation in the blocks of the Messages API",
            Self::Responses => "request of the Responses API",
            Self::Pi => "session of pi",
            Self::ClaudeCode => "session of Claude Code",
            Self::Codex => "session of Codex",
            Self::OpenCode => "database of opencode",
            Self::Gemini => "session of Gemini CLI",
            Self::Qwen => "session of Qwen Code",
            Self::Continue => "session of Continue",
        }
    }
}

/// Something that was left out or repaired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A description.
    pub what: &'static str,
    /// How often.
    pub count: u64,
}

/// A recorded conversation.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The name of its file or session.
    pub name: String,
    /// The format of the file.
    pub format: Format,
    /// Its messages, oldest first. Every call has a result, and times never decrease.
    pub drafts: Vec<Draft>,
    /// Images whose bytes are missing: a mark in the text replaces each.
    pub images: u64,
    /// What was left out or repaired.
    pub notes: Vec<Note>,
}

/// Whether a message is a reply of the model. A request is due before each reply.
pub fn is_reply(draft: &Draft) -> bool {
    draft.role == Role::Assistant && draft.origin == Origin::Said
}

impl Recording {
    /// Reads all conversations of a file, and detects its format.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Read`], [`RecordingError::Folder`], [`RecordingError::Foreign`], [`RecordingError::TooLarge`], [`RecordingError::Line`],
    /// [`RecordingError::Empty`].
    pub fn read(path: &Path) -> Result<Vec<Self>, RecordingError> {
        if path.is_dir() {
            return Err(RecordingError::Folder { path: path.to_owned(), session: foreign::session_in(path) });
        }
        if opencode::is_database(path) {
            let read = Self::mended(opencode::read(path)?);
            return if read.is_empty() { Err(RecordingError::Empty { path: path.to_owned() }) } else { Ok(read) };
        }
        if let Some(why) = foreign::named(path) {
            return Err(RecordingError::Foreign { path: path.to_owned(), why });
        }
        let records = records::read(path)?;
        let name = path.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy().into_owned());
        let read = Self::parse(&name, &records).map_err(|fault| RecordingError::Line {
            path: path.to_owned(),
            line: fault.line,
            why: fault.why,
        })?;
        if read.is_empty() { Err(RecordingError::Empty { path: path.to_owned() }) } else { Ok(read) }
    }

    /// Which other agent wrote a file, in words that go on a sentence: `it is a session of Codex`. None for an export of Hermes, and
    /// for a form that is not known.
    pub fn recognised(path: &Path) -> Option<String> {
        if opencode::is_database(path) {
            return Some(opencode::described(path).to_owned());
        }
        if let Some(what) = foreign::named(path) {
            return Some(what);
        }
        let records = records::read(path).ok()?;
        match format(&records) {
            Ok(Format::Hermes) => None,
            Ok(Format::OpenAi) => Some("it has messages of the chat completions API".to_owned()),
            Ok(format) => Some(format!("it is a {}", format.described())),
            Err(_) => foreign::known(&records).map(str::to_owned),
        }
    }

    fn parse(name: &str, records: &Records) -> Result<Vec<Self>, Fault> {
        Ok(Self::mended(match format(records)? {
            Format::Hermes => export::read(records)?,
            Format::OpenAi | Format::Messages => openai::read(name, records)?,
            Format::Responses => items::bodies(name, records)?,
            Format::Pi => vec![pi::read(name, records)?],
            Format::ClaudeCode => vec![claude::read(name, records)],
            Format::Codex => vec![items::codex(name, records)],
            Format::Gemini => vec![gemini::gemini(name, records)],
            Format::Qwen => vec![gemini::qwen(name, records)],
            Format::Continue => records.iter().map(|record| documents::continued(name, record)).collect(),
            // It is no text, and was read before.
            Format::OpenCode => Vec::new(),
        }))
    }

    fn mended(mut read: Vec<Self>) -> Vec<Self> {
        for recording in &mut read {
            mend::mend(recording);
        }
        read.retain(|recording| recording.drafts.iter().any(is_reply));
        read
    }

    /// The number of requests in it.
    pub fn requests(&self) -> usize {
        self.drafts.iter().filter(|draft| is_reply(draft)).count()
    }

    /// A fingerprint of its messages.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for draft in &self.drafts {
            let json = serde_json::to_vec(draft).unwrap_or_default();
            hasher.update(&(json.len() as u64).to_le_bytes());
            hasher.update(&json);
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    fn empty(name: String, format: Format) -> Self {
        Self { name, format, drafts: Vec::new(), images: 0, notes: Vec::new() }
    }

    fn note(&mut self, what: &'static str, count: u64) {
        match self.notes.iter_mut().find(|note| note.what == what) {
            _ if count == 0 => {}
            Some(note) => note.count += count,
            None => self.notes.push(Note { what, count }),
        }
    }
}

/// A line that cannot be used.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    line: usize,
    why: String,
}

impl Fault {
    fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }
}

fn format(records: &Records) -> Result<Format, Fault> {
    let Some(first) = records.first() else {
        return Err(Fault::new(1, "the file is empty"));
    };
    let value = &first.value;
    let kind = value.get("type").and_then(|kind| kind.as_str());
    let has = |name: &str| value.get(name).is_some();
    let any = |test: &dyn Fn(&serde_json::Value) -> bool| {
        records.iter().take(MOST_LOOKED_AT).any(|record| test(&record.value))
    };
    if kind == Some("header") && has("format") {
        return Ok(Format::Hermes);
    }
    if has("payload") && has("timestamp") && kind.is_some() {
        return Ok(Format::Codex);
    }
    if has("sessionId") && (has("projectHash") || any(&|value| value.get("$set").is_some())) {
        return Ok(Format::Gemini);
    }
    if has("history") && has("sessionId") {
        return Ok(Format::Continue);
    }
    if any(&|value| value.pointer("/message/parts").is_some()) {
        return Ok(Format::Qwen);
    }
    if has("messages") || has("role") {
        return Ok(Format::OpenAi);
    }
    if has("input") && (has("model") || has("instructions")) {
        return Ok(Format::Responses);
    }
    if kind == Some("session") || (kind == Some("message") && has("message")) {
        return Ok(Format::Pi);
    }
    if any(&claude::is_record) {
        return Ok(Format::ClaudeCode);
    }
    Err(Fault::new(first.line, foreign::known(records).unwrap_or(UNKNOWN)))
}

const UNKNOWN: &str = "no known format begins like this: an export of Hermes begins with a header, a file of chat messages \
                       with a `role` or `messages`, and a session of another agent with what that agent writes first";
/// Some agents begin a session with records that say little.
const MOST_LOOKED_AT: usize = 50;

#[cfg(test)]
mod tests;
