//! Follows the contract of every kind, except for the one flaw that its configuration names and that the conformance suite must
//! find.
//!
//! Without a flaw it passes, so the suite finds the flaw and nothing else.

mod engine;
mod memory;

use hermes_plugin::hooks::{Event, Verdict};
use hermes_plugin::lifecycle::Ending;
use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Header, Hooks, Plugin, Skills, ToolSchema, Tools, documents, random};
use serde::Deserialize;
use serde_json::json;

/// The plugin.
pub struct Flawed {
    pub(crate) config: Config,
    pub(crate) headers: Vec<Header>,
    pub(crate) asked: u32,
}

/// The configuration.
#[derive(Deserialize)]
pub(crate) struct Config {
    #[serde(default)]
    flaw: String,
}

impl Flawed {
    pub(crate) fn has(&self, flaw: &str) -> bool {
        self.config.flaw == flaw
    }

    /// Random text if the plugin has this flaw, else nothing.
    fn whim(&self, flaw: &str) -> String {
        if self.has(flaw) { format!(" {:?}", random::bytes(16)) } else { String::new() }
    }
}

impl Plugin for Flawed {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Config = serde_json::from_str(config)?;
        if config.flaw == "configure-panics" {
            let _ = documents::read("notes.md")?;
            panic!("I want a key");
        }
        if config.flaw == "unwraps-imports" {
            documents::read("notes.md").expect("documents are always there");
        }
        Ok(Self { config, headers: Vec::new(), asked: 0 })
    }

    fn session_end(&mut self, _: Ending) -> Result<(), Error> {
        assert!(!self.has("end-panics"), "no end in sight");
        Ok(())
    }
}

impl Tools for Flawed {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let mut parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        });
        if self.has("schema-is-none") {
            parameters["properties"]["text"]["type"] = json!("words");
        }
        let description = format!("Says how long a text is.{}", self.whim("catalog-changes"));
        let tool = Tool::new("measure", description, parameters).effect(Effect::Reads);
        let plain = tool.clone();
        let tool = tool.output_schema(json!({ "type": "object", "properties": { "bytes": { "type": "integer" } } }));
        Ok(match self.config.flaw.as_str() {
            "tool-twice" => vec![tool.clone(), tool],
            "says-nothing" => vec![plain],
            // Two that crash, one that is refused, and one that works.
            "several-fail" => {
                let named = |name: &str| Tool {
                    schema: ToolSchema { name: name.to_owned(), ..tool.schema.clone() },
                    ..tool.clone()
                };
                vec![named("divide"), named("measure"), named("look_up"), named("ask")]
            }
            _ => vec![tool],
        })
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        if self.has("several-fail") {
            match invocation.name.as_str() {
                "divide" => panic!("there is nothing to divide by"),
                "look_up" => panic!("the key is missing"),
                "ask" => {
                    return Ok(Output::text(format!(
                        "{} rows",
                        hermes_plugin::sql::query("SELECT 1", Vec::new())?.rows.len()
                    )));
                }
                _ => {}
            }
        }
        if invocation.name != "measure" && !self.has("any-tool") {
            return Err(invocation.unknown());
        }
        if self.has("any-tool") {
            return Ok(Output::text("done").structured(json!({ "bytes": 4 })));
        }
        let arguments: serde_json::Value = invocation.parse()?;
        if self.has("slices-bytes") {
            let text = arguments["text"].as_str().unwrap_or("none");
            return Ok(Output::text(&text[..1]));
        }
        let text = arguments["text"].as_str().ok_or_else(|| Error::invalid("text is missing: give a string"))?;
        if self.has("asks-for-more") {
            hermes_plugin::sql::query("SELECT 1", Vec::new())?;
        }
        if self.has("cuts-bytes") {
            let title = &text[..text.len().min(40)];
            return Ok(Output::text(title).structured(json!({ "bytes": title.len() })));
        }
        if self.has("says-nothing") {
            return Ok(Output::text("null"));
        }
        if self.has("no-structure") {
            return Ok(Output::text("all of it"));
        }
        let bytes = text.len();
        let structured = match () {
            () if self.has("not-json") => format!("{{bytes: {bytes}"),
            () if self.has("other-type") => json!({ "bytes": bytes.to_string() }).to_string(),
            () => json!({ "bytes": bytes }).to_string(),
        };
        Ok(Output::text(bytes.to_string()).structured(structured))
    }
}

const SKILLS: [(&str, &str); 2] = [("lamps", "Two spoons of oil."), ("ferry", "It leaves at 07:45.")];

impl Skills for Flawed {
    fn index(&mut self) -> Result<Vec<Skill>, Error> {
        let skill = |(name, description): (&str, &str)| Skill {
            name: name.to_owned(),
            description: description.to_owned(),
            category: "harbour".to_owned(),
            tags: Vec::new(),
            platforms: Vec::new(),
            requires_toolsets: Vec::new(),
            fallback_for_toolsets: Vec::new(),
            extra: Vec::new(),
        };
        let mut skills: Vec<Skill> = SKILLS.into_iter().map(skill).collect();
        self.asked += 1;
        if self.has("index-turns") && self.asked.is_multiple_of(2) {
            skills.reverse();
        }
        Ok(skills)
    }

    fn view(&mut self, name: &str, path: Option<&str>) -> Result<Document, Error> {
        let known = SKILLS.into_iter().find(|(known, _)| *known == name);
        let found = if self.has("any-skill") { known.or(Some(SKILLS[0])) } else { known };
        let Some((_, content)) = found else { return Err(Error::invalid("no such skill; there are lamps and ferry")) };
        if path.is_some() && !(self.has("any-path") && path.is_some_and(|path| path.contains(".."))) {
            return Err(Error::invalid("it has no files"));
        }
        Ok(Document { content: content.to_owned(), files: Vec::new() })
    }
}

impl Hooks for Flawed {
    fn interests(&self) -> Vec<&'static str> {
        if self.has("odd-interest") { vec!["before-tools"] } else { vec!["before-tool"] }
    }

    fn on_event(&mut self, event: &Event) -> Verdict {
        match event {
            Event::Other(notice) if self.has("reads-notices") => {
                let notice: serde_json::Value = serde_json::from_str(&notice.json).expect("a notice is JSON");
                assert!(!notice.is_null());
                Verdict::Proceed
            }
            Event::AfterTool(_) if self.has("blocks-late") => Verdict::Block("too late".to_owned()),
            Event::BeforeTool(tool) if self.has("hook-panics") => {
                let arguments: serde_json::Value = serde_json::from_str(&tool.arguments).expect("arguments are JSON");
                assert!(arguments.is_object());
                Verdict::Proceed
            }
            _ => Verdict::Proceed,
        }
    }
}

hermes_plugin::export!(Flawed: ContextEngine, ContextAssist, MemoryProvider, MemoryEvents, Tools, Skills, Hooks);
