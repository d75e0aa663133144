//! The changed lines of a text, as the user reads them in a question and in the transcript.

use std::time::Duration;

/// Unchanged lines around a change.
const AROUND: usize = 2;
/// After this time the rest of a text counts as replaced.
const PATIENCE: Duration = Duration::from_millis(200);

/// The changed lines of a text with some around them, each behind `+`, `-` or a space. A gap is ` …`.
pub(crate) fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let difference = similar::TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let mut lines = Vec::new();
    for group in difference.grouped_ops(AROUND) {
        if !lines.is_empty() {
            lines.push(" …".to_owned());
        }
        for change in group.iter().flat_map(|op| difference.iter_changes(op)) {
            let end = if change.missing_newline() { " (without a line break at the end)" } else { "" };
            let text = change.value();
            lines.push(format!("{}{}{end}", change.tag(), text.strip_suffix('\n').unwrap_or(text)));
        }
    }
    lines
}
