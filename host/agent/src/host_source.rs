//! The interface through which the application builds hosts from its configuration.

use async_trait::async_trait;
use hermes_models::Effort;
use hermes_protocol::Problem;

use crate::host::Host;

/// A session's deviations from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The model, as the configuration or the command line names it.
    pub model: Option<String>,
    /// The model's provider; `None` for that of the configuration.
    pub provider: Option<String>,
    /// The context engine.
    pub engine: Option<String>,
    /// How much the model thinks.
    pub effort: Option<Effort>,
}

/// Builds the hosts of sessions. The sessions of one process share compiled plugins, the file watcher and the provider's
/// connections.
#[async_trait]
pub trait HostSource: Send + Sync {
    /// Builds the host of a session with the currently installed plugins.
    async fn host(&self, choice: &Choice) -> Result<Host, Problem>;
}
