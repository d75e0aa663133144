//! The tool `recall` of a context engine, over one conversation that contains all sessions of a dialogue.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use hermes_conversation::{Conversation, Draft, MessageId, View};
use hermes_engine_trials::bench::{Bench, Setting};
use hermes_engine_trials::runtime;
use hermes_plugin_host::{ContextEngine as _, Invocation, Plugins, Start, Storage, Tools};
use hermes_testkit::{FaultMode, StandIn};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::sessions::draft;
use super::{Answer, Contender, Dialogue, Memory, Turn};
use crate::Terms;

const TOOL: &str = "recall";
/// More than any number of hits needs.
const PAGES: usize = 1_000;
/// The last line of a page that is not the last one begins with this.
const MORE: &str = "More: page ";
/// Said after the dialogue, because the tool leaves out the newest turn, which a model sees anyway.
const NEWEST: &str = "Now to something else.";

/// An engine's search of its own conversation.
pub struct RecallTool<'a> {
    plugins: &'a Plugins,
}

impl<'a> RecallTool<'a> {
    /// The name of its column.
    pub const NAME: &'static str = "recall";

    /// The tool of the engine among these plugins.
    pub fn of(plugins: &'a Plugins) -> Self {
        Self { plugins }
    }
}

impl Contender for RecallTool<'_> {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn begin<'a>(&'a self, dialogue: &'a Dialogue, folder: &Path) -> Result<Box<dyn Memory + 'a>, String> {
        let runtime = runtime()?;
        let terms = Terms::STANDARD;
        let setting = Setting {
            plugins: self.plugins,
            terms,
            stand_in: StandIn::new(terms.bytes_per_token, FaultMode::None),
            home: folder,
            storage: Storage::Home,
            session: "dialogue".to_owned(),
            start: Start::Fresh,
            conversation: Conversation::default(),
            view: View::default(),
            views: Vec::new(),
            now_ms: dialogue.messages.first().map_or(0, |first| first.said_at),
        };
        let bench = {
            let _inside = runtime.enter();
            Bench::begin(setting)?
        };
        let engine = bench.watched.name().to_owned();
        let tools = bench.tools().iter().find(|tools| tools.name() == engine).cloned();
        let tools = tools.ok_or_else(|| format!("`{engine}` has no tools"))?;
        let catalog = runtime.block_on(tools.catalog()).map_err(|error| error.to_string())?;
        if !catalog.iter().any(|tool| tool.schema.name == TOOL) {
            return Err(format!("`{engine}` has no tool `{TOOL}`"));
        }
        Ok(Box::new(Conversing { dialogue, bench, tools, calls: 0, runtime }))
    }
}

struct Conversing<'a> {
    dialogue: &'a Dialogue,
    bench: Bench,
    tools: Arc<dyn Tools>,
    calls: u64,
    // Dropped last: the tasks of the bench run in it.
    runtime: Runtime,
}

/// The message at a position of the dialogue. Ids begin at 1.
fn id(at: usize) -> MessageId {
    MessageId(at as u64 + 1)
}

impl Conversing<'_> {
    fn call(&mut self, arguments: &Value) -> Result<String, String> {
        self.calls += 1;
        let invocation = Invocation {
            id: format!("lab-{}", self.calls),
            name: TOOL.to_owned(),
            arguments: arguments.to_string(),
            extra: Vec::new(),
        };
        let output = self.runtime.block_on(self.tools.call(invocation));
        output.map(|output| output.content).map_err(|error| error.to_string())
    }
}

impl Memory for Conversing<'_> {
    fn write(&mut self, turn: &Turn) -> Result<(), String> {
        let Self { runtime, bench, dialogue, .. } = self;
        runtime.block_on(async {
            for at in turn.messages.clone() {
                bench.add_plain(id(at), draft(&dialogue.messages[at])).await?;
            }
            Ok(())
        })
    }

    fn settle(&mut self) -> Result<(), String> {
        let Self { runtime, bench, dialogue, .. } = self;
        let count = dialogue.messages.len();
        let said_at = dialogue.messages.last().map_or(0, |last| last.said_at);
        runtime.block_on(bench.add_plain(id(count), Draft::user(NEWEST, said_at)))?;
        // The lab indexes the conversation at the first search, and a session while it is written.
        self.call(&json!({ "query": "index" })).map(drop)
    }

    fn ask(&mut self, question: &str, hits: usize) -> Result<Answer, String> {
        let mut answer = Answer::default();
        for page in 1..=PAGES {
            let text = self.call(&json!({ "query": question, "page": page }))?;
            let found = named(&text, self.dialogue.messages.len());
            let room = hits - answer.hits.len();
            answer.hits.extend(found.into_iter().take(room).map(|at| BTreeSet::from([at])));
            answer.text.push_str(&text);
            answer.text.push('\n');
            let is_last = !text.lines().next_back().is_some_and(|line| line.starts_with(MORE));
            if is_last || answer.hits.len() >= hits {
                break;
            }
        }
        Ok(answer)
    }
}

/// The messages that head a passage: lines that begin with `#12 ` and a role. Passages themselves are indented.
fn named(text: &str, messages: usize) -> Vec<usize> {
    let head = |line: &str| {
        let (number, _) = line.strip_prefix('#')?.split_once(' ')?;
        let at = number.parse::<usize>().ok()?.checked_sub(1)?;
        (at < messages).then_some(at)
    };
    let mut found = Vec::new();
    for at in text.lines().filter_map(head) {
        if !found.contains(&at) {
            found.push(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_of_passages_name_the_hits() {
        let page = "#3 user, 2023-05-02 13:10 UTC\n  before: #2 assistant: Hi\n| #4 is a line of it\n  after: #4 user: no\n\n\
                    #12 assistant, 2023-05-02 13:11 UTC\n| text\n\n#3 user\n#90 user\nMore: page 2.";
        assert_eq!(named(page, 20), [2, 11]);
    }
}
