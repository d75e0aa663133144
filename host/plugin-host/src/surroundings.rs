//! What the host gives a session's plugins.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_runtime::services::{
    Approval, Clock, Embeddings, FileGuard, History, Models, Random, Reporter, SandboxRules,
};
use hermes_runtime::{LimitSet, SessionInfo, Start};

use crate::identity::Identity;
use crate::storage::Storage;

/// Creates the receiver of a plugin's log lines, by the plugin's name.
pub type Reporters = Box<dyn Fn(&str) -> Arc<dyn Reporter> + Send + Sync>;

/// Creates the check whether a plugin may run a program, or make a change that needs approval.
pub type Approvals = Box<dyn Fn(&Identity) -> Arc<dyn Approval> + Send + Sync>;

/// A session's side of its plugins: everything that they may get, each within its manifest.
pub struct Surroundings {
    /// The session.
    pub session: SessionInfo,
    /// How it begins.
    pub start: Start,
    /// `$HERMES_HOME`.
    pub home: PathBuf,
    /// Where plugins keep their data.
    pub storage: Storage,
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The random numbers for its plugins.
    pub random: Arc<dyn Random>,
    /// Limits for every plugin for which the user has set none.
    pub limits: LimitSet,
    /// The user's models.
    pub models: Arc<dyn Models>,
    /// The user's embedding model, if no plugin is selected for it.
    pub embeddings: Arc<dyn Embeddings>,
    /// The conversation.
    pub history: Arc<dyn History>,
    /// Creates the receivers of log lines.
    pub reporters: Reporters,
    /// Creates the checks of programs and of changes.
    pub approvals: Approvals,
    /// The rules for changes of files.
    pub files: FileGuard,
    /// What the user wants of the sandbox of programs.
    pub sandbox: SandboxRules,
}
