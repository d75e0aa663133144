//! Keeps tools away from private files, asks before some tools, and logs how long calls take.

use hermes_plugin::hooks::{Event, Verdict, interest};
use hermes_plugin::{Error, Hooks, Plugin, log};
use serde::Deserialize;
use serde_json::json;

/// Keys and defaults must match plugin.yaml.
#[derive(Deserialize)]
#[serde(default)]
struct Guard {
    private: Vec<String>,
    ask: Vec<String>,
}

impl Default for Guard {
    fn default() -> Self {
        Self { private: vec![".env".to_owned(), "id_rsa".to_owned()], ask: vec!["write_file".to_owned()] }
    }
}

impl Plugin for Guard {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(config)?)
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
                if let Some(name) = self.private.iter().find(|name| call.arguments.contains(name.as_str())) {
                    return Verdict::Block(format!("`{name}` is private: do without it"));
                }
                if self.ask.contains(&call.name) {
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
