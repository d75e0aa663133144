//! The question that a user answers before a plugin acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version in a [`Question`] of an MCP server, and in the list of approvals.
pub const SERVER_VERSION: &str = "MCP";
/// The name of a server's request to a model in questions and rules.
pub const SAMPLING: &str = "sampling";

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The plugin that wants to act.
    pub plugin: String,
    /// Its version; empty for the host's own tools, and [`SERVER_VERSION`] for an MCP server.
    pub version: String,
    /// What it wants to do.
    pub subject: Subject,
}

impl Question {
    /// Who wants to act, in words.
    pub fn owner(&self) -> String {
        match self.version.as_str() {
            SERVER_VERSION => format!("the MCP server `{}`", self.plugin),
            _ => format!("plugin `{}`", self.plugin),
        }
    }
}

/// What a plugin wants to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subject", rename_all = "kebab-case")]
pub enum Subject {
    /// Run a tool that the model called.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments, as the model wrote them.
        arguments: String,
        /// What the call would do, in the plugin's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sentence: Option<String>,
        /// The plugin declares that the effect cannot be undone.
        dangerous: bool,
        /// The hooks that ask for an approval, each with its reason.
        objections: Vec<Objection>,
        /// Why a rule of the user asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// Run a program.
    Program(Box<ProgramRun>),
    /// Ask a model of the user, for an MCP server.
    Sampling(Box<SamplingRequest>),
    /// Change a file that starts programs or instructs agents, or whose content the session has not read.
    File(Box<FileChange>),
}

/// What an MCP server asks a model, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SamplingRequest {
    /// Its messages.
    pub text: String,
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// The most tokens for all requests of the session.
    pub budget: u64,
    /// How many of them are used.
    pub used: u64,
    /// Why a rule of the user asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// A change of a file, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The file, with links resolved.
    pub path: String,
    /// What happens to it.
    pub deed: FileDeed,
    /// Why the change needs approval.
    pub because: Vec<String>,
    /// The changed lines with some around them, each behind `+`, `-` or a space, if it is an ordinary change of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
    /// Whether nothing but the mode asks.
    #[serde(default)]
    pub is_ordinary: bool,
}

/// What happens to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "deed", rename_all = "kebab-case")]
pub enum FileDeed {
    /// It is created.
    Create {
        /// The number of bytes.
        bytes: u64,
        /// They, if they are valid UTF-8.
        content: Option<String>,
        /// They, with escapes such as `\xff`, if they are not.
        #[serde(default)]
        binary: Option<String>,
    },
    /// Its content is replaced.
    Replace {
        /// The number of bytes before.
        before: u64,
        /// The number of bytes afterwards.
        bytes: u64,
        /// They, if they are valid UTF-8.
        content: Option<String>,
        /// They, with escapes such as `\xff`, if they are not.
        #[serde(default)]
        binary: Option<String>,
    },
    /// It moves.
    Rename {
        /// Its new path.
        to: String,
        /// The number of bytes of a file that starts programs or instructs agents only at its new place.
        #[serde(default)]
        bytes: Option<u64>,
        /// They, if they are valid UTF-8.
        #[serde(default)]
        content: Option<String>,
        /// They, with escapes such as `\xff`, if they are not.
        #[serde(default)]
        binary: Option<String>,
    },
    /// It is removed.
    Remove,
}

/// A program run, as shown to the user. Of the environment, it has what the plugin sets, and the names of granted variables: their
/// values may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Those bytes with escapes such as `\xff` if they are not.
    #[serde(default)]
    pub binary_input: Option<String>,
    /// The variables that the plugin sets, with their values.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// The names of your variables that it gets.
    #[serde(default)]
    pub inherited: Vec<String>,
    /// Whether plugins may change the program itself. Then the answer holds for its present content.
    #[serde(default)]
    pub pinned: bool,
    /// Whether it runs in the background, until the session ends.
    #[serde(default)]
    pub background: bool,
    /// Whether it runs the code in its arguments, as a shell does. Then the answer holds for exactly this command.
    #[serde(default)]
    pub exact: bool,
    /// Why it runs without a sandbox, although the user wants one.
    #[serde(default)]
    pub unconfined: Option<String>,
    /// Whether its sandbox lets it use the network.
    #[serde(default)]
    pub network: bool,
    /// The pattern of commands that [`Decision::Pattern`] allows; none if such an approval could allow more than it seems to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Why a rule of the user asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// A hook that wants the user to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Objection {
    /// The hook's plugin.
    pub plugin: String,
    /// Its reason.
    pub why: String,
}

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Allow this time.
    Once,
    /// Allow until this process closes the session.
    Session,
    /// Allow until the plugin changes or the user removes the approval.
    Always,
    /// Allow every command of the pattern that the question names, as long.
    Pattern,
    /// Refuse.
    Deny,
}

impl Subject {
    /// The tool, the program or the file.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { name, .. } => name,
            Self::Program(run) => &run.program,
            Self::File(change) => &change.path,
            Self::Sampling(_) => SAMPLING,
        }
    }

    /// What a refusal says about it.
    pub fn undone(&self) -> &'static str {
        match self {
            Self::Tool { .. } | Self::Program(_) => "was not run",
            Self::File(_) => "was not changed",
            Self::Sampling(_) => "was not carried out",
        }
    }
}
