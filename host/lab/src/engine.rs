//! An installed engine as a column: the host's own compaction over a conversation in memory, with a simulated clock.
//!
//! What is measured is the host and not an imitation of it: the same code asks the engine, checks its plans, decides what
//! pays and folds by rule. Only what surrounds it is simulated: the time, the provider's cache, the model that writes
//! summaries.

pub(crate) mod bench;
mod finder;
mod gate;
mod log;
mod models;
pub(crate) mod recall;
pub(crate) mod watch;

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use hermes_agent::compaction::Compacted;
use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, Item, MessageId, View};
use hermes_plugin_host::{Plugins, Start, Storage};
use serde_json::Value;
use tokio::runtime::Runtime;

use self::bench::{Bench, Setting};
use self::recall::EngineTools;
use crate::Terms;
use crate::context::{self, Block, Context, Publication};
use crate::figures::Effort;
use crate::needles;
use crate::replay::{Answer, Column, Due, Remains};
use crate::summariser::StandIn;

/// Lines for the user that a report repeats.
const NOTICES: usize = 5;

/// An engine that was selected, and how it is to be tried.
pub struct Contestant<'a> {
    /// As the report calls it.
    pub name: String,
    /// Its plugin.
    pub plugins: &'a Plugins,
    /// What all columns have in common.
    pub terms: Terms,
    /// Who writes summaries.
    pub stand_in: StandIn,
    /// A folder of its own, for what plugins store.
    pub home: &'a Path,
    /// Names the conversation.
    pub session: String,
    /// Whether its tools are tried at the end.
    pub recall: bool,
}

/// A conversation under the care of an engine.
pub struct Engine {
    name: String,
    recall: bool,
    bench: Bench,
    context: Context,
    rendering: Rendering,
    blocks: HashMap<blake3::Hash, Arc<Block>>,
    /// Messages that the context shows.
    shown: usize,
    // Dropped last: what the bench holds runs in it.
    runtime: Runtime,
}

impl Engine {
    /// Starts an engine on an empty conversation.
    ///
    /// # Errors
    ///
    /// Why it does not start, in words.
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

    /// What was said so far.
    pub fn conversation(&self) -> impl Deref<Target = Conversation> + '_ {
        self.bench.log.conversation()
    }

    /// What is shown of it.
    pub fn view(&self) -> &View {
        &self.bench.desk.view
    }

    /// Simulated time, in Unix milliseconds: that of the last request, and what it waited for the model that summarises.
    pub fn now_ms(&self) -> u64 {
        self.bench.now_ms()
    }

    /// What a tool of the engine answers.
    ///
    /// # Errors
    ///
    /// What the tool says is wrong, or that the engine has none.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        self.engine_tools(&self.conversation())?.call(tool, arguments)
    }

    /// Reads a message back through the engine's tools, byte for byte.
    ///
    /// # Errors
    ///
    /// What of it comes back otherwise than it was said, or that the engine has no tools.
    pub fn read_back(&self, id: MessageId) -> Result<(), String> {
        let conversation = self.conversation();
        let message = conversation.get(id).ok_or_else(|| format!("there is no message {id}"))?;
        needles::is_whole(message, &mut self.engine_tools(&conversation)?)
    }

    fn engine_tools<'a>(&'a self, conversation: &'a Conversation) -> Result<EngineTools<'a>, String> {
        let tools = EngineTools::find(&self.runtime, &self.bench_name(), self.bench.tools(), conversation);
        tools.ok_or_else(|| "the engine has no `recall` and no `expand`".to_owned())
    }

    /// What the request shows, after `done` was done.
    fn show(&mut self, done: &[Compacted]) {
        let conversation = self.bench.log.conversation();
        if done.is_empty() {
            let new = &conversation.messages()[self.shown..];
            context::append(&mut self.context.blocks, &mut self.rendering, new);
        } else {
            for block in self.context.blocks.drain(..) {
                self.blocks.insert(*block.hash(), block);
            }
            // What is shown as before stays the same block.
            let (rendering, shown) = Rendering::of(&conversation, &self.bench.desk.view);
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
        let verbatim = shown_whole(&conversation, &self.bench.desk.view);
        let needles = needles::sample(conversation.messages(), &|id| !verbatim.contains(&id));
        let mut tools = self.engine_tools(&conversation).ok()?;
        Some(needles::recover(conversation.messages(), &needles, &mut tools))
    }

    fn bench_name(&self) -> String {
        use hermes_plugin_host::ContextEngine as _;
        self.bench.watched.name().to_owned()
    }
}

/// A runtime of one thread: what runs in it runs in one order.
pub(crate) fn runtime() -> Result<Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no thread can be started: {error}"))
}

/// The messages that a view shows as they were said.
pub(crate) fn shown_whole(conversation: &Conversation, view: &View) -> HashSet<MessageId> {
    let spans = conversation.items(view).into_iter().filter_map(|item| match item {
        Item::Messages(range) => Some(conversation.span(range)),
        _ => None,
    });
    spans.flat_map(|span| conversation.messages()[span].iter().map(|message| message.id)).collect()
}

/// What was done before one request, as one.
fn publication(done: &[Compacted]) -> Option<Publication> {
    let last = done.last()?;
    let is_prepared = |compacted: &Compacted| {
        let said = compacted.extra.iter().find(|(key, _)| key == "prepared");
        said.and_then(|(_, share)| share.split_once('/')).is_some_and(|(ready, all)| ready == all)
    };
    Some(Publication {
        prepared: done.iter().all(is_prepared),
        by_rule: done.iter().any(|compacted| compacted.by == "host"),
        note: last.reason.clone(),
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
                bench.hear(message.id, message).await?;
            }
            bench.make_room(due.now_ms).await
        })?;
        self.show(&done);
        Ok(Answer { context: self.context.clone(), summaries: self.bench.take_written() })
    }

    fn finish(&mut self, due: &Due<'_>) -> Result<Remains, String> {
        let Self { runtime, bench, .. } = self;
        runtime.block_on(async {
            for message in due.new {
                bench.hear(message.id, message).await?;
            }
            Ok::<(), String>(())
        })?;
        let summaries = self.bench.take_written();
        let recovered = if self.recall { self.recovered() } else { None };
        let effort = Effort { assisted: Some(self.bench.assisted), ..self.bench.watched.effort() };
        let mut notices = self.bench.notices();
        notices.truncate(NOTICES);
        Ok(Remains { summaries, effort, recovered, notices, timing: self.bench.watched.timing() })
    }
}
