//! A conversation that an engine compacts, in the host's compaction with a simulated environment.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_agent::assist::{self, Assistant};
use hermes_agent::compaction::{Compacted, Compactor, Notify, Ruler, Rules};
use hermes_conversation::fence::Marks;
use hermes_conversation::{Conversation, Draft, MessageId, Model, Role, Usage, View};
use hermes_plugin_host::services::{Clock as _, FileGuard, NoSession, RepeatableRandom, SandboxRules};
use hermes_plugin_host::{
    AssistDraft, CalledTool, ContextAssist, Limit, LimitSet, Moment, Plugins, SessionInfo, SessionPlugins, Start,
    Storage, Surroundings, ToolResult, Tools,
};
use hermes_testkit::{StandIn, Written};

use crate::Terms;
use crate::gate::Gate;
use crate::log::{IndexedSearch, LabTarget, Log};
use crate::models::StandInModels;
use crate::watch::Watched;

/// Longer than any run: no result may depend on the speed of the machine.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// The start state of a conversation.
pub struct Setting<'a> {
    /// The selected plugins, with the engine.
    pub plugins: &'a Plugins,
    /// The window and the prices.
    pub terms: Terms,
    /// The model that writes summaries.
    pub stand_in: StandIn,
    /// A folder for the search index.
    pub home: &'a Path,
    /// The storage of plugins, which may outlive the bench.
    pub storage: Storage,
    /// The id of the conversation; `start` may name the one that it continues.
    pub session: String,
    /// Whether a session begins or continues.
    pub start: Start,
    /// The earlier messages.
    pub conversation: Conversation,
    /// The view of them.
    pub view: View,
    /// Every earlier view, oldest first.
    pub views: Vec<View>,
    /// The simulated time in Unix milliseconds.
    pub now_ms: u64,
}

/// A running conversation. All of its tasks run in its owner's runtime.
pub struct Bench {
    terms: Terms,
    /// What compaction changes.
    pub target: LabTarget,
    /// The conversation, which plugins read.
    pub log: Arc<Log>,
    gate: Arc<Gate>,
    written: Arc<Mutex<Vec<Written>>>,
    notices: Arc<Mutex<Vec<String>>>,
    /// The engine, whose calls are counted.
    pub watched: Arc<Watched>,
    plugins: SessionPlugins,
    compactor: Compactor,
    assistant: Assistant,
    /// The estimate for the last request, until its real usage is known.
    estimate: Option<u32>,
    /// How many messages had passages added by the engine.
    pub assisted: u64,
}

/// Limits so high that a slow machine changes no figure; a plugin that never answers is still ended.
pub fn limits() -> LimitSet {
    let with_time =
        |set: LimitSet, limit, time: Duration| set.and(limit, u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let minutes = Duration::from_secs(10 * 60);
    let set = [Limit::StartTime, Limit::TurnTime, Limit::RecallTime, Limit::Cpu]
        .into_iter()
        .fold(LimitSet::default(), |set, limit| with_time(set, limit, minutes));
    let set = with_time(set, Limit::ToolTime, minutes);
    // Background work waits in simulated time, for as long as the replay takes.
    with_time(set, Limit::BackgroundTime, PATIENCE)
}

impl Bench {
    /// Starts the engine. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// When a plugin does not start.
    pub fn begin(setting: Setting<'_>) -> Result<Self, String> {
        let Setting { plugins, terms, stand_in, home, storage, session, start, conversation, view, views, now_ms } =
            setting;
        let gate = Arc::new(Gate::default());
        gate.step(now_ms);
        let written = Arc::new(Mutex::new(Vec::new()));
        let notices = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::new(Log::new(conversation, IndexedSearch::new(home.to_owned())));
        let models =
            StandInModels { stand_in, window: terms.window, gate: Arc::clone(&gate), written: Arc::clone(&written) };
        let parent = if let Start::Continued(parent) = &start { Some(parent.clone()) } else { None };
        let surroundings = Surroundings {
            session: SessionInfo {
                id: session,
                parent,
                platform: "lab".to_owned(),
                purpose: "primary".to_owned(),
                profile: "default".to_owned(),
                workspace: None,
                repository: None,
                model: Model { provider: "lab".to_owned(), name: "recorded".to_owned(), context_length: terms.window },
            },
            start,
            home: home.to_owned(),
            storage,
            workspace: home.to_owned(),
            clock: gate.clone(),
            random: Arc::new(RepeatableRandom::default()),
            limits: limits(),
            models: Arc::new(models),
            embeddings: Arc::new(NoSession),
            history: log.clone(),
            reporters: Box::new(|_| Arc::new(NoSession)),
            approvals: Box::new(|_| Arc::new(NoSession)),
            files: FileGuard::default(),
            sandbox: SandboxRules::default(),
        };
        let plugins = plugins.start(&surroundings).map_err(|error| error.to_string())?;
        let notify = notify(&notices);
        let watched = Arc::new(Watched::new(Arc::clone(&plugins.engine), Arc::clone(&gate)));
        let rules = Rules { enabled: true, window: terms.window, patience: PATIENCE };
        let compactor = Compactor::new(watched.clone(), Vec::new(), rules, Ruler::default(), Arc::clone(&notify));
        let listener = Arc::clone(&watched);
        let compactor = compactor.with_listener(Arc::new(move |deferral| listener.deferred(deferral)));
        let assistant = Assistant::new(plugins.assist.clone(), notify, Marks::repeatable()).with_timeout(PATIENCE);
        let mut target = LabTarget {
            log: Arc::clone(&log),
            view,
            views: Vec::new(),
            summaries: HashMap::new(),
            fixed_tokens: terms.fixed_tokens,
            prices: terms.prices,
            sent: None,
            now_ms,
            faults: 0,
        };
        views.into_iter().for_each(|view| target.remember(view));
        Ok(Self {
            terms,
            target,
            log,
            gate,
            written,
            notices,
            watched,
            plugins,
            compactor,
            assistant,
            estimate: None,
            assisted: 0,
        })
    }

    /// Runs background work through every event up to this time, until it is done or waits for a later time.
    pub async fn advance(&mut self, now_ms: u64) {
        self.settle().await;
        while self.gate.step(now_ms) {
            self.settle().await;
        }
        self.target.now_ms = now_ms;
    }

    async fn settle(&mut self) {
        let mut polled = 0_u32;
        while self.compactor.is_preparing() && !self.gate.is_waited_at() {
            polled += 1;
            if polled < 64 {
                tokio::task::yield_now().await;
            } else {
                // It waits for another thread, such as that of a database.
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        }
    }

    /// Adds a message to the conversation, with the passages that the engine quotes for it.
    ///
    /// # Errors
    ///
    /// When compaction fails after the turn.
    pub async fn add_message(&mut self, id: MessageId, draft: &Draft) -> Result<(), String> {
        self.begin_message(draft).await;
        let mut draft = draft.clone();
        if let Some(block) = self.quoted_passages(&draft).await {
            self.assisted += 1;
            draft.sent = Some(format!("{}\n\n{block}", draft.text_sent()));
        }
        self.keep_message(id, draft).await
    }

    /// Adds a message to the conversation as it is, without searching for passages to quote.
    ///
    /// # Errors
    ///
    /// When compaction fails after the turn.
    pub async fn add_plain(&mut self, id: MessageId, draft: Draft) -> Result<(), String> {
        self.begin_message(&draft).await;
        self.keep_message(id, draft).await
    }

    async fn begin_message(&mut self, draft: &Draft) {
        self.advance(draft.created_at).await;
        if draft.role == Role::User {
            self.compactor.turn_begins();
        }
    }

    async fn keep_message(&mut self, id: MessageId, draft: Draft) -> Result<(), String> {
        let ends_turn = draft.role == Role::Assistant && draft.tool_calls.is_empty();
        self.log.change().push(draft.numbered(id));
        if ends_turn {
            self.compactor.turn_ended(&mut self.target).await.map_err(|error| error.to_string())?;
            self.settle().await;
        }
        Ok(())
    }

    async fn quoted_passages(&mut self, draft: &Draft) -> Option<String> {
        let assist_draft = match draft.role {
            Role::User => AssistDraft::User(draft.content.clone()),
            Role::Tool => {
                let call = self.call(draft.tool_call_id.as_deref()?)?;
                AssistDraft::Tool(ToolResult { call, content: draft.content.clone() })
            }
            Role::Assistant | Role::System => return None,
        };
        let budget = assist::budget(self.terms.window);
        let quotes = self.assistant.consult(|| assist_draft, budget).await;
        self.assistant.block(&quotes, &self.log.conversation(), &self.target.view, budget)
    }

    /// The call with this id in the newest assistant message.
    fn call(&self, id: &str) -> Option<CalledTool> {
        let conversation = self.log.conversation();
        let caller = conversation.messages().iter().rev().find(|message| message.role == Role::Assistant)?;
        let call = caller.tool_calls.iter().find(|call| call.id == id)?;
        Some(CalledTool { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() })
    }

    /// Makes room before a request, and returns the compactions.
    ///
    /// # Errors
    ///
    /// When the request does not fit into the window.
    pub async fn make_room(&mut self, now_ms: u64) -> Result<Vec<Compacted>, String> {
        self.advance(now_ms).await;
        let is_users = self.log.conversation().messages().last().is_some_and(|last| last.role == Role::User);
        let moment = if is_users { Moment::TurnStart } else { Moment::MidTurn };
        let mut done = Vec::new();
        let made = self.compactor.make_room(&mut self.target, moment, &mut done).await;
        self.settle().await;
        if !done.is_empty() {
            self.assistant.view_changed();
        }
        made.map_err(|error| error.to_string())?;
        let estimate = self.compactor.estimate(&self.target);
        self.estimate = Some(estimate);
        self.target.sent = Some((now_ms, self.compactor.ruler().counted(estimate)));
        Ok(done)
    }

    /// Reports the provider's token count for the last request.
    pub fn counted(&mut self, usage: Usage) {
        if let Some(estimate) = self.estimate.take() {
            self.compactor.counted(estimate, Some(usage));
            self.target.sent = self.target.sent.map(|(sent, _)| (sent, usage.input));
        }
    }

    /// The simulated time. It is later than the last request or message only if one of them waited for a summary.
    pub fn now_ms(&self) -> u64 {
        self.gate.now()
    }

    /// The estimated tokens of the next request.
    pub fn tokens(&self) -> u32 {
        self.compactor.estimate(&self.target)
    }

    /// The engine's interface for quoting passages, if it has one.
    pub fn assist(&self) -> Option<&Arc<dyn ContextAssist>> {
        self.plugins.assist.as_ref()
    }

    /// The tools that the engine offers the model.
    pub fn tools(&self) -> &[Arc<dyn Tools>] {
        &self.plugins.tools
    }

    /// The summariser's calls since the last call of this function.
    pub fn take_written(&self) -> Vec<Written> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The notices that the user would have seen, without duplicates.
    pub fn notices(&self) -> Vec<String> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the conversation and aborts its background work.
    pub async fn kill(mut self) {
        self.compactor.finish(Duration::ZERO).await;
    }
}

fn notify(notices: &Arc<Mutex<Vec<String>>>) -> Notify {
    let notices = Arc::clone(notices);
    Arc::new(move |notice| {
        let text = notice.to_string();
        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(&text) {
            notices.push(text);
        }
    })
}
