//! Reads recorded conversations in three formats.
//!
//! Everything except messages is left out and counted. An invalid conversation is repaired as the host repairs it after a
//! crash: a call without a result gets a result that says so.

mod attached;
mod export;
mod mend;
mod openai;
mod pi;
mod records;
mod stamp;

use std::path::Path;

use hermes_conversation::{Draft, Origin, Role};
use serde::Serialize;

use self::records::Records;
use crate::LabError;

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The output of `hermes sessions export`.
    Hermes,
    /// Messages in the format of chat completions.
    OpenAi,
    /// Session files of the pi coding agent.
    Pi,
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
    /// [`LabError::Read`], [`LabError::TooLarge`], [`LabError::Line`], [`LabError::Empty`].
    pub fn read(path: &Path) -> Result<Vec<Self>, LabError> {
        let records = records::read(path)?;
        let name = path.file_stem().map_or_else(|| "recording".into(), |stem| stem.to_string_lossy().into_owned());
        let read = Self::parse(&name, &records).map_err(|fault| LabError::Line {
            path: path.to_owned(),
            line: fault.line,
            why: fault.why,
        })?;
        if read.is_empty() { Err(LabError::Empty { path: path.to_owned() }) } else { Ok(read) }
    }

    fn parse(name: &str, records: &Records) -> Result<Vec<Self>, Fault> {
        let mut read = match format(records)? {
            Format::Hermes => export::read(records)?,
            Format::OpenAi => openai::read(name, records)?,
            Format::Pi => vec![pi::read(name, records)?],
        };
        for recording in &mut read {
            mend::mend(recording);
        }
        read.retain(|recording| recording.drafts.iter().any(is_reply));
        Ok(read)
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
    let kind = first.value.get("type").and_then(|kind| kind.as_str());
    if kind == Some("header") && first.value.get("format").is_some() {
        return Ok(Format::Hermes);
    }
    if first.value.get("messages").is_some() || first.value.get("role").is_some() {
        return Ok(Format::OpenAi);
    }
    if kind == Some("session") || (kind == Some("message") && first.value.get("message").is_some()) {
        return Ok(Format::Pi);
    }
    Err(Fault::new(
        first.line,
        "no known format begins like this: an export of Hermes begins with a header, a file of chat \
         messages with a `role` or `messages`, one of pi with its session",
    ))
}

#[cfg(test)]
mod tests;
