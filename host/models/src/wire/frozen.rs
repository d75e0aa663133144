//! Reads the frozen tool list, for wire formats that write tools in another form.
//!
//! A list may have deferred tools behind the others. Providers that have a form for them get them; for all others they are left out. So one
//! list is right for every provider of a session.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    chat,
    schema::{self, keys::Renamed},
};
use crate::{Style, prefix::Loading};

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Function<'a>,
    #[serde(default)]
    defer_loading: bool,
}

/// A tool of the frozen list.
#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) description: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    parameters: Option<&'a RawValue>,
    /// Whether the model has to find it.
    #[serde(skip)]
    pub(super) is_deferred: bool,
}

impl Function<'_> {
    /// The schema of the parameters as written; empty if there is none.
    pub(super) fn parameters(&self) -> &str {
        self.parameters.map_or("", RawValue::get)
    }
}

/// The tools of a frozen list, in their order. If several tools have one name, the first is kept.
pub(super) fn tools(tools: &str) -> serde_json::Result<Vec<Function<'_>>> {
    let tools: Vec<Tool<'_>> = serde_json::from_str(tools)?;
    let mut known = BTreeSet::new();
    let mut kept: Vec<Function<'_>> = Vec::with_capacity(tools.len());
    for Tool { function, defer_loading } in tools {
        if known.insert(function.name.clone()) {
            kept.push(Function { is_deferred: defer_loading, ..function });
        }
    }
    Ok(kept)
}

/// A tool that is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub tool: String,
    /// What of its schema the provider refuses.
    pub why: String,
}

/// What is known of a tool list that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// How the arguments of calls are read back.
    pub(crate) renamed: Renamed,
    /// Tools whose schemas have no form in the dialect.
    pub(crate) left_out: Vec<LeftOut>,
    /// The tools that results load.
    pub(crate) deferred: Deferred,
}

/// A tool with the schema that is sent.
pub(super) struct Sent<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: Cow<'a, str>,
    pub(super) schema: String,
    /// Whether the model has to find it.
    pub(super) is_deferred: bool,
}

/// The tools of a frozen list as a style takes them, in their order. Deferred tools are among them only if the style has them.
pub(super) fn sent(tools: &str, style: Style) -> serde_json::Result<(Vec<Sent<'_>>, Written)> {
    let mut written = Written::default();
    let mut list = Vec::new();
    for tool in self::tools(tools)?.into_iter().filter(|tool| style.defers || !tool.is_deferred) {
        match schema::sent(tool.parameters(), style.schemas) {
            Ok((schema, back)) => {
                let schema = schema.into_owned();
                written.renamed.insert(&tool.name, back);
                let (description, is_deferred) = (tool.description.unwrap_or_default(), tool.is_deferred);
                list.push(Sent { name: tool.name, description, schema, is_deferred });
            }
            Err(why) => written.left_out.push(LeftOut { tool: tool.name.into_owned(), why }),
        }
    }
    Ok((list, written))
}

/// What a frozen tool list contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames {
    /// The tools that the model sees from the beginning.
    pub shown: BTreeSet<String>,
    /// The tools that it has to find. Providers without a form for them do not get them.
    pub deferred: BTreeSet<String>,
}

impl ToolNames {
    /// Reads a list; an unreadable one has no tools.
    pub fn of(list: &str) -> Self {
        let (deferred, shown): (Vec<_>, Vec<_>) =
            tools(list).unwrap_or_default().into_iter().partition(|tool| tool.is_deferred);
        let names = |tools: Vec<Function<'_>>| tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        Self { shown: names(shown), deferred: names(deferred) }
    }
}

/// A frozen tool list without its deferred tools: what counts as tokens of the prompt.
pub fn shown_tools(list: &str) -> Cow<'_, str> {
    let Ok(tools) = tools(list) else { return Cow::Borrowed(list) };
    if !tools.iter().any(|tool| tool.is_deferred) {
        return Cow::Borrowed(list);
    }
    let shown = tools.iter().filter(|tool| !tool.is_deferred);
    let mut out = Vec::new();
    let parts = shown.map(|tool| (&*tool.name, tool.description.as_deref().unwrap_or_default(), tool.parameters()));
    chat::write_tools(&mut out, parts, false);
    Cow::Owned(String::from_utf8(out).expect("it consists of texts"))
}

/// The deferred tools of a request, each with the bytes that load it in the result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deferred {
    tools: BTreeMap<String, Vec<u8>>,
    hidden: usize,
}

impl Deferred {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Adds a tool: what loads it, and how many bytes of the list are its definition.
    pub(super) fn add(&mut self, tool: &str, loads: Vec<u8>, hidden: usize) {
        self.tools.insert(tool.to_owned(), loads);
        self.hidden += hidden;
    }

    /// The bytes of the tool list that no model reads until a result loads them.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// The bytes of a result that loads tools. `None` if the request has not all of them: then the result is sent as its text.
    pub(crate) fn loading(&self, result: &Loading) -> Option<Vec<u8>> {
        let tools: Option<Vec<&[u8]>> =
            result.tools.iter().map(|name| self.tools.get(name).map(Vec::as_slice)).collect();
        let tools = tools.filter(|tools| !tools.is_empty())?;
        Some([&result.before[..], &tools.join(&b','), result.after].concat())
    }
}
