//! The interface to the plugins that a session can start.

use std::time::Duration;

use async_trait::async_trait;
use hermes_diagnostic::Notice;
use hermes_plugin_host::{Change, Identity, OnFailure, Plugins, PluginsError, SessionPlugins, Surroundings};

/// The plugins selected for a session. [`Plugins`] implements it for installed plugins.
#[async_trait]
pub trait PluginSet: Send + Sync {
    /// Starts instances for a session.
    fn start(&self, surroundings: &Surroundings) -> Result<SessionPlugins, PluginsError>;
    /// The identities of all plugins, for approvals.
    fn identities(&self) -> Vec<Identity>;
    /// The plugins whose permissions let them hear from strangers.
    fn foreign_sources(&self) -> Vec<String>;
    /// The plugins that can read the conversation, such as the context engine.
    fn conversation_readers(&self) -> Vec<String>;
    /// The name and version of the context engine.
    fn engine_version(&self) -> String;
    /// The policy for an engine that keeps failing.
    fn on_engine_failure(&self) -> OnFailure;
    /// The changes since the last call. Waits at most `patience` for changes that are being built.
    async fn changes(&self, patience: Duration) -> Vec<Change>;
    /// Applies changes before a session begins. Returns notices for the user.
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

    fn foreign_sources(&self) -> Vec<String> {
        Plugins::foreign_sources(self).collect()
    }

    fn conversation_readers(&self) -> Vec<String> {
        Plugins::conversation_readers(self).collect()
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
