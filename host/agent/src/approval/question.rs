//! The question that a user answers before a plugin acts.

use hermes_capabilities::process::Run;
use serde::{Deserialize, Serialize};

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The plugin that wants to act.
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
        /// Its arguments, as the model wrote them.
        arguments: String,
        /// The plugin declares that the effect cannot be undone.
        dangerous: bool,
        /// The hooks that ask for an approval, each with its reason.
        objections: Vec<Objection>,
    },
    /// Run a program.
    Program(Box<ProgramRun>),
}

/// A program run, as shown to the user. Of the environment, it has only what the plugin sets: the rest may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The program's name, as it was granted.
    pub program: String,
    /// The path where the host found it.
    pub path: String,
    /// That path with symbolic links resolved.
    pub real: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder in which it runs.
    pub folder: String,
    /// How many bytes it reads from its standard input.
    pub input_bytes: usize,
    /// Those bytes if they are valid UTF-8.
    pub input: Option<String>,
    /// The variables that the plugin sets, with their values.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// Whether it runs in the background, until the session ends.
    #[serde(default)]
    pub background: bool,
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
            variables: run.variables.clone(),
            background: run.background,
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

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Allow this time.
    Once,
    /// Allow until this process closes the session.
    Session,
    /// Allow until the plugin changes or the user removes the approval.
    Always,
    /// Refuse.
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
