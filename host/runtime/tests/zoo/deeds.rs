//! Tools that misbehave while they run: the call fails with the plugin's name and the cause, and the next one works.

use hermes_runtime::services::Level;
use hermes_runtime::{Limit, LimitSet, Tier};
use hermes_zoo::{LOOP, Shell};

use crate::{Cage, tight};

/// A deed, and what its error says.
struct Deed {
    name: &'static str,
    shell: Shell,
    says: &'static [&'static str],
}

fn deed(name: &'static str, shell: Shell, says: &'static [&'static str]) -> Deed {
    Deed { name, shell, says }
}

/// Puts memory in front of a tool's deed: it does it with all of ten mebibytes.
fn with_ten_mebibytes(wat: &str) -> Shell {
    Shell::with_tool(wat).pages(170, None)
}

const FOREVER: &str = "(loop $l DEED (br $l))";

fn for_ever(deed: &str) -> String {
    FOREVER.replace("DEED", deed)
}

fn deeds() -> Vec<Deed> {
    vec![
        deed("computes without end", Shell::with_tool(LOOP), &["`cpu`", "1s", "plugins.settings.beast.limits.cpu"]),
        deed(
            "asks for the time without end",
            Shell::with_tool(&for_ever("(drop (call $clock/now))")).import("clock", "now"),
            &["`host_calls`", "10000", "plugins.settings.beast.limits.host_calls"],
        ),
        deed(
            "has the host fill its memory",
            Shell::with_tool(&for_ever("(call $random/bytes (i32.const 65536) (i32.const 16))"))
                .import("random", "bytes"),
            // On a busy machine its time is up first; its memory is bounded in either case.
            &["wanted more than its limit `"],
        ),
        deed(
            "takes memory page by page",
            Shell::with_tool(&for_ever("(drop (memory.grow (i32.const 1)))")),
            &["`memory`", "32MiB", "plugins.settings.beast.limits.memory"],
        ),
        deed("takes all memory at once", Shell::with_tool("(drop (memory.grow (i32.const 65000)))"), &["`memory`"]),
        deed(
            "takes table elements without end",
            Shell::with_tool(&for_ever("(drop (table.grow $t (ref.null func) (i32.const 1000)))"))
                .fields("(table $t 1 funcref)"),
            &["`table_elements`", "20000", "plugins.settings.beast.limits.table_elements"],
        ),
        deed(
            "opens handles without end",
            Shell::with_tool(&for_ever("(drop (call $monotonic-clock/subscribe-duration (i64.const 1)))"))
                .on("handles", HANDLES)
                .import("monotonic-clock", "subscribe-duration"),
            &["`handles`", "1000", "plugins.settings.beast.limits.handles"],
        ),
        deed(
            "logs without end",
            Shell::with_tool(&for_ever("(call $log/write (i32.const 2) (i32.const 8192) (i32.const 4))"))
                .import("log", "write"),
            &["`host_calls`"],
        ),
        deed(
            "hands an import ten mebibytes",
            with_ten_mebibytes("(call $log/write (i32.const 2) (i32.const 16) (i32.const 10485760))")
                .import("log", "write"),
            &["`output`", "1MiB", "plugins.settings.beast.limits.output"],
        ),
        deed(
            "answers ten mebibytes",
            with_ten_mebibytes(
                "(i32.store (i32.const 16384) (i32.const 0)) (i32.store (i32.const 16388) (i32.const 65536))
                 (i32.store (i32.const 16392) (i32.const 10485760)) (return (i32.const 16384))",
            ),
            &["`output`", "1MiB"],
        ),
        deed(
            "says that its log line lies behind its memory",
            Shell::with_tool("(call $log/write (i32.const 2) (i32.const -16) (i32.const 4096))").import("log", "write"),
            &["crashed", "out of bounds"],
        ),
        deed(
            "logs what is no text",
            Shell::with_tool(
                "(i32.store (i32.const 16384) (i32.const 0xfffefdfc))
                 (call $log/write (i32.const 2) (i32.const 16384) (i32.const 4))",
            )
            .import("log", "write"),
            &["crashed", "utf-8"],
        ),
        deed(
            "answers what is no text",
            Shell::with_tool(
                "(i64.store (i32.const 16384) (i64.const 0)) (i32.store (i32.const 16388) (i32.const 16400))
                 (i32.store (i32.const 16392) (i32.const 4)) (i32.store (i32.const 16400) (i32.const 0xfffefdfc))
                 (return (i32.const 16384))",
            ),
            &["crashed", "utf-8"],
        ),
        deed(
            "answers neither a result nor an error",
            Shell::with_tool("(i32.store8 (i32.const 16384) (i32.const 77)) (return (i32.const 16384))"),
            &["crashed", "discriminant"],
        ),
        deed(
            "answers from behind its memory",
            Shell::with_tool("(return (i32.const -64))"),
            &["crashed", "out of bounds"],
        ),
        deed("answers from between two words", Shell::with_tool("(return (i32.const 1025))"), &["crashed", "align"]),
        deed(
            "calls itself without end",
            Shell::with_tool("(call $deep)").fields("(func $deep (call $deep) (call $deep))"),
            &["crashed", "endless recursion"],
        ),
        deed("crashes", Shell::with_tool("unreachable"), &["crashed", "unreachable"]),
        deed(
            "divides by nothing",
            Shell::with_tool("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
            &["crashed", "divide by zero"],
        ),
        deed(
            "calls a function that is not there",
            Shell::with_tool("(call_indirect $t (i32.const 5))").fields("(table $t 9 funcref)"),
            &["crashed"],
        ),
        deed(
            "reads behind its memory",
            Shell::with_tool("(drop (i32.load (i32.const -8)))"),
            &["crashed", "memory fault"],
        ),
        deed(
            "takes its own room away while it is handed an answer",
            Shell::with_tool("(call $random/bytes (i32.const 64) (i32.const 16))").import("random", "bytes").allocator(
                "(if (result i32) (i32.eq (local.get $size) (i32.const 64)) (then (i32.const -4)) (else
                            (global.set $heap (i32.add (global.get $heap) (i32.const 64)))
                            (i32.and (global.get $heap) (i32.const -16))))",
            ),
            &["crashed", "beyond end of memory"],
        ),
        deed(
            "crashes while it is handed an answer",
            Shell::with_tool("(call $random/bytes (i32.const 64) (i32.const 16))").import("random", "bytes").allocator(
                "(if (i32.eq (local.get $size) (i32.const 64)) (then unreachable))
                            (global.set $heap (i32.add (global.get $heap) (i32.const 64)))
                            (i32.and (global.get $heap) (i32.const -16))",
            ),
            &["crashed", "unreachable"],
        ),
        deed(
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

/// A world with something of WASI that makes a handle each time.
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
async fn a_tool_that_misbehaves_is_told_of_by_name_and_works_the_next_time() {
    for Deed { name, shell, says } in deeds() {
        let cage = Cage::new(&shell.build(), Tier::Tools);
        assert_eq!(cage.tool("good").await.as_deref().unwrap_or_default(), "good", "{name}");
        let error = cage.tool("bad").await.expect_err(name).to_string();
        for part in ["plugin `beast` 0.1.0, `call`: "].iter().chain(says) {
            assert!(error.contains(part), "{name}: no {part:?} in {error:?}");
        }
        assert_eq!(cage.tool("good").await.unwrap(), "good", "{name}");
        let figures = cage.recipe.tally.figures();
        assert_eq!(figures.calls, 3, "{name}");
        assert!(figures.memory_peak <= 32 << 20, "{name}: {figures:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_import_traps_whoever_has_no_right_to_it_or_hands_it_nothing() {
    let importable = Shell::of("tools-plugin").importable();
    assert!(importable.len() > 20, "{importable:?}");
    for (interface, function) in importable {
        let call = Shell::of("tools-plugin").call_with_nothing(&interface, &function);
        let cage = Cage::new(&Shell::with_tool(&call).import(&interface, &function).build(), Tier::Tools);
        let answer = cage.tool("bad").await.unwrap_or_else(|error| panic!("{interface}/{function}: {error}"));
        assert_eq!(answer, "good", "{interface}/{function}");
    }
}

/// What returns an error of the contract cannot trap; what is left is a panic, and a binding that may trap.
#[test]
fn no_import_is_written_so_that_it_could_trap() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/imports");
    let mut looked_at = 0;
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        looked_at += 1;
        for word in ["unwrap()", "panic!", "unreachable!", "assert!", "trappable", "wasmtime::Error", "bail!"] {
            assert!(!code.contains(word), "{} has `{word}`", path.display());
        }
        // The system's randomness is the only thing that is taken for granted.
        let granted = if path.ends_with("basics.rs") { 1 } else { 0 };
        assert_eq!(code.matches(".expect(").count(), granted, "{}", path.display());
    }
    assert!(looked_at >= 6);
    let bindings = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/src/lib.rs");
    assert!(!std::fs::read_to_string(bindings).unwrap().contains("trappable"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_flood_of_log_lines_a_few_hundred_are_kept_and_that_is_told_once() {
    let flood = for_ever("(call $log/write (i32.const 2) (i32.const 8192) (i32.const 4))");
    let cage = Cage::new(&Shell::with_tool(&flood).import("log", "write").build(), Tier::Tools);
    cage.tool("bad").await.unwrap_err();
    let heard = cage.heard();
    assert_eq!(heard.len(), 256);
    let told: Vec<_> = heard.iter().filter(|(level, _)| *level == Level::Warn).collect();
    assert!(told.len() == 1 && told[0].1.contains("`log_lines` (256)"), "{told:?}");
    // A line of sixteen KiB each: they run into the bytes first.
    let flood = for_ever("(call $log/write (i32.const 2) (i32.const 16384) (i32.const 65536))");
    let cage = Cage::new(&Shell::with_tool(&flood).pages(8, None).import("log", "write").build(), Tier::Tools);
    cage.tool("bad").await.unwrap_err();
    let bytes: usize = cage.heard().iter().map(|(_, text)| text.len()).sum();
    assert!(cage.heard().len() == 17 && bytes < 300 << 10, "{} lines, {bytes} bytes", cage.heard().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_that_the_host_takes_is_not_the_plugins() {
    // Three searches of 600 ms each, within 1 s of its own.
    let search = Shell::of("tools-plugin").call_with_nothing("history", "search");
    let shell = Shell::with_tool(&search.repeat(3)).import("history", "search");
    let cage = Cage::new(&shell.build(), Tier::Tools);
    assert_eq!(cage.tool("bad").await.unwrap(), "good");
    assert_eq!(cage.recipe.tally.figures().host_calls, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_calls_run_at_once_than_the_limit_says() {
    let log = |at: u32| format!("(call $log/write (i32.const {at}) (i32.const 8192) (i32.const 1))");
    let busy = "(local.set $p0 (i32.const 40000000))
                (loop $l (local.set $p0 (i32.sub (local.get $p0) (i32.const 1))) (br_if $l (local.get $p0)))";
    let shell = Shell::with_tool(&format!("{} {busy} {}", log(1), log(2))).import("log", "write");
    let limits = tight().and(Limit::ParallelCalls, 2).and(Limit::Cpu, 20_000).and(Limit::ToolTime, 60_000);
    let cage = Cage::within(&shell.build(), Tier::Tools, &limits);
    let calls = tokio::join!(cage.tool("bad"), cage.tool("bad"), cage.tool("bad"), cage.tool("bad"), cage.tool("bad"));
    assert!(calls.0.is_ok() && calls.4.is_ok(), "{calls:?}");
    let (mut now, mut most) = (0i32, 0);
    for (level, _) in cage.heard() {
        now += if level == Level::Debug { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_hands_over_too_much_is_not_made() {
    let cage = Cage::new(&hermes_zoo::crashing_tool(), Tier::Tools);
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(2 << 20));
    let invocation = hermes_runtime::Invocation { id: "c".into(), name: "bad".into(), arguments, extra: Vec::new() };
    let error = cage.recipe.call_tool(invocation).await.unwrap_err();
    assert!(!error.cause.is_failure());
    let error = error.to_string();
    assert!(error.contains("`input` is 1MiB") && error.contains("plugins.settings.beast.limits.input"), "{error}");
    assert_eq!(cage.recipe.tally.figures().calls, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_the_user_raises_holds_where_it_was_raised_to() {
    let greedy = Shell::with_tool("(drop (memory.grow (i32.const 1600)))").build();
    let cage = Cage::within(&greedy, Tier::Tools, &LimitSet::default());
    assert!(cage.tool("bad").await.unwrap_err().to_string().contains("64MiB"));
    let cage = Cage::within(&greedy, Tier::Tools, &LimitSet::default().and(Limit::Memory, 128 << 20));
    assert_eq!(cage.tool("bad").await.unwrap(), "good");
    assert!(cage.recipe.tally.figures().memory_peak > 100 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_goes_away_does_not_wait_for_a_tool_that_computes_without_end() {
    let cage = Cage::within(&hermes_zoo::looping_tool(), Tier::Tools, &tight().and(Limit::Cpu, 60_000));
    for _ in 0..3 {
        let gone = tokio::time::timeout(std::time::Duration::from_millis(50), cage.tool("bad")).await;
        assert!(gone.is_err());
    }
    assert_eq!(cage.tool("good").await.unwrap(), "good");
}

#[tokio::test]
async fn calls_of_tools_share_an_instance_until_it_fails_and_those_of_an_engine_do_not() {
    // It crashes where its instance has served before.
    let once = "(if (global.get $served) (then unreachable)) (global.set $served (i32.const 1))";
    let served = "(global $served (mut i32) (i32.const 0))";
    let tools = Cage::new(&Shell::with_tool(once).fields(served).build(), Tier::Tools);
    let engine = Shell::of("everything").body("tools/call", &format!("{once} (i32.const 1024)")).fields(served);
    let engine = Cage::new(&engine.build(), Tier::Session);
    for (beast, works) in [(tools, [true, false, true, false]), (engine, [true; 4])] {
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(beast.tool("bad").await.is_ok());
        }
        assert_eq!(seen, works);
    }
}
