//! What a user is asked before a plugin does something, and the answers.

use hermes_capabilities::process::Run;
use serde::{Deserialize, Serialize};

/// What the user is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The plugin that wants to do it.
    pub plugin: String,
    /// Its version; empty for the host's own tools.
    pub version: String,
    /// What it wants to do.
    pub subject: Subject,
}

/// What a plugin wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "subject", rename_all = "kebab-case")]
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
    Program(Box<ProgramRun>),
}

/// A run of a program, as far as the user is shown it. The environment stays in the host: it may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The program's name, as it was granted.
    pub program: String,
    /// Where it was found.
    pub path: String,
    /// The same without links.
    pub real: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: String,
    /// How many bytes it reads from its standard input.
    pub input_bytes: usize,
    /// Those bytes, where they are text.
    pub input: Option<String>,
}

impl From<&Run> for ProgramRun {
    fn from(run: &Run) -> Self {
        Self {
            program: run.program.clone(),
            path: run.path.display().to_string(),
            real: run.real.display().to_string(),
            arguments: run.arguments.clone(),
            folder: run.folder.display().to_string(),
            input_bytes: run.input.len(),
            input: std::str::from_utf8(&run.input).ok().map(str::to_owned),
        }
    }
}

/// A hook that wants the user to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// The hook's plugin.
    pub plugin: String,
    /// Its reason.
    pub why: String,
}

/// What the user answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
