//! Hostile plugins in the runtime: each meets an error in words, within its limits, and the next call works.
#![allow(clippy::unwrap_used)]

mod answers;
mod bytes;
mod deeds;
mod starts;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Model};
use hermes_runtime::files::Roots;
use hermes_runtime::http::Http;
use hermes_runtime::services::{
    Clock, History, HistoryHit, HistoryQuery, Level, ModelReply, ModelRequest, Models, Reporter,
};
use hermes_runtime::{
    CallError, Fault, Invocation, Lanes, Limit, LimitSet, Limits, Recipe, Runtime, Services, SessionInfo, Start, Tier,
};

/// Nothing in here may take that long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is around a plugin: an empty conversation, no model, and an ear.
#[derive(Default)]
struct World {
    heard: Mutex<Vec<(Level, String)>>,
}

impl Reporter for World {
    fn log(&self, level: Level, text: &str) {
        self.heard.lock().unwrap().push((level, text.to_owned()));
    }
    fn progress(&self, _: &str) {}
}

#[async_trait]
impl Models for World {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        Err(Fault::denied("llm"))
    }
    async fn complete(&self, _: ModelRequest) -> Result<ModelReply, Fault> {
        Err(Fault::denied("llm"))
    }
    fn count_tokens(&self, _: &str) -> u32 {
        0
    }
}

impl History for World {
    fn whole(&self) -> Option<MessageRange> {
        None
    }
    fn headers_after(&self, _: Option<MessageId>) -> Vec<Header> {
        Vec::new()
    }
    fn headers(&self, _: MessageRange) -> Vec<Header> {
        Vec::new()
    }
    fn read(&self, _: MessageRange, _: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        (Vec::new(), None)
    }
    fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }
    /// Takes its time.
    fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        std::thread::sleep(Duration::from_millis(600));
        Ok(Vec::new())
    }
}

impl Clock for World {
    fn now(&self) -> u64 {
        0
    }
    fn utc_offset(&self) -> i32 {
        0
    }
}

/// Limits that a test of them need not wait for.
fn tight() -> LimitSet {
    LimitSet::default()
        .and(Limit::Cpu, 1_000)
        .and(Limit::StartTime, 5_000)
        .and(Limit::ToolTime, 5_000)
        .and(Limit::TurnTime, 5_000)
        .and(Limit::Memory, 32 << 20)
        .and(Limit::Output, 1 << 20)
        .and(Limit::Input, 1 << 20)
}

/// A plugin in a world of its own.
struct Cage {
    world: Arc<World>,
    recipe: Arc<Recipe>,
}

impl Cage {
    fn new(component: &[u8], tier: Tier) -> Self {
        Self::within(component, tier, &tight())
    }

    fn within(component: &[u8], tier: Tier, set: &LimitSet) -> Self {
        let world = Arc::new(World::default());
        let limits = Limits::of(tier).with(set);
        let recipe = Arc::new(Recipe {
            plugin: "beast".into(),
            version: "0.1.0".into(),
            loaded: runtime().load(component).unwrap_or_else(|error| panic!("{error}")),
            config: "{}".into(),
            session: SessionInfo {
                id: "s".into(),
                parent: None,
                platform: "cli".into(),
                purpose: "primary".into(),
                profile: "default".into(),
                workspace: None,
                model: Model { provider: "offline".into(), name: "small".into(), context_length: 32_000 },
            },
            start: Start::Fresh,
            services: Services {
                reporter: world.clone(),
                clock: world.clone(),
                models: world.clone(),
                may_ask: false,
                history: world.clone(),
                may_read: true,
                documents: Vec::new(),
                files: Arc::new(Roots::new(Vec::new())),
                database: None,
                http: Arc::new(Http::closed()),
                programs: None,
            },
            limits,
            tally: Arc::default(),
            lanes: Lanes::new(&limits),
        });
        Self { world, recipe }
    }

    async fn tool(&self, name: &str) -> Result<String, CallError> {
        let invocation = Invocation { id: "call".into(), name: name.into(), arguments: "{}".into(), extra: Vec::new() };
        let called = tokio::time::timeout(PATIENCE, self.recipe.call_tool(invocation)).await;
        called.expect("no call outlasts its limits").map(|output| output.content)
    }

    fn heard(&self) -> Vec<(Level, String)> {
        self.world.heard.lock().unwrap().clone()
    }
}

fn runtime() -> Runtime {
    Runtime::new(code())
}

/// Compiled code of this run's plugins, which nobody needs afterwards.
fn code() -> PathBuf {
    use std::sync::OnceLock;
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path().join("code")
}
