//! What a server offers.

use std::collections::BTreeMap;
use std::fmt;

use hermes_conversation::one_line_within;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits;

/// What a server offers, within the limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The server's own name and version, for people.
    pub software: String,
    /// Its tools, sorted by name.
    pub tools: Vec<ListedTool>,
    /// Whether it has resources.
    #[serde(default)]
    pub resources: bool,
    /// Whether it has prompts.
    #[serde(default)]
    pub prompts: bool,
    /// What was left out.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTool {
    /// The server's name of it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: String,
    /// Whether the server says that it changes nothing. Nobody has checked this.
    #[serde(default)]
    pub claims_to_read: bool,
    /// Whether the server says that it reaches nothing outside, such as the web. Nobody has checked this either.
    #[serde(default)]
    pub claims_to_be_closed: bool,
}

impl Listing {
    /// A listing from the tools as the server sent them.
    pub(crate) fn new(software: String, offered: Vec<rmcp::model::Tool>, all: usize) -> Self {
        let (mut tools, mut left_out): (Vec<ListedTool>, Vec<String>) = (Vec::new(), Vec::new());
        for tool in offered {
            let shown = one_line_within(&tool.name, 64);
            let parameters = parameters(&tool);
            if parameters.len() > limits::PARAMETERS {
                let most = limits::PARAMETERS >> 10;
                left_out
                    .push(format!("its tool `{shown}` is left out: the schema of its arguments exceeds {most} KiB"));
                continue;
            }
            let mut description = tool.description.as_deref().unwrap_or_default().to_owned();
            if description.len() > limits::DESCRIPTION {
                description.truncate(description.floor_char_boundary(limits::DESCRIPTION));
                description.push('…');
            }
            let hints = tool.annotations.as_ref();
            let claims_to_read = hints.and_then(|hints| hints.read_only_hint).unwrap_or_default();
            let claims_to_be_closed = hints.and_then(|hints| hints.open_world_hint) == Some(false);
            let name = tool.name.into_owned();
            tools.push(ListedTool { name, description, parameters, claims_to_read, claims_to_be_closed });
        }
        // A server may list its tools in another order each time.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let mut size = 0;
        let fitting = tools.iter().take(limits::TOOLS).take_while(|tool| {
            size += tool.name.len() + tool.description.len() + tool.parameters.len();
            size <= limits::DEFINITIONS
        });
        let fitting = fitting.count();
        if fitting < all.saturating_sub(left_out.len()) {
            left_out.push(format!(
                "it offers {all} tools, more than {} or more than {} KiB of definitions: only {fitting} are used",
                limits::TOOLS,
                limits::DEFINITIONS >> 10
            ));
        }
        tools.truncate(fitting);
        Self { software, tools, left_out, ..Self::default() }
    }

    /// What is different in a newer listing; `None` if nothing is.
    pub fn changes(&self, newer: &Self) -> Option<Change> {
        let by_name = |listing: &Self| -> BTreeMap<String, ListedTool> {
            listing.tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect()
        };
        let (before, now) = (by_name(self), by_name(newer));
        let missing = |from: &BTreeMap<String, ListedTool>, of: &BTreeMap<String, ListedTool>| {
            of.keys().filter(|name| !from.contains_key(*name)).cloned().collect::<Vec<_>>()
        };
        let changed = now.iter().filter(|(name, tool)| before.get(*name).is_some_and(|earlier| earlier != *tool));
        let change = Change {
            added: missing(&before, &now),
            removed: missing(&now, &before),
            changed: changed.map(|(name, _)| name.clone()).collect(),
        };
        (change != Change::default()).then_some(change)
    }

    /// A hash of all tools. Approvals hold for it.
    pub fn digest(&self) -> String {
        let tools = serde_json::to_string(&self.tools).unwrap_or_default();
        blake3::hash(tools.as_bytes()).to_hex().to_string()
    }
}

/// The schema of a tool's arguments. Providers want it to say that arguments are an object.
fn parameters(tool: &rmcp::model::Tool) -> String {
    let mut schema = tool.input_schema.as_ref().clone();
    schema.entry("type").or_insert_with(|| Value::from("object"));
    Value::Object(schema).to_string()
}

/// The differences between two listings, by the server's names of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// New tools.
    pub added: Vec<String>,
    /// Tools that are gone.
    pub removed: Vec<String>,
    /// Tools with another description or other arguments.
    pub changed: Vec<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More names do not help.
        const SHOWN: usize = 5;
        let mut first = true;
        for (what, names) in [("new", &self.added), ("gone", &self.removed), ("changed", &self.changed)] {
            if names.is_empty() {
                continue;
            }
            let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| one_line_within(name, 64)).collect();
            if names.len() > SHOWN {
                shown.push(format!("and {} more", names.len() - SHOWN));
            }
            write!(f, "{}{what}: {}", if first { "" } else { "; " }, shown.join(", "))?;
            first = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::Tool;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str, schema: Value) -> Tool {
        let Value::Object(schema) = schema else { panic!("a schema is an object") };
        Tool::new(name.to_owned(), description.to_owned(), Arc::new(schema))
    }

    fn listing(tools: Vec<Tool>) -> Listing {
        let all = tools.len();
        Listing::new("fixture 1".to_owned(), tools, all)
    }

    #[test]
    fn tools_are_sorted_and_their_arguments_are_an_object() {
        let listing = listing(vec![tool("b", "B.", json!({})), tool("a", "A.", json!({"type": "object"}))]);
        let seen: Vec<_> = listing.tools.iter().map(|tool| (tool.name.as_str(), tool.parameters.as_str())).collect();
        assert_eq!(seen, [("a", r#"{"type":"object"}"#), ("b", r#"{"type":"object"}"#)]);
        assert_eq!(listing.left_out, [""; 0]);
    }

    #[test]
    fn what_is_too_large_is_cut_or_left_out_with_a_line() {
        let long = "é".repeat(limits::DESCRIPTION);
        let listed = listing(vec![
            tool("long", &long, json!({})),
            tool("wide", "", json!({"description": "x".repeat(limits::PARAMETERS)})),
        ]);
        assert_eq!(listed.tools.len(), 1);
        assert!(
            listed.tools[0].description.len() <= limits::DESCRIPTION + 3 && listed.tools[0].description.ends_with('…')
        );
        assert_eq!(listed.left_out, ["its tool `wide` is left out: the schema of its arguments exceeds 64 KiB"]);
        let many = listing((0..1_000).map(|number| tool(&format!("t{number:04}"), "", json!({}))).collect());
        assert_eq!(many.tools.len(), limits::TOOLS);
        assert!(many.left_out[0].starts_with("it offers 1000 tools"), "{:?}", many.left_out);
        let heavy = listing((0..100).map(|number| tool(&format!("t{number}"), &long, json!({}))).collect());
        assert!(heavy.tools.len() < 40 && heavy.left_out.len() == 1);
    }

    #[test]
    fn changes_are_named() {
        let before = listing(vec![tool("a", "A.", json!({})), tool("b", "B.", json!({})), tool("c", "C.", json!({}))]);
        let now = listing(vec![tool("b", "B.", json!({})), tool("c", "Other.", json!({})), tool("d", "", json!({}))]);
        let change = before.changes(&now).map(|change| change.to_string());
        assert_eq!(change.as_deref(), Some("new: d; gone: a; changed: c"));
        assert_eq!(before.changes(&before), None);
        assert_ne!(before.digest(), now.digest());
        let many = listing((0..8).map(|number| tool(&format!("t{number}"), "", json!({}))).collect());
        let change = Listing::default().changes(&many).map(|change| change.to_string());
        assert_eq!(change.as_deref(), Some("new: t0, t1, t2, t3, t4, and 3 more"));
    }
}
