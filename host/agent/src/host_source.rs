//! Where the hosts of sessions come from: the application builds them from its configuration.

use async_trait::async_trait;

use crate::host::Host;
use crate::problem::Problem;

/// What differs from the configuration in one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The model, as the configuration or the command line names it.
    pub model: Option<String>,
    /// The context engine.
    pub engine: Option<String>,
}

/// Builds what sessions run with. Sessions of one process share what it hands out: compiled plugins, the file watcher,
/// the provider's connections.
#[async_trait]
pub trait HostSource: Send + Sync {
    /// The host of a session, with the plugins that are installed by now.
    async fn host(&self, choice: &Choice) -> Result<Host, Problem>;
}
