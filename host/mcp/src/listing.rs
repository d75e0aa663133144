//! What a server offers.

use std::collections::BTreeMap;
use std::fmt;

use hermes_conversation::one_line_within;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::text;
use crate::definition::ToolChoice;
use crate::limits;
use crate::mended::words;

/// The most lines about what is left out.
const LINES: usize = 20;

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
    /// What the server says about its use, for a model.
    #[serde(default)]
    pub instructions: String,
    /// How long the list of tools holds, in milliseconds, if the server says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_for: Option<u64>,
    /// Whether the server speaks only versions of the protocol since 2026-07-28, which greet in another way.
    #[serde(default)]
    pub is_later: bool,
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
    /// A listing from the tools as a server sent them.
    pub fn of_tools(offered: Vec<Value>) -> Self {
        let all = offered.len();
        Self::new(String::new(), offered, all, &ToolChoice::default())
    }

    /// A listing from the tools of a server, which has `all` of them. Each tool is judged alone: an unusable one is left out, and
    /// a line names it. The tools that the user chose get room first, in the server's own order.
    pub(crate) fn new(software: String, offered: Vec<Value>, all: usize, choice: &ToolChoice) -> Self {
        let mut listing = Self { software, ..Self::default() };
        let (mut size, mut beyond, mut of_widgets) = (0, 0, 0);
        let is_chosen = |(tool, _): &(Value, usize)| text(tool, "name").is_none_or(|name| choice.has(name));
        let unread = all.saturating_sub(offered.len());
        let (chosen, others): (Vec<_>, Vec<_>) = offered.into_iter().zip(1..).partition(is_chosen);
        for (tool, number) in chosen.into_iter().chain(others) {
            if is_of_a_widget(&tool) {
                of_widgets += 1;
                continue;
            }
            let tool = match ListedTool::of(&tool, number) {
                Ok(tool) => tool,
                Err(why) => {
                    listing.left_out.push(why);
                    continue;
                }
            };
            match listing.tools.iter().find(|known| known.name == tool.name) {
                Some(known) if *known == tool => continue,
                Some(_) => {
                    let name = one_line_within(&tool.name, 64);
                    listing.left_out.push(format!("it lists two different tools `{name}`: only the first is used"));
                    continue;
                }
                None => {}
            }
            let own = tool.name.len() + tool.description.len() + tool.parameters.len();
            // A smaller one behind it may still fit.
            if listing.tools.len() >= limits::TOOLS || size + own > limits::DEFINITIONS {
                beyond += usize::from(choice.has(&tool.name));
                continue;
            }
            size += own;
            listing.tools.push(tool);
        }
        if of_widgets > 0 {
            listing.left_out.push(format!("{of_widgets} of its tools are for its own user interface and are left out"));
        }
        if beyond + unread > 0 {
            listing.left_out.push(format!(
                "it offers {all} tools, more than {} or more than {} MiB of definitions: only {} are used; \
                 `tools.include` chooses which",
                limits::TOOLS,
                limits::DEFINITIONS >> 20,
                listing.tools.len(),
            ));
        }
        if listing.left_out.len() > LINES {
            let more = listing.left_out.len() - LINES;
            listing.left_out.truncate(LINES);
            listing.left_out.push(format!("and {more} more lines about tools that are left out"));
        }
        // A server may list its tools in another order each time.
        listing.tools.sort_by(|a, b| a.name.cmp(&b.name));
        listing
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

impl ListedTool {
    /// Reads a tool, the one at this place of the list. `Err` says why it is left out.
    fn of(tool: &Value, number: usize) -> Result<Self, String> {
        let Some(name) = text(tool, "name").filter(|name| !name.trim().is_empty()) else {
            return Err(format!("its tool number {number} is left out: it has no name"));
        };
        let left_out = |why: &str| format!("its tool `{}` is left out: {why}", one_line_within(name, 64));
        if tool.get("execution").and_then(|how| text(how, "taskSupport")) == Some("required") {
            return Err(left_out("it can be called as a task of the protocol only"));
        }
        let parameters = parameters(tool.get("inputSchema")).map_err(left_out)?;
        if parameters.len() > limits::PARAMETERS {
            let most = limits::PARAMETERS >> 10;
            return Err(left_out(&format!("the schema of its arguments exceeds {most} KiB")));
        }
        let mut description = tool.get("description").filter(|it| !it.is_null()).map(words).unwrap_or_default();
        if description.len() > limits::DESCRIPTION {
            description.truncate(description.floor_char_boundary(limits::DESCRIPTION));
            description.push('…');
        }
        // A hint that is no flag says nothing.
        let hint = |name| tool.get("annotations").and_then(|hints| hints.get(name)).and_then(Value::as_bool);
        Ok(Self {
            name: name.to_owned(),
            description,
            parameters,
            claims_to_read: hint("readOnlyHint") == Some(true),
            claims_to_be_closed: hint("openWorldHint") == Some(false),
        })
    }
}

/// Whether a tool is for the server's own user interface and not for a model (MCP Apps).
fn is_of_a_widget(tool: &Value) -> bool {
    let seen_by = tool.get("_meta").and_then(|meta| meta.get("ui")).and_then(|ui| ui.get("visibility"));
    let seen_by = seen_by.and_then(Value::as_array);
    seen_by.is_some_and(|by| !by.is_empty() && !by.iter().any(|who| who == "model"))
}

/// The schema of a tool's arguments. Providers want it to say that arguments are an object. Without a schema, and with one that
/// allows everything, any object will do.
fn parameters(schema: Option<&Value>) -> Result<String, &'static str> {
    let mut schema = match schema {
        None | Some(Value::Null | Value::Bool(true)) => Map::new(),
        Some(Value::Object(schema)) => schema.clone(),
        // Some servers encode it twice.
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(schema)) => schema,
            _ => return Err("the schema of its arguments is a text"),
        },
        Some(_) => return Err("the schema of its arguments is not an object"),
    };
    schema.entry("type").or_insert_with(|| Value::from("object"));
    Ok(Value::Object(schema).to_string())
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
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str, schema: Value) -> Value {
        json!({ "name": name, "description": description, "inputSchema": schema })
    }

    fn listing(tools: Vec<Value>) -> Listing {
        listing_of(tools, &ToolChoice::default())
    }

    fn listing_of(tools: Vec<Value>, choice: &ToolChoice) -> Listing {
        let all = tools.len();
        Listing::new("fixture 1".to_owned(), tools, all, choice)
    }

    #[test]
    fn one_odd_tool_costs_itself() {
        let other = || tool("other", "", json!({}));
        for (odd, is_kept, line) in [
            (json!({"name": "odd"}), true, None),
            (json!({"name": "odd", "description": null, "inputSchema": null, "annotations": null}), true, None),
            (json!({"name": "odd", "inputSchema": true, "annotations": {"readOnlyHint": "yes"}}), true, None),
            (json!({"name": "odd", "inputSchema": "{\"type\":\"object\"}", "title": 7, "icons": {}}), true, None),
            (json!({"name": "odd", "annotations": [], "outputSchema": false, "_meta": "x"}), true, None),
            (
                json!({"name": "odd", "inputSchema": false}),
                false,
                Some("its tool `odd` is left out: the schema of its arguments is not an object"),
            ),
            (
                json!({"name": "odd", "inputSchema": "any"}),
                false,
                Some("its tool `odd` is left out: the schema of its arguments is a text"),
            ),
            (
                json!({"name": "odd", "execution": {"taskSupport": "required"}}),
                false,
                Some("its tool `odd` is left out: it can be called as a task of the protocol only"),
            ),
            (
                json!({"name": "odd", "_meta": {"ui": {"visibility": ["app"]}}}),
                false,
                Some("1 of its tools are for its own user interface and are left out"),
            ),
            (json!({"name": 7}), false, Some("its tool number 1 is left out: it has no name")),
            (json!("odd"), false, Some("its tool number 1 is left out: it has no name")),
            (json!(null), false, Some("its tool number 1 is left out: it has no name")),
        ] {
            let listed = listing(vec![odd.clone(), other()]);
            let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, if is_kept { vec!["odd", "other"] } else { vec!["other"] }, "{odd}");
            assert_eq!(listed.left_out.first().map(String::as_str), line, "{odd}");
            assert!(listed.tools.iter().all(|tool| !tool.claims_to_read && !tool.claims_to_be_closed), "{odd}");
        }
    }

    #[test]
    fn equal_tools_count_once_and_of_different_ones_the_first_is_kept() {
        let same = || tool("a", "A.", json!({}));
        let listed = listing(vec![same(), tool("b", "B.", json!({})), same(), tool("a", "Other.", json!({})), same()]);
        let seen: Vec<_> = listed.tools.iter().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect();
        assert_eq!(seen, [("a", "A."), ("b", "B.")]);
        assert_eq!(listed.left_out, ["it lists two different tools `a`: only the first is used"]);
        let many = listing((0..100).map(|_| json!({})).collect());
        assert_eq!(
            (many.left_out.len(), many.left_out[20].as_str()),
            (21, "and 80 more lines about tools that are left out")
        );
    }

    /// More tools than have room, with a small one behind them.
    fn heavy() -> (usize, Vec<Value>) {
        let wide = |name: &str| tool(name, "", json!({"description": "x".repeat(limits::PARAMETERS - 100)}));
        let fit = limits::DEFINITIONS / limits::PARAMETERS;
        let mut offered: Vec<Value> = (0..fit + 2).rev().map(|number| wide(&format!("w{number:03}"))).collect();
        offered.push(tool("small", "", json!({})));
        (fit, offered)
    }

    #[test]
    fn the_servers_order_decides_which_tools_are_beyond_the_limits() {
        let (fit, offered) = heavy();
        let listed = listing(offered);
        let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
        // The first ones of the server, which are the last ones of the alphabet, and the small one that still fits.
        assert_eq!((names[0], names[1], names.len()), ("small", "w002", fit + 1));
        let expected = format!("it offers {} tools", fit + 3);
        assert!(listed.left_out[0].starts_with(&expected), "{:?}", listed.left_out);
    }

    #[test]
    fn the_tools_that_the_user_chose_have_room_first() {
        let (fit, offered) = heavy();
        let include = ["w000", "small"].map(str::to_owned).to_vec();
        let listed = listing_of(offered, &ToolChoice { include: Some(include), ..ToolChoice::default() });
        let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names[0], names[1], names[2], names.len()), ("small", "w000", "w003", fit + 1));
        // Nothing that is wanted is missing.
        assert_eq!(listed.left_out, [""; 0]);
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
        let many = listing((0..1_500).map(|number| tool(&format!("t{number:04}"), "", json!({}))).collect());
        assert_eq!(many.tools.len(), limits::TOOLS);
        assert!(many.left_out[0].starts_with("it offers 1500 tools"), "{:?}", many.left_out);
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
