//! An error as an event or a reply carries it: a stable code, what failed, why, and what to do.

use hermes_models::ModelError;
use hermes_session_store::{SessionError, StoreError};
use serde::{Deserialize, Serialize};

use crate::error::AgentError;

/// An error that a front end shows. The code is stable; the texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Problem {
    /// Names the error for programs.
    pub code: ProblemCode,
    /// What failed.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do; none if the front end has to say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The plugin that the error is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

/// The errors that front ends tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemCode {
    /// Another process works on the session.
    SessionInUse,
    /// There is no such session, or more than one.
    SessionUnknown,
    /// The home folder cannot be used.
    HomeUnusable,
    /// The store cannot be opened.
    StoreUnusable,
    /// The store refused a read or a write.
    StoreFailed,
    /// The provider did not answer.
    ModelFailed,
    /// The model answered with nothing, twice.
    ModelSilent,
    /// The conversation does not fit the model's window.
    WindowFull,
    /// A plugin that the session needs cannot be used.
    PluginUnusable,
    /// A plugin failed for good, and the user wants the turn to end then.
    PluginHalted,
    /// The session's folder is gone.
    WorkspaceGone,
    /// The message is empty.
    MessageEmpty,
    /// The model reads no images.
    ImagesNotRead,
    /// The message does not fit the model's window.
    MessageTooLong,
    /// The configuration cannot be used.
    Configuration,
    /// Something else.
    Other,
}

impl Problem {
    /// One with nothing to add.
    pub fn new(code: ProblemCode, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { code, what: what.into(), why: why.into(), fix: None, plugin: None }
    }

    /// The same with what to do.
    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

impl From<&AgentError> for Problem {
    fn from(error: &AgentError) -> Self {
        match error {
            AgentError::Store(error) => error.into(),
            AgentError::Model(error) => error.into(),
            AgentError::Plugins(error) => {
                let (why, fix) = error.why_and_fix();
                Self::new(ProblemCode::PluginUnusable, "the plugins of the session cannot be used", why).with_fix(fix)
            }
            AgentError::Workspace { folder } => Self::new(
                ProblemCode::WorkspaceGone,
                "the session cannot continue",
                format!("the session works in {}, which is not a folder any more", folder.display()),
            ),
            AgentError::EmptyMessage => {
                Self::new(ProblemCode::MessageEmpty, "the message was not sent", "the message is empty")
                    .with_fix("type what you want")
            }
            AgentError::NoVision { model } => Self::new(
                ProblemCode::ImagesNotRead,
                "the message was not sent",
                format!("the model `{model}` reads no images"),
            )
            .with_fix("choose a model that reads images, or leave the image out"),
            AgentError::MessageTooLong { tokens, room, window } => Self::new(
                ProblemCode::MessageTooLong,
                "the message was not sent",
                format!(
                    "the message takes about {tokens} tokens, and {room} fit into the model's window of {window} beside \
                     the system prompt, the tools and a reply"
                ),
            )
            .with_fix("shorten it, put it into a file, or choose a model with a larger window"),
            AgentError::WindowFull { window } => Self::new(
                ProblemCode::WindowFull,
                "the turn has no answer",
                format!(
                    "the conversation does not fit the model's window of {window} tokens any more, and could not be folded"
                ),
            )
            .with_fix("choose a model with a larger window, or begin a new session"),
            AgentError::Halted { plugin, why } => Self {
                plugin: Some(plugin.clone()),
                ..Self::new(ProblemCode::PluginHalted, "the turn was ended", why.clone())
            },
            AgentError::EmptyReply { model } => Self::new(
                ProblemCode::ModelSilent,
                "the turn has no answer",
                format!("the model `{model}` answered with nothing, twice"),
            )
            .with_fix("try again, or choose another model"),
        }
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        let (code, what) = match error {
            StoreError::Session(SessionError::InUse { .. }) => {
                (ProblemCode::SessionInUse, "the session cannot be opened")
            }
            StoreError::Session(SessionError::UnknownSession(_) | SessionError::AmbiguousSession { .. }) => {
                (ProblemCode::SessionUnknown, "the session cannot be opened")
            }
            StoreError::Unusable(_) => (ProblemCode::StoreUnusable, "the conversations cannot be opened"),
            StoreError::Session(_) | StoreError::Failed(_) => {
                (ProblemCode::StoreFailed, "the conversations cannot be stored")
            }
        };
        Self::new(code, what, error.to_string())
    }
}

impl From<&ModelError> for Problem {
    fn from(error: &ModelError) -> Self {
        Self::new(ProblemCode::ModelFailed, "the model did not answer", error.to_string())
    }
}
