//! What an undo did and could not do, and diffs of files, as lines for the user.

use hermes_app::AppError;
use hermes_app::undo::Record;
use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_protocol::Undo;

use crate::console::{Console, Tone};
use crate::failure::Failure;
use crate::text;

/// The most files and commands that are named in a row.
const NAMED: usize = 20;

/// Names in one line: the first [`NAMED`], then the number of the others.
fn named<T: ToString>(names: impl ExactSizeIterator<Item = T>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut shown: Vec<String> = names.take(NAMED).map(|name| text::exact(&name.to_string())).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// What an undo restored, what it left, and what it cannot revert.
pub(crate) fn lines(undo: &Undo) -> Vec<String> {
    let mut lines = Vec::new();
    let turns = text::counted(undo.turns.len() as u64, "turn");
    let words = text::line(&undo.words);
    match undo.restored.len() {
        0 => lines.push(format!("no file had to be restored for {turns}, from `{words}` on")),
        count => {
            let files = text::counted(count as u64, "path");
            lines.push(format!("restored {files} of {turns}, from `{words}` on: {}", named(undo.restored.iter())));
        }
    }
    if !undo.skipped.is_empty() {
        let skipped = undo.skipped.iter().map(|skipped| format!("{} ({})", skipped.path, skipped.why));
        lines.push(format!("left as they are: {}", named(skipped)));
    }
    if !undo.unsaved.is_empty() {
        let unsaved = undo.unsaved.iter().map(|unsaved| format!("{} ({})", unsaved.path, unsaved.why));
        lines.push(format!("not restored, because the content was not saved: {}", named(unsaved)));
    }
    if !undo.left.is_empty() {
        let left = text::counted(undo.left.len() as u64, "path");
        lines.push(format!(
            "the undo is not complete: move away what is in the place of {left}, and undo again; or give up with \
             `--skip-changed`"
        ));
    }
    if !undo.kept_folders.is_empty() {
        lines.push(format!("folders that stay, because they have other files: {}", named(undo.kept_folders.iter())));
    }
    if let Some((before, after)) = &undo.heads {
        let branch = |branch: &Option<String>| branch.as_deref().map_or_else(|| "no branch".to_owned(), text::line);
        lines.push(format!(
            "not undone: git moved from {} ({}) to {} ({}); commits stay, and git knows how to go back",
            before.short(),
            branch(&before.branch),
            after.short(),
            branch(&after.branch)
        ));
    }
    if !undo.outside.is_empty() {
        let outside = undo.outside.iter();
        lines.push(format!("not undone: changes outside of the workspace: {}", named(outside)));
    }
    for why in &undo.unrecorded {
        lines.push(format!("not undone: what commands changed without a checkpoint: {}", text::line(why)));
    }
    if !undo.programs.is_empty() {
        let more = match undo.more_programs {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        lines.push(format!(
            "not undone: what these commands did beside changing files of the workspace: {}{more}",
            named(undo.programs.iter().map(|program| format!("`{program}`")))
        ));
    }
    lines.push("the conversation stays as it is; the model learns of this with your next message".to_owned());
    lines
}

/// One line about a record.
pub(crate) fn summary(record: &Record) -> String {
    let paths: std::collections::BTreeSet<_> = record.changes.iter().map(|change| &change.path).collect();
    let state = match record.undone {
        Some(_) if record.is_open() => "partly",
        Some(_) => "undone",
        None => "",
    };
    let paths = text::counted(paths.len() as u64, "path");
    format!(
        "{:>4}  {}  {paths:<10} {state:<6}  {}",
        record.number,
        crate::moments::local(record.started_at),
        text::line(&record.words)
    )
}

/// A diff in colours, in which every character is shown: in some modes nothing else shows what was written.
pub(crate) fn painted(diff: &str, console: Console) -> String {
    let mut painted = String::with_capacity(diff.len());
    for line in lines_of(diff) {
        let tone = match line.as_bytes() {
            [b'd', b'i', b'f', b'f', b' ', ..] | [b'@', b'@', ..] => Tone::Faint,
            [b'+', ..] => Tone::Good,
            [b'-', ..] => Tone::Bad,
            _ => Tone::Plain,
        };
        let line = text::exact_line(line);
        painted.push_str(&if tone == Tone::Plain { line } else { console.paint(tone, &line) });
        painted.push('\n');
    }
    painted
}

/// The lines of a diff. A carriage return ends one, too, and belongs to it.
fn lines_of(diff: &str) -> impl Iterator<Item = &str> {
    let mut rest = diff;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let ends = |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let end = (0..bytes.len()).find(ends).map_or(bytes.len(), |at| at + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        (!line.is_empty()).then(|| line.strip_suffix('\n').unwrap_or(line))
    })
}

/// Why there is no diff.
pub(crate) fn failed_diff(error: &AppError) -> Failure {
    Diagnostic { what: "no changes can be shown".to_owned(), ..error.diagnose() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_keeps_its_spaces_and_controls_nothing() {
        let diff = " fn a() {\n-\tone();\n+    two(); \u{1b}[2J\n";
        let shown = " fn a() {\n-    one();\n+    two(); \\u{1b}[2J\n";
        assert_eq!(painted(diff, Console::plain(true)), shown);
    }

    /// It showed `+echo saferm`, and one line for two.
    #[test]
    fn a_diff_hides_nothing_of_what_was_written() {
        let diff = "+echo safe\u{1b}[2K\u{1b}[1Grm x \u{1b}[8m\n+echo x\r+rm\u{200b} y\r\n \n";
        let shown = "+echo safe\\u{1b}[2K\\u{1b}[1Grm x \\u{1b}[8m\n+echo x\\r\n+rm\\u{200b} y\\r\n \n";
        assert_eq!(painted(diff, Console::plain(true)), shown);
    }
}
