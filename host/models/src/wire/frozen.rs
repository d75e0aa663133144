//! Reads the frozen tool list, for wire formats that write tools in another form.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::schema::{self, SchemaDialect, keys::Renamed};

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Function<'a>,
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
    let mut kept: Vec<Function<'_>> = Vec::with_capacity(tools.len());
    for Tool { function } in tools {
        if kept.iter().all(|other| other.name != function.name) {
            kept.push(function);
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
}

/// A tool with the schema that is sent.
pub(super) struct Sent<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) description: Cow<'a, str>,
    pub(super) schema: String,
}

/// The tools of a frozen list as a dialect takes them, in their order.
pub(super) fn sent(tools: &str, dialect: SchemaDialect) -> serde_json::Result<(Vec<Sent<'_>>, Written)> {
    let mut written = Written::default();
    let mut list = Vec::new();
    for tool in self::tools(tools)? {
        match schema::sent(tool.parameters(), dialect) {
            Ok((schema, back)) => {
                let schema = schema.into_owned();
                written.renamed.insert(&tool.name, back);
                list.push(Sent { name: tool.name, description: tool.description.unwrap_or_default(), schema });
            }
            Err(why) => written.left_out.push(LeftOut { tool: tool.name.into_owned(), why }),
        }
    }
    Ok((list, written))
}
