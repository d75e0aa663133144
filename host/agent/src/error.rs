//! Errors that end a turn or prevent a session from opening.

use std::path::PathBuf;

use hermes_models::ModelError;
use hermes_plugin_host::PluginsError;
use hermes_session_store::StoreError;

use crate::approval::UnknownRule;

/// Why a turn or a session failed. No stored message is lost.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model's provider failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The provider refuses the request because of one tool.
    #[error(
        "{refused}; this is about the tool `{tool}` of the {} `{owner}`",
        if *is_server { "MCP server" } else { "plugin" }
    )]
    ToolRefused {
        /// The tool.
        tool: String,
        /// The server or the plugin.
        owner: String,
        /// Whether it is a server.
        is_server: bool,
        /// The refusal.
        refused: Box<ModelError>,
    },
    /// A request was refused because of its deferred tools.
    #[error("{refused}; this is about the tools that the prompt defers")]
    DeferredRefused {
        /// The session.
        session: String,
        /// The refusal.
        refused: Box<ModelError>,
    },
    /// A required plugin is missing.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The session's folder no longer exists.
    #[error("the session's folder {folder} no longer exists")]
    Workspace {
        /// The folder.
        folder: PathBuf,
    },
    /// A rule forbids nothing.
    #[error(transparent)]
    Rule(#[from] UnknownRule),
    /// The message has neither text nor attachments.
    #[error("the message is empty")]
    EmptyMessage,
    /// The model cannot read images.
    #[error("the model `{model}` reads no images")]
    NoVision {
        /// The model.
        model: String,
    },
    /// The skill that the user called cannot be used.
    #[error("{why}")]
    Skill {
        /// Its name.
        skill: String,
        /// Why.
        why: String,
    },
    /// The message does not fit the window.
    #[error(
        "the message has about {tokens} tokens, and the model's window of {window} has room for {room} beside the system \
         prompt, the tools and a reply"
    )]
    MessageTooLong {
        /// Estimated tokens of the message.
        tokens: u32,
        /// Tokens that fit.
        room: u32,
        /// The window in tokens.
        window: u32,
    },
    /// The conversation cannot be folded far enough.
    #[error("the conversation no longer fits the model's window of {window} tokens, and cannot be compacted further")]
    WindowFull {
        /// The window in tokens.
        window: u32,
    },
    /// The provider refuses a request that should fit the window, and not even the host's own plan makes it short enough.
    #[error(
        "the provider rejected the request as too long ({message}){}, and the conversation cannot be compacted further",
        if limit.is_some() { String::new() } else { format!(", although the window is set to {window} tokens") }
    )]
    WindowSmaller {
        /// The window that Hermes knew.
        window: u32,
        /// The window that the provider names.
        limit: Option<u32>,
        /// What the provider says.
        message: String,
    },
    /// A plugin was suspended after failures, and its policy ends the turn.
    #[error("{why}")]
    Halted {
        /// The plugin, as the configuration names it.
        plugin: String,
        /// What happened, with the plugin's name.
        why: String,
        /// Whether the plugin is the context engine.
        is_engine: bool,
    },
    /// The reply reached the model's output limit before it had text or calls.
    #[error(
        "the model `{model}` {}",
        if *thought { "used up its output limit for reasoning, before it wrote an answer" }
        else { "reached its output limit before it wrote anything" }
    )]
    CutBeforeText {
        /// The model.
        model: String,
        /// Whether it wrote reasoning.
        thought: bool,
    },
    /// The model replied twice without text and calls.
    #[error("the model `{model}` gave an empty reply twice, with no text and no tool call")]
    EmptyReply {
        /// The model.
        model: String,
    },
}
