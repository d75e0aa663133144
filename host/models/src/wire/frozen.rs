//! Reads the frozen tool list, for wire formats that write tools in another form.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

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
