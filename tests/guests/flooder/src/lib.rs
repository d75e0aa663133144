//! Fills every text that a plugin hands to the host, as its configuration says (see [`Config`]): as tools, as a memory provider
//! and as a context engine.

use hermes_plugin::context_engine::{Advice, Plan, Pressure, Request, Segment, Summary, Timing};
use hermes_plugin::memory_provider::{Query, Recollection};
use hermes_plugin::tools::{Invocation, Output, Tool};
use hermes_plugin::{
    ContextEngine, Error, Header, MemoryProvider, MessageId, MessageRange, Model, Plugin, Role, Tools,
};
use serde::Deserialize;
use serde_json::json;

/// What is filled. Everything is empty by default.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    /// The number of tools, and the bytes of the description of each.
    tools: usize,
    tool_bytes: usize,
    /// The bytes of the text for the system prompt.
    prompt_bytes: usize,
    /// The text of a memory, and how often it is repeated.
    recall: String,
    recall_times: usize,
    /// The plan that the engine proposes: `keep`, `covers`, `ranges`, `reason` or `key`.
    plan: String,
    /// The bytes of the engine's status.
    status_bytes: usize,
}

/// The plugin.
pub struct Flooder {
    config: Config,
    headers: Vec<Header>,
}

impl Plugin for Flooder {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self { config: serde_json::from_str(config)?, headers: Vec::new() })
    }
}

impl Tools for Flooder {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let description = "d ".repeat(self.config.tool_bytes / 2);
        let tool =
            |at: usize| Tool::new(format!("flood_{at}"), &description, json!({ "type": "object", "properties": {} }));
        Ok((0..self.config.tools).map(tool).collect())
    }

    fn call(&mut self, _: &Invocation) -> Result<Output, Error> {
        Ok(Output::text("done"))
    }
}

impl MemoryProvider for Flooder {
    fn system_prompt(&mut self) -> Result<String, Error> {
        Ok("p ".repeat(self.config.prompt_bytes / 2))
    }

    fn recall(&mut self, _: &Query) -> Result<Vec<Recollection>, Error> {
        let large = self.config.recall.repeat(self.config.recall_times);
        Ok(vec![Recollection::new("large", large), Recollection::new("small", "The user likes tea.")])
    }
}

impl ContextEngine for Flooder {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.headers.extend(headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.headers.retain(|header| header.id < first);
        Ok(())
    }

    fn assess(&mut self, _: &Pressure) -> Advice {
        Advice::new(false, if self.config.plan.is_empty() { Timing::NotNow } else { Timing::Now })
    }

    fn propose(&mut self, _: &Request) -> Result<Option<Plan>, Error> {
        let Some(user) = self.headers.iter().rev().find(|header| header.role == Role::User) else { return Ok(None) };
        let (first, user) = (self.headers[0].id, user.id);
        if first == user {
            return Ok(None);
        }
        let last = self.headers[self.headers.len() - 1].id;
        let before = self.headers.iter().map(|header| header.id).filter(|id| *id < user);
        let folded = MessageRange::new(first, before.max().unwrap_or(first));
        let summary = |key: &str, covers: Vec<MessageRange>| {
            Segment::Summary(Summary { key: key.to_owned(), content: "All was said.".to_owned(), covers })
        };
        let key = format!("flooder:{user}");
        let rest = Segment::Restore(MessageRange::new(user, last));
        let (segments, reason) = match self.config.plan.as_str() {
            "keep" => (vec![Segment::Keep(MessageRange::one(first)); 20_000], "kept".to_owned()),
            "covers" => (vec![summary(&key, vec![folded; 1_000_000]), rest], "covered".to_owned()),
            "ranges" => (vec![summary(&key, vec![folded; 9_000]), rest], "in ranges".to_owned()),
            "reason" => (vec![summary(&key, vec![folded]), rest], format!("why {}", "\u{1b}[31mwhy ".repeat(400_000))),
            "key" => (vec![Segment::KeepSummary("k".repeat(8 << 20)), rest], "by key".to_owned()),
            _ => return Ok(None),
        };
        Ok(Some(Plan { segments, reason, extra: vec![("prepared".to_owned(), "1/1".repeat(100_000))] }))
    }

    fn status(&self) -> String {
        json!({ "status": "s".repeat(self.config.status_bytes) }).to_string()
    }
}

hermes_plugin::export!(Flooder: ContextEngine, MemoryProvider, Tools);
