//! What a session offers to its model: tools with what the user is asked about them, skills, and MCP servers.

use hermes_mcp::Condition;

use crate::skills::{InapplicableSkill, OfferedSkill};

/// What the model can work with.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// The tools, by name.
    pub tools: Vec<OfferedTool>,
    /// The skills.
    pub skills: Vec<OfferedSkill>,
    /// The skills that do not apply here.
    pub inapplicable: Vec<InapplicableSkill>,
    /// The MCP servers.
    pub servers: Vec<OfferedServer>,
    /// Why skills of a plugin are missing.
    pub failed: Vec<String>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// Its plugin or MCP server; `hermes` for the host's own.
    pub owner: String,
    /// What happens when the model calls it in the present mode.
    pub consent: Consent,
    /// What its definition takes, in estimated tokens.
    pub tokens: u32,
    /// Whether the model has to find it with `tool_search`, because the prompt has no room for it.
    pub is_on_shelf: bool,
}

/// What happens when the model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// It runs, and only reads.
    Reads,
    /// It runs. The mode decides which of its changes and programs the user is asked about.
    Changes,
    /// It starts subagents. Their calls are treated like those of the session, in its mode.
    Delegates,
    /// The user is asked about each call.
    Asks,
    /// It does not run.
    Refused {
        /// Why.
        why: String,
    },
}

/// An MCP server of the session.
#[derive(Debug, Clone)]
pub struct OfferedServer {
    /// Its name.
    pub name: String,
    /// How it is now.
    pub condition: Condition,
    /// How many of its tools the session has; `None` if it has never listed them.
    pub tools: Option<usize>,
}
