//! Tools that a provider does not take: whose they are, and how the user leaves them out.

use hermes_diagnostic::{Action, Fix, Notice};
use hermes_models::LeftOut;

use crate::host::Host;
use crate::live::Live;
use crate::toolbox::{HOST, Toolbox};

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
