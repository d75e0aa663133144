//! Reads the output of `hermes sessions export`: sessions with their messages; parents come before their children.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use hermes_conversation::{Message, MessageId};
use serde::Deserialize;
use serde_json::Value;

use super::records::{Record, Records};
use super::{Fault, Format, Recording};

const FORMAT: &str = "hermes-sessions";
/// Version 2 has messages with parts and authors.
const VERSIONS: RangeInclusive<u64> = 1..=2;

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
}

#[derive(Deserialize)]
struct Session {
    id: String,
    parent: Option<Parent>,
}

#[derive(Clone, Deserialize)]
struct Parent {
    id: String,
    kind: String,
    through: Option<MessageId>,
    rewind: u64,
}

#[derive(Deserialize)]
struct Rewind {
    number: u64,
    messages: Vec<MessageId>,
}

/// A session in the file.
struct Stored {
    id: String,
    parent: Option<Parent>,
    messages: Vec<Message>,
    rewinds: Vec<Rewind>,
}

pub(super) fn read(records: &Records) -> Result<Vec<Recording>, Fault> {
    let mut stored: Vec<Stored> = Vec::new();
    for record in records {
        let kind = record.value.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "header" => header(record)?,
            "session" => {
                let Session { id, parent } = parse(record)?;
                stored.push(Stored { id, parent, messages: Vec::new(), rewinds: Vec::new() });
            }
            "message" => open(&mut stored, record)?.messages.push(parse(record)?),
            "rewind" => open(&mut stored, record)?.rewinds.push(parse(record)?),
            "prompt" | "view" | "request" | "end" => {}
            kind => return Err(Fault::new(record.line, format!("a record of the unknown type `{kind}`"))),
        }
    }
    let by_id: HashMap<&str, &Stored> = stored.iter().map(|session| (session.id.as_str(), session)).collect();
    stored.iter().map(|session| recording(session, &by_id)).collect()
}

fn header(record: &Record) -> Result<(), Fault> {
    let header: Header = parse(record)?;
    if header.format != FORMAT || !VERSIONS.contains(&header.version) {
        let found = format!("{} version {}", header.format, header.version);
        let (first, last) = VERSIONS.into_inner();
        return Err(Fault::new(record.line, format!("it is {found}; {FORMAT} versions {first} to {last} can be read")));
    }
    Ok(())
}

fn parse<T: for<'a> Deserialize<'a>>(record: &Record) -> Result<T, Fault> {
    T::deserialize(&record.value).map_err(|error| Fault::new(record.line, error.to_string()))
}

fn open<'a>(stored: &'a mut [Stored], record: &Record) -> Result<&'a mut Stored, Fault> {
    stored.last_mut().ok_or_else(|| Fault::new(record.line, "it comes before any session"))
}

/// The conversation of a session: the messages that it inherits and its own, without rewound messages.
fn recording(session: &Stored, by_id: &HashMap<&str, &Stored>) -> Result<Recording, Fault> {
    let mut recording = Recording::empty(session.id.clone(), Format::Hermes);
    let mut messages: Vec<&Message> = Vec::new();
    let mut taken_back = HashSet::new();
    let mut visited = HashSet::new();
    let (mut at, mut most, mut rewinds) = (session, MessageId(u64::MAX), u64::MAX);
    loop {
        if !visited.insert(at.id.as_str()) {
            return Err(Fault::new(1, format!("the session `{}` goes on from itself", session.id)));
        }
        messages.extend(at.messages.iter().filter(|message| message.id <= most));
        let told = at.rewinds.iter().filter(|rewind| rewind.number <= rewinds);
        taken_back.extend(told.flat_map(|rewind| rewind.messages.iter().copied()));
        let Some(parent) = at.parent.as_ref().filter(|parent| parent.kind != "delegate") else { break };
        let Some(next) = by_id.get(parent.id.as_str()) else {
            let why = format!(
                "the session `{}` goes on from `{}`, which is not in the file; export it with its parents",
                session.id, parent.id
            );
            return Err(Fault::new(1, why));
        };
        most = most.min(parent.through.unwrap_or(MessageId(0)));
        (at, rewinds) = (next, parent.rewind);
    }
    messages.sort_by_key(|message| message.id);
    let whole = messages.len();
    messages.retain(|message| !taken_back.contains(&message.id));
    recording.note("messages that the user took back, left out", (whole - messages.len()) as u64);
    recording.drafts = messages.into_iter().map(|message| message.draft.clone()).collect();
    Ok(recording)
}
