//! The notes of the built-in memory: short texts in documents that people edit too.
//!
//! The plugin `builtin` and the commands of `hermes memory` change the same documents, so both use these rules. Nothing here
//! reads or writes a file: a caller passes texts and gets texts.

#![forbid(unsafe_code)]

mod notes;
mod pending;
mod scan;
mod tidy;
mod words;

pub use notes::{Change, Done, Notes, Refusal, Rules, SEPARATOR, undated};
pub use pending::{Operation, Pending, PendingWrite};
pub use scan::threats;
pub use tidy::{Tidied, Tidying, tidy};
pub use words::{Index, terms};

/// A document of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Who the user is: part of the prompt.
    User,
    /// The environment, conventions, lessons learned: part of the prompt.
    Memory,
    /// What happened, with its day: recalled when a message mentions it.
    Facts,
}

impl Target {
    /// All documents, in the order of the prompt and of listings.
    pub const ALL: [Self; 3] = [Self::Memory, Self::User, Self::Facts];

    /// Its name in the tool and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Memory => "memory",
            Self::Facts => "facts",
        }
    }

    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The name of its document.
    pub fn document(self) -> &'static str {
        match self {
            Self::User => "USER.md",
            Self::Memory => "MEMORY.md",
            Self::Facts => "FACTS.md",
        }
    }

    /// The most characters if the configuration says nothing.
    pub fn default_limit(self) -> usize {
        match self {
            Self::User => 1_375,
            Self::Memory => 2_200,
            Self::Facts => 50_000,
        }
    }
}

/// How full a document is, as in `13% — 13/100 chars`.
pub fn usage(chars: usize, limit: usize) -> String {
    format!("{}% — {}/{} chars", percent(chars, limit), thousands(chars), thousands(limit))
}

/// How full a document is, at most 100.
pub fn percent(chars: usize, limit: usize) -> usize {
    (chars * 100).checked_div(limit).map_or(100, |percent| percent.min(100))
}

/// A number with commas between groups of three digits.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A name of an entry that stays while its text stays, such as `user-3f9a01c2`.
pub fn entry_id(target: Target, entry: &str) -> String {
    format!("{}-{:08x}", target.name(), fingerprint(entry))
}

/// FNV-1a, folded to 32 bits: the ids of a few hundred entries differ, and no secret depends on it.
fn fingerprint(text: &str) -> u32 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    // Both halves are kept, and the cast drops only the upper one.
    #[allow(clippy::cast_possible_truncation)]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}

/// The day of a moment in Unix milliseconds, such as `2026-11-23`, in UTC.
pub fn day(unix_ms: u64) -> String {
    let days = i64::try_from(unix_ms / 86_400_000).unwrap_or(0);
    // Days from civil, by eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (1_709_164_800_000, "2024-02-29"),
            (1_795_391_999_999, "2026-11-22"),
            (4_107_542_400_000, "2100-03-01"),
        ] {
            assert_eq!(day(ms), expected);
        }
    }

    #[test]
    fn a_document_above_its_limit_is_full() {
        assert_eq!(usage(3_000, 2_200), "100% — 3,000/2,200 chars");
        assert_eq!(usage(264, 2_200), "12% — 264/2,200 chars");
    }
}
