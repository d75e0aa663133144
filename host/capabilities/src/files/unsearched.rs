//! What a search left out although it was to be searched, in a few words.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::found::Found;

/// The most paths that are named for one reason.
const NAMED: usize = 3;

/// Why something was not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Binary,
    Utf32,
    Unreadable,
    Cut,
    TooDeep,
    /// The path is that of the folder.
    Name,
}

impl Reason {
    fn phrase(self, count: usize) -> String {
        let (one, many) = match self {
            Self::Binary => ("binary file", "binary files"),
            Self::Utf32 => ("file in UTF-32", "files in UTF-32"),
            Self::Unreadable => ("file or folder that cannot be read", "files or folders that cannot be read"),
            Self::Cut => ("very large file to its end", "very large files to their ends"),
            Self::TooDeep => ("folder that is nested too deep", "folders that are nested too deep"),
            Self::Name => ("entry whose name is not UTF-8", "entries whose names are not UTF-8"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }
}

/// Collects what was not searched.
#[derive(Debug, Default)]
pub(super) struct Unsearched {
    by_reason: BTreeMap<Reason, (usize, Vec<String>)>,
}

impl Unsearched {
    pub(super) fn add(&mut self, reason: Reason, path: &str) {
        let (count, paths) = match self.by_reason.entry(reason) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert_entry((0, Vec::new())).into_mut(),
        };
        *count += 1;
        if paths.len() < NAMED {
            paths.push(path.to_owned());
        }
    }

    /// One result for each reason.
    pub(super) fn notes(&self) -> Vec<Found> {
        let note = |(reason, (count, paths)): (&Reason, &(usize, Vec<String>))| {
            // A name can have line ends.
            let plain = |path: &String| path.replace(char::is_control, "\u{fffd}");
            let names = paths.iter().map(plain).collect::<Vec<_>>().join(", ");
            let more = if *count > paths.len() { ", …" } else { "" };
            Found {
                path: paths.first().cloned().unwrap_or_default(),
                line: 0,
                text: format!("{} ({names}{more})", reason.phrase(*count)),
            }
        };
        self.by_reason.iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_first_paths_of_each_reason() {
        let mut unsearched = Unsearched::default();
        for path in ["a.png", "b.png", "c.png", "d.png"] {
            unsearched.add(Reason::Binary, path);
        }
        unsearched.add(Reason::Cut, "x\ny.log");
        let texts: Vec<String> = unsearched.notes().into_iter().map(|note| note.text).collect();
        assert_eq!(texts, ["4 binary files (a.png, b.png, c.png, …)", "1 very large file to its end (x\u{fffd}y.log)"]);
    }
}
