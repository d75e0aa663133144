//! What one instance leaves for another: the summary written ahead, and what became of earlier plans.
//!
//! One document for each session. Losing it costs a summary, nothing else.

use hermes_plugin::{Error, MessageRange, documents};
use serde::{Deserialize, Serialize};

use crate::ground::Ground;

/// A summary that waits to be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    /// First and last ids of what it stands for.
    pub(crate) covers: Vec<(u64, u64)>,
    /// The newest of them.
    pub(crate) last: u64,
    /// Of the ids it stands for: the conversation may have lost some since.
    pub(crate) fingerprint: String,
    /// What the user wanted kept.
    pub(crate) focus: Option<String>,
}

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Shelf {
    pub(crate) prepared: Option<Prepared>,
    /// Plans that were adopted.
    pub(crate) compactions: u32,
    /// The plan that was refused last.
    pub(crate) refused: Option<String>,
    /// Summaries that failed in a row.
    pub(crate) failures: u32,
    /// Until then no summary is tried.
    pub(crate) retry_at: u64,
}

impl Prepared {
    pub(crate) fn new(text: String, covers: &[MessageRange], ground: &Ground<'_>, focus: Option<String>) -> Self {
        Self {
            text,
            covers: covers.iter().map(|range| (range.first, range.last)).collect(),
            last: covers.iter().map(|range| range.last).max().unwrap_or_default(),
            fingerprint: ids(ground, covers),
            focus,
        }
    }

    pub(crate) fn covers(&self) -> Vec<MessageRange> {
        self.covers.iter().map(|&(first, last)| MessageRange::new(first, last)).collect()
    }

    /// Whether it still stands for the messages that it was written from.
    pub(crate) fn holds(&self, ground: &Ground<'_>) -> bool {
        !self.text.trim().is_empty() && !self.covers.is_empty() && ids(ground, &self.covers()) == self.fingerprint
    }
}

impl Shelf {
    /// The summary, if the conversation is still the one it was written from.
    pub(crate) fn valid(&self, ground: &Ground<'_>) -> Option<&Prepared> {
        self.prepared.as_ref().filter(|prepared| prepared.holds(ground))
    }

    /// Empty when there is none or it cannot be understood.
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// The name of a session's document.
pub(crate) fn name(session: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-');
    if !session.is_empty() && session.len() <= 48 && session.chars().all(plain) {
        format!("prepared-{session}.json")
    } else {
        format!("prepared-{:016x}.json", fnv(session.bytes()))
    }
}

/// The shelf of a session.
pub(crate) fn read(session: &str) -> Result<Shelf, Error> {
    let document = documents::read(&name(session)).map_err(|error| error.context("reading what was prepared"))?;
    Ok(document.map(|document| Shelf::parse(&document.content)).unwrap_or_default())
}

/// Changes the shelf of a session.
pub(crate) fn update(session: &str, change: impl Fn(&mut Shelf)) -> Result<Shelf, Error> {
    documents::update(&name(session), |content| {
        let mut shelf = Shelf::parse(content);
        change(&mut shelf);
        let text = serde_json::to_string(&shelf)?;
        Ok::<_, Error>(((text != content).then_some(text), shelf))
    })
    .map_err(|error| error.context("keeping what was prepared"))
}

fn ids(ground: &Ground<'_>, covers: &[MessageRange]) -> String {
    let named = ground.named(covers);
    let ids = ground.headers.iter().zip(named).filter(|(_, named)| *named).map(|(header, _)| header.id);
    format!("{:016x}", fnv(ids.flat_map(u64::to_le_bytes)))
}

/// FNV-1a: for names and comparisons, not against malice.
pub(crate) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::headers;

    #[test]
    fn a_summary_holds_as_long_as_its_messages_are_there() {
        let all = headers(&[(1, 10), (2, 10), (5, 10), (6, 10)]);
        let ground = Ground::new(&all, &[]);
        let prepared = Prepared::new("text".into(), &[MessageRange::new(1, 5)], &ground, None);
        assert_eq!(prepared.last, 5);
        assert!(prepared.holds(&ground));
        assert!(prepared.holds(&Ground::new(&all[..3], &[])), "what follows does not matter");
        assert!(!prepared.holds(&Ground::new(&all[..2], &[])), "the user took back a message of it");
    }

    #[test]
    fn what_cannot_be_understood_is_an_empty_shelf() {
        for text in ["", "{", "[]", r#"{"prepared":3}"#] {
            assert_eq!(Shelf::parse(text), Shelf::default());
        }
        let shelf = Shelf { compactions: 3, prepared: Some(Prepared::default()), ..Shelf::default() };
        assert_eq!(Shelf::parse(&serde_json::to_string(&shelf).unwrap()), shelf);
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
