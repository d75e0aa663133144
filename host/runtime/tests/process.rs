//! The import `process` as a component meets it: the deadline stands still while somebody is asked, and a
//! program that takes too long costs the plugin an answer and not its instance.
//!
//! The component is `tests/guests/runner`, as `cargo xtask plugins` stages it.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hermes_capabilities::process::{Folder, ProgramGrant, Programs, Run};
use hermes_runtime::services::{Approval, Refusal};
use hermes_runtime::{
    CallError, Cause, Fault, FaultKind, Invocation, Limit, LimitSet, Limits, Recipe, Runtime, Services,
};
use serde_json::{Value, json};

/// Takes so long, then says yes or no.
struct Person {
    thinks: Duration,
    agrees: bool,
    asked: AtomicUsize,
    /// Questions that were answered or withdrawn.
    settled: AtomicUsize,
}

/// Counts when it is dropped.
struct Settled<'a>(&'a AtomicUsize);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Approval for Person {
    async fn process(&self, _: &Run, attended: bool) -> Result<(), Fault> {
        if !attended {
            return Err(Fault::new(FaultKind::Denied, Refusal::Unattended.code(), "nobody is here"));
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _settled = Settled(&self.settled);
        tokio::time::sleep(self.thinks).await;
        if self.agrees { Ok(()) } else { Err(Fault::new(FaultKind::Denied, Refusal::User.code(), "no")) }
    }
}

/// How long a tool's call may take here.
const PATIENCE: Duration = Duration::from_secs(2);

struct Ground {
    folder: tempfile::TempDir,
    person: Arc<Person>,
    recipe: Arc<Recipe>,
}

impl Ground {
    fn new(thinks: Duration, agrees: bool, granted: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-guests/runner/runner.wasm");
        let component = std::fs::read(&staged)
            .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask plugins`", staged.display()));
        let person = Arc::new(Person { thinks, agrees, asked: AtomicUsize::new(0), settled: AtomicUsize::new(0) });
        let grant = ProgramGrant {
            programs: vec!["sh".to_owned()],
            variables: Vec::new(),
            folders: vec![Folder { name: "workspace".to_owned(), path: folder.path().to_owned(), denied: Vec::new() }],
        };
        let patience = u64::try_from(PATIENCE.as_millis()).unwrap();
        let limits = Limits::standard().with(&LimitSet::default().and(Limit::ToolTime, patience));
        let programs = granted.then(|| Programs::new(grant, person.clone()));
        let loaded = Runtime::new(folder.path().join("code")).load(&component).unwrap();
        let services = Services { programs, ..Services::nothing() };
        let recipe = Arc::new(Recipe { services, ..Recipe::alone("runner", loaded, limits) });
        Self { folder, person, recipe }
    }

    async fn run(&self, runs: Value) -> Result<Vec<Value>, CallError> {
        let arguments = json!({ "runs": runs }).to_string();
        let invocation = Invocation { id: "call".into(), name: "run".into(), arguments, extra: Vec::new() };
        let output = self.recipe.call_tool(invocation).await?;
        let told: Value = serde_json::from_str(&output.content).unwrap();
        Ok(told["answers"].as_array().unwrap().clone())
    }

    fn asked(&self) -> usize {
        self.person.asked.load(Ordering::SeqCst)
    }
}

fn shell(script: &str) -> Value {
    json!({ "program": "sh", "arguments": ["-c", script] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_may_think_longer_than_the_plugin_may_take() {
    let ground = Ground::new(PATIENCE * 3 / 2, true, true);
    let answers = ground.run(json!([shell("echo one"), shell("echo two")])).await.unwrap();
    assert_eq!((&answers[0]["output"], &answers[1]["output"]), (&json!("one\n"), &json!("two\n")));
    assert_eq!(ground.asked(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_is_not_asked_about_again_in_the_same_call() {
    let ground = Ground::new(Duration::ZERO, false, true);
    let answers = ground.run(json!([shell("true"), shell("touch it"), shell("touch it")])).await.unwrap();
    assert!(answers.iter().all(|answer| answer["code"] == "refused"), "{answers:?}");
    assert_eq!((ground.asked(), ground.folder.path().join("it").exists()), (1, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_never_ends_costs_the_plugin_neither_instance_nor_what_was_written() {
    let ground = Ground::new(Duration::ZERO, true, true);
    let endless = "trap '' TERM; echo begun; while :; do sleep 600; done";
    let answers = ground.run(json!([shell(endless)])).await.unwrap();
    assert_eq!((&answers[0]["end"], &answers[0]["output"]), (&json!("timed-out"), &json!("begun\n")));
    let mut short = shell(endless);
    short["timeout"] = json!(100);
    let answers = ground.run(json!([short, shell("echo next")])).await.unwrap();
    assert_eq!((&answers[0]["end"], &answers[1]["output"]), (&json!("timed-out"), &json!("next\n")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_away_while_it_is_asked_withdraws_the_question() {
    let ground = Ground::new(Duration::from_secs(3_600), true, true);
    {
        let call = ground.run(json!([shell("touch it")]));
        tokio::pin!(call);
        while ground.asked() == 0 {
            tokio::select! {
                answer = &mut call => panic!("{answer:?}"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    }
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while ground.person.settled.load(Ordering::SeqCst) == 0 {
        assert!(std::time::Instant::now() < until, "the question still stands");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!ground.folder.path().join("it").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_right_to_any_program_the_answer_is_denied() {
    let ground = Ground::new(Duration::ZERO, true, false);
    let answers = ground.run(json!([shell("true")])).await.unwrap();
    assert!(answers[0]["message"].as_str().unwrap().contains("no right to `process`"), "{answers:?}");
    assert_eq!(ground.asked(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_computes_on_after_the_answer_still_has_a_deadline() {
    // Asking must not be a way to more time: what it does itself is counted as before.
    let ground = Ground::new(Duration::from_millis(100), true, true);
    let sleeps: Vec<Value> = (0..40).map(|_| shell("sleep 0.2")).collect();
    match ground.run(json!(sleeps)).await {
        // Its programs are cut short one after the other, since no time is left for them.
        Ok(answers) => assert!(answers.iter().any(|answer| answer["end"] == "timed-out"), "{answers:?}"),
        Err(error) => assert!(matches!(error.cause, Cause::Deadline { .. }), "{error}"),
    }
}
