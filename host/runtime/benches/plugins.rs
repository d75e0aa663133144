//! What a plugin costs: a call, a crash and the recovery from it, an empty recall, idle memory, and loading ten plugins. Run it with
//! `cargo xtask bench plugins`.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_capabilities::documents::Documents;
use hermes_runtime::{Instance, Invocation, Limits, Loaded, Query, Recipe, Runtime, Services, Tier};
use hermes_zoo::Shell;

fn recipe(loaded: Arc<Loaded>) -> Arc<Recipe> {
    Arc::new(Recipe::alone("bench", loaded, Limits::of(Tier::Tools)))
}

fn invocation(name: &str) -> Invocation {
    Invocation { id: "c".into(), name: name.into(), arguments: "{}".into(), extra: Vec::new() }
}

/// Prints a row. `xtask bench compare` matches the rows of two commits by name, so names must not change.
fn report(name: &str, target: &str, mut took: Vec<Duration>) {
    took.sort();
    let micros = |at: usize| took[at.min(took.len() - 1)].as_secs_f64() * 1e6;
    let (median, p99) = (micros(took.len() / 2), micros(took.len() * 99 / 100));
    println!("{name:<52} {median:>10.1} {p99:>10.1}   {target}");
}

/// The path of every staged component.
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

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

/// The memory that one more idle instance takes, in bytes.
async fn idle_memory(loaded: Arc<Loaded>) -> u64 {
    const INSTANCES: u64 = 100;
    let recipe = recipe(loaded);
    let first = Instance::new(Arc::clone(&recipe));
    first.catalog().await.unwrap();
    let before = resident();
    let mut idle = Vec::new();
    for _ in 0..INSTANCES {
        let instance = Instance::new(Arc::clone(&recipe));
        instance.catalog().await.unwrap();
        idle.push(instance);
    }
    resident().saturating_sub(before) / INSTANCES
}

/// Recalls of the built-in memory that find nothing, among as many facts as it can hold: what memory adds to a turn then.
async fn empty_recalls(runtime: &Runtime, rounds: usize) -> Option<Vec<Duration>> {
    let path = staged().into_iter().find(|path| path.ends_with("builtin/builtin.wasm"))?;
    let home = tempfile::tempdir().unwrap();
    let facts: Vec<String> =
        (0..700).map(|fact| format!("[2026-01-02] fact {fact}: the harbour of place{fact} is closed")).collect();
    std::fs::write(home.path().join("FACTS.md"), facts.join("\n§\n")).unwrap();
    let names = ["MEMORY.md", "USER.md", "FACTS.md"].map(str::to_owned).to_vec();
    let notes = Documents::new(home.path(), Some(names));
    let own = Documents::new(home.path().join("own"), None);
    let services = Services { documents: vec![Arc::new(notes), Arc::new(own)], ..Services::nothing() };
    let loaded = runtime.load(&std::fs::read(path).unwrap()).unwrap();
    let instance =
        Instance::new(Arc::new(Recipe { services, ..Recipe::alone("builtin", loaded, Limits::of(Tier::Session)) }));
    let mut took = Vec::new();
    for turn in 0..rounds {
        let text = "Please rewrite the parser without new dependencies.".to_owned();
        let query = Query { turn: 1, author: None, text, budget: 2_000, extra: Vec::new() };
        let begun = Instant::now();
        assert_eq!(instance.recall(query).await.unwrap().len(), 0);
        // The first turn starts the plugin and reads the facts.
        if turn > 0 {
            took.push(begun.elapsed());
        }
    }
    Some(took)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    const ROUNDS: usize = 500;
    let code = tempfile::tempdir().unwrap();
    let folder = code.path().join("code");
    println!("microseconds{:<40} {:>10} {:>10}   aim", "", "median", "p99");

    let runtime = Runtime::new(folder.clone());
    let crashing = recipe(runtime.load(&hermes_zoo::crashing_tool()).unwrap());
    let (mut calls, mut fresh, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        crashing.call_tool(invocation("bad")).await.unwrap_err();
        for calls in [&mut fresh, &mut calls] {
            let begun = Instant::now();
            crashing.call_tool(invocation("good")).await.unwrap();
            calls.push(begun.elapsed());
        }
    }
    report("a tool's call", "60", calls);
    report("a tool's call after a crash, in a fresh instance", "", fresh);
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

    match empty_recalls(&runtime, ROUNDS).await {
        Some(took) => report("a recall of `builtin` that finds nothing", "1000", took),
        None => println!("`builtin` is not staged: run `cargo xtask plugins`"),
    }

    let ten: Vec<Vec<u8>> = staged().iter().map(|path| std::fs::read(path).unwrap()).collect();
    // One of the test plugins is made to be refused.
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

    let report_memory = |name: &str, each: u64| println!("{name:<52} {:>10} KiB at rest       aim 100", each >> 10);
    report_memory(
        "an instance of a small plugin",
        idle_memory(runtime.load(&hermes_zoo::looping_tool()).unwrap()).await,
    );
    for path in staged().iter().filter(|path| path.ends_with("files/files.wasm")) {
        let loaded = runtime.load(&std::fs::read(path).unwrap()).unwrap();
        report_memory("an instance of the bundled plugin `files`", idle_memory(loaded).await);
    }
}
