//! What a plugin costs: a crash and what comes after it, a call, memory at rest, loading ten of them. `cargo xtask bench
//! plugins` runs it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Model};
use hermes_runtime::files::Roots;
use hermes_runtime::services::{
    Clock, History, HistoryHit, HistoryQuery, Level, ModelReply, ModelRequest, Models, Reporter,
};
use hermes_runtime::{
    Fault, Instance, Invocation, Lanes, Limits, Loaded, Recipe, Runtime, Services, SessionInfo, Start, Tier,
};
use hermes_zoo::Shell;

struct Nobody;

impl Reporter for Nobody {
    fn log(&self, _: Level, _: &str) {}
    fn progress(&self, _: &str) {}
}

#[async_trait]
impl Models for Nobody {
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

impl History for Nobody {
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
    fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        Ok(Vec::new())
    }
}

impl Clock for Nobody {
    fn now(&self) -> u64 {
        0
    }
    fn utc_offset(&self) -> i32 {
        0
    }
}

fn recipe(loaded: Arc<Loaded>) -> Arc<Recipe> {
    let (limits, nobody) = (Limits::of(Tier::Tools), Arc::new(Nobody));
    Arc::new(Recipe {
        plugin: "bench".into(),
        version: "0.1.0".into(),
        loaded,
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
            reporter: nobody.clone(),
            clock: nobody.clone(),
            models: nobody.clone(),
            may_ask: false,
            history: nobody,
            may_read: false,
            documents: Vec::new(),
            files: Arc::new(Roots::new(Vec::new())),
            database: None,
            http: Arc::new(hermes_runtime::http::Http::closed()),
            programs: None,
        },
        limits,
        tally: Arc::default(),
        lanes: Lanes::new(&limits),
    })
}

fn invocation(name: &str) -> Invocation {
    Invocation { id: "c".into(), name: name.into(), arguments: "{}".into(), extra: Vec::new() }
}

fn report(what: &str, aim: &str, mut took: Vec<Duration>) {
    took.sort();
    let micros = |at: usize| took[at.min(took.len() - 1)].as_secs_f64() * 1e6;
    let (median, p99) = (micros(took.len() / 2), micros(took.len() * 99 / 100));
    println!("{what:<52} {median:>10.1} {p99:>10.1}   {aim}");
}

/// Every staged component, with its path.
fn staged() -> Vec<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let mut folders = vec![target.join("bundled"), target.join("test-guests")];
    let mut components = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "wasm") {
                components.push(path);
            }
        }
    }
    components.sort();
    components
}

/// Bytes of memory that this process holds now.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    const ROUNDS: usize = 500;
    let code = tempfile::tempdir().unwrap();
    let folder = code.path().join("code");
    println!("microseconds{:<40} {:>10} {:>10}   aim", "", "median", "p99");

    let runtime = Runtime::new(folder.clone());
    let crashing = recipe(runtime.load(&hermes_zoo::crashing_tool()).unwrap());
    let (mut calls, mut after) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        crashing.call_tool(invocation("bad")).await.unwrap_err();
        let begun = Instant::now();
        crashing.call_tool(invocation("good")).await.unwrap();
        calls.push(begun.elapsed());
    }
    report("a tool's call in a fresh instance", "60", calls);
    let engine = Shell::of("everything").body("skills/index", "unreachable").build();
    let engine = recipe(runtime.load(&engine).unwrap());
    let (instance, mut warm) = (Instance::new(engine), Vec::new());
    for _ in 0..ROUNDS {
        instance.status().await.unwrap();
        let begun = Instant::now();
        instance.status().await.unwrap();
        warm.push(begun.elapsed());
        let begun = Instant::now();
        instance.skills().await.unwrap_err();
        instance.status().await.unwrap();
        after.push(begun.elapsed());
    }
    report("a call of an instance at hand", "", warm);
    report("from a crash to the next good call, the crash included", "1000", after);

    let ten: Vec<Vec<u8>> = staged().iter().map(|path| std::fs::read(path).unwrap()).collect();
    // One of them is made to be refused.
    let usable: Vec<&Vec<u8>> = ten.iter().filter(|bytes| runtime.load(bytes).is_ok()).take(10).collect();
    if usable.len() < 10 {
        println!("only {} components are staged: run `cargo xtask plugins`", usable.len());
    }
    let mut loads = Vec::new();
    for _ in 0..50 {
        let runtime = Runtime::new(folder.clone());
        let begun = Instant::now();
        let loaded: Vec<_> = usable.iter().map(|bytes| runtime.load(bytes).unwrap()).collect();
        loads.push(begun.elapsed());
        drop(loaded);
    }
    report(&format!("loading {} plugins, compiled before", usable.len()), "5000", loads);

    const IDLE: u64 = 100;
    let tool = recipe(runtime.load(&hermes_zoo::looping_tool()).unwrap());
    let first = Instance::new(Arc::clone(&tool));
    first.catalog().await.unwrap();
    let before = resident();
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        let instance = Instance::new(Arc::clone(&tool));
        instance.catalog().await.unwrap();
        idle.push(instance);
    }
    let each = resident().saturating_sub(before) / IDLE;
    println!("{:<52} {:>10} KiB at rest       aim 100", "an instance of a small plugin", each >> 10);
    drop(idle);
    for path in staged().iter().filter(|path| path.ends_with("files/files.wasm")) {
        let tool = recipe(runtime.load(&std::fs::read(path).unwrap()).unwrap());
        let first = Instance::new(Arc::clone(&tool));
        first.catalog().await.unwrap();
        let before = resident();
        let mut idle = Vec::new();
        for _ in 0..IDLE {
            let instance = Instance::new(Arc::clone(&tool));
            instance.catalog().await.unwrap();
            idle.push(instance);
        }
        let each = resident().saturating_sub(before) / IDLE;
        println!("{:<52} {:>10} KiB at rest       aim 100", "an instance of the bundled plugin `files`", each >> 10);
    }
}
