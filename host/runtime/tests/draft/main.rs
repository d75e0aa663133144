//! A host that serves the draft of version 1.2 in `tests/draft-1.2`: the feature `draft`.
#![allow(clippy::unwrap_used)]

#[path = "../kept/mod.rs"]
mod kept;

use std::sync::{Arc, Mutex};

use hermes_runtime::services::{Level, Reporter};
use hermes_runtime::{
    CONTRACT, Instance, Invocation, LaterVersions, Limits, Recipe, Runtime, Services, Tier, served_contracts,
};
use hermes_zoo::Shell;

/// The lines that plugins show.
#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl Reporter for Shown {
    fn log(&self, _: Level, _: &str) {}
    fn progress(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[test]
fn the_host_serves_the_draft_and_the_releases() {
    assert_eq!((CONTRACT, served_contracts()), ("1.2.0-draft", &["1.2.0-draft", "1.1.0", "1.0.0"][..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_of_1_0_work() {
    let code = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(code.path().join("code"));
    for name in kept::KEPT {
        kept::works(name, &runtime).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_native_library_of_a_release_works() {
    let Some(folder) = hermes_test_data::staged("test-natives/compressor-native") else { return };
    let file = format!("{}compressor{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let code = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(code.path().join("code"));
    let library = std::fs::read(folder.join(file)).unwrap();
    let loaded = runtime.load_native(&library, LaterVersions::Refused).unwrap_or_else(|error| panic!("{error}"));
    kept::serves("compressor-native", loaded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_of_the_draft_uses_what_is_new() {
    let mut shell = Shell::of("tools-plugin").of_draft().import("notes", "show").import("history", "count");
    let [at, length] = shell.memory().bytes(b"a note");
    let [catalog, answer] = [shell.memory().catalog(&[hermes_zoo::Offered::new("new")]), shell.memory().output("done")];
    let trap_unless = |what: String| format!("(if (i32.eqz {what}) (then unreachable))");
    let is = |at: u32, value: u32| trap_unless(format!("(i32.eq (i32.load (i32.const {at})) (i32.const {value}))"));
    let is_ok = trap_unless("(i32.eqz (i32.load8_u (i32.const 4096)))".to_owned());
    let shell = shell.import("history", "search-dated");
    let search = shell.call_with_nothing("history", "search-dated");
    // A hit has 40 bytes; the time follows.
    let dated = trap_unless(format!(
        "(i64.eq (i64.load offset=40 (i32.load (i32.const 4100))) (i64.const {}))",
        kept::WRITTEN_AT
    ));
    let body = format!(
        "(call $notes/show (i32.const {at}) (i32.const {length}) (i32.const 4096)) {is_ok}
         (call $history/count (i64.const 1) (i64.const 2) (i32.const 4096)) {is_ok} {two}
         {search} {is_ok} {one} {dated}
         (i32.const {answer})",
        two = is(4100, 2),
        one = is(4104, 1),
    );
    let component = shell.body("tools/catalog", &format!("(i32.const {catalog})")).body("tools/call", &body).build();
    let code = tempfile::tempdir().unwrap();
    let loaded = Runtime::new(code.path().join("code")).load(&component).unwrap_or_else(|error| panic!("{error}"));
    let shown = Arc::new(Shown::default());
    let services = Services { reporter: shown.clone(), ..kept::services() };
    let recipe = Arc::new(Recipe { services, ..Recipe::alone("new", loaded, Limits::of(Tier::Tools)) });
    assert_eq!(Instance::new(recipe.clone()).catalog().await.unwrap().len(), 1);
    let invocation = Invocation { id: "1".into(), name: "new".into(), arguments: "{}".into(), extra: Vec::new() };
    let output = recipe.call_tool(invocation).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(output.content, "done");
    assert_eq!(*shown.0.lock().unwrap(), ["a note"]);
}
