//! A document of notes: entries separated by lines with a lone `§`, limited in characters.
//!
//! People edit these texts by hand. Their text is kept as entries in any form, even beyond the limit. The next write only
//! trims space around entries and drops empty and duplicate ones.

use std::borrow::Cow;
use std::fmt;

/// Separator between two entries.
pub const SEPARATOR: &str = "\n§\n";

/// Characters of an entry in a preview.
const PREVIEW: usize = 80;

/// The entries of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    entries: Vec<String>,
}

/// A change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds an entry.
    Add {
        /// The entry.
        content: String,
    },
    /// Replaces an entry as a whole.
    Replace {
        /// Text that only this entry has.
        old_text: String,
        /// The new entry.
        content: String,
    },
    /// Removes an entry as a whole.
    Remove {
        /// Text that only this entry has.
        old_text: String,
    },
}

/// What a document allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The most characters of the joined text.
    pub limit: usize,
    /// For a document of dated entries, the day of new ones.
    pub day: Option<String>,
}

impl Change {
    /// The text of the entry; empty for a removal.
    pub fn text(&self) -> &str {
        match self {
            Self::Add { content } | Self::Replace { content, .. } => content.trim(),
            Self::Remove { .. } => "",
        }
    }
}

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The entry was added.
    Added,
    /// The entry exists already; nothing to write.
    Duplicate,
    /// With the previous entry.
    Replaced(String),
    /// With the removed entry.
    Removed(String),
}

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The new entry is empty.
    NoContent,
    /// The text that finds the entry is empty.
    NoOldText,
    /// No entry has the text.
    NoMatch {
        /// The text.
        old_text: String,
    },
    /// Several entries have the text, and none is equal to it.
    Ambiguous {
        /// The text.
        old_text: String,
        /// The beginnings of the matching entries.
        previews: Vec<String>,
    },
    /// The document would be too long.
    OverLimit {
        /// Characters of the new entries.
        content: usize,
        /// Characters that the document would have.
        would_be: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContent => f.write_str("the new entry is empty"),
            Self::NoOldText => f.write_str("no text names the entry"),
            Self::NoMatch { old_text } => write!(f, "no entry contains {old_text:?}"),
            Self::Ambiguous { old_text, previews } => write!(f, "{} entries contain {old_text:?}", previews.len()),
            Self::OverLimit { would_be, .. } => {
                write!(f, "the document would have {would_be} characters, above its limit")
            }
        }
    }
}

impl Notes {
    /// Reads a document.
    pub fn parse(text: &str) -> Self {
        let mut notes = Self::default();
        let mut entry = String::new();
        for line in text.trim_start_matches('\u{feff}').split_inclusive('\n') {
            if line.trim() == "§" {
                notes.push(&entry);
                entry.clear();
            } else {
                entry.push_str(line);
            }
        }
        notes.push(&entry);
        notes
    }

    fn push(&mut self, entry: &str) {
        let entry = entry.trim();
        if !entry.is_empty() && !self.entries.iter().any(|known| known == entry) {
            self.entries.push(entry.to_owned());
        }
    }

    /// The document.
    pub fn text(&self) -> String {
        self.entries.join(SEPARATOR)
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Characters of the joined text.
    pub fn chars(&self) -> usize {
        let between = SEPARATOR.chars().count() * self.entries.len().saturating_sub(1);
        between + self.entries.iter().map(|entry| entry.chars().count()).sum::<usize>()
    }

    /// Applies a change.
    ///
    /// # Errors
    ///
    /// When the change is not possible; nothing changes then.
    pub fn apply(&self, change: &Change, rules: &Rules) -> Result<(Self, Done), Refusal> {
        let (notes, done) = self.with(change, rules)?;
        // A removal is allowed even if the rest is still too long.
        if !matches!(done, Done::Removed(_) | Done::Duplicate) {
            self.fits(&notes, change.text().chars().count(), rules)?;
        }
        Ok((notes, done))
    }

    /// Applies several changes, all or none. Only the final text must be within the limit.
    ///
    /// # Errors
    ///
    /// The refusal, with the position of the change that is not possible. For [`Refusal::OverLimit`] it is the last one.
    pub fn apply_all(&self, changes: &[Change], rules: &Rules) -> Result<(Self, Vec<Done>), (usize, Refusal)> {
        let mut notes = self.clone();
        let mut all = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let (next, done) = notes.with(change, rules).map_err(|refusal| (at, refusal))?;
            notes = next;
            all.push(done);
        }
        let content = changes.iter().map(|change| change.text().chars().count()).sum();
        if all.iter().any(|done| !matches!(done, Done::Removed(_) | Done::Duplicate)) {
            self.fits(&notes, content, rules).map_err(|refusal| (changes.len().saturating_sub(1), refusal))?;
        }
        Ok((notes, all))
    }

    /// The notes with a change, whatever their length.
    fn with(&self, change: &Change, rules: &Rules) -> Result<(Self, Done), Refusal> {
        let mut notes = self.clone();
        match change {
            Change::Add { content } => {
                for entry in written(content)?.entries {
                    if rules.day.is_none() || !self.entries.iter().any(|known| undated(known) == undated(&entry)) {
                        notes.push(&rules.dated(&entry));
                    }
                }
                let done = if notes == *self { Done::Duplicate } else { Done::Added };
                Ok((notes, done))
            }
            Change::Replace { old_text, content } => {
                let new = written(content)?;
                let place = self.find(old_text)?;
                let old = notes.entries.split_off(place);
                let rest = old.get(1..).unwrap_or_default();
                for entry in new.entries {
                    notes.push(&rules.dated(&entry));
                }
                rest.iter().for_each(|entry| notes.push(entry));
                Ok((notes, Done::Replaced(self.entries[place].clone())))
            }
            Change::Remove { old_text } => {
                let place = self.find(old_text)?;
                let old = notes.entries.remove(place);
                Ok((notes, Done::Removed(old)))
            }
        }
    }

    /// Checks the limit. A text that is already too long may still be shortened step by step.
    fn fits(&self, notes: &Self, content: usize, rules: &Rules) -> Result<(), Refusal> {
        let would_be = notes.chars();
        if would_be > rules.limit && would_be >= self.chars() {
            return Err(Refusal::OverLimit { content, would_be });
        }
        Ok(())
    }

    /// The entry equal to `old_text`, or else the only one that contains it.
    ///
    /// # Errors
    ///
    /// When no entry has the text, or several have it.
    pub fn find(&self, old_text: &str) -> Result<usize, Refusal> {
        let old_text = old_text.trim();
        if old_text.is_empty() {
            return Err(Refusal::NoOldText);
        }
        if let Some(place) = self.entries.iter().position(|entry| entry == old_text) {
            return Ok(place);
        }
        let matches: Vec<_> = (0..self.entries.len()).filter(|place| self.entries[*place].contains(old_text)).collect();
        match matches.as_slice() {
            [] => Err(Refusal::NoMatch { old_text: old_text.to_owned() }),
            [place] => Ok(*place),
            several => Err(Refusal::Ambiguous {
                old_text: old_text.to_owned(),
                previews: several.iter().map(|place| preview(&self.entries[*place])).collect(),
            }),
        }
    }
}

impl Rules {
    /// An entry with its day, unless it has one.
    fn dated<'a>(&self, entry: &'a str) -> Cow<'a, str> {
        match &self.day {
            Some(day) if undated(entry) == entry => format!("[{day}] {entry}").into(),
            _ => entry.into(),
        }
    }
}

/// An entry without the day in front of it.
pub fn undated(entry: &str) -> &str {
    let rest = entry.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    rest.filter(|(day, _)| is_day(day)).map_or(entry, |(_, text)| text)
}

fn is_day(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Parses a new entry. If it contains the separator, it is several entries, as it would be when read back.
fn written(content: &str) -> Result<Notes, Refusal> {
    let notes = Notes::parse(content);
    if notes.entries.is_empty() { Err(Refusal::NoContent) } else { Ok(notes) }
}

fn preview(entry: &str) -> String {
    match entry.char_indices().nth(PREVIEW) {
        Some((cut, _)) => format!("{}...", &entry[..cut]),
        None => entry.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LIMIT: Rules = Rules { limit: 100, day: None };

    fn add(content: &str) -> Change {
        Change::Add { content: content.into() }
    }

    fn replace(old_text: &str, content: &str) -> Change {
        Change::Replace { old_text: old_text.into(), content: content.into() }
    }

    fn remove(old_text: &str) -> Change {
        Change::Remove { old_text: old_text.into() }
    }

    /// The text after a change.
    fn after(text: &str, change: &Change) -> Result<String, Refusal> {
        Notes::parse(text).apply(change, &LIMIT).map(|(notes, _)| notes.text())
    }

    #[test]
    fn changes_give_the_expected_texts() {
        let cases = [
            ("", add(" padded \n"), "padded"),
            ("a", add("b"), "a\n§\nb"),
            ("same\n§\nother", add(" same "), "same\n§\nother"),
            ("", add("one\n§\ntwo"), "one\n§\ntwo"),
            ("editor: vim\n§\nb", replace("vim", "editor: nvim"), "editor: nvim\n§\nb"),
            ("a\n§\nb\n§\nc", remove("b"), "a\n§\nc"),
            // Identical entries are merged; an exact match wins over an entry that contains the text.
            ("dup\n§\ndup\n§\nother", replace("dup", "new"), "new\n§\nother"),
            ("rust\n§\nrust nightly", remove("rust"), "rust nightly"),
            // A replacement equal to another entry leaves one of the two.
            ("a\n§\nb", replace("a", "b"), "b"),
        ];
        for (text, change, expected) in cases {
            assert_eq!(after(text, &change).as_deref(), Ok(expected), "{text:?} {change:?}");
        }
    }

    #[test]
    fn changes_are_refused_with_a_reason() {
        let no_match = |old_text: &str| Refusal::NoMatch { old_text: old_text.into() };
        let cases = [
            ("a", add("  \n"), Refusal::NoContent),
            ("a", add("\n§\n"), Refusal::NoContent),
            ("a", replace("a", ""), Refusal::NoContent),
            ("a", remove(" "), Refusal::NoOldText),
            ("Uses Rust", replace("uses rust", "x"), no_match("uses rust")),
            ("a\n§\nb", remove("a\n§\nb"), no_match("a\n§\nb")),
            (
                "p one\n§\np two",
                remove("p "),
                Refusal::Ambiguous { old_text: "p".into(), previews: vec!["p one".into(), "p two".into()] },
            ),
        ];
        for (text, change, expected) in cases {
            assert_eq!(after(text, &change), Err(expected), "{text:?} {change:?}");
        }
    }

    #[test]
    fn the_limit_counts_characters_and_separators() {
        let full = Notes::parse(&"ü".repeat(60));
        assert!(full.apply(&add(&"y".repeat(37)), &LIMIT).is_ok());
        assert_eq!(full.apply(&add(&"y".repeat(38)), &LIMIT), Err(Refusal::OverLimit { content: 38, would_be: 101 }));
    }

    #[test]
    fn a_text_beyond_the_limit_may_shrink_but_not_grow() {
        let long = Notes::parse(&format!("{}\n§\n{}", "x".repeat(90), "y".repeat(90)));
        assert!(long.apply(&add("z"), &LIMIT).is_err());
        assert!(long.apply(&replace("xxx", &"x".repeat(91)), &LIMIT).is_err());
        assert!(long.apply(&replace("xxx", &"x".repeat(80)), &LIMIT).is_ok());
        assert!(long.apply(&remove("yyy"), &LIMIT).is_ok());
        assert_eq!(long.apply(&add(&"y".repeat(90)), &LIMIT).unwrap().1, Done::Duplicate);
    }

    #[test]
    fn a_text_written_by_hand_stays_one_unchanged_entry() {
        let by_hand = "\u{feff}# About me\r\n\r\n- likes § signs\r\n  - indented\r\n";
        assert_eq!(after(by_hand, &add("new")).unwrap(), "# About me\r\n\r\n- likes § signs\r\n  - indented\n§\nnew");
        assert_eq!(Notes::parse("a\r\n§\r\nb\n § \nc").entries(), ["a", "b", "c"]);
    }

    #[test]
    fn written_notes_are_read_back_unchanged() {
        for text in ["", "a", "a\n§\nb", "§\na\n§\n§\nb\n§", "a\n§\n  b  \n§\nc\n\nd"] {
            let notes = Notes::parse(text);
            assert_eq!(Notes::parse(&notes.text()), notes, "{text:?}");
            assert_eq!(notes.chars(), notes.text().chars().count(), "{text:?}");
        }
    }

    #[test]
    fn previews_are_cut_between_characters() {
        assert_eq!(preview(&"ü".repeat(81)), format!("{}...", "ü".repeat(80)));
        assert_eq!(preview(&"ü".repeat(80)), "ü".repeat(80));
    }

    #[test]
    fn a_batch_applies_as_a_whole_and_only_its_end_must_be_within_the_limit() {
        let full = Notes::parse(&format!("{}\n§\nb", "x".repeat(90)));
        let changes = [add(&"y".repeat(50)), remove("xxx"), replace("b", "c"), add("c")];
        let (notes, done) = full.apply_all(&changes, &LIMIT).unwrap();
        assert_eq!(notes.text(), format!("c\n§\n{}", "y".repeat(50)));
        assert_eq!((done.len(), &done[3]), (4, &Done::Duplicate));
        let (at, refusal) = full.apply_all(&[remove("b"), remove("b")], &LIMIT).unwrap_err();
        assert_eq!((at, refusal), (1, Refusal::NoMatch { old_text: "b".into() }));
        let (at, refusal) = full.apply_all(&[add("d"), add(&"y".repeat(50))], &LIMIT).unwrap_err();
        assert_eq!((at, refusal), (1, Refusal::OverLimit { content: 51, would_be: 151 }));
    }

    #[test]
    fn dated_entries_get_their_day_once_and_are_the_same_on_another_day() {
        let rules = |day: &str| Rules { limit: 1_000, day: Some(day.into()) };
        let first = Notes::default().apply(&add("moved to Oslo"), &rules("2026-01-02")).unwrap().0;
        assert_eq!(first.text(), "[2026-01-02] moved to Oslo");
        assert_eq!(first.apply(&add("moved to Oslo"), &rules("2026-03-04")).unwrap().1, Done::Duplicate);
        let both = first.apply(&add("[2025-05-05] sold the boat\n§\nlikes it"), &rules("2026-03-04")).unwrap().0;
        assert_eq!(both.entries()[1..], ["[2025-05-05] sold the boat", "[2026-03-04] likes it"]);
        let moved = both.apply(&replace("Oslo", "moved to Bergen"), &rules("2026-03-04")).unwrap().0;
        assert_eq!(moved.entries()[0], "[2026-03-04] moved to Bergen");
    }
}
