//! What a user is asked before a plugin does something, and the answers.

use async_trait::async_trait;
use hermes_capabilities::process::Run;

/// Asks the user.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Shows the question and waits for an answer; anything but a clear yes is [`Decision::Deny`]. When the future is
    /// dropped, the question is withdrawn.
    async fn ask(&self, question: &Question) -> Decision;
}

/// What the user is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The plugin that wants to do it.
    pub plugin: String,
    /// Its version; empty for the host's own tools.
    pub version: String,
    /// What it wants to do.
    pub subject: Subject,
}

/// What a plugin wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Run a tool that the model called.
    Tool {
        /// Its name.
        name: String,
        /// As the model wrote them.
        arguments: String,
        /// The plugin says that it cannot be undone.
        dangerous: bool,
        /// The hooks that want it approved, each with its reason.
        objections: Vec<Objection>,
    },
    /// Run a program.
    Program(Run),
}

/// A hook that wants the user to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The hook's plugin.
    pub plugin: String,
    /// Its reason.
    pub why: String,
}

/// What the user answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This time.
    Once,
    /// Until this process leaves the session.
    Session,
    /// Until the plugin changes or the user forgets it.
    Always,
    /// No.
    Deny,
}

impl Subject {
    /// The tool or the program.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { name, .. } => name,
            Self::Program(run) => &run.program,
        }
    }
}
