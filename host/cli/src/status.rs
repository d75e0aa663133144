//! How full the model's window is, in a line and in full.

use hermes_agent::Status;
use serde_json::Value;

use crate::text::{self, grouped};

/// `— gpt-4.1 · compressor · 12,345 of 128,000 tokens (10 %)`.
pub(crate) fn line(status: &Status) -> String {
    let (used, window) = (u64::from(status.prompt_tokens), u64::from(status.context_length));
    let percent = (used * 100).checked_div(window).unwrap_or(0);
    let (model, engine) = (text::line(&status.model), text::line(&status.engine));
    format!("— {model} · {engine} · {} of {} tokens ({percent} %)", grouped(used), grouped(window))
}

/// What `/context` shows: figures of the host, then the engine's own words.
pub(crate) fn context(report: &Value) -> String {
    let mut lines = Vec::new();
    list(report, "", &mut lines);
    lines.join("\n")
}

fn list(value: &Value, indent: &str, lines: &mut Vec<String>) {
    let Value::Object(entries) = value else {
        lines.push(format!("{indent}{}", plain(value)));
        return;
    };
    for (name, value) in entries {
        let name = text::line(&name.replace('_', " "));
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                lines.push(format!("{indent}{name}:"));
                list(value, &format!("{indent}  "), lines);
            }
            value => lines.push(format!("{indent}{name}: {}", plain(value))),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(words) => text::line(words),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        other => text::line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_window_is_told_with_its_share() {
        let status = Status {
            model: "gpt-4.1".to_owned(),
            engine: "compressor".to_owned(),
            prompt_tokens: 12_345,
            context_length: 128_000,
            messages: 3,
        };
        assert_eq!(line(&status), "— gpt-4.1 · compressor · 12,345 of 128,000 tokens (9 %)");
        assert!(line(&Status { context_length: 0, ..status }).ends_with("of 0 tokens (0 %)"));
    }

    #[test]
    fn a_report_is_a_list_of_names_and_figures() {
        let report = json!({"model": "m", "context_length": 12_000, "status": {"prepared": true, "words": "a\u{1b}[1mb"}, "none": {}});
        assert_eq!(
            context(&report),
            "model: m\ncontext length: 12,000\nstatus:\n  prepared: true\n  words: ab\nnone: {}"
        );
    }
}
