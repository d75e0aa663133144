//! How a change of a file is shown.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag};

use crate::count;
use crate::text::{Text, lines};

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
    let (old, new) = (ends(&before.content), ends(&after.content));
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
            rows.extend(gone.map(|at| row('-', at, old[at].0)));
            let mark = if kept { ' ' } else { '+' };
            rows.extend(op.new_range().map(|at| row(mark, at, new[at].0)));
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
    lines(text).iter().map(|line| (line.text, line.end)).collect()
}

fn row(mark: char, at: usize, text: &str) -> String {
    let number = at + 1;
    match text.char_indices().nth(LINE) {
        Some((cut, _)) => format!("{mark}{number}|{}…", &text[..cut]),
        None => format!("{mark}{number}|{text}"),
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_long_change_is_cut() {
        let change = shown("", &"x\n".repeat(SHOWN + 5));
        assert!(change.diff.ends_with("\n… [5 lines more]") && change.added == SHOWN + 5, "{}", change.diff);
        assert_eq!(shown("", &"€".repeat(LINE + 1)).diff, format!("+1|{}…", "€".repeat(LINE)));
    }
}
