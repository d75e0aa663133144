//! LoCoMo: dialogues of two people over many sessions, as published and as audited.
//!
//! - The published file is a list of objects with `conversation` and `qa`.
//! - The audit has a file for each dialogue, with `dialog_index` and `questions`.
//! - Its corrections are a list of objects with `question_id` and `correct_evidence`.

use std::collections::{BTreeSet, HashMap};

use hermes_conversation::Role;
use serde_json::{Map, Value};

use super::{
    BROKEN_MESSAGE, BROKEN_QUESTION, BROKEN_REFERENCE, BROKEN_TIME, Collection, Dialogue, EMPTY_MESSAGE,
    REPAIRED_REFERENCE, UNKNOWN_MESSAGE, Utterance, time,
};

/// The corrected evidence of a question, by its id.
#[derive(Debug, Default)]
pub(super) struct Corrections(HashMap<String, Correction>);

#[derive(Debug)]
struct Correction {
    question: String,
    evidence: Vec<Value>,
    used: bool,
}

impl Corrections {
    pub(super) fn recognises(value: &Value) -> bool {
        let is_one = |entry: &Value| entry.get("question_id").is_some() && entry.get("correct_evidence").is_some();
        value.as_array().is_some_and(|entries| !entries.is_empty() && entries.iter().all(is_one))
    }

    /// Adds the corrections of a file.
    pub(super) fn add(&mut self, value: &Value) {
        for entry in value.as_array().into_iter().flatten() {
            let (Some(id), Some(question)) = (text(entry, "question_id"), text(entry, "question")) else { continue };
            let Some(evidence) = entry.get("correct_evidence").and_then(Value::as_array) else { continue };
            let (question, evidence) = (question.to_owned(), evidence.clone());
            self.0.insert(id.to_owned(), Correction { question, evidence, used: false });
        }
    }

    /// How many fit no question of the files.
    pub(super) fn unused(&self) -> u64 {
        self.0.values().filter(|correction| !correction.used).count() as u64
    }

    fn of(&mut self, id: &str, question: &str) -> Option<&[Value]> {
        let correction = self.0.get_mut(id).filter(|correction| correction.question == question)?;
        correction.used = true;
        Some(&correction.evidence)
    }
}

/// Whether this is a dialogue of the published file.
pub(super) fn is_published(value: &Value) -> bool {
    value.get("conversation").is_some_and(Value::is_object) && value.get("qa").is_some_and(Value::is_array)
}

/// Whether this is a dialogue of the audit.
pub(super) fn is_audited(value: &Value) -> bool {
    value.get("dialog_index").is_some_and(Value::is_object) && value.get("questions").is_some_and(Value::is_array)
}

/// Reads a dialogue of the published file. `number` is its number there, which corrections name.
pub(super) fn published(value: &Value, number: usize, corrections: &mut Corrections) -> Result<Dialogue, String> {
    let conversation = value.get("conversation").and_then(Value::as_object).ok_or("it has no `conversation`")?;
    let id = format!("locomo_{number}");
    let name = text(value, "sample_id").map_or(id.clone(), |sample| format!("{number} ({sample})"));
    let mut reader = Reader::new(name, speakers(conversation)?);
    let mut sessions: Vec<(u32, &Vec<Value>)> = conversation.iter().filter_map(session_of).collect();
    sessions.sort_by_key(|(number, _)| *number);
    for (number, messages) in sessions {
        let date = conversation.get(&format!("session_{number}_date_time"));
        reader.session(date.and_then(Value::as_str).unwrap_or_default());
        messages.iter().for_each(|message| reader.message(message));
    }
    let questions = value.get("qa").and_then(Value::as_array).into_iter().flatten();
    for (at, question) in questions.enumerate() {
        reader.question(format!("{id}_qa{at}"), question, "evidence", corrections);
    }
    Ok(reader.dialogue)
}

/// Reads a dialogue of the audit.
pub(super) fn audited(value: &Value, corrections: &mut Corrections) -> Result<Dialogue, String> {
    let object = value.as_object().ok_or("it is not an object")?;
    let name = text(value, "conv_id").unwrap_or("locomo").to_owned();
    let mut reader = Reader::new(name.clone(), speakers(object)?);
    let index = value.get("dialog_index").and_then(Value::as_object).ok_or("it has no `dialog_index`")?;
    let mut messages: Vec<(Option<Reference>, &Value)> =
        index.iter().map(|(id, message)| (Reference::parse(id).map(|(reference, _)| reference), message)).collect();
    messages.sort_by_key(|(reference, _)| *reference);
    let mut current = None;
    for (reference, message) in messages {
        let session = reference.map(|reference| reference.session);
        if current != Some(session) {
            current = Some(session);
            reader.session(text(message, "session_datetime").unwrap_or_default());
        }
        reader.message(message);
    }
    let questions = value.get("questions").and_then(Value::as_array).into_iter().flatten();
    for (at, question) in questions.enumerate() {
        let id = text(question, "question_id").map_or_else(|| format!("{name}_qa{at}"), str::to_owned);
        reader.question(id, question, "evidence_ids", corrections);
    }
    Ok(reader.dialogue)
}

fn session_of<'a>((key, value): (&String, &'a Value)) -> Option<(u32, &'a Vec<Value>)> {
    Some((key.strip_prefix("session_")?.parse().ok()?, value.as_array()?))
}

/// The names of the two people.
fn speakers(object: &Map<String, Value>) -> Result<[String; 2], String> {
    let name = |key: &str| {
        let name = object.get(key).and_then(Value::as_str).map(str::to_owned);
        name.ok_or_else(|| format!("it has no `{key}`"))
    };
    Ok([name("speaker_a")?, name("speaker_b")?])
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The id of a message: `D3:14` is the 14th of the third session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Reference {
    session: u32,
    message: u32,
}

impl Reference {
    /// Parses an id, also `D:3:14`, `D3:014` and `(D3:14)`. Returns whether it is written in the usual form.
    fn parse(text: &str) -> Option<(Self, bool)> {
        let trimmed = text.trim_matches(|sign: char| !sign.is_ascii_alphanumeric());
        let (session, message) = trimmed.strip_prefix('D')?.trim_start_matches(':').split_once(':')?;
        let reference = Self { session: session.parse().ok()?, message: message.parse().ok()? };
        Some((reference, text == format!("D{}:{}", reference.session, reference.message)))
    }
}

/// Puts a dialogue together.
struct Reader {
    dialogue: Dialogue,
    speakers: [String; 2],
    times: time::Timeline,
    sessions: usize,
    positions: HashMap<Reference, usize>,
}

impl Reader {
    fn new(name: String, speakers: [String; 2]) -> Self {
        Self {
            dialogue: Dialogue::new(name, Collection::LoCoMo),
            speakers,
            times: time::Timeline::new(),
            sessions: 0,
            positions: HashMap::new(),
        }
    }

    fn session(&mut self, date: &str) {
        // A session without messages does not count.
        self.sessions = self.dialogue.sessions();
        match time::locomo(date) {
            Some(time) => self.times.at(time),
            None => self.dialogue.note(BROKEN_TIME, 1),
        }
    }

    fn message(&mut self, message: &Value) {
        let id = text(message, "dia_id").and_then(Reference::parse);
        let (Some((reference, _)), Some(speaker)) = (id, text(message, "speaker")) else {
            return self.dialogue.note(BROKEN_MESSAGE, 1);
        };
        let mut said = text(message, "text").unwrap_or_default().trim().to_owned();
        // Such an image is described in the collection; a person would have sent the picture.
        if let Some(caption) = text(message, "blip_caption").filter(|caption| !caption.is_empty()) {
            said.push_str(&format!(" [{caption}]"));
        }
        if said.trim().is_empty() {
            self.dialogue.note(EMPTY_MESSAGE, 1);
        }
        let role = if speaker == self.speakers[0] { Role::User } else { Role::Assistant };
        self.positions.insert(reference, self.dialogue.messages.len());
        let text = format!("{speaker}: {}", said.trim());
        let said_at = self.times.tick();
        self.dialogue.messages.push(Utterance { role, text, said_at, session: self.sessions });
    }

    fn question(&mut self, id: String, question: &Value, evidence: &str, corrections: &mut Corrections) {
        let (Some(words), Some(kind)) = (text(question, "question"), question.get("category").and_then(Value::as_u64))
        else {
            return self.dialogue.note(BROKEN_QUESTION, 1);
        };
        let labelled = question.get(evidence).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let named = match corrections.of(&id, words) {
            Some(corrected) if corrected != labelled => {
                self.dialogue.note("questions with corrected evidence", 1);
                corrected
            }
            _ => labelled,
        };
        let mut found = BTreeSet::new();
        let mut count = 0;
        // One text can name several messages.
        let texts = named.iter().map(|text| text.as_str().unwrap_or_default());
        for part in texts.flat_map(|text| text.split([' ', ';', ','])).filter(|part| !part.is_empty()) {
            count += 1;
            let Some((reference, is_usual)) = Reference::parse(part) else {
                self.dialogue.note(BROKEN_REFERENCE, 1);
                continue;
            };
            self.dialogue.note(REPAIRED_REFERENCE, u64::from(!is_usual));
            match self.positions.get(&reference) {
                Some(at) => drop(found.insert(*at)),
                None => self.dialogue.note(UNKNOWN_MESSAGE, 1),
            }
        }
        self.dialogue.ask(id, kind_name(kind), words, found, count);
    }
}

/// The kinds as the paper names them.
fn kind_name(category: u64) -> &'static str {
    match category {
        1 => "multi-hop",
        2 => "temporal",
        3 => "open-domain",
        4 => "single-hop",
        5 => "adversarial",
        _ => "other",
    }
}
