//! Hooks: the user is asked before a tool is called with words that delete, and what fails is logged.
//!
//! Hooks see what the loop does and may stop a tool's call; they can never change the prompt. Only `before-tool` is
//! waited for.

use hermes_plugin::hooks::{Event, Verdict, interest};
use hermes_plugin::{Error, Hooks, Plugin, log};
use serde::Deserialize;
use serde_json::json;

/// The plugin's section of the user's configuration; the same keys and defaults stand in plugin.yaml.
#[derive(Deserialize)]
#[serde(default)]
struct Config {
    ask_for: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self { ask_for: ["rm -rf", "DROP TABLE", "git push --force"].map(str::to_owned).to_vec() }
    }
}

struct Guard {
    config: Config,
    failed: u32,
}

impl Plugin for Guard {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Config = serde_json::from_str(config)?;
        if config.ask_for.iter().any(String::is_empty) {
            return Err(Error::invalid("ask_for holds an empty text, which would be found everywhere"));
        }
        Ok(Self { config, failed: 0 })
    }
}

impl Guard {
    /// The words before which the user is asked, where they stand in the arguments.
    fn found(&self, arguments: &str) -> Option<&str> {
        self.config.ask_for.iter().find(|words| arguments.contains(words.as_str())).map(String::as_str)
    }
}

impl Hooks for Guard {
    fn interests(&self) -> Vec<&'static str> {
        vec![interest::BEFORE_TOOL, interest::AFTER_TOOL]
    }

    fn on_event(&mut self, event: &Event) -> Verdict {
        match event {
            Event::BeforeTool(call) => match self.found(&call.arguments) {
                Some(words) => Verdict::Ask(format!("`{}` is called with `{words}`", call.name)),
                None => Verdict::Proceed,
            },
            Event::AfterTool(done) => {
                if done.failed {
                    self.failed += 1;
                    // A JSON object becomes the fields of its line in the plugin's log.
                    log::info(json!({ "tool": done.event.name, "failed_so_far": self.failed }));
                }
                Verdict::Proceed
            }
            _ => Verdict::Proceed,
        }
    }
}

hermes_plugin::export!(Guard: Hooks);

#[cfg(test)]
mod tests {
    use hermes_plugin::hooks::ToolEvent;

    use super::*;

    fn before(arguments: &str) -> Verdict {
        let mut guard = Guard { config: Config::default(), failed: 0 };
        let event = ToolEvent { call_id: "1".into(), name: "terminal".into(), arguments: arguments.into() };
        guard.on_event(&Event::BeforeTool(event))
    }

    #[test]
    fn words_that_delete_are_asked_about() {
        assert_eq!(before(r#"{"command":"ls"}"#), Verdict::Proceed);
        assert!(matches!(before(r#"{"command":"rm -rf /tmp/x"}"#), Verdict::Ask(text) if text.contains("rm -rf")));
    }
}
