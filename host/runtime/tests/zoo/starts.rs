//! Plugins that misbehave before their first call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_runtime::{Cause, Instance, Limit, Limits, Tier};
use hermes_zoo::{LOOP, Shell};

use crate::{Fixture, tight};

async fn refused(name: &str, shell: Shell, says: &[&str]) {
    let fixture = Fixture::new(&shell.build(), Tier::Tools);
    // Twice: a plugin that does not start leaves nothing behind.
    for _ in 0..2 {
        let error = fixture.tool("good").await.expect_err(name);
        assert!(error.cause.is_failure(), "{name}: {error}");
        let error = error.to_string();
        for part in ["plugin `beast`"].iter().chain(says) {
            assert!(error.contains(part), "{name}: no {part:?} in {error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_does_not_start_gives_the_reason_each_time() {
    let good = || Shell::with_tool("nop");
    let error = {
        let mut shell = good();
        let message = shell.memory().bytes(b"no key is set");
        let at = shell.memory().error(1, message);
        shell.body("lifecycle/configure", &format!("(i32.const {at})"))
    };
    for (name, shell, says) in [
        ("its start function loops", good().fields("(func $s (loop $l (br $l))) (start $s)"), &["`cpu`"][..]),
        ("its start function crashes", good().fields("(func $s unreachable) (start $s)"), &["crashed", "unreachable"]),
        ("configure loops", good().body("lifecycle/configure", LOOP), &["`cpu`"]),
        ("configure crashes", good().body("lifecycle/configure", "unreachable"), &["crashed"]),
        ("configure fails", error, &["does not start", "no key is set"]),
        ("session-start loops", good().body("lifecycle/session-start", LOOP), &["`cpu`"]),
        ("it begins with too much memory", good().pages(1_000, None), &["`memory`", "32MiB"]),
        ("it begins with a large table", good().fields("(table 90000 funcref)"), &["`table_elements`", "20000"]),
        ("it has many tables", good().fields(&"(table 1 funcref)".repeat(20)), &["`tables`", "16"]),
    ] {
        refused(name, shell, says).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_starts_too_slowly_reaches_its_start_time() {
    let slow = Shell::with_tool("nop").body("lifecycle/configure", LOOP).build();
    let fixture = Fixture::within(&slow, Tier::Tools, &tight().and(Limit::StartTime, 100).and(Limit::Cpu, 60_000));
    let error = fixture.tool("good").await.unwrap_err();
    assert!(matches!(error.cause, Cause::Deadline { limit: Limit::StartTime, .. }), "{error}");
    assert!(error.to_string().contains("plugins.settings.beast.limits.start_time"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_with_too_many_modules_gets_an_error_that_names_the_limit() {
    // With an import, it consists of three modules: its own, and two that connect it to the host.
    let parts = Shell::with_tool("(call $log/write (i32.const 2) (i32.const 8192) (i32.const 4))")
        .import("log", "write")
        .build();
    let fixture = Fixture::within(&parts, Tier::Tools, &tight().and(Limit::Instances, 1));
    let error = fixture.tool("good").await.unwrap_err().to_string();
    assert!(error.contains("`instances`") && error.contains("plugins.settings.beast.limits.instances"), "{error}");
    let fixture = Fixture::new(&parts, Tier::Tools);
    assert_eq!(fixture.tool("bad").await.unwrap(), "good");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_does_not_end_its_session_blocks_nothing() {
    let clingy = Shell::of("tools-plugin").body("lifecycle/session-end", LOOP).build();
    let fixture = Fixture::within(&clingy, Tier::Tools, &tight().and(Limit::TurnTime, 200));
    let instance = Instance::new(Arc::clone(&fixture.recipe));
    assert!(instance.catalog().await.unwrap().is_empty());
    drop(instance);
    assert!(Instance::new(fixture.recipe).catalog().await.unwrap().is_empty());
}

/// The instance holds the recipe until its last call has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_end_has_the_time_of_a_call_in_a_turn_which_is_two_seconds() {
    const ALLOWED: Duration = Duration::from_millis(300);
    for tier in [Tier::Tools, Tier::Session] {
        assert_eq!(Limits::of(tier).time(Limit::TurnTime), Duration::from_secs(2));
    }
    let clingy = Shell::of("tools-plugin").body("lifecycle/session-end", LOOP).build();
    let fixture = Fixture::within(&clingy, Tier::Tools, &tight().and(Limit::TurnTime, 300).and(Limit::Cpu, 600_000));
    let before = Arc::strong_count(&fixture.recipe);
    let instance = Instance::new(Arc::clone(&fixture.recipe));
    assert!(instance.catalog().await.unwrap().is_empty());
    let begun = Instant::now();
    drop(instance);
    while Arc::strong_count(&fixture.recipe) > before {
        assert!(begun.elapsed() < Duration::from_secs(120), "the call goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(begun.elapsed() >= ALLOWED, "the call ended after {:?}", begun.elapsed());
}

/// A global that says which calls an instance got, and WAT that crashes unless it has a value and then sets another.
const STAGE: &str = "(global $stage (mut i32) (i32.const 0))";

fn stage(from: u32, to: u32) -> String {
    let is_other = format!("(i32.ne (global.get $stage) (i32.const {from}))");
    format!("(if {is_other} (then unreachable)) (global.set $stage (i32.const {to})) (i32.const 1024)")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instance_is_configured_and_started_once_before_its_calls() {
    let shell = Shell::of("tools-plugin")
        .fields(STAGE)
        .body("lifecycle/configure", &stage(0, 1))
        .body("lifecycle/session-start", &stage(1, 2))
        .body("tools/catalog", &stage(2, 2))
        .body("tools/call", &stage(2, 2));
    let fixture = Fixture::new(&shell.build(), Tier::Tools);
    let instance = Instance::new(Arc::clone(&fixture.recipe));
    for _ in 0..3 {
        instance.catalog().await.unwrap();
        fixture.tool("any").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_end_is_the_last_call_of_an_instance_that_lives_and_tool_calls_do_not_get_it() {
    // The last call of an instance decides which text its end logs.
    let log = "(call $log/write (i32.const 1) (global.get $stage) (i32.const 1)) (i32.const 1024)";
    let mut shell = Shell::of("everything").import("log", "write").fields(STAGE);
    let [letters, _] = shell.memory().bytes(b"mc");
    let mark = |at: u32| format!("(global.set $stage (i32.const {})) (i32.const 1024)", letters + at);
    let shell = shell
        .body("skills/index", &mark(0))
        .body("tools/call", &mark(1))
        .body("hooks/interests", "unreachable")
        .body("lifecycle/session-end", log);
    let fixture = Fixture::new(&shell.build(), Tier::Session);
    for crashes in [false, true] {
        let instance = Instance::new(Arc::clone(&fixture.recipe));
        instance.skills().await.unwrap();
        fixture.tool("any").await.unwrap();
        if crashes {
            instance.interests().await.unwrap_err();
        }
    }
    let other = Instance::without_session_end(Arc::clone(&fixture.recipe));
    other.skills().await.unwrap();
    drop(other);
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let lines: Vec<String> = fixture.log_lines().into_iter().map(|(_, text)| text).collect();
    assert_eq!(lines, ["m"], "one end: the other instances crashed, served a call, or serve other plugins");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_first_instance_gets_the_start_of_the_session() {
    use hermes_runtime::{Recipe, Start};
    let mut shell = Shell::of("everything").import("log", "write");
    let [letters, _] = shell.memory().bytes(b"frco");
    let how = shell.parameter("lifecycle/session-start", 1);
    let case = format!("(i32.load8_u (i32.add (local.get $p0) (i32.const {how})))");
    let log = format!("(call $log/write (i32.const 1) (i32.add (i32.const {letters}) {case}) (i32.const 1))");
    let shell = shell
        .body("lifecycle/session-start", &format!("{log} (i32.const 1024)"))
        .body("skills/index", "unreachable")
        .body("tools/call", "unreachable");
    let component = shell.build();
    for (start, expected) in
        [(Start::Fresh, "frrr"), (Start::Resumed, "rrrr"), (Start::Continued("earlier".to_owned()), "crrr")]
    {
        let fixture = Fixture::new(&component, Tier::Tools);
        let recipe = Arc::new(Recipe { start, ..Recipe::clone(&fixture.recipe) });
        let instance = Instance::new(Arc::clone(&recipe));
        instance.catalog().await.unwrap();
        // Two instances for tool calls, and one after a crash.
        for _ in 0..2 {
            fixture.tool("any").await.unwrap_err();
        }
        instance.skills().await.unwrap_err();
        instance.catalog().await.unwrap();
        let said: String = fixture.log_lines().into_iter().map(|(_, text)| text).collect();
        assert_eq!(said, expected);
    }
}
