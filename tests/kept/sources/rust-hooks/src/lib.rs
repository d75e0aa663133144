//! Hooks that ask for approval before a tool call with words that delete, and log failed calls.
//!
//! Hooks observe the agent loop and can stop a tool call, but never change the prompt. The host waits only for `before-tool`.

use hermes_plugin::hooks::{Event, Verdict, interest};
use hermes_plugin::{Error, Hooks, Instance, Setup, config, log};
use serde_json::json;

/// The plugin's configuration section. A test compares it with plugin.yaml.
#[config]
struct Config {
    /// Texts in the arguments of a call that require the user's approval.
    #[schemars(inner(length(min = 1)))]
    #[serde(default = "ask_for")]
    ask_for: Vec<String>,
}

fn ask_for() -> Vec<String> {
    ["rm -rf", "DROP TABLE", "git push --force"].map(str::to_owned).to_vec()
}

struct Guard {
    config: Config,
    failed: u32,
}

impl Instance for Guard {
    type Config = Config;

    fn check(config: &Config) -> Result<(), Error> {
        if config.ask_for.iter().any(String::is_empty) {
            return Err(Error::invalid("ask_for contains an empty text, which would match every call"));
        }
        Ok(())
    }

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config, failed: 0 })
    }
}

impl Guard {
    /// The first configured text that occurs in the arguments.
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
                    // A JSON object becomes the fields of a line in the plugin's log.
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
    use hermes_plugin::hooks::{ToolDone, ToolEvent};
    use hermes_plugin::testing::{Host, check_manifest};

    use super::*;

    #[test]
    fn the_manifest_describes_the_configuration() {
        // `HERMES_WRITE_CONFIG=1 cargo test` writes the section.
        check_manifest::<Guard>();
    }

    fn before(guard: &mut Guard, arguments: &str) -> Verdict {
        guard.on_event(&Event::BeforeTool(ToolEvent::new("terminal", arguments)))
    }

    #[test]
    fn words_that_delete_need_approval() -> Result<(), Error> {
        let mut guard: Guard = Host::new().start(json!({ "ask_for": ["rm -rf"] }))?;
        assert_eq!(before(&mut guard, r#"{"command":"ls"}"#), Verdict::Proceed);
        let asked = before(&mut guard, r#"{"command":"rm -rf /tmp/x"}"#);
        assert!(matches!(asked, Verdict::Ask(text) if text.contains("rm -rf")));
        Ok(())
    }

    #[test]
    fn a_failed_call_is_logged() -> Result<(), Error> {
        let host = Host::new();
        let mut guard: Guard = host.start(json!({}))?;
        guard.on_event(&Event::AfterTool(ToolDone::new(ToolEvent::new("terminal", "{}"), "no such file", true)));
        assert_eq!(host.log()[0].1, r#"{"tool":"terminal","failed_so_far":1}"#);
        Ok(())
    }
}
