//! A refusal of a request that is about its tools: about deferred ones as such, or about one tool, and whose it is. Providers name it, or
//! count it.

use hermes_models::{ModelError, ToolNames};

use crate::error::AgentError;
use crate::host::Host;
use crate::live::Live;
use crate::without_tool::Owned;

/// Adds what a refusal is about: deferred tools, or a tool of a plugin or a server, and then whose it is.
pub(super) fn explained(host: &Host, live: &Live, error: AgentError) -> AgentError {
    let AgentError::Model(refused @ ModelError::BadRequest { .. }) = error else { return error };
    let ModelError::BadRequest { message, .. } = &refused else { return refused.into() };
    if is_of_deferred(message) && !ToolNames::of(&live.prefix.frozen.tools).deferred.is_empty() {
        return AgentError::DeferredRefused { session: live.log.session.to_string(), refused: Box::new(refused) };
    }
    let sent = sent_names(host, &live.prefix.frozen.tools);
    let names: Vec<&str> = sent.iter().map(String::as_str).collect();
    let owned = meant(message, &names).and_then(|tool| Owned::find(&live.plugins.toolbox, tool));
    match owned {
        Some(Owned { tool, owner, is_server }) => {
            AgentError::ToolRefused { tool, owner, is_server, refused: Box::new(refused) }
        }
        None => refused.into(),
    }
}

/// Whether a refusal is about what only requests with deferred tools have. A proxy may not know these members, or take out the definitions.
fn is_of_deferred(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["defer_loading", "tool_reference", "tool reference", "tool_search_call", "tool_search_output", "'tool_search'"]
        .iter()
        .any(|word| message.contains(word))
}

/// The names of the tools that the provider gets of a frozen list, in their order.
fn sent_names(host: &Host, tools: &str) -> Vec<String> {
    let list: Vec<serde_json::Value> = serde_json::from_str(tools).unwrap_or_default();
    let left_out = hermes_models::left_out(host.chain.now().provider.style(), tools).unwrap_or_default();
    let names = list.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned());
    names.filter(|name| left_out.iter().all(|left_out| left_out.tool != *name)).collect()
}

/// The tool that a refusal is about: by its position, as `tools[3]` and `tools.3`, or else by its name.
fn meant<'n>(message: &str, names: &[&'n str]) -> Option<&'n str> {
    let counted = ["tools[", "tools."].iter().find_map(|begin| {
        let (before, rest) = message.split_once(begin)?;
        // The tools of an item are not those of the list.
        let rest = Some(rest).filter(|_| !before.ends_with("]."))?;
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        names.get(rest[..digits].parse::<usize>().ok()?).copied()
    });
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let words =
        || message.split(|character| !is_of_name(character)).filter(|word| word.contains('_') || word.contains('-'));
    counted.or_else(|| names.iter().copied().find(|name| words().any(|word| word == *name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_deferred_tools_is_known_by_their_members() {
        for message in [
            "tools.3.custom.defer_loading: Extra inputs are not permitted",
            "messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type' does not match",
            "Tool reference 'mcp_shop_part' not found in available tools",
        ] {
            assert!(is_of_deferred(message), "{message}");
        }
        assert!(!is_of_deferred("tools.1.custom.input_schema: JSON schema is invalid"));
    }

    #[test]
    fn a_refusal_is_about_the_tool_that_it_names_or_counts() {
        let names = ["mcp_odd_greet", "read_file", "todo"];
        for (message, tool) in [
            (
                "Invalid schema for function 'mcp_odd_greet': In context=('properties', 's'), reference can only point",
                Some("mcp_odd_greet"),
            ),
            ("tools.1.custom.input_schema: JSON schema is invalid", Some("read_file")),
            ("Invalid 'tools[0].function.parameters'", Some("mcp_odd_greet")),
            ("tools[9] is wrong", None),
            ("Invalid 'input[5].tools[0].parameters' of 'read_file'", Some("read_file")),
            ("mcp_odd_greeting is unknown", None),
            ("there is too much todo", None),
            ("", None),
        ] {
            assert_eq!(meant(message, &names), tool, "{message}");
        }
    }
}
