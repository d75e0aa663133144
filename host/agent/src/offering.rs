//! Finds out what a session offers to its model, also before its first message.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_capabilities::changes::Changes;

use crate::approval::Gate;
use crate::error::AgentError;
use crate::feed::FeedLimits;
use crate::front::Front;
use crate::host::Host;
use crate::journal::Journal;
use crate::live::plugins::{RunningPlugins, surroundings};
use crate::mcp::McpServers;
use crate::offer::Offer;
use crate::opening_comparison::unsaved;
use crate::report::NoticeSender;
use crate::skills::{SkillCatalog, SkillCommands};

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
        // Notices of plugins are dropped here, because they come again when the session begins.
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
    let gate = Gate::new(
        &host.approvals,
        Arc::clone(&host.documents),
        host.plugins.identities(),
        notices.clone(),
        &session.workspace,
        answers,
    );
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
