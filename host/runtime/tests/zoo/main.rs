//! Hostile plugins in the runtime: each gets a clear error within its limits, and the next call works.
#![allow(clippy::unwrap_used)]

mod answers;
mod attack;
mod bytes;
mod contract;
mod deeds;
#[path = "../doubles/mod.rs"]
mod doubles;
mod engine;
#[path = "../kept/mod.rs"]
mod kept;
mod starts;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doubles::SearchOnly;
use hermes_runtime::services::{HistoryHit, HistoryQuery, Level, Reporter};
use hermes_runtime::{
    CallError, Invocation, LaterVersions, Limit, LimitSet, Limits, Loaded, Recipe, Runtime, Services, Tier,
};

/// No call may take longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The log of a plugin, which the tests read.
#[derive(Default)]
struct TestServices {
    log_lines: Mutex<Vec<(Level, String)>>,
}

impl Reporter for TestServices {
    fn log(&self, level: Level, text: &str) {
        self.log_lines.lock().unwrap().push((level, text.to_owned()));
    }
    fn progress(&self, _: &str) {}
}

/// A slow search.
async fn search(_: HistoryQuery) -> Vec<HistoryHit> {
    std::thread::sleep(Duration::from_millis(600));
    Vec::new()
}

/// Limits low enough for quick tests.
fn tight() -> LimitSet {
    LimitSet::default()
        // Processor time, which a busy machine gives slowly: the other limits must not come first.
        .and(Limit::Cpu, 500)
        .and(Limit::StartTime, 5_000)
        .and(Limit::ToolTime, 5_000)
        .and(Limit::TurnTime, 5_000)
        .and(Limit::Memory, 32 << 20)
        .and(Limit::Output, 1 << 20)
        .and(Limit::Input, 1 << 20)
}

/// A plugin with its own services.
struct Fixture {
    services: Arc<TestServices>,
    recipe: Arc<Recipe>,
}

impl Fixture {
    fn new(component: &[u8], tier: Tier) -> Self {
        Self::within(component, tier, &tight())
    }

    fn within(component: &[u8], tier: Tier, set: &LimitSet) -> Self {
        let loaded = runtime().load(component).unwrap_or_else(|error| panic!("{error}"));
        Self::of(loaded, Limits::of(tier).with(set))
    }

    /// A plugin whose manifest accepts this host, whatever later version it was built for.
    fn accepted(component: &[u8], tier: Tier) -> Self {
        let loaded = runtime().load_watched(component, LaterVersions::Accepted, &|_| ControlFlow::Continue(()));
        Self::of(loaded.unwrap_or_else(|error| panic!("{error}")), Limits::of(tier).with(&tight()))
    }

    fn of(loaded: Arc<Loaded>, limits: Limits) -> Self {
        let services = Arc::new(TestServices::default());
        let history = Arc::new(SearchOnly(search));
        let all = Services { reporter: services.clone(), history, may_read: true, ..Services::nothing() };
        let recipe = Arc::new(Recipe { services: all, ..Recipe::alone("beast", loaded, limits) });
        Self { services, recipe }
    }

    async fn tool(&self, name: &str) -> Result<String, CallError> {
        let invocation = Invocation { id: "call".into(), name: name.into(), arguments: "{}".into(), extra: Vec::new() };
        let called = tokio::time::timeout(PATIENCE, self.recipe.call_tool(invocation)).await;
        called.expect("no call outlasts its limits").map(|output| output.content)
    }

    fn log_lines(&self) -> Vec<(Level, String)> {
        self.services.log_lines.lock().unwrap().clone()
    }
}

fn runtime() -> Runtime {
    Runtime::new(code())
}

/// The folder for compiled code of this test run; removed afterwards.
fn code() -> PathBuf {
    use std::sync::OnceLock;
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path().join("code")
}
