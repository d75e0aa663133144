//! What turns changed, as a unified diff.

use std::fmt::Write as _;

use similar::TextDiff;

use crate::error::UndoError;
use crate::path::RelPath;
use crate::record::{Record, Records};
use crate::state::{Content, State};
use crate::store::Store;
use crate::undo::{Turns, chains, chosen};

/// The most bytes of a diff.
const MOST: usize = 1 << 20;
/// A file above this size is only named.
const MOST_OF_FILE: usize = 1 << 20;

/// The changes of turns as a unified diff, file by file, and the numbers of the turns.
///
/// # Errors
///
/// [`UndoError::Nothing`] if there are none.
pub fn diff(store: &Store, session: &str, turns: Turns) -> Result<(Vec<u32>, String), UndoError> {
    let records = Records::of(store, session).ok_or(UndoError::Nothing)?;
    let (chosen, _) = chosen(&records, turns)?;
    let mut text = String::new();
    for (path, chain) in chains(chosen.iter().flat_map(Record::open_changes)) {
        if chain.before == chain.after {
            continue;
        }
        if text.len() > MOST {
            text.push_str("[the rest of the diff is left out]\n");
            break;
        }
        write(&mut text, store, &path, &chain.before, &chain.after);
    }
    Ok((chosen.iter().map(|record| record.number).collect(), text))
}

fn write(text: &mut String, store: &Store, path: &RelPath, before: &State, after: &State) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "diff {path}");
    match (before, after) {
        (State::Absent, State::Folder { .. }) => drop(writeln!(text, "new folder")),
        (State::Folder { .. }, State::Absent) => drop(writeln!(text, "deleted folder")),
        _ => {
            if let (State::File { mode, .. }, State::File { mode: new, .. }) = (before, after)
                && mode != new
            {
                let _ = writeln!(text, "old mode {mode:o}\nnew mode {new:o}");
            }
            match (content(store, before), content(store, after)) {
                (Ok(old), Ok(new)) if old == new => {}
                (Ok(old), Ok(new)) => {
                    let name = |state: &State, side: char| match state {
                        State::Absent => "/dev/null".to_owned(),
                        _ => format!("{side}/{path}"),
                    };
                    let diff = TextDiff::from_lines(&old, &new);
                    let unified = diff.unified_diff().header(&name(before, 'a'), &name(after, 'b')).to_string();
                    text.push_str(&unified);
                }
                (old, new) => {
                    let side = |side: Result<String, String>, state: &State| match (side, state) {
                        (_, State::Absent) => "nothing".to_owned(),
                        (Ok(_), _) => "text".to_owned(),
                        (Err(what), _) => what,
                    };
                    let _ = writeln!(text, "{} -> {}", side(old, before), side(new, after));
                }
            }
        }
    }
}

/// A state as text, or in words why it has none.
fn content(store: &Store, state: &State) -> Result<String, String> {
    match state {
        State::Absent => Ok(String::new()),
        State::Link { target } => Ok(format!("link to {}\n", target.trim_start_matches('\0'))),
        State::Folder { .. } => Err("a folder".to_owned()),
        State::Other => Err("a special file".to_owned()),
        State::File { size, content: Content::Unsaved(why, _), .. } => {
            Err(format!("a file of {size} bytes, whose content was not saved: {}", why.why()))
        }
        State::File { size, content: Content::Stored(digest), .. } => {
            let content = store.get(digest).ok_or_else(|| "a content that is no longer in the store".to_owned())?;
            let is_text = content.len() <= MOST_OF_FILE && !content.contains(&0);
            let text = is_text.then(|| String::from_utf8(content).ok()).flatten();
            text.ok_or_else(|| format!("a binary or large file of {size} bytes"))
        }
    }
}
