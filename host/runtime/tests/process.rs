//! The import `process`, called by a component: the deadline is paused while the user is asked, and a program that takes
//! too long is ended without ending the plugin's instance.
//!
//! The component is `tests/guests/runner`, as `cargo xtask plugins` stages it.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hermes_capabilities::files::Change;
use hermes_capabilities::process::{Background, Folder, Places, ProgramGrant, Programs, Run};
use hermes_runtime::services::{Approval, Refusal};
use hermes_runtime::{
    CallError, Cause, Fault, FaultKind, Invocation, Limit, LimitSet, Limits, Recipe, Runtime, Services,
};
use serde_json::{Value, json};

/// A user who answers after a while.
struct User {
    thinks: Duration,
    agrees: bool,
    asked: AtomicUsize,
    /// Questions that were answered or cancelled.
    settled: AtomicUsize,
}

/// Counts when it is dropped.
struct CountOnDrop<'a>(&'a AtomicUsize);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Approval for User {
    async fn process(&self, _: &Run, attended: bool) -> Result<(), Fault> {
        if !attended {
            return Err(Fault::new(FaultKind::Denied, Refusal::Unattended.code(), "nobody is here"));
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _settled = CountOnDrop(&self.settled);
        tokio::time::sleep(self.thinks).await;
        if self.agrees { Ok(()) } else { Err(Fault::new(FaultKind::Denied, Refusal::User.code(), "no")) }
    }

    async fn file(&self, change: &Change, _: bool) -> Result<(), Fault> {
        panic!("{change:?} was asked about, and these tests change no file")
    }
}

/// The time limit of a tool call in these tests.
const TOOL_TIME: Duration = Duration::from_secs(2);

struct Fixture {
    folder: tempfile::TempDir,
    user: Arc<User>,
    recipe: Arc<Recipe>,
}

impl Fixture {
    fn new(thinks: Duration, agrees: bool, granted: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let staged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-guests/runner/runner.wasm");
        let component = std::fs::read(&staged)
            .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask plugins`", staged.display()));
        let user = Arc::new(User { thinks, agrees, asked: AtomicUsize::new(0), settled: AtomicUsize::new(0) });
        let grant = ProgramGrant {
            programs: vec!["sh".to_owned()],
            variables: Vec::new(),
            folders: vec![Folder { name: "workspace".to_owned(), path: folder.path().to_owned(), denied: Vec::new() }],
            places: Places { changeable: Vec::new(), private: folder.path().join("private") },
            sandbox: None,
        };
        let tool_time = u64::try_from(TOOL_TIME.as_millis()).unwrap();
        let limits = Limits::standard().with(&LimitSet::default().and(Limit::ToolTime, tool_time));
        let programs = granted.then(|| Programs::new(grant, user.clone(), Background::default()));
        let loaded = Runtime::new(folder.path().join("code")).load(&component).unwrap();
        let services = Services { programs, ..Services::nothing() };
        let recipe = Arc::new(Recipe { services, ..Recipe::alone("runner", loaded, limits) });
        Self { folder, user, recipe }
    }

    async fn run(&self, runs: Value) -> Result<Vec<Value>, CallError> {
        let answer = self.call("run", json!({ "runs": runs })).await?;
        Ok(answer["answers"].as_array().unwrap().clone())
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, CallError> {
        let arguments = arguments.to_string();
        let invocation = Invocation { id: "call".into(), name: tool.into(), arguments, extra: Vec::new() };
        let output = self.recipe.call_tool(invocation).await?;
        Ok(serde_json::from_str(&output.content).unwrap())
    }

    /// Steps with background programs, in one call.
    async fn background(&self, steps: Value) -> Value {
        self.call("background", json!({ "steps": steps })).await.unwrap()
    }

    fn asked(&self) -> usize {
        self.user.asked.load(Ordering::SeqCst)
    }
}

fn shell(script: &str) -> Value {
    json!({ "program": "sh", "arguments": ["-c", script] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_the_user_does_not_count_against_the_tools_time() {
    let fixture = Fixture::new(TOOL_TIME * 3 / 2, true, true);
    let answers = fixture.run(json!([shell("echo one"), shell("echo two")])).await.unwrap();
    assert_eq!((&answers[0]["output"], &answers[1]["output"]), (&json!("one\n"), &json!("two\n")));
    assert_eq!(fixture.asked(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_ends_the_questions_of_the_same_call() {
    let fixture = Fixture::new(Duration::ZERO, false, true);
    let answers = fixture.run(json!([shell("true"), shell("touch it"), shell("touch it")])).await.unwrap();
    assert!(answers.iter().all(|answer| answer["code"] == "refused"), "{answers:?}");
    assert_eq!((fixture.asked(), fixture.folder.path().join("it").exists()), (1, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_program_is_ended_and_its_output_kept() {
    let fixture = Fixture::new(Duration::ZERO, true, true);
    let endless = "trap '' TERM; echo begun; while :; do sleep 600; done";
    let answers = fixture.run(json!([shell(endless)])).await.unwrap();
    assert_eq!((&answers[0]["end"], &answers[0]["output"]), (&json!("timed-out"), &json!("begun\n")));
    let mut short = shell(endless);
    short["timeout"] = json!(100);
    let answers = fixture.run(json!([short, shell("echo next")])).await.unwrap();
    assert_eq!((&answers[0]["end"], &answers[1]["output"]), (&json!("timed-out"), &json!("next\n")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_withdraws_its_question() {
    let fixture = Fixture::new(Duration::from_secs(3_600), true, true);
    {
        let call = fixture.run(json!([shell("touch it")]));
        tokio::pin!(call);
        while fixture.asked() == 0 {
            tokio::select! {
                answer = &mut call => panic!("{answer:?}"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    }
    let until = std::time::Instant::now() + Duration::from_secs(600);
    while fixture.user.settled.load(Ordering::SeqCst) == 0 {
        assert!(std::time::Instant::now() < until, "the question was not withdrawn");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!fixture.folder.path().join("it").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_right_to_programs_the_call_is_denied() {
    let fixture = Fixture::new(Duration::ZERO, true, false);
    let answers = fixture.run(json!([shell("true")])).await.unwrap();
    assert!(answers[0]["message"].as_str().unwrap().contains("no right to `process`"), "{answers:?}");
    assert_eq!(fixture.asked(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_give_a_plugin_no_extra_time_for_its_own_work() {
    let fixture = Fixture::new(Duration::from_millis(100), true, true);
    let sleeps: Vec<Value> = (0..40).map(|_| shell("sleep 0.2")).collect();
    match fixture.run(json!(sleeps)).await {
        // The later programs are ended at once, since no time is left for them.
        Ok(answers) => assert!(answers.iter().any(|answer| answer["end"] == "timed-out"), "{answers:?}"),
        Err(error) => assert!(matches!(error.cause, Cause::Deadline { .. }), "{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_program_outlives_calls_and_crashes_and_ends_with_the_session() {
    let fixture = Fixture::new(Duration::ZERO, true, true);
    let echo = shell("echo $$; while read -r line; do echo \"$GREETING $line\"; done");
    let mut start = echo.clone();
    start["environment"] = json!({ "GREETING": "hello" });
    // Each call has an instance of its own.
    assert_eq!(fixture.background(json!([{ "start": start }])).await, json!([1]));
    let first = fixture.background(json!([{ "read": 1, "wait": 1500 }])).await;
    let pid = first[0]["output"].as_str().unwrap().trim().to_owned();
    assert!(is_alive(&pid), "{first}");
    let crashed = fixture.call("background", json!({ "steps": [{ "crash": "on purpose" }] })).await.unwrap_err();
    assert!(matches!(crashed.cause, Cause::Trap(_)), "{crashed}");
    let answers = fixture.background(json!([{ "write": 1, "text": "you\n" }, { "read": 1, "wait": 1500 }, {}])).await;
    assert_eq!(answers[1]["output"], "hello you\n");
    assert_eq!(answers[2], json!([{ "id": 1, "program": "sh", "end": null }]));
    assert_eq!(fixture.asked(), 1);
    drop(fixture);
    dies(&pid).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_background_program_ends_with_the_call() {
    let fixture = Fixture::new(Duration::ZERO, true, true);
    let answers = fixture
        .background(json!([
            { "start": shell("sleep 36000") },
            { "read": 1, "wait": 4_000_000_000_u64 },
            { "await": 1, "wait": 4_000_000_000_u64 },
        ]))
        .await;
    assert_eq!(answers[1], json!({ "output": "", "errors": "", "lost": 0, "end": null }));
    assert_eq!(fixture.background(json!([{ "stop": 1 }, { "read": 1 }])).await[0], json!("stopped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greedy_plugin_meets_the_limits_of_background_programs() {
    let fixture = Fixture::new(Duration::ZERO, true, true);
    let answers = fixture.background(json!([{ "start": shell("exec sleep 600"), "repeat": 1000 }, {}])).await;
    assert_eq!(answers[0]["errors"], 992);
    assert_eq!(answers[0]["last"]["code"], "too-many");
    assert_eq!(answers[1].as_array().unwrap().len(), 8);
    // Input that nobody reads: eight mebibytes fit.
    let full = fixture.background(json!([{ "write": 1, "bytes": 1 << 20, "repeat": 20 }])).await;
    assert_eq!((&full[0]["errors"], &full[0]["last"]["code"]), (&json!(12), &json!("input-full")));
    for unknown in
        [json!({ "read": 99 }), json!({ "write": 0 }), json!({ "stop": 9 }), json!({ "await": 4_294_967_295_u64 })]
    {
        assert_eq!(fixture.background(json!([unknown])).await[0]["code"], "unknown");
    }
    let mut loader = shell("true");
    loader["environment"] = json!({ "LD_PRELOAD": "/tmp/evil.so" });
    assert_eq!(fixture.background(json!([{ "start": loader }])).await[0]["code"], "variable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_or_ungranted_background_program_does_not_start() {
    let refusing = Fixture::new(Duration::ZERO, false, true);
    let answers = refusing.background(json!([{ "start": shell("touch it"), "repeat": 50 }, {}])).await;
    assert_eq!((&answers[0]["last"]["code"], &answers[0]["errors"]), (&json!("refused"), &json!(50)));
    assert_eq!((refusing.asked(), &answers[1]), (1, &json!([])));
    let ungranted = Fixture::new(Duration::ZERO, true, false);
    for step in [json!({ "start": shell("true") }), json!({ "read": 1 }), json!({})] {
        let answer = ungranted.background(json!([step])).await;
        assert!(answer[0]["message"].as_str().unwrap().contains("no right to `process`"), "{answer}");
    }
}

fn is_alive(pid: &str) -> bool {
    // A zombie process is dead.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

async fn dies(pid: &str) {
    let until = std::time::Instant::now() + Duration::from_secs(600);
    while is_alive(pid) {
        assert!(std::time::Instant::now() < until, "{pid} is still alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
