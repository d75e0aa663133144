//! A session at work: its lease, its log, its plugins, and the prefix that all its requests share.

use std::path::Path;
use std::sync::Arc;

use hermes_conversation::{Model, SessionId, closing, tokens};
use hermes_plugins::{SessionInfo, SessionPlugins, Start, Surroundings};
use hermes_prompt::{Inputs, ProviderBlock, SkillEntry};
use hermes_store::{Frozen, Lease, ParentKind, Session};

use crate::agent::Host;
use crate::auxiliary::Auxiliary;
use crate::compaction::Engine;
use crate::error::AgentError;
use crate::journal::Journal;
use crate::report::{self, Ear, Voice};
use crate::skills::SkillShelf;
use crate::toolbox::Toolbox;
use crate::watchers::Watchers;

pub(crate) struct Live {
    pub(crate) session: SessionId,
    pub(crate) journal: Journal,
    pub(crate) memories: Vec<Arc<dyn hermes_plugins::MemoryProvider>>,
    pub(crate) toolbox: Toolbox,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) engine: Engine,
    pub(crate) frozen: Frozen,
    /// Estimate for system prompt and tools.
    pub(crate) fixed_tokens: u32,
    pub(crate) ear: Ear,
    pub(crate) voice: Voice,
    pub(crate) syncing: Option<tokio::task::JoinHandle<()>>,
    _lease: Lease,
}

impl Live {
    /// Takes the session for this process and makes everything ready for a turn. A turn that was cut off is closed.
    pub(crate) async fn start(host: &Host, session: Session, fresh: bool) -> Result<Self, AgentError> {
        if !session.workspace.is_dir() {
            return Err(AgentError::Workspace { folder: session.workspace });
        }
        let lease = host.store.lease(&session.id)?;
        let journal = Journal::open(&host.store, &session)?;
        let closing = closing::close(&journal.conversation(), crate::agent::now());
        journal.append(&closing)?;

        let (voice, ear) = report::channel(&host.home, session.id.as_str());
        let plugins = host.plugins.start(&surroundings(host, &session, fresh, &journal, &voice))?;
        let SessionPlugins { engine, memories, tools, skills, hooks } = plugins;
        let (watchers, unwatched) = Watchers::gather(&hooks).await;
        let watchers = Arc::new(watchers);
        let (toolbox, notices) = Toolbox::fill(&tools, SkillShelf::new(skills), Arc::clone(&watchers)).await;
        for notice in unwatched.into_iter().chain(notices) {
            voice.notice(notice);
        }
        let frozen = match session.frozen.clone() {
            Some(frozen) => frozen,
            None => {
                let frozen = freeze(host, &session.workspace, &memories, &toolbox, &voice).await;
                host.store.set_frozen(
                    &session.id,
                    &frozen.system_prompt,
                    &frozen.tools,
                    frozen.prompt_inputs.as_deref(),
                )?;
                frozen
            }
        };
        if session.model != host.model {
            host.store.update_model(&session.id, &host.model)?;
        }
        Ok(Self {
            fixed_tokens: tokens::of_text(&frozen.system_prompt) + tokens::of_text(&frozen.tools),
            engine: Engine::new(engine),
            session: session.id,
            journal,
            memories,
            toolbox,
            watchers,
            frozen,
            ear,
            voice,
            syncing: None,
            _lease: lease,
        })
    }
}

fn surroundings(host: &Host, session: &Session, fresh: bool, journal: &Journal, voice: &Voice) -> Surroundings {
    let parent = session.parent.as_ref().filter(|parent| parent.kind != ParentKind::Delegate);
    let start = match parent {
        Some(parent) if fresh => Start::Continued(parent.id.to_string()),
        None if fresh => Start::Fresh,
        _ => Start::Resumed,
    };
    let reporters = voice.clone();
    Surroundings {
        session: SessionInfo {
            id: session.id.to_string(),
            parent: parent.map(|parent| parent.id.to_string()),
            platform: host.settings.platform.clone(),
            purpose: "primary".to_owned(),
            profile: "default".to_owned(),
            workspace: Some(session.workspace.display().to_string()),
            model: host.model.clone(),
        },
        start,
        home: host.home.clone(),
        workspace: session.workspace.clone(),
        models: Arc::new(Auxiliary {
            provider: Arc::clone(&host.provider),
            model: host.model.clone(),
            names: host.settings.auxiliary_models.clone(),
        }),
        history: journal.history(),
        reporters: Box::new(move |plugin| reporters.for_plugin(plugin)),
    }
}

/// Builds what all requests of a session begin with. Made once: memory, skills and the date change nothing in it later.
async fn freeze(
    host: &Host,
    workspace: &Path,
    memories: &[Arc<dyn hermes_plugins::MemoryProvider>],
    toolbox: &Toolbox,
    voice: &Voice,
) -> Frozen {
    let mut blocks = Vec::new();
    for memory in memories {
        match memory.system_prompt().await {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => blocks.push(ProviderBlock { plugin: memory.name().to_owned(), text }),
            Err(error) => voice.notice(format!("{error}; its part of the system prompt is left out for this session")),
        }
    }
    let (skills, failed) = toolbox.shelf().index().await;
    for error in failed {
        voice.notice(format!("{error}; its skills are left out of the system prompt"));
    }
    let schemas = toolbox.schemas();
    let inputs = Inputs {
        identity: None,
        tools: schemas.iter().map(|schema| schema.name.clone()).collect(),
        skills: skills
            .into_iter()
            .map(|(_, skill)| SkillEntry { name: skill.name, description: skill.description, category: skill.category })
            .collect(),
        platform: host.settings.platform.clone(),
        os: std::env::consts::OS.to_owned(),
        workspace: workspace.to_owned(),
        system_message: host.settings.system_message.clone(),
        provider_blocks: blocks,
        date: jiff::Zoned::now().date(),
        model: Model::clone(&host.model),
    };
    Frozen {
        system_prompt: hermes_prompt::build(&inputs).text(),
        tools: hermes_models::tools_json(&schemas),
        prompt_inputs: Some(hermes_prompt::inputs_hash(&inputs)),
    }
}
