//! The plugins of a session, as far as the loop needs them before they run.

use std::time::Duration;

use async_trait::async_trait;
use hermes_diagnostic::Notice;
use hermes_plugin_host::{Change, Identity, OnFailure, Plugins, PluginsError, SessionPlugins, Surroundings};

/// Plugins that were selected for a session. [`Plugins`] are those on disk.
#[async_trait]
pub trait PluginSet: Send + Sync {
    /// Gives a session its own instances.
    fn start(&self, surroundings: &Surroundings) -> Result<SessionPlugins, PluginsError>;
    /// All plugins, as approvals name them.
    fn identities(&self) -> Vec<Identity>;
    /// Name and version of the context engine.
    fn engine_version(&self) -> String;
    /// What the user wants if the engine fails for good.
    fn on_engine_failure(&self) -> OnFailure;
    /// What has changed since the last call; changes that are being built are waited for, but no longer than `patience`.
    async fn changes(&self, patience: Duration) -> Vec<Change>;
    /// Takes up changes before a session begins; lines for the user.
    async fn renew(&mut self, patience: Duration) -> Vec<Notice>;
}

#[async_trait]
impl PluginSet for Plugins {
    fn start(&self, surroundings: &Surroundings) -> Result<SessionPlugins, PluginsError> {
        Plugins::start(self, surroundings)
    }

    fn identities(&self) -> Vec<Identity> {
        Plugins::identities(self).collect()
    }

    fn engine_version(&self) -> String {
        Plugins::engine_version(self)
    }

    fn on_engine_failure(&self) -> OnFailure {
        Plugins::on_engine_failure(self)
    }

    async fn changes(&self, patience: Duration) -> Vec<Change> {
        Plugins::changes(self, patience).await
    }

    async fn renew(&mut self, patience: Duration) -> Vec<Notice> {
        Plugins::renew(self, patience).await
    }
}
