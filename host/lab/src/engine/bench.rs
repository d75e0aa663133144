//! A conversation under the care of an engine: the host's compaction with everything around it simulated.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_agent::assist::{self, Assistant};
use hermes_agent::compaction::{Compacted, Compactor, Notify, Ruler, Rules};
use hermes_conversation::{Conversation, Draft, MessageId, Model, Role, Usage, View};
use hermes_plugin_host::services::{Clock as _, NoSession};
use hermes_plugin_host::{
    AssistDraft, CalledTool, ContextAssist, Limit, LimitSet, Moment, Plugins, SessionInfo, SessionPlugins, Start,
    Storage, Surroundings, ToolResult, Tools,
};

use super::gate::Gate;
use super::log::{LabDesk, Log};
use super::models::StandInModels;
use super::watch::Watched;
use crate::Terms;
use crate::summariser::{StandIn, Written};

/// Longer than any run: nothing may depend on how fast the machine is.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What a conversation is begun with.
pub(crate) struct Setting<'a> {
    pub(crate) plugins: &'a Plugins,
    pub(crate) terms: Terms,
    pub(crate) stand_in: StandIn,
    /// A folder, for what is searched.
    pub(crate) home: &'a Path,
    /// What plugins store, where it outlives the bench.
    pub(crate) storage: Storage,
    /// Names the conversation, and the one that it goes on from.
    pub(crate) session: String,
    pub(crate) start: Start,
    /// What was said before, and how it is shown.
    pub(crate) conversation: Conversation,
    pub(crate) view: View,
    /// Every view there was, oldest first.
    pub(crate) views: Vec<View>,
    pub(crate) now_ms: u64,
}

/// The conversation at work. Everything in it runs in the runtime of its owner.
pub(crate) struct Bench {
    terms: Terms,
    pub(crate) desk: LabDesk,
    pub(crate) log: Arc<Log>,
    gate: Arc<Gate>,
    written: Arc<Mutex<Vec<Written>>>,
    notices: Arc<Mutex<Vec<String>>>,
    pub(crate) watched: Arc<Watched>,
    plugins: SessionPlugins,
    compactor: Compactor,
    assistant: Assistant,
    /// Estimate for the last request, until what it took is known.
    estimate: Option<u32>,
    /// Messages behind which passages were brought back.
    pub(crate) assisted: u64,
}

/// A machine that is slow for a moment must not change a figure; a plugin that never answers is ended all the same.
fn limits() -> LimitSet {
    let patient = |set: LimitSet, limit, patience: Duration| {
        set.and(limit, u64::try_from(patience.as_millis()).unwrap_or(u64::MAX))
    };
    let minute = Duration::from_secs(60);
    let set = [Limit::StartTime, Limit::TurnTime, Limit::RecallTime, Limit::Cpu]
        .into_iter()
        .fold(LimitSet::default(), |set, limit| patient(set, limit, minute));
    let set = patient(set, Limit::ToolTime, minute * 2);
    // It waits in simulated time, for as long as the replay takes.
    patient(set, Limit::BackgroundTime, PATIENCE)
}

impl Bench {
    /// Must be called in a runtime.
    pub(crate) fn begin(setting: Setting<'_>) -> Result<Self, String> {
        let Setting { plugins, terms, stand_in, home, storage, session, start, conversation, view, views, now_ms } =
            setting;
        let gate = Arc::new(Gate::default());
        gate.step(now_ms);
        let written = Arc::new(Mutex::new(Vec::new()));
        let notices = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::new(Log::new(home.to_owned(), conversation));
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
                model: Model { provider: "lab".to_owned(), name: "recorded".to_owned(), context_length: terms.window },
            },
            start,
            home: home.to_owned(),
            storage,
            workspace: home.to_owned(),
            clock: gate.clone(),
            limits: limits(),
            models: Arc::new(models),
            history: log.clone(),
            reporters: Box::new(|_| Arc::new(NoSession)),
            approvals: Box::new(|_| Arc::new(NoSession)),
        };
        let plugins = plugins.start(&surroundings).map_err(|error| error.to_string())?;
        let notify = notify(&notices);
        let watched = Arc::new(Watched::new(Arc::clone(&plugins.engine), Arc::clone(&gate)));
        let rules = Rules { enabled: true, window: terms.window, patience: PATIENCE };
        let compactor = Compactor::new(watched.clone(), Vec::new(), rules, Ruler::default(), Arc::clone(&notify));
        let assistant = Assistant::new(plugins.assist.clone(), notify).patient(PATIENCE);
        let mut desk = LabDesk {
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
        views.into_iter().for_each(|view| desk.remember(view));
        Ok(Self {
            terms,
            desk,
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

    /// Lets background work run until it is done or waits for time to pass, at every moment up to this one.
    pub(crate) async fn advance(&mut self, now_ms: u64) {
        self.settle().await;
        while self.gate.step(now_ms) {
            self.settle().await;
        }
        self.desk.now_ms = now_ms;
    }

    async fn settle(&mut self) {
        let mut polled = 0_u32;
        while self.compactor.is_preparing() && !self.gate.is_waited_at() {
            polled += 1;
            if polled < 64 {
                tokio::task::yield_now().await;
            } else {
                // It waits for another thread, such as that of its database.
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        }
    }

    /// A message enters the conversation, with what the engine brings back behind it.
    pub(crate) async fn hear(&mut self, id: MessageId, draft: &Draft) -> Result<(), String> {
        self.advance(draft.created_at).await;
        if draft.role == Role::User {
            self.compactor.turn_begins();
        }
        let mut draft = draft.clone();
        if let Some(block) = self.brought_back(&draft).await {
            self.assisted += 1;
            draft.sent = Some(format!("{}\n\n{block}", draft.text_sent()));
        }
        let ends_turn = draft.role == Role::Assistant && draft.tool_calls.is_empty();
        self.log.change().push(draft.numbered(id));
        if ends_turn {
            self.compactor.turn_ended(&mut self.desk).await.map_err(|error| error.to_string())?;
            self.settle().await;
        }
        Ok(())
    }

    async fn brought_back(&mut self, draft: &Draft) -> Option<String> {
        let asked = match draft.role {
            Role::User => AssistDraft::User(draft.content.clone()),
            Role::Tool => {
                let call = self.call(draft.tool_call_id.as_deref()?)?;
                AssistDraft::Tool(ToolResult { call, content: draft.content.clone() })
            }
            Role::Assistant | Role::System => return None,
        };
        let budget = assist::budget(self.terms.window);
        let quotes = self.assistant.consult(|| asked, budget).await;
        self.assistant.block(&quotes, &self.log.conversation(), &self.desk.view, budget)
    }

    /// The call of the newest caller with this id.
    fn call(&self, id: &str) -> Option<CalledTool> {
        let conversation = self.log.conversation();
        let caller = conversation.messages().iter().rev().find(|message| message.role == Role::Assistant)?;
        let call = caller.tool_calls.iter().find(|call| call.id == id)?;
        Some(CalledTool { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() })
    }

    /// Before a request: room is made, and what was done is told.
    pub(crate) async fn make_room(&mut self, now_ms: u64) -> Result<Vec<Compacted>, String> {
        self.advance(now_ms).await;
        let is_users = self.log.conversation().messages().last().is_some_and(|last| last.role == Role::User);
        let moment = if is_users { Moment::TurnStart } else { Moment::MidTurn };
        let mut done = Vec::new();
        let made = self.compactor.make_room(&mut self.desk, moment, &mut done).await;
        self.settle().await;
        if !done.is_empty() {
            self.assistant.view_changed();
        }
        made.map_err(|error| error.to_string())?;
        let estimate = self.compactor.estimate(&self.desk);
        self.estimate = Some(estimate);
        self.desk.sent = Some((now_ms, self.compactor.ruler().counted(estimate)));
        Ok(done)
    }

    /// What the provider counted for the last request.
    pub(crate) fn counted(&mut self, usage: Usage) {
        if let Some(estimate) = self.estimate.take() {
            self.compactor.counted(estimate, Some(usage));
            self.desk.sent = self.desk.sent.map(|(sent, _)| (sent, usage.input));
        }
    }

    /// Simulated time: later than the last request or message only where one of them waited.
    pub(crate) fn now_ms(&self) -> u64 {
        self.gate.now()
    }

    /// Estimate for the next request.
    pub(crate) fn tokens(&self) -> u32 {
        self.compactor.estimate(&self.desk)
    }

    /// What brings back what is folded, if the engine does.
    pub(crate) fn assist(&self) -> Option<&Arc<dyn ContextAssist>> {
        self.plugins.assist.as_ref()
    }

    /// What the engine offers the model.
    pub(crate) fn tools(&self) -> &[Arc<dyn Tools>] {
        &self.plugins.tools
    }

    /// Calls of the summariser since this was last asked.
    pub(crate) fn take_written(&self) -> Vec<Written> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the user would have been told, each once.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it: work in the background that is under way is given up.
    pub(crate) async fn kill(mut self) {
        self.compactor.finish(Duration::ZERO).await;
    }
}

fn notify(notices: &Arc<Mutex<Vec<String>>>) -> Notify {
    let notices = Arc::clone(notices);
    Arc::new(move |text| {
        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        if !notices.contains(&text) {
            notices.push(text);
        }
    })
}
