//! Texts for single things: what the user said, a delegated task, a compaction, the failure of a tool.

use hermes_protocol::{RefusedBy, TaskStatus};

use super::MOST_LINES;
use crate::text::dollars;
use crate::text::{self, counted};

/// The first lines of a message behind a mark: it may be a long paste, or have files and outputs behind it.
pub(super) fn quoted(text: &str) -> String {
    let text = text::lines(text.trim_end());
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines[..lines.len().min(MOST_LINES)].join("\n  ");
    match lines.len().saturating_sub(MOST_LINES) {
        0 => format!("> {begin}"),
        more => format!("> {begin}\n  … ({} more)", counted(more as u64, "line")),
    }
}

/// A delegated task in one line: what it does, where it is, and what it used.
pub(crate) fn task_line(task: &TaskStatus) -> String {
    let TaskStatus { number, goal, state, tool, why, requests, tokens, cost, elapsed_ms, .. } = task;
    let detail = match (state.is_over(), tool, why) {
        (true, _, Some(detail)) => format!(": {}", text::line(detail)),
        (false, Some(tool), _) => format!(": {}", text::line(tool)),
        _ => String::new(),
    };
    let cost = cost.map_or_else(String::new, |cost| format!(", {}", dollars(cost)));
    let (requests, tokens, seconds) = (counted(*requests, "request"), text::grouped(*tokens), elapsed_ms / 1_000);
    format!(
        "subagent {number}: {} · {}{detail} ({requests}, {tokens} tokens{cost}, {seconds} s)",
        text::line(goal),
        state.as_str().replace('-', " "),
    )
}

/// One line for a compaction.
pub(super) fn compacted(reason: &str, by: &str, before: u32, after: u32) -> String {
    let by = if by == "host" { "Hermes itself".to_owned() } else { format!("`{}`", text::line(by)) };
    let (before, after) = (text::grouped(before.into()), text::grouped(after.into()));
    let reason = if reason.trim().is_empty() { "no reason given" } else { reason };
    format!("compacted by {by}, messages from about {before} to {after} tokens: {reason}")
}

/// Why a tool failed. Many tools answer with a JSON object that has the member `error`.
pub(super) fn reason(content: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(content).ok();
    let error = value.as_ref().and_then(|value| value.get("error")).and_then(|error| error.as_str());
    let error = error.unwrap_or(content);
    error.strip_prefix("error: ").unwrap_or(error).to_owned()
}

/// Who refused a call, and why, in a few words.
pub(super) fn refusal(by: RefusedBy, content: &str) -> String {
    match by {
        RefusedBy::Mode => "the mode plan changes nothing".to_owned(),
        RefusedBy::User => "you refused".to_owned(),
        RefusedBy::Unattended => "nobody could be asked".to_owned(),
        RefusedBy::Rule => format!("by a rule: {}", reason(content)),
        RefusedBy::Hook => format!("by a hook: {}", reason(content)),
    }
}

#[cfg(test)]
mod tests {
    use hermes_protocol::DelegationState;

    use super::*;

    #[test]
    fn a_subagent_has_one_line_that_says_where_it_is_and_what_it_used() {
        let task = TaskStatus {
            number: 3,
            goal: "count\u{1b}[2J".to_owned(),
            session: None,
            state: DelegationState::Running,
            background: false,
            tool: Some("read_file".to_owned()),
            requests: 1,
            tokens: 12_345,
            cost: None,
            elapsed_ms: 4_900,
            why: None,
        };
        let shown = task_line(&task);
        assert!(shown.ends_with(" · running: read_file (1 request, 12,345 tokens, 4 s)"), "{shown}");
        assert!(shown.starts_with("subagent 3: count\\u{1b}[2J") && !shown.contains('\u{1b}'), "{shown}");
        let why = Some("the model is gone".to_owned());
        let failed = TaskStatus { state: DelegationState::TimedOut, why, cost: Some(0.5), requests: 2, ..task };
        let shown = task_line(&failed);
        assert!(
            shown.ends_with(" · timed out: the model is gone (2 requests, 12,345 tokens, $0.5000, 4 s)"),
            "{shown}"
        );
    }

    #[test]
    fn a_compaction_names_its_author() {
        assert_eq!(
            compacted("the window is full", "loss\u{1b}[1mless", 12_000, 900),
            "compacted by `loss\\u{1b}[1mless`, messages from about 12,000 to 900 tokens: the window is full"
        );
        assert!(
            compacted(" ", "host", 2, 1).starts_with("compacted by Hermes itself, messages from about 2 to 1 tokens: ")
        );
    }
}
