//! A memory provider, as a session uses it: turns are stored after they end, and a question is recalled for.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hermes_agent::{EmbeddingSource, recall_budget};
use hermes_conversation::{Conversation, MessageId, MessageRange, Model, Role, tokens};
use hermes_engine_trials::bench::limits;
use hermes_engine_trials::log::{IndexedSearch, Log};
use hermes_engine_trials::runtime;
use hermes_plugin_host::services::{
    Clock, Embeddings, FileGuard, ModelReply, ModelRequest, Models, NoSession, Pieces, RepeatableRandom, SandboxRules,
};
use hermes_plugin_host::{
    Fault, FaultKind, MemoryProvider, Plugins, Progress, Query, SessionInfo, SessionPlugins, Start, Storage,
    Surroundings, TurnRecord,
};
use hermes_testkit::MemoryHistory;
use tokio::runtime::Runtime;

use super::quoted::Texts;
use super::sessions::draft;
use super::{Answer, Contender, Dialogue, Memory, Turn};
use crate::Terms;

/// The most steps of an upkeep. A provider that wants more never ends.
const STEPS: usize = 100_000;

/// A provider with its settings.
pub struct Provider<'a> {
    column: String,
    plugin: String,
    plugins: &'a Plugins,
    embeddings: Arc<dyn Embeddings>,
}

impl<'a> Provider<'a> {
    /// The provider `plugin` among these plugins, in a column of this name. It gets no vectors of texts.
    pub fn new(column: String, plugin: String, plugins: &'a Plugins) -> Self {
        Self { column, plugin, plugins, embeddings: Arc::new(NoSession) }
    }

    /// The same provider with a model that computes vectors of texts.
    #[must_use]
    pub fn with_embeddings(self, source: &EmbeddingSource) -> Self {
        Self { embeddings: source.service(), ..self }
    }
}

impl Contender for Provider<'_> {
    fn name(&self) -> &str {
        &self.column
    }

    fn begin<'a>(&'a self, dialogue: &'a Dialogue, folder: &Path) -> Result<Box<dyn Memory + 'a>, String> {
        let runtime = runtime()?;
        let start = dialogue.messages.first().map_or(0, |first| first.said_at);
        let mut stored = Stored {
            provider: self,
            dialogue,
            texts: Texts::of(dialogue),
            home: folder.to_owned(),
            clock: Arc::new(Simulated(AtomicU64::new(start))),
            open: None,
            runtime,
        };
        // Whatever keeps it from starting is found before the first turn.
        stored.open(0)?;
        Ok(Box::new(stored))
    }
}

/// The time of the dialogue.
struct Simulated(AtomicU64);

impl Clock for Simulated {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn utc_offset(&self) -> i32 {
        0
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now())
    }
}

/// Answers as the host does for a user without a model.
struct NoModel;

fn no_model<T>() -> Result<T, Fault> {
    Err(Fault::new(FaultKind::Unavailable, "no-model", "the laboratory has no model"))
}

#[async_trait]
impl Models for NoModel {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        no_model()
    }

    async fn stream(&self, _: ModelRequest, _: &Pieces) -> Result<ModelReply, Fault> {
        no_model()
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// A session with the provider.
struct Open {
    /// Its number in the dialogue.
    number: usize,
    id: String,
    history: Arc<Log>,
    memory: Arc<dyn MemoryProvider>,
    plugins: SessionPlugins,
}

struct Stored<'a> {
    provider: &'a Provider<'a>,
    dialogue: &'a Dialogue,
    texts: Texts,
    home: PathBuf,
    clock: Arc<Simulated>,
    open: Option<Open>,
    // Dropped last: the session's plugins run in it.
    runtime: Runtime,
}

impl Stored<'_> {
    /// The session with this number of the dialogue, started if it is another one than the last.
    fn open(&mut self, number: usize) -> Result<&Open, String> {
        if self.open.as_ref().is_some_and(|open| open.number != number) {
            // Its plugins end within the runtime.
            let _inside = self.runtime.enter();
            self.open = None;
        }
        if self.open.is_none() {
            self.open = Some(self.start(number)?);
        }
        self.open.as_ref().ok_or_else(|| "the session did not start".to_owned())
    }

    fn start(&self, number: usize) -> Result<Open, String> {
        let terms = Terms::STANDARD;
        let id = format!("session-{}", number + 1);
        let search = IndexedSearch::new(self.home.clone());
        let history: Arc<Log> = Arc::new(MemoryHistory::new(Conversation::default(), search));
        let surroundings = Surroundings {
            session: SessionInfo {
                id: id.clone(),
                parent: None,
                platform: "lab".to_owned(),
                purpose: "primary".to_owned(),
                profile: "default".to_owned(),
                workspace: None,
                repository: None,
                model: Model { provider: "lab".to_owned(), name: "none".to_owned(), context_length: terms.window },
            },
            start: Start::Fresh,
            home: self.home.clone(),
            storage: Storage::Home,
            workspace: self.home.clone(),
            clock: self.clock.clone(),
            random: Arc::new(RepeatableRandom::default()),
            limits: limits(),
            models: Arc::new(NoModel),
            embeddings: Arc::clone(&self.provider.embeddings),
            history: history.clone(),
            reporters: Box::new(|_| Arc::new(NoSession)),
            approvals: Box::new(|_| Arc::new(NoSession)),
            files: FileGuard::default(),
            sandbox: SandboxRules::default(),
        };
        let _inside = self.runtime.enter();
        let plugins = self.provider.plugins.start(&surroundings).map_err(|error| error.to_string())?;
        let name = &self.provider.plugin;
        let memory = plugins.memories.iter().find(|memory| memory.name() == name).cloned();
        let memory = memory.ok_or_else(|| format!("`{name}` is not among the session's memories"))?;
        Ok(Open { number, id, history, memory, plugins })
    }

    /// A turn as the host delivers it.
    fn record(&self, session: &str, turn: &Turn) -> TurnRecord {
        let messages = &self.dialogue.messages[turn.messages.clone()];
        let said = |role: Role| {
            let texts = messages.iter().filter(|message| message.role == role).map(|message| message.text.as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        };
        TurnRecord {
            session: session.to_owned(),
            ended_at: messages.last().map_or(0, |last| last.said_at),
            author: None,
            number: turn.number,
            user: said(Role::User),
            assistant: said(Role::Assistant),
            interrupted: false,
            messages: MessageRange::new(id(turn.messages.start), id(turn.messages.end.saturating_sub(1))),
        }
    }
}

/// The message at a position of the dialogue. Ids begin at 1.
fn id(at: usize) -> MessageId {
    MessageId(at as u64 + 1)
}

impl Memory for Stored<'_> {
    fn write(&mut self, turn: &Turn) -> Result<(), String> {
        let messages = &self.dialogue.messages;
        let (number, clock) = (messages[turn.messages.start].session, self.clock.clone());
        clock.0.store(messages[turn.messages.start].said_at, Ordering::Relaxed);
        let open = self.open(number)?;
        for at in turn.messages.clone() {
            open.history.change().push(draft(&messages[at]).numbered(id(at)));
        }
        let (session, memory) = (open.id.clone(), Arc::clone(&open.memory));
        let record = self.record(&session, turn);
        clock.0.store(record.ended_at, Ordering::Relaxed);
        self.runtime.block_on(memory.sync_turn(&record)).map_err(|error| error.to_string())
    }

    /// Lets it care for its store, and starts the session in which the questions are asked.
    fn settle(&mut self) -> Result<(), String> {
        let number = self.dialogue.sessions();
        self.open(number)?;
        let Some(open) = &self.open else { return Ok(()) };
        let upkeep = open.plugins.memory_extras.upkeep.iter().find(|upkeep| upkeep.name() == self.provider.plugin);
        let Some(upkeep) = upkeep else { return Ok(()) };
        self.runtime.block_on(async {
            for _ in 0..STEPS {
                match upkeep.upkeep().await {
                    Ok(Progress::More) => {}
                    Ok(Progress::Done) => return Ok(()),
                    Err(error) => return Err(error.to_string()),
                }
            }
            Err(format!("its upkeep was not done after {STEPS} steps"))
        })
    }

    fn ask(&mut self, question: &str, hits: usize) -> Result<Answer, String> {
        let budget = recall_budget(Terms::STANDARD.window);
        let open = self.open(self.dialogue.sessions())?;
        let query = Query { turn: 1, author: None, text: question.to_owned(), budget, extra: Vec::new() };
        let memory = Arc::clone(&open.memory);
        let found = self.runtime.block_on(memory.recall(query)).map_err(|error| error.to_string())?;
        let mut left = budget;
        let mut known = HashSet::new();
        let mut answer = Answer::default();
        for recollection in found {
            let text = recollection.text.trim();
            let cost = tokens::of_text(text);
            // As the host does: what does not fit is left out, and what follows may fit.
            if text.is_empty() || cost > left || !known.insert(text.to_owned()) {
                continue;
            }
            left -= cost;
            if answer.hits.len() < hits {
                answer.hits.push(self.texts.shown_in(text));
            }
            if !answer.text.is_empty() {
                answer.text.push_str("\n\n");
            }
            answer.text.push_str(text);
        }
        Ok(answer)
    }
}
