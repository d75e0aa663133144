//! Tools that a provider does not take: whose they are, and how the user leaves them out.

use hermes_diagnostic::{Action, Fix, Notice};
use hermes_models::LeftOut;
use hermes_session_store::Frozen;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::host::Host;
use crate::live::Live;
use crate::owner::HOST;
use crate::rebuild;
use crate::toolbox::Toolbox;

/// A tool of a plugin or an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) tool: String,
    /// The server or the plugin.
    pub(crate) owner: String,
    pub(crate) is_server: bool,
}

impl Owned {
    /// Whose tool this is; none for a tool of the host.
    pub(crate) fn find(toolbox: &Toolbox, tool: &str) -> Option<Self> {
        let offered = toolbox.schemas();
        let (owner, _) = offered.into_iter().find(|(owner, schema)| schema.name == tool && owner != HOST)?;
        Some(Self { tool: tool.to_owned(), is_server: toolbox.is_server(&owner), owner })
    }

    /// Its name with that of its owner.
    pub(crate) fn named(&self) -> String {
        let kind = if self.is_server { "MCP server" } else { "plugin" };
        format!("the tool `{}` of the {kind} `{}`", self.tool, self.owner)
    }

    /// How the user leaves it out of all sessions.
    pub(crate) fn fix(&self) -> Fix {
        if !self.is_server {
            return Fix::from(Action::DisablePlugin { plugin: self.owner.clone() }).or("report it to its author");
        }
        // The configuration has the server's own names.
        let own = self.tool.strip_prefix(&hermes_mcp::tool_name(&self.owner, "")).unwrap_or(&self.tool);
        let exclude = format!("leave it out with `mcp_servers.{}.tools.exclude: [{own}]` in config.yaml", self.owner);
        Fix::words(exclude).or("report it to the author of the server")
    }
}

/// Tells the user which tools the model that answers does not get, because its provider takes no form of their schemas: once until
/// another provider answers or the tools change.
pub(crate) fn tell(host: &Host, live: &mut Live) {
    let style = host.chain.now().provider.style();
    if live.prefix.told_left_out.replace(style.schemas) == Some(style.schemas) {
        return;
    }
    let left_out = hermes_models::left_out(style, &live.prefix.frozen.tools).unwrap_or_default();
    for LeftOut { tool, why } in left_out {
        let model = host.chain.now().label();
        let notice = match Owned::find(&live.plugins.toolbox, &tool) {
            Some(owned) => Notice::new(format!("{model} does not get {}: {why}", owned.named()), owned.fix()),
            None => Notice::from(format!("{model} does not get the tool `{tool}`: {why}")),
        };
        live.front.feed.notice(notice);
    }
}

/// The answer by which a session goes on without a tool.
const GO_ON: &str = "go on without it in this session";
/// The answer that leaves it as it is.
const STOP: &str = "end the turn";

/// Asks the user whether the session goes on without a tool over which the provider refuses the request. If so, the prompt is stored
/// without the tool. This changes the prefix once; with the tool, the provider refuses each request.
pub(crate) async fn goes_on(
    host: &Host,
    live: &mut Live,
    error: &AgentError,
    stop: &CancellationToken,
) -> Result<bool, AgentError> {
    let AgentError::ToolRefused { tool, owner, is_server, refused } = error else { return Ok(false) };
    let Some(tools) = without(&live.prefix.frozen.tools, tool) else { return Ok(false) };
    let owned = Owned { tool: tool.clone(), owner: owner.clone(), is_server: *is_server };
    let question = format!("{refused}\n\nThis is about {}. How does this session go on?", owned.named());
    let answer = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        answer = live.plugins.gate.choice(question, vec![GO_ON.to_owned(), STOP.to_owned()]) => answer,
    };
    if answer.as_deref() != Some(GO_ON) {
        return Ok(false);
    }
    let reason = format!("the provider refuses the tool {tool}");
    live.plugins.toolbox.leave_out(tool);
    rebuild::adopt(host, live, Frozen { tools, reason, ..live.prefix.frozen.clone() }).await?;
    let left_out = format!("this session goes on without {}; other sessions have it", owned.named());
    live.front.feed.notice(Notice::new(left_out, owned.fix()));
    Ok(true)
}

/// A frozen list without a tool, with all other bytes as they were; none if the list does not have it.
fn without(tools: &str, tool: &str) -> Option<String> {
    let list: Vec<&RawValue> = serde_json::from_str(tools).ok()?;
    let is_meant = |entry: &RawValue| {
        let entry: serde_json::Value = serde_json::from_str(entry.get()).unwrap_or_default();
        entry["function"]["name"] == tool
    };
    let kept: Vec<&RawValue> = list.iter().copied().filter(|entry| !is_meant(entry)).collect();
    (kept.len() < list.len()).then(|| serde_json::to_string(&kept).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_loses_one_tool_and_no_other_byte() {
        let list =
            r#"[{"type":"function","function":{"name":"a","parameters":{"maximum":1.0}}},{"function":{"name":"b"}}]"#;
        assert_eq!(
            without(list, "b").as_deref(),
            Some(r#"[{"type":"function","function":{"name":"a","parameters":{"maximum":1.0}}}]"#)
        );
        assert_eq!(without(r#"[{"function":{"name":"b"}}]"#, "b").as_deref(), Some("[]"));
        assert_eq!(without(list, "c"), None);
        assert_eq!(without("", "a"), None);
    }
}
