//! Keeps tools away from private files, asks before some tools, and logs how long calls take.

use hermes_plugin::hooks::{Event, Verdict, interest};
use hermes_plugin::{Error, Hooks, Instance, Setup, config, log};
use serde_json::json;

/// The section `config` in plugin.yaml describes the same keys and defaults.
#[config]
struct Config {
    /// Names that may not occur in the arguments of a call.
    #[serde(default = "private")]
    private: Vec<String>,
    /// Tools that run only after the user has agreed.
    #[serde(default = "ask")]
    ask: Vec<String>,
}

fn private() -> Vec<String> {
    vec![".env".to_owned(), "id_rsa".to_owned()]
}

fn ask() -> Vec<String> {
    vec!["write_file".to_owned()]
}

struct Guard {
    config: Config,
}

impl Instance for Guard {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config })
    }
}

impl Hooks for Guard {
    fn interests(&self) -> Vec<&'static str> {
        vec![interest::BEFORE_TOOL, interest::AFTER_TOOL]
    }

    fn on_event(&mut self, event: &Event) -> Verdict {
        match event {
            Event::BeforeTool(call) => {
                // The model reads why its call was blocked. The user reads the question.
                if let Some(name) = self.config.private.iter().find(|name| call.arguments.contains(name.as_str())) {
                    return Verdict::Block(format!("`{name}` is private: do without it"));
                }
                if self.config.ask.contains(&call.name) {
                    return Verdict::Ask(format!("`{}` of `{}` wants to run", call.name, call.plugin));
                }
            }
            Event::AfterTool(done) => log::info(json!({ "tool": done.event.name, "elapsed_ms": done.elapsed_ms })),
            // Events of later versions arrive only if `interests` names them.
            _ => {}
        }
        Verdict::Proceed
    }
}

hermes_plugin::export!(Guard: Hooks);
