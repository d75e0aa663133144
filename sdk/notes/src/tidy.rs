//! Tidies notes: merges entries that say the same, and marks entries whose time has passed. Nothing is applied here: the
//! caller shows the plan first.

use crate::notes::{Change, Notes, undated};
use crate::words::terms;

/// The mark of an entry that may not hold any more.
pub(crate) const STALE: &str = " [stale]";
/// Days after which a dated entry is marked, in months of 31 days: a year.
const OLD: i64 = 12 * 31;
/// Words before a date on which something ends.
const ENDINGS: &[&str] = &["until", "till", "by", "due", "expires", "expire", "deadline", "ends", "before", "through"];
/// How many words may stand between such a word and the date.
const REACH: usize = 3;

/// What happens to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tidying {
    /// It says nothing that `kept` does not say.
    Merged {
        /// The entry that goes.
        entry: String,
        /// The entry that stays.
        kept: String,
    },
    /// It gets a mark, because its time has passed.
    Marked {
        /// The entry before.
        entry: String,
        /// The entry with the mark.
        marked: String,
    },
}

/// A plan for a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// What happens, in the order of the entries. Empty if the document is tidy.
    pub steps: Vec<Tidying>,
}

impl Tidied {
    /// The same as changes of a document.
    pub fn changes(&self) -> Vec<Change> {
        let change = |step: &Tidying| match step {
            Tidying::Merged { entry, .. } => Change::Remove { old_text: entry.clone() },
            Tidying::Marked { entry, marked } => Change::Replace { old_text: entry.clone(), content: marked.clone() },
        };
        self.steps.iter().map(change).collect()
    }
}

/// Plans the tidying of a document. `today` is a day such as `2026-11-23`.
pub fn tidy(notes: &Notes, today: &str) -> Tidied {
    let entries = notes.entries();
    let mut steps = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        // The entry with more words stays; of two with the same words, the later one.
        let stays = |other: &usize| {
            let long = &entries[*other];
            *other != at && says_it(entry, long) && (*other > at || !says_it(long, entry))
        };
        let kept = (0..entries.len()).rev().find(stays);
        if let Some(kept) = kept {
            steps.push(Tidying::Merged { entry: entry.clone(), kept: entries[kept].clone() });
        } else if !entry.ends_with(STALE) && is_past(entry, today) {
            steps.push(Tidying::Marked { entry: entry.clone(), marked: format!("{entry}{STALE}") });
        }
    }
    Tidied { steps }
}

/// Words that turn a statement around. Entries that differ in them do not say the same.
const TURNS: &[&str] = &["no", "not", "never", "don't", "doesn't", "isn't", "without", "except", "but"];

fn turns(entry: &str) -> Vec<String> {
    entry.split_whitespace().map(str::to_lowercase).filter(|word| TURNS.contains(&word.as_str())).collect()
}

/// The text that an entry says, without its day and its mark.
fn said(entry: &str) -> &str {
    undated(entry.strip_suffix(STALE).unwrap_or(entry))
}

/// Whether `long` begins with everything that `short` says and adds little. "Anna likes tea" does not say what "likes tea" says.
fn says_it(short: &str, long: &str) -> bool {
    let (few, many) = (terms(said(short)), terms(said(long)));
    !few.is_empty() && many.starts_with(&few) && many.len() <= few.len() * 2 && turns(short) == turns(long)
}

fn is_past(entry: &str, today: &str) -> bool {
    let Some(today) = number(today) else { return false };
    if let Some(written) = entry.strip_prefix('[').and_then(|rest| number(rest.get(..10)?))
        && undated(entry) != entry
        && written + OLD < today
    {
        return true;
    }
    let words: Vec<&str> = undated(entry).split_whitespace().collect();
    words.iter().enumerate().any(|(at, word)| {
        let date = word.trim_matches(|character: char| !character.is_ascii_digit());
        let before = &words[at.saturating_sub(REACH)..at];
        let is_ending = |word: &&str| {
            let word = word.trim_matches(|character: char| !character.is_alphabetic()).to_lowercase();
            ENDINGS.contains(&word.as_str())
        };
        number(date).is_some_and(|day| day < today) && before.iter().any(is_ending)
    })
}

/// The number of a day such as `2026-11-23`, for comparisons: every month counts 31 days.
fn number(day: &str) -> Option<i64> {
    let bytes = day.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let part = |range: std::ops::Range<usize>| day.get(range).and_then(|part| part.parse::<i64>().ok());
    let (year, month, of_month) = (part(0..4)?, part(5..7)?, part(8..10)?);
    ((1..=12).contains(&month) && (1..=31).contains(&of_month)).then(|| (year * 12 + month) * 31 + of_month)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::notes::Rules;

    fn tidied(text: &str) -> String {
        let notes = Notes::parse(text);
        let rules = Rules { limit: 1_000, day: None };
        notes.apply_all(&tidy(&notes, "2026-11-23").changes(), &rules).unwrap().0.text()
    }

    #[test]
    fn entries_that_say_the_same_become_one() {
        let cases = [
            ("Uses Rust.\n§\nuses rust\n§\nlikes tea", "uses rust\n§\nlikes tea"),
            ("editor: helix\n§\neditor: helix (vi keys)", "editor: helix (vi keys)"),
            ("[2026-01-02] moved to Oslo\n§\n[2026-03-04] moved to Oslo", "[2026-03-04] moved to Oslo"),
            // They only look alike.
            ("likes tea\n§\nAnna likes tea", "likes tea\n§\nAnna likes tea"),
            ("uses tabs\n§\nuses tabs but not in Python", "uses tabs\n§\nuses tabs but not in Python"),
            ("prefers vim to helix\n§\nprefers helix to vim", "prefers vim to helix\n§\nprefers helix to vim"),
            ("likes tea\n§\ndoes not like tea", "likes tea\n§\ndoes not like tea"),
            ("port 8080\n§\nport 8081", "port 8080\n§\nport 8081"),
            (
                "tea\n§\nAnna told us about the tea of her family in Oslo",
                "tea\n§\nAnna told us about the tea of her family in Oslo",
            ),
            ("a § b\n§\n!!!\n§\n???", "a § b\n§\n!!!\n§\n???"),
        ];
        for (before, after) in cases {
            assert_eq!(tidied(before), after, "{before}");
            assert_eq!(tidied(after), after, "not stable");
        }
    }

    #[test]
    fn entries_whose_time_has_passed_are_marked_once() {
        let cases = [
            ("freeze until 2026-11-01.", "freeze until 2026-11-01. [stale]"),
            ("the token expires on 2025-12-31", "the token expires on 2025-12-31 [stale]"),
            ("[2024-01-01] the build was red", "[2024-01-01] the build was red [stale]"),
            ("freeze until 2027-01-01", "freeze until 2027-01-01"),
            ("born 1980-01-01", "born 1980-01-01"),
            ("[2026-10-01] the build was red", "[2026-10-01] the build was red"),
            ("by 2025-99-99", "by 2025-99-99"),
        ];
        for (before, after) in cases {
            assert_eq!(tidied(before), after, "{before}");
            assert_eq!(tidied(after), after, "not stable");
        }
    }
}
