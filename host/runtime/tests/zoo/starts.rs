//! Plugins that misbehave before their first call.

use std::sync::Arc;

use hermes_runtime::{Cause, Instance, Limit, Tier};
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
