//! What one instance leaves for another: summaries made ahead, and what became of earlier work.
//!
//! One document for each session. Losing it costs a summary, nothing else.

use std::cell::RefCell;

use hermes_plugin::{Error, MessageId, MessageRange, documents};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::shorter::Shorter;

/// Milliseconds to wait after a summary failed, by how many failed in a row.
const WAITS: [u64; 3] = [60_000, 300_000, 900_000];
/// Where nothing but the user can help: a key, a bill.
const LONG_WAIT: u64 = 600_000;
/// A document has its limit; what shortens messages is the first to go.
const MOST_BYTES: usize = 512 * 1024;

/// A summary that waits to be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    /// Of it, by the host's ruler.
    pub(crate) tokens: u32,
    /// First and last ids of what it stands for.
    pub(crate) covers: Vec<(MessageId, MessageId)>,
    /// The newest of them.
    pub(crate) last: MessageId,
    /// How many they are: the conversation may have lost some since.
    pub(crate) count: usize,
    /// What the user wanted kept.
    pub(crate) focus: Option<String>,
}

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Shelf {
    /// By a model.
    pub(crate) written: Option<Prepared>,
    /// By rule, of what no model has written about.
    pub(crate) listed: Option<Prepared>,
    /// Messages of the view that could be shown shorter, oldest first.
    pub(crate) shorter: Vec<Shorter>,
    /// Up to this message there was nothing more to prepare.
    pub(crate) seen: MessageId,
    /// Plans that were adopted, and what the last one did.
    pub(crate) compactions: u32,
    pub(crate) last_reason: Option<String>,
    /// The plan that was refused last.
    pub(crate) refused: Option<String>,
    /// Summaries that failed in a row, of which model, and why.
    pub(crate) failures: u32,
    pub(crate) failed_model: Option<String>,
    pub(crate) failure: Option<String>,
    /// Until then no summary is tried.
    pub(crate) retry_at: u64,
}

impl Prepared {
    pub(crate) fn new(
        text: String,
        tokens: u32,
        covers: &[MessageRange],
        ledger: &Ledger,
        focus: Option<String>,
    ) -> Self {
        Self {
            text,
            tokens,
            covers: covers.iter().map(|range| (range.first, range.last)).collect(),
            last: covers.iter().map(|range| range.last).max().unwrap_or_default(),
            count: ledger.named(covers).count(),
            focus,
        }
    }

    pub(crate) fn covers(&self) -> Vec<MessageRange> {
        self.covers.iter().map(|&(first, last)| MessageRange::new(first, last)).collect()
    }

    /// Whether it still stands for the messages that it was made from. Ids never come back and only the newest messages
    /// are ever taken back, so that counting them tells.
    pub(crate) fn holds(&self, ledger: &Ledger) -> bool {
        let count: usize = self.covers().into_iter().map(|range| ledger.span(range).len()).sum();
        !self.text.trim().is_empty() && count == self.count && ledger.position(self.last).is_some()
    }
}

impl Shelf {
    /// The model's summary, if the conversation is still the one it was written from.
    pub(crate) fn written(&self, ledger: &Ledger) -> Option<&Prepared> {
        self.written.as_ref().filter(|prepared| prepared.holds(ledger))
    }

    /// The summary by rule, if it still holds.
    pub(crate) fn listed(&self, ledger: &Ledger) -> Option<&Prepared> {
        self.listed.as_ref().filter(|prepared| prepared.holds(ledger))
    }

    /// What was prepared belongs to the past.
    pub(crate) fn clear(&mut self) {
        self.written = None;
        self.listed = None;
        self.shorter.clear();
        self.seen = 0;
    }

    /// The user took back this message and what followed.
    pub(crate) fn rewound(&mut self, first: MessageId) {
        self.written.take_if(|prepared| prepared.last >= first);
        self.listed.take_if(|prepared| prepared.last >= first);
        // What stands for an older message may point at one that is gone.
        self.shorter.retain(|shorter| shorter.id < first && shorter.same.is_none_or(|same| same < first));
        self.seen = self.seen.min(first.saturating_sub(1));
    }

    /// A summary failed.
    pub(crate) fn failed(&mut self, model: &str, error: &Error, now: u64) {
        let ladder = WAITS[(self.failures as usize).min(WAITS.len() - 1)];
        let wait = if error.code == "auth" { LONG_WAIT } else { ladder };
        let wait = wait.max(error.retry_after_ms.map_or(0, u64::from));
        self.failures = self.failures.saturating_add(1);
        self.failed_model = Some(model.to_owned());
        self.failure = Some(error.message.chars().take(220).collect());
        self.retry_at = now.saturating_add(wait);
    }

    /// One was written.
    pub(crate) fn succeeded(&mut self) {
        (self.failures, self.retry_at, self.failed_model, self.failure) = (0, 0, None, None);
    }

    /// Whether this model may be tried: another one than failed may at once.
    pub(crate) fn may_ask(&self, model: &str, now: u64) -> bool {
        now >= self.retry_at || self.failed_model.as_deref() != Some(model)
    }

    /// Empty when there is none or it cannot be understood.
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn to_text(&self) -> Result<String, Error> {
        let text = serde_json::to_string(self)?;
        if text.len() <= MOST_BYTES {
            return Ok(text);
        }
        Ok(serde_json::to_string(&Self { shorter: Vec::new(), ..self.clone() })?)
    }
}

/// The shelf of a session, and what was read of it last.
#[derive(Debug, Default)]
pub(crate) struct Cabinet {
    name: String,
    known: RefCell<Option<(String, std::rc::Rc<Shelf>)>>,
}

impl Cabinet {
    pub(crate) fn of(session: &str) -> Self {
        Self { name: name(session), known: RefCell::default() }
    }

    /// The shelf as it is now: it is understood anew only when somebody changed it.
    pub(crate) fn read(&self) -> Result<std::rc::Rc<Shelf>, Error> {
        let document = documents::read(&self.name).map_err(|error| error.context("reading what was prepared"))?;
        let Some(document) = document else { return Ok(std::rc::Rc::default()) };
        let mut known = self.known.borrow_mut();
        match &*known {
            Some((version, shelf)) if *version == document.version => Ok(shelf.clone()),
            _ => {
                let shelf = std::rc::Rc::new(Shelf::parse(&document.content));
                *known = Some((document.version, shelf.clone()));
                Ok(shelf)
            }
        }
    }

    /// Changes it.
    pub(crate) fn update(&self, change: impl Fn(&mut Shelf)) -> Result<Shelf, Error> {
        documents::update(&self.name, |content| {
            let mut shelf = Shelf::parse(content);
            change(&mut shelf);
            let text = shelf.to_text()?;
            Ok::<_, Error>(((text != content).then_some(text), shelf))
        })
        .map_err(|error| error.context("keeping what was prepared"))
    }
}

/// The name of a session's document.
fn name(session: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-');
    if !session.is_empty() && session.len() <= 48 && session.chars().all(plain) {
        format!("prepared-{session}.json")
    } else {
        format!("prepared-{:016x}.json", fnv(session.bytes()))
    }
}

/// FNV-1a: for names and comparisons, not against malice.
pub(crate) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::ledger;

    #[test]
    fn a_summary_holds_as_long_as_its_messages_are_there() {
        let mut all = ledger(&[(1, 10), (2, 10), (5, 10), (6, 10)]);
        let prepared = Prepared::new("text".into(), 1, &[MessageRange::new(1, 5)], &all, None);
        assert_eq!((prepared.last, prepared.count), (5, 3));
        assert!(prepared.holds(&all));
        all.rewind(6);
        assert!(prepared.holds(&all), "what follows does not matter");
        all.rewind(5);
        assert!(!prepared.holds(&all), "the user took back a message of it");
        all.observe(&crate::testing::headers(&[(7, 10)]));
        assert!(!prepared.holds(&all), "another message is no substitute");
    }

    #[test]
    fn a_rewind_takes_what_names_the_messages_taken_back() {
        let shorter = |id, same| Shorter { id, same, ..Shorter::default() };
        let prepared = |last| Some(Prepared { last, ..Prepared::default() });
        let mut shelf = Shelf {
            written: prepared(4),
            listed: prepared(6),
            shorter: vec![shorter(2, None), shorter(3, Some(6)), shorter(6, None)],
            seen: 9,
            ..Shelf::default()
        };
        shelf.rewound(5);
        assert!(shelf.written.is_some() && shelf.listed.is_none());
        assert_eq!((shelf.shorter, shelf.seen), (vec![shorter(2, None)], 4));
    }

    #[test]
    fn waits_grow_and_end_with_a_success_or_another_model() {
        let mut shelf = Shelf::default();
        let down = Error::unavailable("no answer");
        let mut waits = Vec::new();
        for _ in 0..4 {
            shelf.failed("m", &down, 1_000);
            waits.push(shelf.retry_at - 1_000);
        }
        assert_eq!(waits, [60_000, 300_000, 900_000, 900_000]);
        assert!(!shelf.may_ask("m", 900_999) && shelf.may_ask("m", 901_000) && shelf.may_ask("other", 1_001));
        let told = Shelf::parse(&shelf.to_text().unwrap());
        assert!(!told.may_ask("m", 900_999), "a restart forgets nothing");
        shelf.succeeded();
        assert_eq!((shelf.may_ask("m", 0), &shelf), (true, &Shelf::default()));
        shelf.failed("m", &Error { retry_after_ms: Some(70_000), ..down }, 0);
        assert_eq!(shelf.retry_at, 70_000);
    }

    #[test]
    fn what_cannot_be_understood_is_an_empty_shelf() {
        for text in ["", "{", "[]", r#"{"written":3}"#] {
            assert_eq!(Shelf::parse(text), Shelf::default());
        }
        let shelf = Shelf { compactions: 3, written: Some(Prepared::default()), ..Shelf::default() };
        assert_eq!(Shelf::parse(&shelf.to_text().unwrap()), shelf);
        let large = Shorter { content: Some("x".repeat(MOST_BYTES)), ..Shorter::default() };
        let kept = Shelf::parse(&Shelf { shorter: vec![large], ..shelf.clone() }.to_text().unwrap());
        assert_eq!(kept, shelf, "what does not fit the document is what can be made again");
    }

    #[test]
    fn every_session_has_a_name_that_documents_take() {
        assert_eq!(name("20261121_223301_9f3a1c"), "prepared-20261121_223301_9f3a1c.json");
        for odd in ["", "a/b", "é", &"x".repeat(200)] {
            let name = name(odd);
            assert!(name.len() <= 64 && name.starts_with("prepared-") && !name.contains('/'), "{name}");
        }
    }
}
