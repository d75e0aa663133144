//! What ends a turn, or keeps a session from beginning.

use std::path::PathBuf;

use hermes_models::ModelError;
use hermes_plugin_host::PluginsError;
use hermes_session_store::StoreError;

/// Why a turn or a session could not go on. Nothing that was stored is lost by any of them.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model's provider.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A plugin that must be there is not.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The folder that the session works in is gone.
    #[error("the session's folder {folder} no longer exists")]
    Workspace {
        /// The folder.
        folder: PathBuf,
    },
    /// There is nothing to answer.
    #[error("the message is empty")]
    EmptyMessage,
    /// The model reads no pictures.
    #[error("the model `{model}` reads no images")]
    NoVision {
        /// The model.
        model: String,
    },
    /// What the user said does not fit.
    #[error(
        "the message has about {tokens} tokens, and the model's window of {window} has room for {room} beside the system \
         prompt, the tools and a reply"
    )]
    MessageTooLong {
        /// Estimate for the message.
        tokens: u32,
        /// What fits.
        room: u32,
        /// The window.
        window: u32,
    },
    /// Not even the host's own plan fits.
    #[error("the conversation no longer fits the model's window of {window} tokens, and cannot be compacted further")]
    WindowFull {
        /// The window.
        window: u32,
    },
    /// A plugin failed for good, and the user wants the turn to end then.
    #[error("{why}")]
    Halted {
        /// The plugin, for the key.
        plugin: String,
        /// What happened, with the plugin's name.
        why: String,
    },
    /// The model said nothing, twice.
    #[error("the model `{model}` answered with nothing, twice")]
    EmptyReply {
        /// The model.
        model: String,
    },
}
