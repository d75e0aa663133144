//! A document of notes: entries separated by lines with a lone `§`, limited in characters.
//!
//! People edit these texts by hand. Their text is kept as entries in any form, even beyond the limit. The next write only
//! trims space around entries and drops empty and duplicate ones.

/// Separator between two entries.
pub(crate) const SEPARATOR: &str = "\n§\n";

/// Characters of an entry in a preview.
const PREVIEW: usize = 80;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    entries: Vec<String>,
}

/// A change requested by the model.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Add { content: String },
    Replace { old_text: String, content: String },
    Remove { old_text: String },
}

impl Change {
    /// The entry as it is to be stored; empty for a removal.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Add { content } | Self::Replace { content, .. } => content.trim(),
            Self::Remove { .. } => "",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Added,
    /// The entry exists already; nothing to write.
    Duplicate,
    /// With the previous entry.
    Replaced(String),
    Removed(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoContent,
    NoOldText,
    NoMatch {
        old_text: String,
    },
    /// With the beginnings of the matching entries.
    Ambiguous {
        old_text: String,
        previews: Vec<String>,
    },
    OverLimit {
        /// Characters of the new entry.
        content: usize,
        would_be: usize,
    },
}

impl Notes {
    pub(crate) fn parse(text: &str) -> Self {
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

    pub(crate) fn text(&self) -> String {
        self.entries.join(SEPARATOR)
    }

    pub(crate) fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Characters of the joined text.
    pub(crate) fn chars(&self) -> usize {
        let between = SEPARATOR.chars().count() * self.entries.len().saturating_sub(1);
        between + self.entries.iter().map(|entry| entry.chars().count()).sum::<usize>()
    }

    /// Applies a change.
    pub(crate) fn apply(&self, change: &Change, limit: usize) -> Result<(Self, Done), Refusal> {
        match change {
            Change::Add { content } => {
                let mut notes = self.clone();
                for entry in written(content)?.entries {
                    notes.push(&entry);
                }
                if notes == *self {
                    return Ok((notes, Done::Duplicate));
                }
                self.fits(notes, content, limit).map(|notes| (notes, Done::Added))
            }
            Change::Replace { old_text, content } => {
                let new = written(content)?;
                let place = self.find(old_text)?;
                let mut notes = Self::default();
                let before = self.entries[..place].iter();
                for entry in before.chain(&new.entries).chain(&self.entries[place + 1..]) {
                    notes.push(entry);
                }
                let old = self.entries[place].clone();
                self.fits(notes, content, limit).map(|notes| (notes, Done::Replaced(old)))
            }
            Change::Remove { old_text } => {
                let place = self.find(old_text)?;
                let mut notes = self.clone();
                let old = notes.entries.remove(place);
                Ok((notes, Done::Removed(old)))
            }
        }
    }

    /// Checks the limit. A text that is already too long may still be shortened step by step.
    fn fits(&self, notes: Self, content: &str, limit: usize) -> Result<Self, Refusal> {
        let would_be = notes.chars();
        if would_be > limit && would_be >= self.chars() {
            return Err(Refusal::OverLimit { content: content.trim().chars().count(), would_be });
        }
        Ok(notes)
    }

    /// The entry equal to `old_text`, or else the only one that contains it.
    fn find(&self, old_text: &str) -> Result<usize, Refusal> {
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
        Notes::parse(text).apply(change, 100).map(|(notes, _)| notes.text())
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
        assert!(full.apply(&add(&"y".repeat(37)), 100).is_ok());
        assert_eq!(full.apply(&add(&"y".repeat(38)), 100), Err(Refusal::OverLimit { content: 38, would_be: 101 }));
    }

    #[test]
    fn a_text_beyond_the_limit_may_shrink_but_not_grow() {
        let long = Notes::parse(&format!("{}\n§\n{}", "x".repeat(90), "y".repeat(90)));
        assert!(long.apply(&add("z"), 100).is_err());
        assert!(long.apply(&replace("xxx", &"x".repeat(91)), 100).is_err());
        assert!(long.apply(&replace("xxx", &"x".repeat(80)), 100).is_ok());
        assert!(long.apply(&remove("yyy"), 100).is_ok());
        assert_eq!(long.apply(&add(&"y".repeat(90)), 100).unwrap().1, Done::Duplicate);
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
}
