//! Tools that misbehave while they run: the call fails with the plugin's name and the cause, and the next call works.

use hermes_runtime::services::Level;
use hermes_runtime::{Limit, LimitSet, Tier};
use hermes_zoo::{LOOP, Shell};

use crate::{Fixture, tight};

/// A tool that misbehaves, and parts of the expected error.
struct Misbehaviour {
    name: &'static str,
    shell: Shell,
    says: &'static [&'static str],
}

fn case(name: &'static str, shell: Shell, says: &'static [&'static str]) -> Misbehaviour {
    Misbehaviour { name, shell, says }
}

/// A tool with enough memory to pass ten mebibytes.
fn with_ten_mebibytes(wat: &str) -> Shell {
    Shell::with_tool(wat).pages(170, None)
}

const ENDLESS_LOOP: &str = "(loop $l BODY (br $l))";

fn forever(body: &str) -> String {
    ENDLESS_LOOP.replace("BODY", body)
}

fn cases() -> Vec<Misbehaviour> {
    vec![
        case("computes without end", Shell::with_tool(LOOP), &["`cpu`", "500ms", "plugins.settings.beast.limits.cpu"]),
        case(
            "asks for the time without end",
            Shell::with_tool(&forever("(drop (call $clock/now))")).import("clock", "now"),
            &["`host_calls`", "10000", "plugins.settings.beast.limits.host_calls"],
        ),
        case(
            "has the host fill its memory",
            Shell::with_tool(&forever("(call $random/bytes (i32.const 65536) (i32.const 16))"))
                .import("random", "bytes"),
            // On a busy machine its time may be up first; its memory is bounded in either case.
            &["exceeded its limit `"],
        ),
        case(
            "takes memory page by page",
            Shell::with_tool(&forever("(drop (memory.grow (i32.const 1)))")),
            &["`memory`", "32MiB", "plugins.settings.beast.limits.memory"],
        ),
        case("takes all memory at once", Shell::with_tool("(drop (memory.grow (i32.const 65000)))"), &["`memory`"]),
        case(
            "takes table elements without end",
            Shell::with_tool(&forever("(drop (table.grow $t (ref.null func) (i32.const 1000)))"))
                .fields("(table $t 1 funcref)"),
            &["`table_elements`", "20000", "plugins.settings.beast.limits.table_elements"],
        ),
        case(
            "opens handles without end",
            Shell::with_tool(&forever("(drop (call $monotonic-clock/subscribe-duration (i64.const 1)))"))
                .on("handles", HANDLES)
                .import("monotonic-clock", "subscribe-duration"),
            &["`handles`", "1000", "plugins.settings.beast.limits.handles"],
        ),
        case(
            "logs without end",
            Shell::with_tool(&forever("(call $log/write (i32.const 2) (i32.const 8192) (i32.const 4))"))
                .import("log", "write"),
            &["`host_calls`"],
        ),
        case(
            "hands an import ten mebibytes",
            with_ten_mebibytes("(call $log/write (i32.const 2) (i32.const 16) (i32.const 10485760))")
                .import("log", "write"),
            &["`output`", "1MiB", "plugins.settings.beast.limits.output"],
        ),
        case(
            "answers ten mebibytes",
            with_ten_mebibytes(
                // The result at 16384 has one text, at 20480.
                "(i32.store (i32.const 16388) (i32.const 20480)) (i32.store (i32.const 16392) (i32.const 1))
                 (i32.store (i32.const 20484) (i32.const 65536)) (i32.store (i32.const 20488) (i32.const 10485760))
                 (return (i32.const 16384))",
            ),
            &["`output`", "1MiB"],
        ),
        case(
            "says that its log line lies behind its memory",
            Shell::with_tool("(call $log/write (i32.const 2) (i32.const -16) (i32.const 4096))").import("log", "write"),
            &["crashed", "out of bounds"],
        ),
        case(
            "logs what is no text",
            Shell::with_tool(
                "(i32.store (i32.const 16384) (i32.const 0xfffefdfc))
                 (call $log/write (i32.const 2) (i32.const 16384) (i32.const 4))",
            )
            .import("log", "write"),
            &["crashed", "utf-8"],
        ),
        case(
            "answers what is no text",
            Shell::with_tool(
                "(i32.store (i32.const 16388) (i32.const 20480)) (i32.store (i32.const 16392) (i32.const 1))
                 (i32.store (i32.const 20484) (i32.const 24576)) (i32.store (i32.const 20488) (i32.const 4))
                 (i32.store (i32.const 24576) (i32.const 0xfffefdfc)) (return (i32.const 16384))",
            ),
            &["crashed", "utf-8"],
        ),
        case(
            "answers neither a result nor an error",
            Shell::with_tool("(i32.store8 (i32.const 16384) (i32.const 77)) (return (i32.const 16384))"),
            &["crashed", "discriminant"],
        ),
        case(
            "answers from behind its memory",
            Shell::with_tool("(return (i32.const -64))"),
            &["crashed", "out of bounds"],
        ),
        case("answers from between two words", Shell::with_tool("(return (i32.const 1025))"), &["crashed", "align"]),
        case(
            "calls itself without end",
            Shell::with_tool("(call $deep)").fields("(func $deep (call $deep) (call $deep))"),
            &["crashed", "endless recursion"],
        ),
        case("crashes", Shell::with_tool("unreachable"), &["crashed", "unreachable"]),
        case(
            "divides by nothing",
            Shell::with_tool("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
            &["crashed", "divide by zero"],
        ),
        case(
            "calls a function that is not there",
            Shell::with_tool("(call_indirect $t (i32.const 5))").fields("(table $t 9 funcref)"),
            &["crashed"],
        ),
        case(
            "reads behind its memory",
            Shell::with_tool("(drop (i32.load (i32.const -8)))"),
            &["crashed", "memory fault"],
        ),
        case(
            "takes its own room away while it is handed an answer",
            Shell::with_tool("(call $random/bytes (i32.const 64) (i32.const 16))").import("random", "bytes").allocator(
                "(if (result i32) (i32.eq (local.get $size) (i32.const 64)) (then (i32.const -4)) (else
                            (global.set $heap (i32.add (global.get $heap) (i32.const 64)))
                            (i32.and (global.get $heap) (i32.const -16))))",
            ),
            &["crashed", "beyond end of memory"],
        ),
        case(
            "crashes while it is handed an answer",
            Shell::with_tool("(call $random/bytes (i32.const 64) (i32.const 16))").import("random", "bytes").allocator(
                "(if (i32.eq (local.get $size) (i32.const 64)) (then unreachable))
                            (global.set $heap (i32.add (global.get $heap) (i32.const 64)))
                            (i32.and (global.get $heap) (i32.const -16))",
            ),
            &["crashed", "unreachable"],
        ),
        case(
            "calls the host from where it is handed an answer",
            Shell::with_tool("(call $random/bytes (i32.const 64) (i32.const 16))")
                .import("random", "bytes")
                .import("clock", "now")
                .allocator(
                    "(if (i32.eq (local.get $size) (i32.const 64)) (then (drop (call $clock/now))))
                            (global.set $heap (i32.add (global.get $heap) (i32.const 64)))
                            (i32.and (global.get $heap) (i32.const -16))",
                ),
            &["crashed"],
        ),
    ]
}

/// A world with a WASI function that creates a handle at each call.
const HANDLES: &str = "
world handles { include tools-plugin; import wasi:clocks/monotonic-clock@0.2.6; }
package wasi:io@0.2.6 { interface poll { resource pollable { ready: func() -> bool; } } }
package wasi:clocks@0.2.6 {
  interface monotonic-clock {
    use wasi:io/poll@0.2.6.{pollable};
    subscribe-duration: func(when: u64) -> pollable;
  }
}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misbehaving_tool_is_reported_by_name_and_works_at_the_next_call() {
    for Misbehaviour { name, shell, says } in cases() {
        let fixture = Fixture::new(&shell.build(), Tier::Tools);
        assert_eq!(fixture.tool("good").await.as_deref().unwrap_or_default(), "good", "{name}");
        let error = fixture.tool("bad").await.expect_err(name).to_string();
        for part in ["plugin `beast` 0.1.0, `call`: "].iter().chain(says) {
            assert!(error.contains(part), "{name}: no {part:?} in {error:?}");
        }
        assert_eq!(fixture.tool("good").await.unwrap(), "good", "{name}");
        let figures = fixture.recipe.tally.figures();
        assert_eq!(figures.calls, 3, "{name}");
        assert!(figures.memory_peak <= 32 << 20, "{name}: {figures:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_import_traps_without_a_right_or_with_empty_arguments() {
    let importable = Shell::of("tools-plugin").importable();
    assert!(importable.len() > 20, "{importable:?}");
    for (interface, function) in importable {
        let call = Shell::of("tools-plugin").call_with_nothing(&interface, &function);
        let fixture = Fixture::new(&Shell::with_tool(&call).import(&interface, &function).build(), Tier::Tools);
        let answer = fixture.tool("bad").await.unwrap_or_else(|error| panic!("{interface}/{function}: {error}"));
        assert_eq!(answer, "good", "{interface}/{function}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_import_that_needs_a_permission_is_denied_without_it() {
    const FREE: [&str; 6] = ["info", "log", "task", "clock", "random", "documents"];
    let mut denied = Vec::new();
    for (interface, function) in Shell::of("tools-plugin").importable() {
        if FREE.contains(&interface.as_str()) {
            continue;
        }
        let Some(call) = Shell::of("tools-plugin").call_denied(&interface, &function) else { continue };
        let fixture = Fixture::new(&Shell::with_tool(&call).import(&interface, &function).build(), Tier::Tools);
        let recipe = hermes_runtime::Recipe {
            services: hermes_runtime::Services::nothing(),
            ..hermes_runtime::Recipe::clone(&fixture.recipe)
        };
        let fixture = Fixture { recipe: std::sync::Arc::new(recipe), ..fixture };
        let answer = fixture.tool("bad").await;
        assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{interface}/{function}: {answer:?}");
        denied.push(interface);
    }
    denied.dedup();
    let expected = ["llm", "llm-stream", "embeddings", "history", "sql", "files", "http", "process"];
    assert_eq!(denied.iter().collect::<std::collections::BTreeSet<_>>().len(), expected.len(), "{denied:?}");
    assert!(expected.iter().all(|interface| denied.iter().any(|known| known == interface)), "{denied:?}");
}

/// An import that returns an error of the contract cannot trap. This test looks for panics and trapping bindings.
#[test]
fn the_source_of_the_imports_has_no_panics_and_no_traps() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/imports");
    let mut files = 0;
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        files += 1;
        for word in ["unwrap()", "panic!", "unreachable!", "assert!", "trappable", "wasmtime::Error", "bail!"] {
            assert!(!code.contains(word), "{} has `{word}`", path.display());
        }
        assert!(!code.contains(".expect("), "{} has `expect`", path.display());
    }
    assert!(files >= 6);
    let bindings = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/src/lib.rs");
    assert!(!std::fs::read_to_string(bindings).unwrap().contains("trappable"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_log_lines_is_cut_with_one_notice() {
    let flood = forever("(call $log/write (i32.const 2) (i32.const 8192) (i32.const 4))");
    let fixture = Fixture::new(&Shell::with_tool(&flood).import("log", "write").build(), Tier::Tools);
    fixture.tool("bad").await.unwrap_err();
    let lines = fixture.log_lines();
    assert_eq!(lines.len(), 256);
    let notices: Vec<_> = lines.iter().filter(|(level, _)| *level == Level::Warn).collect();
    assert!(notices.len() == 1 && notices[0].1.contains("`log_lines` (256)"), "{notices:?}");
    // Lines of sixteen KiB reach the limit of bytes first.
    let flood = forever("(call $log/write (i32.const 2) (i32.const 16384) (i32.const 65536))");
    let fixture = Fixture::new(&Shell::with_tool(&flood).pages(8, None).import("log", "write").build(), Tier::Tools);
    fixture.tool("bad").await.unwrap_err();
    let bytes: usize = fixture.log_lines().iter().map(|(_, text)| text.len()).sum();
    let lines = fixture.log_lines().len();
    assert!(lines == 17 && bytes < 300 << 10, "{lines} lines, {bytes} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_the_host_does_not_count_as_computing() {
    // Three searches of 600 ms each; the plugin itself may compute for 1 s.
    let search = Shell::of("tools-plugin").call_with_nothing("history", "search");
    let shell = Shell::with_tool(&search.repeat(3)).import("history", "search");
    let fixture = Fixture::new(&shell.build(), Tier::Tools);
    assert_eq!(fixture.tool("bad").await.unwrap(), "good");
    assert_eq!(fixture.recipe.tally.figures().host_calls, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_calls_are_limited() {
    let log = |at: u32| format!("(call $log/write (i32.const {at}) (i32.const 8192) (i32.const 1))");
    let busy = "(local.set $p0 (i32.const 40000000))
                (loop $l (local.set $p0 (i32.sub (local.get $p0) (i32.const 1))) (br_if $l (local.get $p0)))";
    let shell = Shell::with_tool(&format!("{} {busy} {}", log(1), log(2))).import("log", "write");
    let limits = tight().and(Limit::ParallelCalls, 2).and(Limit::Cpu, 20_000).and(Limit::ToolTime, 60_000);
    let fixture = Fixture::within(&shell.build(), Tier::Tools, &limits);
    let calls = tokio::join!(
        fixture.tool("bad"),
        fixture.tool("bad"),
        fixture.tool("bad"),
        fixture.tool("bad"),
        fixture.tool("bad")
    );
    assert!(calls.0.is_ok() && calls.4.is_ok(), "{calls:?}");
    let (mut now, mut most) = (0i32, 0);
    for (level, _) in fixture.log_lines() {
        now += if level == Level::Debug { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_too_much_input_is_not_made() {
    let fixture = Fixture::new(&hermes_zoo::crashing_tool(), Tier::Tools);
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(2 << 20));
    let invocation = hermes_runtime::Invocation { id: "c".into(), name: "bad".into(), arguments, extra: Vec::new() };
    let error = fixture.recipe.call_tool(invocation).await.unwrap_err();
    assert!(!error.cause.is_failure());
    let error = error.to_string();
    assert!(error.contains("`input` is 1MiB") && error.contains("plugins.settings.beast.limits.input"), "{error}");
    assert_eq!(fixture.recipe.tally.figures().calls, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_limit_applies_at_its_new_value() {
    let greedy = Shell::with_tool("(drop (memory.grow (i32.const 1600)))").build();
    let fixture = Fixture::within(&greedy, Tier::Tools, &LimitSet::default());
    assert!(fixture.tool("bad").await.unwrap_err().to_string().contains("64MiB"));
    let fixture = Fixture::within(&greedy, Tier::Tools, &LimitSet::default().and(Limit::Memory, 128 << 20));
    assert_eq!(fixture.tool("bad").await.unwrap(), "good");
    assert!(fixture.recipe.tally.figures().memory_peak > 100 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_of_an_endless_tool_returns_at_once() {
    let fixture = Fixture::within(&hermes_zoo::looping_tool(), Tier::Tools, &tight().and(Limit::Cpu, 60_000));
    for _ in 0..3 {
        let gone = tokio::time::timeout(std::time::Duration::from_millis(50), fixture.tool("bad")).await;
        assert!(gone.is_err());
    }
    assert_eq!(fixture.tool("good").await.unwrap(), "good");
}

#[tokio::test]
async fn tool_calls_share_an_instance_until_it_fails_and_engine_calls_do_not() {
    // Crashes if its instance has served a call before.
    let once = "(if (global.get $served) (then unreachable)) (global.set $served (i32.const 1))";
    let served = "(global $served (mut i32) (i32.const 0))";
    let tools = Fixture::new(&Shell::with_tool(once).fields(served).build(), Tier::Tools);
    let engine = Shell::of("everything").body("tools/call", &format!("{once} (i32.const 1024)")).fields(served);
    let engine = Fixture::new(&engine.build(), Tier::Session);
    for (beast, works) in [(tools, [true, false, true, false]), (engine, [true; 4])] {
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(beast.tool("bad").await.is_ok());
        }
        assert_eq!(seen, works);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_instance_serves_one_call_at_a_time_in_order() {
    let busy = "(global.set $n (i32.const 4000000))
                (loop $l (global.set $n (i32.sub (global.get $n) (i32.const 1))) (br_if $l (global.get $n)))";
    let mut shell = Shell::of("everything").import("log", "write").fields("(global $n (mut i32) (i32.const 0))");
    for (at, function) in ["tools/catalog", "skills/index", "hooks/interests"].iter().enumerate() {
        let [begin, _] = shell.memory().bytes(&b"abcdef"[2 * at..]);
        let log = |text: u32| format!("(call $log/write (i32.const 1) (i32.const {text}) (i32.const 1))");
        shell = shell.body(function, &format!("{} {busy} {} (i32.const 1024)", log(begin), log(begin + 1)));
    }
    let fixture = Fixture::new(&shell.build(), Tier::Session);
    let instance = hermes_runtime::Instance::new(std::sync::Arc::clone(&fixture.recipe));
    let calls = tokio::join!(instance.catalog(), instance.skills(), instance.interests());
    assert!(calls.0.is_ok() && calls.1.is_ok() && calls.2.is_ok());
    let said: String = fixture.log_lines().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, "abcdef");
}
