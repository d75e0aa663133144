//! What an approval covers.

use hermes_plugin_host::Identity;

/// What an approval is good for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Right {
    pub(crate) plugin: Identity,
    /// The tool, or `process:` and the program.
    pub(crate) what: String,
    /// What else must be the same: the file behind the program's name, the reason of a hook.
    pub(crate) of: String,
}

impl Right {
    /// As the lists of the configuration name it.
    pub(crate) fn entry(&self) -> String {
        format!("{}/{}", self.plugin.name, self.what)
    }
}
