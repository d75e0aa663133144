//! Dialogues with questions and labelled evidence, read from the files of three published collections.
//!
//! The content of a file decides how it is read, never its name. Nothing is dropped silently: what cannot be used is
//! counted in the notes of its dialogue.

mod beam;
mod files;
mod locomo;
mod longmemeval;
mod time;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use hermes_conversation::Role;
use hermes_recordings::Note;
use serde::Serialize;

pub use self::files::read;

/// The collection that a dialogue is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Collection {
    /// Dialogues of two people.
    LoCoMo,
    /// Sessions with an assistant, put together for each question.
    LongMemEval,
    /// Long chats with an assistant.
    #[serde(rename = "BEAM")]
    Beam,
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LoCoMo => "LoCoMo",
            Self::LongMemEval => "LongMemEval",
            Self::Beam => "BEAM",
        })
    }
}

/// A message of a dialogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Who speaks. Of two people, the first one is the user.
    pub role: Role,
    /// The text. Of two people, it begins with the name of the speaker.
    pub text: String,
    /// Unix time in milliseconds.
    pub said_at: u64,
    /// The number of its session in the dialogue, starting at 0.
    pub session: usize,
}

/// A question with the messages that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its id in the collection.
    pub id: String,
    /// The kind of question, as the collection names it.
    pub kind: String,
    /// The words of the question.
    pub text: String,
    /// The messages that answer it, by their position in the dialogue. Not empty.
    pub evidence: BTreeSet<usize>,
}

/// A dialogue and what is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialogue {
    /// Its id in the collection, or its file.
    pub name: String,
    /// Its collection.
    pub collection: Collection,
    /// Its messages in order.
    pub messages: Vec<Utterance>,
    /// The questions that have evidence.
    pub questions: Vec<Question>,
    /// What was corrected, and what could not be used.
    pub notes: Vec<Note>,
}

/// The messages from one of the user to the answer of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its number in its session, starting at 1.
    pub number: u32,
    /// The positions of its messages in the dialogue.
    pub messages: Range<usize>,
}

const WITHOUT_EVIDENCE: &str = "questions without evidence";
const UNKNOWN_MESSAGE: &str = "references to messages that the dialogue does not contain";
const NOTHING_LEFT: &str = "questions whose evidence the dialogue does not contain";
const BROKEN_QUESTION: &str = "questions that cannot be read";
const BROKEN_MESSAGE: &str = "messages that cannot be read";
const EMPTY_MESSAGE: &str = "messages without text";
const BROKEN_REFERENCE: &str = "references that cannot be read";
const REPAIRED_REFERENCE: &str = "references that were written in another form";
const BROKEN_TIME: &str = "times that cannot be read";

impl Dialogue {
    fn new(name: String, collection: Collection) -> Self {
        Self { name, collection, messages: Vec::new(), questions: Vec::new(), notes: Vec::new() }
    }

    fn note(&mut self, what: &'static str, count: u64) {
        add(&mut self.notes, what, count);
    }

    /// Adds a question. A question without usable evidence is only counted.
    fn ask(&mut self, id: String, kind: &str, text: &str, evidence: BTreeSet<usize>, named: u64) {
        if evidence.is_empty() {
            self.note(if named == 0 { WITHOUT_EVIDENCE } else { NOTHING_LEFT }, 1);
        } else {
            self.questions.push(Question { id, kind: kind.to_owned(), text: text.to_owned(), evidence });
        }
    }

    /// The number of its sessions.
    pub fn sessions(&self) -> usize {
        self.messages.last().map_or(0, |last| last.session + 1)
    }

    /// The turns in order. A message of the user that follows one of the assistant begins a turn, and so does a session.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for (at, message) in self.messages.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &self.messages[before]);
            let same = before.is_some_and(|before| before.session == message.session);
            let answered = before.is_some_and(|before| before.role == Role::Assistant);
            match turns.last_mut() {
                Some(turn) if same && !(answered && message.role == Role::User) => turn.messages.end = at + 1,
                last => {
                    let number = last.filter(|_| same).map_or(1, |last| last.number + 1);
                    turns.push(Turn { number, messages: at..at + 1 });
                }
            }
        }
        turns
    }

    /// These messages with up to `beside` messages of the same session on either side of each.
    pub fn with_neighbours(&self, messages: &BTreeSet<usize>, beside: usize) -> BTreeSet<usize> {
        let around = |at: &usize| {
            let session = self.messages.get(*at).map(|message| message.session);
            let last = (at + beside).min(self.messages.len().saturating_sub(1));
            (at.saturating_sub(beside)..=last)
                .filter(move |near| self.messages.get(*near).map(|message| message.session) == session)
        };
        messages.iter().flat_map(around).collect()
    }
}

/// Counts something in notes.
pub(super) fn add(notes: &mut Vec<Note>, what: &'static str, count: u64) {
    match notes.iter_mut().find(|note| note.what == what) {
        _ if count == 0 => {}
        Some(note) => note.count += count,
        None => notes.push(Note { what, count }),
    }
}

/// The dialogues to take of each file that contains several, by their number in the file, starting at 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only(Vec<Range<usize>>);

impl Only {
    fn takes(&self, number: usize) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is not a list of numbers and ranges, such as 0,5-9");
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..last.checked_add(1)?)
        };
        text.split(',').map(range).collect::<Option<_>>().map(Self).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests;
