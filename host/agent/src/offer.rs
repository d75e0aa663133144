//! What a session offers to its model: tools with what the user is asked about them, skills, and MCP servers.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_capabilities::changes::Changes;
use hermes_mcp::Condition;

use crate::approval::Gate;
use crate::error::AgentError;
use crate::feed::FeedLimits;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::plugins::{RunningPlugins, surroundings};
use crate::mcp::McpServers;
use crate::openings::unsaved;
use crate::report::NoticeSender;
use crate::skills::{InapplicableSkill, OfferedSkill, SkillCatalog, SkillCommands};

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

impl Offer {
    pub(crate) async fn of(plugins: &RunningPlugins, servers: Option<&McpServers>) -> Self {
        let (SkillCommands { offered: skills, inapplicable }, failed) = plugins.toolbox.skills().offered().await;
        Self {
            tools: plugins.toolbox.offered(),
            skills,
            inapplicable,
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

/// The skills that a session without messages will have. Code runs only of plugins that have skills, unless a skill depends on
/// the tools of the session: then all of its plugins are started for a moment. No server is started.
pub(crate) async fn skills_of_new(host: &Host, workspace: PathBuf, front: &Front) -> Result<SkillCommands, AgentError> {
    let session = unsaved(host, workspace.clone());
    let quiet = Front { rights: front.rights.clone(), ..Front::new(FeedLimits::SHARED, front.mode.clone()) };
    let notices = NoticeSender::new(&host.home, session.id.as_str(), quiet.feed.clone());
    let answers = (quiet.questions, quiet.rights, quiet.seen, Changes::default(), quiet.mode);
    let gate = Gate::new(&host.approvals, &host.home, host.plugins.identities(), notices.clone(), answers);
    let history = Journal::empty(&host.store).history();
    let around = surroundings(host, &session, true, history, &notices, &Arc::new(gate));
    // No code of a plugin runs before its first call.
    let plugins = host.plugins.start(&around)?;
    match SkillCatalog::new(plugins.skills, host.settings.skills.clone()).offered_without_tools().await {
        Some(skills) => Ok(skills),
        None => {
            let Offer { skills: offered, inapplicable, .. } = Offer::of_new(host, workspace, front, None).await?;
            Ok(SkillCommands { offered, inapplicable })
        }
    }
}
