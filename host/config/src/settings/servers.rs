//! The section `mcp_servers`: servers of the Model Context Protocol.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Whole;
use super::named::named;

/// `mcp_servers.<server>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServerSection {
    /// Whether the server is used.
    pub enabled: bool,
    /// The program that is started: its name, which is looked up in `PATH`, or its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that the program gets beside standard ones such as `PATH` and `HOME`, preferably as `${NAME}`. It gets no others of yours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The folder that the program runs in; your home folder if it is missing. A relative one is below the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How the program is confined: `auto` as `sandbox.mode` says, `off` not at all, `workspace` always: it does not start where the system cannot do so.
    pub sandbox: McpSandbox,
    /// Whether the confined program can use the network.
    pub network: bool,
    /// Further folders that the confined program can write: absolute paths, or `~/…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// In place of a program: the address of a server that speaks streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of each request to that address, with keys preferably as `${NAME}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Seconds that a call of a tool may take.
    pub timeout: Whole<1>,
    /// Seconds that it may take to start or reach the server and to list its tools. The first message waits for at most 5.
    pub connect_timeout: Whole<1>,
    /// The most tokens of your models that the server may use in a session, sent and received. 0 means none.
    pub sampling: Whole<0>,
    /// The most tokens of the server's instructions that are part of the prompt. 0 means none: `hermes mcp list` shows them.
    pub instructions: Whole<0>,
    /// Whether tools that the server marks as read-only run without asking, also in the mode `plan`. Nobody checks such marks.
    pub trust_hints: bool,
    /// Whether the server's questions are answered with the values that it proposes where nobody can answer, if it needs no others. They are declined otherwise.
    pub accept_defaults: bool,
    /// Whether sessions of one process in the same folder, such as subagents, share the server. It has to keep nothing between calls, and it asks neither you nor a model.
    pub shared: bool,
    /// Which of its tools are used.
    pub tools: McpToolsSection,
}

impl Default for McpServerSection {
    fn default() -> Self {
        Self {
            enabled: true,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            sandbox: McpSandbox::Auto,
            network: true,
            write: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            timeout: const { Whole::new(120) },
            connect_timeout: const { Whole::new(60) },
            sampling: const { Whole::new(0) },
            instructions: const { Whole::new(0) },
            trust_hints: false,
            accept_defaults: false,
            shared: false,
            tools: McpToolsSection::default(),
        }
    }
}

/// `mcp_servers.<server>.sandbox`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum McpSandbox {
    /// As `sandbox.mode` says.
    #[default]
    Auto,
    /// It runs with the user's rights.
    Off,
    /// It writes only some folders, or does not run.
    Workspace,
}

impl McpSandbox {
    const NAMES: [(&str, Self); 3] = [("auto", Self::Auto), ("off", Self::Off), ("workspace", Self::Workspace)];
}

named!(McpSandbox);

/// `mcp_servers.<server>.tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpToolsSection {
    /// Only these, by the server's own names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
    /// Not these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Whether the model gets tools that list and read the server's resources, if it has some.
    pub resources: bool,
    /// Whether the model gets tools that list and read the server's prompts, if it has some.
    pub prompts: bool,
}

impl Default for McpToolsSection {
    fn default() -> Self {
        Self { include: None, exclude: Vec::new(), resources: true, prompts: true }
    }
}
