//! The agent as the command line drives it.

use std::path::PathBuf;
use std::time::Duration;

use hermes_conversation::SessionId;
use hermes_store::{NewSession, Parent, ParentKind, Session, Totals};

use crate::compaction::{Compression, LEAST_MESSAGES, Outlook};
use crate::context::{Context, Working};
use crate::error::AgentError;
use crate::event::Observer;
use crate::freezing;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::live::Live;
use crate::live::plugins::Plugged;
use crate::opening::Opening;
use crate::turn::{self, TurnEnd};
use crate::{rebuild, reload, room};

/// Which session to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// A new one, made when the first message is said.
    New,
    /// One that is there.
    Resume(SessionId),
    /// A new one that begins with what another one has said so far.
    Branch(SessionId),
}

/// What the requests of a session begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Openings {
    /// As it is stored; none where no session was asked for, or nothing was built for it yet.
    pub stored: Option<Opening>,
    /// As it would be built now.
    pub now: Opening,
    /// What should be known about it.
    pub notices: Vec<String>,
}

/// What a session's requests begin with, and what they would begin with if it began now. No session is changed.
pub async fn openings(host: &Host, session: Option<&SessionId>, workspace: PathBuf) -> Result<Openings, AgentError> {
    let is_new = session.is_none();
    let (session, history) = match session {
        Some(id) => {
            let session = host.store.session(id)?;
            let history = Journal::open(&host.store, &session)?.history();
            (session, history)
        }
        None => (unsaved(host, workspace), Journal::empty(&host.store).history()),
    };
    let (plugged, mut ear) = Plugged::start(host, &session, is_new, history).await?;
    let stored = session.frozen.as_ref().map(Opening::restore);
    let fresh = freezing::build(host, &session.workspace, &plugged, stored.as_ref()).await;
    let notices = ear.notices().into_iter().chain(fresh.notices).collect();
    Ok(Openings { stored, now: fresh.opening, notices })
}

/// A session that is not there.
fn unsaved(host: &Host, workspace: PathBuf) -> Session {
    Session {
        id: SessionId(String::new()),
        source: host.settings.platform.clone(),
        title: None,
        workspace,
        engine: host.engine.clone(),
        model: host.model.clone(),
        frozen: None,
        started_at: 0,
        updated_at: 0,
        message_count: 0,
        totals: Totals::default(),
        parent: None,
    }
}

/// What a status line shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// The engine's name.
    pub engine: String,
    /// Estimate for the next request in tokens.
    pub prompt_tokens: u32,
    /// The window in tokens.
    pub context_length: u32,
    /// Messages in the log.
    pub messages: usize,
}

/// Of a session that is not there yet.
const NOTHING_SAID: Compression = Compression::TooFew { messages: 0, least: LEAST_MESSAGES };

/// One conversation at work.
pub struct Agent {
    host: Host,
    workspace: PathBuf,
    live: Option<Live>,
}

impl Agent {
    /// Takes up a session. A new one leaves no trace before its first message.
    pub async fn begin(host: Host, begin: Begin, workspace: PathBuf) -> Result<Self, AgentError> {
        let mut agent = Self { host, workspace, live: None };
        match begin {
            Begin::New => {}
            Begin::Resume(id) => {
                let session = agent.host.store.session(&id)?;
                agent.live = Some(Live::start(&agent.host, session, false).await?);
            }
            Begin::Branch(id) => {
                agent.live = Some(agent.create(Some(Parent { id, kind: ParentKind::Branch, through: None })).await?);
            }
        }
        Ok(agent)
    }

    async fn create(&self, parent: Option<Parent>) -> Result<Live, AgentError> {
        let host = &self.host;
        let session = host.store.create_session(NewSession {
            source: host.settings.platform.clone(),
            workspace: self.workspace.clone(),
            engine: host.engine.clone(),
            model: host.model.clone(),
            title: None,
            frozen: None,
            started_at: host.settings.clock.now(),
            parent,
        })?;
        Live::start(host, session, true).await
    }

    /// The session, once it is stored.
    pub fn session(&self) -> Option<&SessionId> {
        self.live.as_ref().map(|live| &live.log.session)
    }

    /// Answers what the user says. On an error everything said so far is stored, and the next turn can go on.
    pub async fn turn(
        &mut self,
        text: &str,
        observer: &mut dyn Observer,
        interrupt: &Interrupt,
    ) -> Result<TurnEnd, AgentError> {
        if text.trim().is_empty() {
            return Err(AgentError::EmptyMessage);
        }
        let live = match &mut self.live {
            Some(live) => live,
            None => {
                let lines = self.host.plugins.renew(reload::PATIENCE).await;
                let live = self.create(None).await?;
                lines.into_iter().for_each(|line| live.plugged.voice.notice(line));
                self.live.insert(live)
            }
        };
        turn::run(&self.host, live, text, observer, interrupt).await
    }

    /// `/compress`: what came of it.
    pub async fn compress(
        &mut self,
        focus: Option<&str>,
        observer: &mut dyn Observer,
        interrupt: &Interrupt,
    ) -> Result<Compression, AgentError> {
        match &mut self.live {
            Some(live) => room::compress(&self.host, live, focus, observer, interrupt).await,
            None => Ok(NOTHING_SAID),
        }
    }

    /// `/compress --preview`: what that would do, or why it would do nothing.
    pub async fn preview(&mut self, focus: Option<&str>, observer: &mut dyn Observer) -> Result<Outlook, Compression> {
        match &mut self.live {
            Some(live) => room::preview(&self.host, live, focus, observer).await,
            None => Err(NOTHING_SAID),
        }
    }

    /// Builds the prompt of the session anew, with all that has changed since: what changed, or none.
    pub async fn rebuild_prompt(&mut self, observer: &mut dyn Observer) -> Result<Option<String>, AgentError> {
        let Some(live) = &mut self.live else { return Ok(None) };
        let changed = rebuild::rebuild(&self.host, live).await;
        live.ear.drain(observer);
        changed
    }

    /// For the status line.
    pub fn status(&self) -> Status {
        Status {
            model: self.host.model.name.clone(),
            engine: self.host.engine.clone(),
            prompt_tokens: self.live.as_ref().map_or(0, Live::next_request),
            context_length: self.host.model.context_length,
            messages: self.live.as_ref().map_or(0, |live| live.log.journal.conversation().messages().len()),
        }
    }

    /// What fills the window, for `/context`; none before anything was said.
    pub async fn context(&self) -> Result<Option<Context>, AgentError> {
        let Some(live) = &self.live else { return Ok(None) };
        let session = self.host.store.session(&live.log.session)?;
        let mut context = Context::read(&self.host.store, &session)?;
        let status = match live.compaction.compactor.plugin().status().await {
            Ok(status) => serde_json::from_str(&status).unwrap_or(serde_json::Value::String(status)),
            Err(error) => error.to_string().into(),
        };
        context.live = Some(Working {
            enabled: self.host.settings.compression,
            preparing: live.compaction.compactor.is_preparing(),
            status,
        });
        Ok(Some(context))
    }

    /// Ends work on the session: hooks and memories get what they have coming, in bounded time. What they and the engine
    /// say meanwhile is passed on.
    pub async fn close(self, observer: &mut dyn Observer) {
        /// Summaries for the next process are worth a moment; a prompt that comes back at once is worth more.
        const ONE_SHOT: Duration = Duration::from_secs(10);
        const PATIENCE: Duration = Duration::from_secs(2);
        let Some(mut live) = self.live else { return };
        live.ear.ask_no_more();
        let patience = if self.host.settings.one_shot { ONE_SHOT } else { Duration::ZERO };
        let Live { compaction, plugged, ear, .. } = &mut live;
        let ending = async {
            compaction.compactor.finish(patience).await;
            let _ = tokio::time::timeout(PATIENCE, plugged.watchers.settle()).await;
            if let Some(syncing) = plugged.syncing.take() {
                let _ = tokio::time::timeout(PATIENCE, syncing).await;
            }
        };
        ear.attend(observer, ending).await;
        ear.drain(observer);
    }
}
