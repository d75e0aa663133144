//! The shelf: tools of servers and plugins that are not part of the prompt, because they would take too much of the window or be more
//! than the provider takes. The model finds them with [`SEARCH`] and calls them with [`USE`]; such a call is one of the tool itself for
//! approvals, hooks, limits and results.
//!
//! The choice is made once, when the prompt of a session is built. From then on the prompt says which tools it has; every other tool is on
//! the shelf.
//!
//! Where every model of the session takes deferred tools, the prompt also has the definitions of the tools on the shelf, as deferred ones:
//! the provider shows a definition to the model when the result of a search names it, and the model calls the tool by its own name. The wire
//! formats know the form (`hermes_models`); searching, calling and what is stored are the same.

pub(crate) mod choice;
mod search;
pub(crate) mod settings;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use hermes_conversation::{ToolCall, ToolSchema, found, one_line_within, tokens};
use hermes_models::ToolNames;

use self::settings::Room;
use hermes_plugin_host::json_schema;
use serde_json::{Map, Value, json};

pub use self::search::ToolIndex;
pub(crate) use self::search::find;
pub(crate) use self::usage::count;

/// The tool that finds tools on the shelf.
pub(crate) const SEARCH: &str = found::SEARCH;
/// The tool that calls one of them.
pub(crate) const USE: &str = "tool_use";

/// The part of the room that the tools which were used in this folder may take. The names of the tools on the shelf have the other one.
const OF_USED: u32 = 2;
/// About so many bytes of names are a token.
const BYTES: usize = 3;
/// The most bytes of names, however large the room is, and the fewest.
const MOST_NAMES: usize = 48 << 10;
const LEAST_NAMES: usize = 2 << 10;
/// Servers without any name cost so many bytes at most.
const LINES: usize = 8 << 10;
/// The most deferred tools of a request: Anthropic takes 10,000, and the other tools count too.
const MOST_DEFERRED: usize = 9_000;
/// The most bytes of their definitions. They travel with each request although no model reads them, and Anthropic takes 32 MB.
const MOST_DEFERRED_BYTES: usize = 4 << 20;

/// What the definition of a tool takes in a request, in estimated tokens.
pub(crate) fn size(schema: &ToolSchema) -> u32 {
    tokens::of_text(&hermes_models::tools_json(std::slice::from_ref(schema)))
}

/// A tool with its owner.
pub(crate) type Owned = (String, ToolSchema);

/// The tools on the shelf, by their owners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shelf {
    owners: BTreeMap<String, BTreeSet<String>>,
    /// The most bytes of their names in the prompt.
    names: usize,
    /// Whether the prompt has their definitions as deferred tools.
    is_deferred: bool,
}

impl Shelf {
    /// Which tools go on the shelf; `None` if all have room in the prompt. `stays` says whose tools stay in any case, and `used` has the tools
    /// that this folder used, those used most first.
    pub(crate) fn choose(
        schemas: &[Owned],
        room: Room,
        stays: impl Fn(&str, &str) -> bool,
        used: &[String],
    ) -> Option<Self> {
        let movable: Vec<&Owned> = schemas.iter().filter(|(owner, schema)| !stays(owner, &schema.name)).collect();
        let total = movable.iter().map(|(_, schema)| size(schema)).fold(0, u32::saturating_add);
        let too_many = room.tools.is_some_and(|most| schemas.len() > most);
        if movable.is_empty() || total <= room.tokens && !too_many {
            return None;
        }
        // The two tools of the shelf count too.
        let mut places = room.tools.map_or(usize::MAX, |most| most.saturating_sub(schemas.len() - movable.len() + 2));
        let mut left = room.tokens / OF_USED;
        let mut kept = BTreeSet::new();
        for name in used {
            let Some((_, schema)) = movable.iter().find(|(_, schema)| schema.name == *name) else { continue };
            if places > 0 && size(schema) <= left {
                (left, places) = (left - size(schema), places - 1);
                kept.insert(name.as_str());
            }
        }
        let mut shelf = Self::empty(room);
        for (owner, schema) in movable {
            if !kept.contains(schema.name.as_str()) {
                shelf.add(owner, &schema.name);
            }
        }
        Some(shelf)
    }

    /// The shelf beside a prompt that has these tools; `None` if it has not the tools of a shelf.
    pub(crate) fn beside(prompt: &ToolNames, schemas: &[Owned], room: Room) -> Option<Self> {
        let ToolNames { shown, deferred } = prompt;
        let mut shelf = Self { is_deferred: !deferred.is_empty(), ..Self::empty(room) };
        for (owner, schema) in schemas.iter().filter(|(_, schema)| !shown.contains(&schema.name)) {
            shelf.add(owner, &schema.name);
        }
        (shown.contains(SEARCH) && shown.contains(USE)).then_some(shelf)
    }

    fn empty(room: Room) -> Self {
        let tokens = room.tokens - room.tokens / OF_USED;
        let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES);
        Self { owners: BTreeMap::new(), names: bytes.clamp(LEAST_NAMES, MOST_NAMES), is_deferred: false }
    }

    fn add(&mut self, owner: &str, tool: &str) {
        self.owners.entry(owner.to_owned()).or_default().insert(tool.to_owned());
    }

    /// Whether a request has room for the definitions of its tools.
    fn can_be_deferred(&self, schemas: &[Owned]) -> bool {
        let bytes = |schema: &ToolSchema| schema.name.len() + schema.description.len() + schema.parameters.len();
        let on_shelf = schemas.iter().filter(|(_, schema)| self.has(&schema.name));
        self.len() <= MOST_DEFERRED && on_shelf.map(|(_, schema)| bytes(schema)).sum::<usize>() <= MOST_DEFERRED_BYTES
    }

    /// The tools whose definitions the prompt has as deferred ones.
    pub(crate) fn deferred(&self, schemas: &[Owned]) -> Vec<ToolSchema> {
        let on_shelf = schemas.iter().filter(|(_, schema)| self.is_deferred && self.has(&schema.name));
        on_shelf.map(|(_, schema)| schema.clone()).collect()
    }

    /// Whether a tool is on the shelf.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.owners.values().any(|tools| tools.contains(tool))
    }

    /// How many tools it has.
    pub(crate) fn len(&self) -> usize {
        self.owners.values().map(BTreeSet::len).sum()
    }

    /// A line about each server with the names of its tools. Where not all have room, each server has as many as the others, from its
    /// whole list.
    fn lines(&self) -> String {
        let with =
            |most: usize| -> String { self.owners.iter().map(|(owner, tools)| line(owner, tools, most)).collect() };
        // The largest number of names that fits.
        let (mut fits, mut beyond) = (0, self.owners.values().map(BTreeSet::len).max().unwrap_or_default() + 1);
        while fits + 1 < beyond {
            let middle = usize::midpoint(fits, beyond);
            match with(middle).len() <= self.names {
                true => fits = middle,
                false => beyond = middle,
            }
        }
        let mut lines = with(fits);
        if lines.len() > self.names.max(LINES) {
            let end = lines[..self.names.max(LINES)].rfind('\n').unwrap_or_default();
            lines.truncate(end);
            lines.push_str("\n- and others");
        }
        lines
    }

    /// The two tools that open it. Their texts name what is on it and never change within a session.
    pub(crate) fn schemas(&self) -> [ToolSchema; 2] {
        let search = json!({"type": "object", "properties": {
            "query": {"type": "string", "description": "Names of tools, or English words that their names and descriptions may have; add synonyms."},
            "server": {"type": "string", "description": "Only tools of this one."},
        }, "required": ["query"]});
        let call = json!({"type": "object", "properties": {
            "name": {"type": "string", "description": "As tool_search gave it."},
            "arguments": {"type": "object", "description": "As the parameters of that tool describe them."},
        }, "required": ["name", "arguments"]});
        [
            ToolSchema {
                name: SEARCH.to_owned(),
                description: format!(
                    "Finds further tools, with their parameters. Search before you say that something cannot be done. There are {} more \
                     tools:{}",
                    self.len(),
                    self.lines()
                ),
                parameters: search.to_string(),
            },
            ToolSchema {
                name: USE.to_owned(),
                description: match self.is_deferred {
                    true => "Calls a tool that tool_search found, if it is not among your tools then. Call the others by their own names.",
                    false => "Calls a tool that tool_search found.",
                }
                .to_owned(),
                parameters: call.to_string(),
            },
        ]
    }
}

/// A line about a server, with at most so many names.
fn line(owner: &str, tools: &BTreeSet<String>, most: usize) -> String {
    let own: Vec<&str> = tools.iter().map(|tool| own_name(owner, tool)).collect();
    let count = if own.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", own.len()) };
    if most == 0 {
        return format!("\n- {owner}: {count}");
    }
    if own.len() <= most {
        return format!("\n- {owner}: {}", own.join(", "));
    }
    let some: Vec<&str> = (0..most).map(|at| own[at * own.len() / most]).collect();
    format!("\n- {owner}: {count}, such as {}", some.join(", "))
}

/// The name of a tool without that of its server.
fn own_name<'t>(owner: &str, tool: &'t str) -> &'t str {
    let prefix = hermes_mcp::tool_name(owner, "");
    tool.strip_prefix(&prefix).filter(|rest| !rest.is_empty()).unwrap_or(tool)
}

/// A call of [`USE`] that can be carried out becomes a call of the tool that it names.
///
/// # Errors
///
/// The text for the model, when the call names no tool, or its arguments do not fit.
pub(crate) fn opened<'s>(
    call: &ToolCall,
    parameters: impl Fn(&str) -> Option<&'s str>,
    fitted: impl Fn(&ToolCall, &str) -> ToolCall,
) -> Result<ToolCall, String> {
    let given: Map<String, Value> = serde_json::from_str(&call.arguments)
        .map_err(|_| "its arguments are not a JSON object: write them again".to_owned())?;
    let name = given.get("name").and_then(Value::as_str).ok_or("`name` must be the name of a tool")?;
    let shown = one_line_within(name, 64);
    let schema =
        parameters(name).ok_or_else(|| format!("there is no tool `{shown}`; find its name with `{SEARCH}`"))?;
    let arguments = match given.get("arguments") {
        None | Some(Value::Null) => "{}".to_owned(),
        // Some models encode them.
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let inner = ToolCall { id: call.id.clone(), name: name.to_owned(), arguments };
    let inner = fitted(&inner, schema);
    check(&inner, schema).map(|()| inner)
}

/// Checks the arguments against the schema, which the model has seen only in the answer of a search.
fn check(call: &ToolCall, schema: &str) -> Result<(), String> {
    let arguments: Value = serde_json::from_str(&call.arguments).map_err(|_| "`arguments` must be a JSON object")?;
    let Ok(read) = serde_json::from_str::<Value>(schema) else { return Ok(()) };
    // A call passes unchecked if the schema itself is invalid.
    let Ok(validator) = json_schema(&read) else { return Ok(()) };
    let faults: Vec<String> = validator
        .iter_errors(&arguments)
        .take(5)
        .map(|fault| match fault.instance_path().as_str() {
            "" => one_line_within(&fault.to_string(), 300),
            path => one_line_within(&format!("`{path}`: {fault}"), 300),
        })
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("the arguments of `{}` do not fit: {}; its parameters: {schema}", call.name, faults.join("; ")))
}

#[cfg(test)]
mod tests;
