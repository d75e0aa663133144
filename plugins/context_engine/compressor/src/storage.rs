//! Data that outlives an instance: prepared summaries, and the outcome of earlier work.
//!
//! One document per session. Losing it costs a summary, nothing else.

use std::cell::RefCell;

use hermes_guest_engine::fnv;
use hermes_plugin::{Error, MessageId, MessageRange, documents};
use serde::{Deserialize, Serialize};

use crate::message_index::MessageIndex;
use crate::shortening::Shortened;

/// Milliseconds to wait after a failure, by number of consecutive failures.
const WAITS: [u64; 3] = [60_000, 300_000, 900_000];
/// Milliseconds to wait after a failure that only the user can fix, such as an invalid key.
const LONG_WAIT: u64 = 600_000;
/// Size limit of a document. If it is exceeded, the shortened messages are dropped.
const MOST_BYTES: usize = 512 * 1024;

/// A summary prepared for the next plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    /// Tokens of the text, by the host's count.
    pub(crate) tokens: u32,
    /// First and last id of each covered range.
    pub(crate) covers: Vec<(MessageId, MessageId)>,
    /// The newest covered message.
    pub(crate) last: MessageId,
    /// Number of covered messages, to detect a rewind.
    pub(crate) count: usize,
    /// The focus that the user requested.
    pub(crate) focus: Option<String>,
}

/// The document of a session. The field names are part of the stored format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionState {
    /// Summary by a model.
    pub(crate) written: Option<Prepared>,
    /// Rule-based list of messages that no model has summarised.
    pub(crate) listed: Option<Prepared>,
    /// Shortened renderings of messages in the view, oldest first.
    pub(crate) shorter: Vec<Shortened>,
    /// Newest message when there was nothing left to prepare.
    pub(crate) seen: MessageId,
    /// Number of adopted plans, and the reason of the last one.
    pub(crate) compactions: u32,
    pub(crate) last_reason: Option<String>,
    /// Fingerprint of the last refused plan.
    pub(crate) refused: Option<String>,
    /// Consecutive failed summaries, the model, and the reason.
    pub(crate) failures: u32,
    pub(crate) failed_model: Option<String>,
    pub(crate) failure: Option<String>,
    /// Time (Unix milliseconds) before which this model is not called again.
    pub(crate) retry_at: u64,
}

impl Prepared {
    pub(crate) fn new(
        text: String,
        tokens: u32,
        covers: &[MessageRange],
        index: &MessageIndex,
        focus: Option<String>,
    ) -> Self {
        Self {
            text,
            tokens,
            covers: covers.iter().map(|range| (range.first, range.last)).collect(),
            last: covers.iter().map(|range| range.last).max().unwrap_or_default(),
            count: index.named(covers).count(),
            focus,
        }
    }

    pub(crate) fn covers(&self) -> Vec<MessageRange> {
        self.covers.iter().map(|&(first, last)| MessageRange::new(first, last)).collect()
    }

    /// Whether the summary still covers exactly the messages it was made from. Ids are never reused and a rewind removes
    /// only the newest messages, so comparing the count is enough.
    pub(crate) fn holds(&self, index: &MessageIndex) -> bool {
        let count: usize = self.covers().into_iter().map(|range| index.span(range).len()).sum();
        !self.text.trim().is_empty() && count == self.count && index.position(self.last).is_some()
    }
}

impl SessionState {
    /// The summary by a model, if its messages are unchanged.
    pub(crate) fn written(&self, index: &MessageIndex) -> Option<&Prepared> {
        self.written.as_ref().filter(|prepared| prepared.holds(index))
    }

    /// The rule-based list, if its messages are unchanged.
    pub(crate) fn listed(&self, index: &MessageIndex) -> Option<&Prepared> {
        self.listed.as_ref().filter(|prepared| prepared.holds(index))
    }

    /// Drops all prepared work.
    pub(crate) fn clear(&mut self) {
        self.written = None;
        self.listed = None;
        self.shorter.clear();
        self.seen = 0;
    }

    /// Drops work that refers to messages from `first` on.
    pub(crate) fn rewound(&mut self, first: MessageId) {
        self.written.take_if(|prepared| prepared.last >= first);
        self.listed.take_if(|prepared| prepared.last >= first);
        // An older message may be replaced by a reference to a newer one that is gone.
        self.shorter.retain(|shorter| shorter.id < first && shorter.same.is_none_or(|same| same < first));
        self.seen = self.seen.min(first.saturating_sub(1));
    }

    /// Records a failed summary.
    pub(crate) fn failed(&mut self, model: &str, error: &Error, now: u64) {
        let ladder = WAITS[(self.failures as usize).min(WAITS.len() - 1)];
        let wait = if error.code == "auth" { LONG_WAIT } else { ladder };
        let wait = wait.max(error.retry_after_ms.map_or(0, u64::from));
        self.failures = self.failures.saturating_add(1);
        self.failed_model = Some(model.to_owned());
        self.failure = Some(error.message.chars().take(220).collect());
        self.retry_at = now.saturating_add(wait);
    }

    /// Records a written summary.
    pub(crate) fn succeeded(&mut self) {
        (self.failures, self.retry_at, self.failed_model, self.failure) = (0, 0, None, None);
    }

    /// Whether this model may be called now. A model other than the one that failed may be called at once.
    pub(crate) fn may_ask(&self, model: &str, now: u64) -> bool {
        now >= self.retry_at || self.failed_model.as_deref() != Some(model)
    }

    /// Parses the document. An unreadable one counts as empty.
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

/// Access to a session's document, with a cache of its last version.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    name: String,
    known: RefCell<Option<(String, std::rc::Rc<SessionState>)>>,
}

impl Storage {
    pub(crate) fn of(session: &str) -> Self {
        Self { name: name(session), known: RefCell::default() }
    }

    /// The current state. It is parsed again only when the document has changed.
    pub(crate) fn read(&self) -> Result<std::rc::Rc<SessionState>, Error> {
        let document = documents::read(&self.name).map_err(|error| error.context("reading prepared work"))?;
        let Some(document) = document else { return Ok(std::rc::Rc::default()) };
        let mut known = self.known.borrow_mut();
        match &*known {
            Some((version, state)) if *version == document.version => Ok(state.clone()),
            _ => {
                let state = std::rc::Rc::new(SessionState::parse(&document.content));
                *known = Some((document.version, state.clone()));
                Ok(state)
            }
        }
    }

    /// Changes the stored state.
    pub(crate) fn update(&self, change: impl Fn(&mut SessionState)) -> Result<SessionState, Error> {
        documents::update(&self.name, |content| {
            let mut state = SessionState::parse(content);
            change(&mut state);
            let text = state.to_text()?;
            Ok::<_, Error>(((text != content).then_some(text), state))
        })
        .map_err(|error| error.context("storing prepared work"))
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::index;

    #[test]
    fn a_summary_is_valid_while_its_messages_exist() {
        let mut all = index(&[(1, 10), (2, 10), (5, 10), (6, 10)]);
        let prepared = Prepared::new("text".into(), 1, &[MessageRange::new(1, 5)], &all, None);
        assert_eq!((prepared.last, prepared.count), (5, 3));
        assert!(prepared.holds(&all));
        all.rewind(6);
        assert!(prepared.holds(&all), "later messages do not matter");
        all.rewind(5);
        assert!(!prepared.holds(&all), "the rewind removed one of its messages");
        all.observe(&crate::testing::headers(&[(7, 10)]));
        assert!(!prepared.holds(&all), "another message is not a substitute");
    }

    #[test]
    fn a_rewind_drops_work_that_refers_to_removed_messages() {
        let shorter = |id, same| Shortened { id, same, ..Shortened::default() };
        let prepared = |last| Some(Prepared { last, ..Prepared::default() });
        let mut state = SessionState {
            written: prepared(4),
            listed: prepared(6),
            shorter: vec![shorter(2, None), shorter(3, Some(6)), shorter(6, None)],
            seen: 9,
            ..SessionState::default()
        };
        state.rewound(5);
        assert!(state.written.is_some() && state.listed.is_none());
        assert_eq!((state.shorter, state.seen), (vec![shorter(2, None)], 4));
    }

    #[test]
    fn waits_grow_until_a_success_or_another_model() {
        let mut state = SessionState::default();
        let down = Error::unavailable("no answer");
        let mut waits = Vec::new();
        for _ in 0..4 {
            state.failed("m", &down, 1_000);
            waits.push(state.retry_at - 1_000);
        }
        assert_eq!(waits, [60_000, 300_000, 900_000, 900_000]);
        assert!(!state.may_ask("m", 900_999) && state.may_ask("m", 901_000) && state.may_ask("other", 1_001));
        let told = SessionState::parse(&state.to_text().unwrap());
        assert!(!told.may_ask("m", 900_999), "the wait survives a restart");
        state.succeeded();
        assert_eq!((state.may_ask("m", 0), &state), (true, &SessionState::default()));
        state.failed("m", &Error { retry_after_ms: Some(70_000), ..down }, 0);
        assert_eq!(state.retry_at, 70_000);
    }

    #[test]
    fn an_unreadable_document_counts_as_empty() {
        for text in ["", "{", "[]", r#"{"written":3}"#] {
            assert_eq!(SessionState::parse(text), SessionState::default());
        }
        let state = SessionState { compactions: 3, written: Some(Prepared::default()), ..SessionState::default() };
        assert_eq!(SessionState::parse(&state.to_text().unwrap()), state);
        let large = Shortened { content: Some("x".repeat(MOST_BYTES)), ..Shortened::default() };
        let kept = SessionState::parse(&SessionState { shorter: vec![large], ..state.clone() }.to_text().unwrap());
        assert_eq!(kept, state, "an oversized document drops only the shortened messages");
    }

    #[test]
    fn every_session_has_a_valid_document_name() {
        assert_eq!(name("20261121_223301_9f3a1c"), "prepared-20261121_223301_9f3a1c.json");
        for odd in ["", "a/b", "é", &"x".repeat(200)] {
            let name = name(odd);
            assert!(name.len() <= 64 && name.starts_with("prepared-") && !name.contains('/'), "{name}");
        }
    }
}
