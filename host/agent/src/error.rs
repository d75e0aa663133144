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
    #[error(
        "the session works in {folder}, which is not a folder any more: make it again, or go on elsewhere with \
         --branch"
    )]
    Workspace {
        /// The folder.
        folder: PathBuf,
    },
    /// There is nothing to answer.
    #[error("the message is empty: type what you want")]
    EmptyMessage,
    /// The model reads no pictures.
    #[error("the model `{model}` reads no images: choose one that does with `model.default`, or leave the image out")]
    NoVision {
        /// The model.
        model: String,
    },
    /// What the user said does not fit.
    #[error(
        "the message takes about {tokens} tokens, and {room} fit into the model's window of {window} beside the system \
         prompt, the tools and a reply: shorten it, put it into a file, or choose a model with a larger window"
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
    #[error(
        "the conversation does not fit the model's window of {window} tokens any more, and could not be folded: choose a \
         model with a larger window, or begin a new session"
    )]
    WindowFull {
        /// The window.
        window: u32,
    },
    /// A plugin failed for good, and the user wants the turn to end then.
    #[error("{why}; the turn ends here, as `plugins.settings.{plugin}.on_failure` says")]
    Halted {
        /// The plugin, for the key.
        plugin: String,
        /// What happened, with the plugin's name.
        why: String,
    },
    /// The model said nothing, twice.
    #[error("the model `{model}` answered with nothing, twice: try again, or choose another model")]
    EmptyReply {
        /// The model.
        model: String,
    },
}
