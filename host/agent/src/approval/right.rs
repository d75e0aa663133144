//! The right that an approval grants.

use hermes_plugin_host::Identity;

/// A right of one plugin to do one thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Right {
    pub(crate) plugin: Identity,
    /// The tool, `process:` and the program, `variables:` and the program for which a plugin sets them, `unconfined:` and the program that runs without a sandbox, `command:` and a pattern of commands, `sampling` for requests of an MCP server to a model, or `files:` and the pattern of the list (`files:unread` for other files).
    pub(crate) what: String,
    /// What else must match: the file behind the program's name, the changed file, or the reason of a hook.
    pub(crate) of: String,
}

impl Right {
    /// The entry for `approvals.allow` or `approvals.deny`.
    pub(crate) fn entry(&self) -> String {
        format!("{}/{}", self.plugin.name, self.what)
    }
}

/// The right to change files of the workspace in the ordinary way.
pub(super) const EDIT: &str = "edit";
/// What the right to run commands of a pattern begins with.
pub(super) const COMMAND: &str = "command:";
