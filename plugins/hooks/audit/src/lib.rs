//! Logs one line of JSON for every finished tool call: tool, its plugin, arguments, duration, and whether it failed.
//!
//! The host adds time and session to the line and stores it. The result itself is not logged, only its size.

use hermes_plugin::hooks::{Event, ToolDone, Verdict, interest};
use hermes_plugin::{Error, Hooks, Plugin, log};
use serde_json::{Value, json};

/// Most characters of arguments in a line.
const ARGUMENTS: usize = 2_000;

struct Audit;

impl Plugin for Audit {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Hooks for Audit {
    fn interests(&self) -> Vec<&'static str> {
        vec![interest::AFTER_TOOL]
    }

    fn on_event(&mut self, event: &Event) -> Verdict {
        if let Event::AfterTool(done) = event {
            log::info(line(done));
        }
        Verdict::Proceed
    }
}

hermes_plugin::export!(Audit: Hooks);

fn line(done: &ToolDone) -> Value {
    json!({
        "event": "tool",
        "tool": done.event.name,
        "plugin": done.event.plugin,
        "call_id": done.event.call_id,
        "arguments": arguments(&done.event.arguments),
        "failed": done.failed,
        "elapsed_ms": done.elapsed_ms,
        "content_bytes": done.content.len(),
    })
}

/// The arguments as a JSON object if they are one and short enough, else as text, cut to the limit.
fn arguments(text: &str) -> Value {
    if let Some((cut, _)) = text.char_indices().nth(ARGUMENTS) {
        return Value::String(format!("{}…", &text[..cut]));
    }
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use hermes_plugin::hooks::ToolEvent;

    use super::*;

    fn done(arguments: &str) -> ToolDone {
        let event = ToolEvent {
            call_id: "call-1".into(),
            name: "read_file".into(),
            arguments: arguments.into(),
            plugin: "files".into(),
            extra: Vec::new(),
        };
        ToolDone { event, content: "naïve".into(), failed: false, elapsed_ms: 12, extra: Vec::new() }
    }

    #[test]
    fn a_line_contains_the_arguments_and_only_the_size_of_the_result() {
        assert_eq!(
            line(&done(r#"{"path":"a.txt"}"#)).to_string(),
            r#"{"event":"tool","tool":"read_file","plugin":"files","call_id":"call-1","arguments":{"path":"a.txt"},"failed":false,"elapsed_ms":12,"content_bytes":6}"#
        );
    }

    #[test]
    fn arguments_that_are_not_an_object_stay_text() {
        assert_eq!(arguments("{broken"), json!("{broken"));
        assert_eq!(arguments("[1]"), json!("[1]"));
    }

    #[test]
    fn long_arguments_are_cut_at_a_character_boundary() {
        let text = format!(r#"{{"content":"{}"}}"#, "ü".repeat(3_000));
        let Value::String(kept) = arguments(&text) else { panic!("an object was kept") };
        assert_eq!(kept.chars().count(), ARGUMENTS + 1);
        assert!(kept.ends_with("ü…"));
    }
}
