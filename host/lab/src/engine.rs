//! A column for an installed engine: the host's own compaction over a conversation in memory, with a simulated clock.
//!
//! The column runs the host's real code: the same code calls the engine, verifies its plans, decides what pays off and
//! folds by rule. Only the environment is simulated: the clock, the provider's cache and the model that writes summaries.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use hermes_agent::compaction::Compacted;
use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, Item, MessageId, View};
use hermes_engine_trials::bench::{Bench, Setting};
use hermes_engine_trials::recall::EngineTools;
use hermes_engine_trials::trace::Compaction;
use hermes_engine_trials::watch::Effort;
use hermes_engine_trials::{StandIn, Terms, needles, runtime};
use hermes_plugin_host::{Plugins, Start, Storage};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::context::{self, Block, Context, Publication};
use crate::replay::{Answer, Column, Due, Remains};

/// How many notices to the user a report repeats.
const NOTICES: usize = 5;

/// An engine to measure, with its settings.
pub struct Contestant<'a> {
    /// Its name in the report.
    pub name: String,
    /// The selected plugins.
    pub plugins: &'a Plugins,
    /// The terms that all columns share.
    pub terms: Terms,
    /// The model that writes summaries.
    pub stand_in: StandIn,
    /// A folder of its own for the data of its plugins.
    pub home: &'a Path,
    /// The id of the conversation.
    pub session: String,
    /// Whether the engine's recall tools are tested at the end.
    pub recall: bool,
}

/// A conversation that an engine compacts.
pub struct Engine {
    name: String,
    recall: bool,
    bench: Bench,
    context: Context,
    rendering: Rendering,
    blocks: HashMap<blake3::Hash, Arc<Block>>,
    /// How many messages the context has taken into account.
    shown: usize,
    // Dropped last: the tasks of the bench run in it.
    runtime: Runtime,
}

impl Engine {
    /// Starts an engine on an empty conversation.
    ///
    /// # Errors
    ///
    /// Returns the reason if the engine does not start.
    pub fn start(contestant: &Contestant<'_>) -> Result<Self, String> {
        let runtime = runtime()?;
        let setting = Setting {
            plugins: contestant.plugins,
            terms: contestant.terms,
            stand_in: contestant.stand_in,
            home: contestant.home,
            storage: Storage::Home,
            session: contestant.session.clone(),
            start: Start::Fresh,
            conversation: Conversation::default(),
            view: View::default(),
            views: Vec::new(),
            now_ms: 0,
        };
        let bench = {
            let _inside = runtime.enter();
            Bench::begin(setting)?
        };
        Ok(Self {
            name: contestant.name.clone(),
            recall: contestant.recall,
            bench,
            context: Context::default(),
            rendering: Rendering::default(),
            blocks: HashMap::new(),
            shown: 0,
            runtime,
        })
    }

    /// The conversation so far.
    pub fn conversation(&self) -> impl Deref<Target = Conversation> + '_ {
        self.bench.log.conversation()
    }

    /// The current view of it.
    pub fn view(&self) -> &View {
        &self.bench.target.view
    }

    /// The simulated time in Unix milliseconds: that of the last request, plus the time spent waiting for summaries.
    pub fn now_ms(&self) -> u64 {
        self.bench.now_ms()
    }

    /// Calls a tool of the engine.
    ///
    /// # Errors
    ///
    /// Returns the tool's error, or an error if the engine has no tools.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        self.engine_tools(&self.conversation())?.call(tool, arguments)
    }

    /// Reads a message back through the engine's tools, byte for byte.
    ///
    /// # Errors
    ///
    /// Returns the difference to the original message, or an error if the engine has no tools.
    pub fn read_back(&self, id: MessageId) -> Result<(), String> {
        let conversation = self.conversation();
        let message = conversation.get(id).ok_or_else(|| format!("there is no message {id}"))?;
        needles::is_whole(message, &mut self.engine_tools(&conversation)?)
    }

    fn engine_tools<'a>(&'a self, conversation: &'a Conversation) -> Result<EngineTools<'a>, String> {
        let tools = EngineTools::find(&self.runtime, &self.bench_name(), self.bench.tools(), conversation);
        tools.ok_or_else(|| "the engine has no `recall` and no `expand`".to_owned())
    }

    /// Updates the context of the request after these compactions.
    fn show(&mut self, done: &[Compacted]) {
        let conversation = self.bench.log.conversation();
        if done.is_empty() {
            let new = &conversation.messages()[self.shown..];
            context::append(&mut self.context.blocks, &mut self.rendering, new);
        } else {
            for block in self.context.blocks.drain(..) {
                self.blocks.insert(*block.hash(), block);
            }
            // An unchanged message keeps its block.
            let (rendering, shown) = Rendering::of(&conversation, &self.bench.target.view);
            self.rendering = rendering;
            for shown in shown {
                let block = Block::new(shown);
                let block = self.blocks.entry(*block.hash()).or_insert_with(|| Arc::new(block));
                self.context.blocks.push(Arc::clone(block));
            }
        }
        self.shown = conversation.messages().len();
        self.context.publication = publication(done);
    }

    fn recovered(&self) -> Option<needles::Recovered> {
        let conversation = self.bench.log.conversation().clone();
        let verbatim = shown_whole(&conversation, &self.bench.target.view);
        let needles = needles::sample(conversation.messages(), &|id| !verbatim.contains(&id));
        let mut tools = self.engine_tools(&conversation).ok()?;
        Some(needles::recover(conversation.messages(), &needles, &mut tools))
    }

    fn bench_name(&self) -> String {
        use hermes_plugin_host::ContextEngine as _;
        self.bench.watched.name().to_owned()
    }
}

/// The messages that a view shows in full.
pub(crate) fn shown_whole(conversation: &Conversation, view: &View) -> HashSet<MessageId> {
    let spans = conversation.items(view).into_iter().filter_map(|item| match item {
        Item::Messages(range) => Some(conversation.span(range)),
        _ => None,
    });
    spans.flat_map(|span| conversation.messages()[span].iter().map(|message| message.id)).collect()
}

/// Merges the compactions before one request into one publication.
fn publication(done: &[Compacted]) -> Option<Publication> {
    if done.is_empty() {
        return None;
    }
    let is_prepared = |compacted: &Compacted| {
        let share = compacted.extra.iter().find(|(key, _)| key == "prepared");
        share.and_then(|(_, share)| share.split_once('/')).is_some_and(|(ready, all)| ready == all)
    };
    Some(Publication {
        prepared: done.iter().all(is_prepared),
        by_rule: done.iter().any(|compacted| compacted.by == "host"),
        compactions: done.iter().cloned().map(Compaction::from).collect(),
    })
}

impl Column for Engine {
    fn name(&self) -> &str {
        &self.name
    }

    fn request(&mut self, due: &Due<'_>) -> Result<Answer, String> {
        let Self { runtime, bench, .. } = self;
        if let Some(usage) = due.last {
            bench.counted(usage);
        }
        let done = runtime.block_on(async {
            for message in due.new {
                bench.add_message(message.id, message).await?;
            }
            bench.make_room(due.now_ms).await
        })?;
        self.show(&done);
        let plans = Some(self.bench.watched.take_plans());
        Ok(Answer { context: self.context.clone(), summaries: self.bench.take_written(), plans })
    }

    fn finish(&mut self, due: &Due<'_>) -> Result<Remains, String> {
        let Self { runtime, bench, .. } = self;
        runtime.block_on(async {
            for message in due.new {
                bench.add_message(message.id, message).await?;
            }
            Ok::<(), String>(())
        })?;
        let (summaries, plans) = (self.bench.take_written(), Some(self.bench.watched.take_plans()));
        let recovered = if self.recall { self.recovered() } else { None };
        let effort = Effort { assisted: Some(self.bench.assisted), ..self.bench.watched.effort() };
        let mut notices = self.bench.notices();
        notices.truncate(NOTICES);
        Ok(Remains { summaries, plans, effort, recovered, notices, timing: self.bench.watched.timing() })
    }
}
