//! The tools that a search found, as JSON beside the text of its result.
//!
//! The text is for every model. Some providers load the definition of a tool when a result names it; the wire formats of those read the names
//! here, and so the stored conversation is the same for all.

use serde::{Deserialize, Serialize};

use crate::{Part, Shown};

/// The tool of the host that searches.
pub const SEARCH: &str = "tool_search";

#[derive(Serialize, Deserialize)]
struct Found {
    tools: Vec<String>,
}

/// The tools that a result shows with their parameters, as its JSON.
///
/// ```
/// assert_eq!(hermes_conversation::found::to_json(["mcp_shop_part"]), r#"{"tools":["mcp_shop_part"]}"#);
/// ```
pub fn to_json<'n>(tools: impl IntoIterator<Item = &'n str>) -> String {
    let found = Found { tools: tools.into_iter().map(str::to_owned).collect() };
    serde_json::to_string(&found).unwrap_or_default()
}

/// The tools that a message shows, if it is the whole result of a search; otherwise none.
pub fn in_message(message: &Shown) -> Vec<String> {
    let result = message.parts.iter().find_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    let of_search = result.filter(|result| !result.failed && result.tool_name.as_deref() == Some(SEARCH));
    let found = of_search.and_then(|result| serde_json::from_str::<Found>(result.structured.as_deref()?).ok());
    found.map(|found| found.tools).unwrap_or_default()
}
