//! The text of a summary in parts: prose by a model or an earlier engine, the user's words, and actions.
//!
//! Lists can be parsed back from the text, so two summaries merge line by line and never nest.

use std::collections::BTreeMap;

use hermes_plugin::MessageId;

use crate::excerpt::shorten;
use crate::source::Source;

const SAID: &str = "What the user said, by message number:";
const DONE: &str = "What was done, by message number:";
const EARLIER: &str = "Earlier notes:";
/// Start of an entry that replaces omitted ones.
const MARK: &str = "[… up to message ";
/// Start of a rule-based text.
const BY_RULE: &str = "Messages ";
const LISTED: &str = "listed by rule. All of them are kept in the log.";

/// Entries by message id, oldest first.
pub(crate) type Entries = BTreeMap<MessageId, String>;

/// The parts of a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Prose.
    pub(crate) written: String,
    pub(crate) said: Entries,
    pub(crate) done: Entries,
}

/// Token budgets of the parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoteBudget {
    pub(crate) written: u32,
    pub(crate) said: u32,
    pub(crate) done: u32,
}

impl Notes {
    /// Splits any text into parts. Everything outside the lists is prose.
    pub(crate) fn parse(text: &str) -> Self {
        let (text, done) = split_list(text, DONE);
        let (text, said) = split_list(text, SAID);
        let text = text.trim();
        let is_header = |line: &&str| line.starts_with(BY_RULE) && line.ends_with(LISTED);
        let text = match text.lines().next().filter(is_header) {
            Some(header) => {
                let rest = text[header.len()..].trim_start();
                rest.strip_prefix(EARLIER).map_or(rest, str::trim_start)
            }
            None => text,
        };
        Self { written: text.to_owned(), said, done }
    }

    /// Merges newer notes into these.
    pub(crate) fn absorb(&mut self, newer: Self) {
        if !newer.written.is_empty() {
            if !self.written.is_empty() {
                self.written.push_str("\n\n");
            }
            self.written.push_str(&newer.written);
        }
        self.said.extend(newer.said);
        self.done.extend(newer.done);
    }

    /// Shortens the parts to their budgets. Lists keep their newest entries.
    pub(crate) fn within(mut self, room: NoteBudget, source: &impl Source) -> Self {
        self.written = if room.written < 20 { String::new() } else { shorten(&self.written, room.written, source) };
        self.said = newest(self.said, room.said, source);
        self.done = newest(self.done, room.done, source);
        self
    }

    /// The text of a rule-based summary of the messages from `first` to `last`.
    pub(crate) fn by_rule(&self, first: MessageId, last: MessageId) -> String {
        let mut text = format!("{BY_RULE}{first} to {last}, {LISTED}");
        if !self.written.is_empty() {
            text.push_str(&format!("\n\n{EARLIER}\n{}", self.written));
        }
        self.with_lists(text)
    }

    /// The text of a summary by a model.
    pub(crate) fn by_model(&self) -> String {
        self.with_lists(self.written.clone())
    }

    fn with_lists(&self, mut text: String) -> String {
        for (heading, entries) in [(SAID, &self.said), (DONE, &self.done)] {
            if entries.is_empty() {
                continue;
            }
            text.push_str("\n\n");
            text.push_str(heading);
            for (id, entry) in entries {
                // Indent further lines, so that a message cannot imitate an entry.
                text.push_str(&format!("\n- [{id}] {}", entry.replace('\n', "\n  ")));
            }
        }
        text
    }
}

/// Whether a line looks like one of this module's headings.
pub(crate) fn is_own_heading(line: &str) -> bool {
    let line = line.trim();
    // A model may extend the heading with its own words.
    let begins = |heading: &str| line.get(..heading.len()).is_some_and(|start| start.eq_ignore_ascii_case(heading));
    let range = line.get(BY_RULE.len()..).filter(|_| begins(BY_RULE)).and_then(|rest| rest.split_once(" to "));
    range.is_some_and(|(first, _)| first.parse::<MessageId>().is_ok()) || [SAID, DONE, EARLIER].into_iter().any(begins)
}

/// Splits a text into what precedes the list at its end, and the list.
fn split_list<'a>(text: &'a str, heading: &str) -> (&'a str, Entries) {
    let mut entries = Entries::new();
    let Some(at) = text.rfind(&format!("\n\n{heading}\n")) else { return (text, entries) };
    let mut last = None;
    for line in text[at + 2 + heading.len()..].trim_matches('\n').split('\n') {
        if let Some((id, said)) = entry(line) {
            entries.insert(id, said.to_owned());
            last = Some(id);
        } else if let (Some(said), Some(more)) = (last.and_then(|id| entries.get_mut(&id)), line.strip_prefix("  ")) {
            said.push('\n');
            said.push_str(more);
        } else {
            // A list of the same name in another format.
            return (text, Entries::new());
        }
    }
    (&text[..at], entries)
}

fn entry(line: &str) -> Option<(MessageId, &str)> {
    let (id, said) = line.strip_prefix("- [")?.split_once("] ")?;
    Some((id.parse().ok()?, said))
}

/// The newest entries that fit. A mark replaces each omitted run: a short entry may fit after a longer one did not.
fn newest(entries: Entries, room: u32, source: &impl Source) -> Entries {
    const LINKAGE: u32 = 6;
    let mut left = room;
    let mut chosen = Entries::new();
    // Oldest and newest entry omitted since the last one kept.
    let mut gap: Option<(MessageId, MessageId)> = None;
    for (id, entry) in entries.into_iter().rev() {
        // The rest would hardly fit, and counting takes time.
        if left < 8 {
            break;
        }
        // Merge marks from earlier shortenings with this gap.
        if let Some(newest) = left_out(&entry) {
            gap = Some((id, gap.map_or(newest, |(_, newest)| newest)));
            continue;
        }
        let entry = shorten(&entry, room / 2, source);
        let mark = gap.map(|(oldest, newest)| (oldest, mark(newest)));
        let marked = mark.as_ref().map_or(0, |(_, mark)| source.count(mark).saturating_add(LINKAGE));
        let cost = source.count(&entry).saturating_add(LINKAGE).saturating_add(marked);
        if cost <= left {
            left -= cost;
            chosen.extend(mark);
            chosen.insert(id, entry);
            gap = None;
        } else {
            gap = Some((id, gap.map_or(id, |(_, newest)| newest)));
        }
    }
    chosen
}

/// An entry that replaces all entries from its own number to `newest`.
fn mark(newest: MessageId) -> String {
    format!("{MARK}{newest} left out …]")
}

fn left_out(entry: &str) -> Option<MessageId> {
    entry.strip_prefix(MARK)?.strip_suffix(" left out …]")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Ruler;

    fn entries(of: &[(u64, &str)]) -> Entries {
        of.iter().map(|(id, text)| (*id, (*text).to_owned())).collect()
    }

    #[test]
    fn two_summaries_merge_line_by_line() {
        let first = Notes { said: entries(&[(1, "Fix it."), (3, "No,\n\nnot so.")]), ..Notes::default() };
        let second = Notes {
            written: "## Goal\nBoats.".into(),
            said: entries(&[(5, "Go on.")]),
            done: entries(&[(6, "terminal ls: exit 0")]),
        };
        let mut both = Notes::parse(&first.by_rule(1, 4));
        both.absorb(Notes::parse(&second.by_model()));
        let expected = "Messages 1 to 6, listed by rule. All of them are kept in the log.\n\n\
            Earlier notes:\n## Goal\nBoats.\n\n\
            What the user said, by message number:\n- [1] Fix it.\n- [3] No,\n  \n  not so.\n- [5] Go on.\n\n\
            What was done, by message number:\n- [6] terminal ls: exit 0";
        assert_eq!(both.by_rule(1, 6), expected);
        assert_eq!(Notes::parse(expected), both);
        assert_eq!(expected.matches(LISTED).count(), 1);
    }

    #[test]
    fn the_newest_entries_win_and_a_long_one_is_cut() {
        let long = "We must not change the public interface. ".repeat(300);
        let notes = Notes { said: entries(&[(1, "Fix the build."), (2, &long), (7, "Add it.")]), ..Notes::default() };
        let ids = |said| {
            let room = NoteBudget { written: 0, said, done: 0 };
            notes.clone().within(room, &Ruler).said.into_keys().collect::<Vec<_>>()
        };
        assert_eq!((ids(12), ids(200), ids(0)), (vec![7], vec![1, 2, 7], vec![]));
        let text = notes.within(NoteBudget { written: 0, said: 200, done: 0 }, &Ruler).by_rule(1, 7);
        assert!(text.contains("We must not change") && text.contains("characters left out"), "{text}");
        assert!(Ruler.count(&text) < 230, "{text}");
    }

    #[test]
    fn every_gap_between_entries_has_a_mark() {
        let long = "We must not change the public interface. ".repeat(30);
        let all = [(1, "Yes."), (2, &*long), (3, "No."), (4, &long), (5, &long), (6, &long), (7, "Add it.")];
        let mut thresholds = 0;
        for room in 0..600 {
            let mut kept = entries(&all);
            // The list is parsed and shortened again each time a summary grows.
            for room in [room, room / 2] {
                kept = newest(kept, room, &Ruler);
                let oldest = kept.keys().next().copied().unwrap_or(8);
                for id in oldest..=7 {
                    let is_marked =
                        |(from, entry): (&u64, &String)| left_out(entry).is_some_and(|to| (*from..=to).contains(&id));
                    let is_there = kept.get(&id).is_some_and(|entry| left_out(entry).is_none());
                    assert!(is_there != kept.iter().any(is_marked), "{id} in {room}: {kept:?}");
                }
                assert!(kept.values().map(|entry| Ruler.count(entry)).sum::<u32>() <= room);
                thresholds += kept.values().filter(|entry| left_out(entry).is_some()).count();
            }
        }
        assert!(thresholds > 0);
    }

    proptest! {
        #[test]
    fn any_text_in_an_entry_is_parsed_back(
            lines in prop::collection::vec(prop_oneof![
                Just("- [9] forged".to_owned()),
                Just(SAID.to_owned()),
                Just(DONE.to_owned()),
                Just(String::new()),
                "[a-z \\[\\]-]{0,12}",
            ], 1..8),
        ) {
            let said = entries(&[(4, lines.join("\n").as_str()), (5, "next")]);
            let notes = Notes { written: "prose".into(), said, done: entries(&[(6, "done")]) };
            prop_assert_eq!(&Notes::parse(&notes.by_rule(1, 6)), &notes);
            prop_assert_eq!(&Notes::parse(&notes.by_model()), &notes);
        }
    }
}
