//! What a session offers to its model: tools with what the user is asked about them, skills, and MCP servers.

use std::path::PathBuf;

use hermes_mcp::Condition;

use crate::error::AgentError;
use crate::feed::FeedLimits;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::plugins::RunningPlugins;
use crate::mcp::McpServers;
use crate::openings::unsaved;
use crate::skills::OfferedSkill;

/// What the model can work with.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// The tools, by name.
    pub tools: Vec<OfferedTool>,
    /// The skills.
    pub skills: Vec<OfferedSkill>,
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
}

/// What happens when the model calls a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// It runs, and only reads.
    Reads,
    /// It runs. The mode decides which of its changes and programs the user is asked about.
    Changes,
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

impl Offer {
    pub(crate) async fn of(plugins: &RunningPlugins, servers: Option<&McpServers>) -> Self {
        let (skills, failed) = plugins.toolbox.skills().offered().await;
        Self {
            tools: plugins.toolbox.offered(),
            skills,
            servers: servers.map(McpServers::conditions).unwrap_or_default(),
            failed: failed.iter().map(ToString::to_string).collect(),
        }
    }

    /// What a session that has no message yet will offer. Its plugins are started for a moment.
    pub(crate) async fn of_new(
        host: &Host,
        workspace: PathBuf,
        front: &Front,
        servers: Option<&McpServers>,
    ) -> Result<Self, AgentError> {
        // What plugins say is said again when the session begins.
        let front = Front { rights: front.rights.clone(), ..Front::new(FeedLimits::SHARED, front.mode.clone()) };
        let history = Journal::empty(&host.store).history();
        let unconnected;
        let all = match servers {
            Some(servers) => servers,
            None => {
                unconnected = McpServers::unconnected(host);
                &unconnected
            }
        };
        let plugins = RunningPlugins::start(host, &unsaved(host, workspace), true, history, &front, all).await?;
        Ok(Self::of(&plugins, servers).await)
    }
}
