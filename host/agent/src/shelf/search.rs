//! The search on the shelf: by the name of a tool, or by words in names, descriptions and arguments.

use std::collections::BTreeSet;

use hermes_conversation::{ToolSchema, one_line_within};
use hermes_ranking::Records;
use serde_json::Value;

use super::{Owned, USE, own_name};

/// The tools that an answer shows with their parameters.
const SHOWN: usize = 5;
/// The tools that it only names behind them.
const NAMED: usize = 10;
/// The most bytes of an answer, and of a description in it.
const ANSWER: usize = 24 << 10;
const DESCRIPTION: usize = 1_200;
/// How much a word counts in a name, a description, and in the names and descriptions of arguments.
const WEIGHTS: [f64; 3] = [4.0, 1.5, 0.5];
/// How deep arguments are read.
const DEEPEST: usize = 3;

/// The texts of a tool that are searched, in the order of [`WEIGHTS`].
fn texts((owner, tool): &Owned) -> [String; 3] {
    let schema: Value = serde_json::from_str(&tool.parameters).unwrap_or_default();
    let mut arguments = String::new();
    describe(&schema, &mut arguments, 0);
    [divided(&format!("{owner} {}", own_name(owner, &tool.name))), divided(&tool.description), arguments]
}

/// Adds the names and descriptions of a schema's properties.
fn describe(schema: &Value, texts: &mut String, depth: usize) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten().filter(|_| depth < DEEPEST) {
        texts.push(' ');
        texts.push_str(&divided(name));
        texts.push(' ');
        texts.push_str(property["description"].as_str().unwrap_or_default());
        describe(property, texts, depth + 1);
        describe(&property["items"], texts, depth + 1);
    }
}

/// A text with a blank before each capital behind a small letter, so that `listMailMessages` has three words.
fn divided(text: &str) -> String {
    let mut divided = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for character in text.chars() {
        if character.is_uppercase() && before.is_lowercase() {
            divided.push(' ');
        }
        divided.push(character);
        before = character;
    }
    divided
}

/// An index of tools.
pub struct ToolIndex {
    /// The names of each tool: the whole one, and the server's own.
    names: Vec<[String; 2]>,
    records: Records<3>,
}

impl ToolIndex {
    /// Reads the tools, each with its owner.
    pub fn new<'t>(tools: impl IntoIterator<Item = &'t (String, ToolSchema)>) -> Self {
        let (mut names, mut fields) = (Vec::new(), Vec::new());
        for tool in tools {
            names.push([tool.1.name.clone(), own_name(&tool.0, &tool.1.name).to_owned()]);
            fields.push(texts(tool));
        }
        Self { names, records: Records::new(fields.iter().map(|fields| fields.each_ref().map(String::as_str))) }
    }

    /// The tools for a query, best first, by their places. Tools that the query names come first.
    pub fn find(&self, query: &str) -> Vec<usize> {
        let words: Vec<&str> = query.split([' ', ',', '\n', '`', '"']).filter(|word| !word.is_empty()).collect();
        let is_named = |at: &usize| self.names[*at].iter().any(|name| words.contains(&name.as_str()));
        let named: Vec<usize> = (0..self.names.len()).filter(is_named).collect();
        let ranked = self.records.rank(&divided(query), WEIGHTS).into_iter().map(|(at, _)| at);
        let ranked: Vec<usize> = ranked.filter(|at| !named.contains(at)).collect();
        [named, ranked].concat()
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The answer for the model.
    pub(crate) text: String,
    /// The tools that the answer shows with their parameters.
    pub(crate) shown: Vec<String>,
}

impl Found {
    fn nothing(text: String) -> Self {
        Self { text, shown: Vec::new() }
    }
}

/// Searches the tools, or only those of one server.
pub(crate) fn find(query: &str, server: Option<&str>, tools: &[Owned]) -> Found {
    let within: Vec<&Owned> = tools.iter().filter(|(owner, _)| server.is_none_or(|server| owner == server)).collect();
    if within.is_empty() {
        let owners: BTreeSet<&str> = tools.iter().map(|(owner, _)| owner.as_str()).collect();
        let server = one_line_within(server.unwrap_or_default(), 64);
        let owners: Vec<&str> = owners.into_iter().collect();
        return Found::nothing(format!("`{server}` has no tools here. These have some: {}.", owners.join(", ")));
    }
    let order = ToolIndex::new(within.iter().copied()).find(query);
    if order.is_empty() {
        return Found::nothing(
            "No tool has any of these words. Try other words for what it should do, or leave `server` out.".to_owned(),
        );
    }
    let (mut answer, mut shown, mut rest) = (String::new(), Vec::new(), Vec::new());
    for (place, at) in order.into_iter().take(SHOWN + NAMED).enumerate() {
        let (owner, tool) = within[at];
        let end = tool.description.floor_char_boundary(DESCRIPTION);
        let cut = if end < tool.description.len() { "…" } else { "" };
        let description = tool.description[..end].trim();
        let entry = format!("## {}\n({owner}) {description}{cut}\nparameters: {}\n\n", tool.name, tool.parameters);
        // The best one is shown whatever its size: a tool that cannot be seen cannot be called.
        if place < SHOWN && (answer.is_empty() || answer.len() + entry.len() <= ANSWER) {
            answer.push_str(&entry);
            shown.push(tool.name.clone());
        } else {
            rest.push(tool.name.as_str());
        }
    }
    if !rest.is_empty() {
        answer.push_str(&format!("Less likely (search for the name to see the parameters): {}\n\n", rest.join(", ")));
    }
    answer.push_str(&format!("Call one with `{USE}`."));
    Found { text: answer, shown }
}
