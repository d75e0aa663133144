//! How a change of a file is shown.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag};

use crate::count;
use crate::text::{Text, each_line, has_lone_returns};

/// Lines of a file's change that are shown.
const SHOWN: usize = 60;
/// Characters that are shown of a line.
const LINE: usize = 200;
/// Unchanged lines that are shown before and after a change.
const CONTEXT: usize = 1;
/// After this time a larger part than necessary is shown as changed.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a change did to the lines of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) diff: String,
}

/// Compares two versions of a file.
pub(super) fn show(before: &Text, after: &Text) -> Shown {
    let (skipped, parts) = differing(&before.content, &after.content);
    let (old, new) = (ends(parts.0), ends(parts.1));
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + PATIENCE));
    let mut shown = Shown::default();
    let mut rows: Vec<String> = Vec::new();
    for group in similar::group_diff_ops(ops, CONTEXT) {
        if !rows.is_empty() {
            rows.push("…".to_owned());
        }
        for op in group {
            let kept = op.tag() == DiffTag::Equal;
            let gone = if kept { 0..0 } else { op.old_range() };
            shown.removed += gone.len();
            shown.added += if kept { 0 } else { op.new_range().len() };
            rows.extend(gone.map(|at| row('-', skipped + at, old[at].0)));
            let mark = if kept { ' ' } else { '+' };
            rows.extend(op.new_range().map(|at| row(mark, skipped + at, new[at].0)));
        }
    }
    let left = rows.len().saturating_sub(SHOWN);
    if left > 0 {
        rows.truncate(SHOWN);
        rows.push(format!("… [{} more]", count(left as u64, "line")));
    }
    shown.diff = rows.join("\n");
    shown
}

/// The lines with their ends, borrowed: a file can have millions of them.
fn ends(text: &str) -> Vec<(&str, &str)> {
    each_line(text).map(|line| (line.text, line.end)).collect()
}

/// The parts in which two texts differ, with a few equal lines around them, and how many lines come before the parts.
fn differing<'t>(old: &'t str, new: &'t str) -> (usize, (&'t str, &'t str)) {
    if has_lone_returns(old) || has_lone_returns(new) {
        return (0, (old, new));
    }
    let same = |(one, other): &(u8, u8)| one == other;
    let before = old.bytes().zip(new.bytes()).take_while(same).count();
    let (left, left_new) = (&old.as_bytes()[before..], &new.as_bytes()[before..]);
    let after = left.iter().rev().zip(left_new.iter().rev()).take_while(|(one, other)| one == other).count();
    // From the beginning of the line that is `CONTEXT` above the first difference to the end of the one below the last.
    let mut start = before;
    for _ in 0..=CONTEXT {
        start = old.as_bytes()[..start].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    }
    if start > 0 {
        start += 1;
    }
    let mut tail = after;
    for _ in 0..=CONTEXT {
        let from = old.len() - tail;
        let line = old.as_bytes()[from..].iter().position(|byte| *byte == b'\n').map_or(tail, |at| at + 1);
        tail -= line;
    }
    let skipped = old.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
    (skipped, (&old[start..old.len() - tail], &new[start..new.len() - tail]))
}

fn row(mark: char, at: usize, text: &str) -> String {
    let number = at + 1;
    match text.char_indices().nth(LINE) {
        Some((cut, _)) => format!("{mark}{number}|{}…", &text[..cut]),
        None => format!("{mark}{number}|{text}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(before: &str, after: &str) -> Shown {
        show(&Text::new(before.to_owned()), &Text::new(after.to_owned()))
    }

    #[test]
    fn a_change_is_shown_by_its_lines_and_their_neighbours() {
        let before = "a\nb\nc\nd\ne\nf\ng\n";
        let change = shown(before, "a\nB\nBB\nc\nd\ne\nf\n");
        assert_eq!(change.diff, " 1|a\n-2|b\n+2|B\n+3|BB\n 4|c\n…\n 7|f\n-7|g");
        assert_eq!((change.added, change.removed), (2, 2));
        assert_eq!(shown(before, before), Shown::default());
        assert_eq!(shown("a\n", "a").diff, "-1|a\n+1|a", "the line end is a change, too");
    }

    proptest! {
        /// Leaving out what is the same at both ends changes nothing of what is shown, other than which of several equal lines changed.
        #[test]
        fn the_ends_that_are_the_same_make_no_difference(
            head in "[ab\r\n\u{e9}]{0,12}", old in "[abc\n]{0,6}", new in "[abd\n]{0,6}", tail in "[ab\r\n\u{e9}]{0,12}",
        ) {
            let (old, new) = (format!("{head}{old}{tail}"), format!("{head}{new}{tail}"));
            let (skipped, (old_part, new_part)) = differing(&old, &new);
            let at = if skipped == 0 { 0 } else { old.match_indices('\n').nth(skipped - 1).map_or(0, |(at, _)| at + 1) };
            prop_assert!(old[at..].starts_with(old_part) && new[at..].starts_with(new_part));
            prop_assert_eq!(&old[..at], &new[..at]);
            prop_assert_eq!(&old[at + old_part.len()..], &new[at + new_part.len()..]);
            let shown = shown(&old, &new);
            prop_assert_eq!(shown == Shown::default(), old == new);
        }
    }

    #[test]
    fn a_long_change_is_cut() {
        let change = shown("", &"x\n".repeat(SHOWN + 5));
        assert!(change.diff.ends_with("\n… [5 lines more]") && change.added == SHOWN + 5, "{}", change.diff);
        assert_eq!(shown("", &"€".repeat(LINE + 1)).diff, format!("+1|{}…", "€".repeat(LINE)));
    }
}
