//! Texts as the runtimes of languages wrote them, and what an author reads.

use super::*;

#[track_caller]
fn reads(stderr: &str, expected: &str) {
    let crash = Crash::read(stderr).unwrap_or_else(|| panic!("nothing was read from {stderr:?}"));
    assert_eq!(crash.to_string(), expected);
    assert_eq!(crash.raw, stderr);
}

const RUST: &[(&str, &str)] = &[
    (
        "thread '<unnamed>' (1) panicked at src/lib.rs:55:84:\ncalled `Option::unwrap()` on a `None` value\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "called `Option::unwrap()` on a `None` value (at src/lib.rs:55:84)",
    ),
    // Output before the panic, and a message of several lines.
    (
        "counting\nthread 'main' panicked at src/rules.rs:7:5:\nassertion `left == right` failed: why\n  left: 1\n right: 2\n",
        "assertion `left == right` failed: why left: 1 right: 2 (at src/rules.rs:7:5)",
    ),
    ("thread '<unnamed>' (1) panicked at src/lib.rs:3:1:\n\n", "it panicked (at src/lib.rs:3:1)"),
    (
        "thread '<unnamed>' (1) panicked at /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/chrono-0.4.41/src/lib.rs:33:9:\nno such day\n",
        "no such day (at chrono-0.4.41/src/lib.rs:33:9)",
    ),
    // A native library's, in one line.
    ("panicked at src/lib.rs:9:5: attempt to divide by zero", "attempt to divide by zero (at src/lib.rs:9:5)"),
    // A crate of the author where QuickJS has its own.
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/call.rs:3:1:\nindex out of bounds\n",
        "index out of bounds (at crates/runtime/src/call.rs:3:1)",
    ),
];

const PYTHON: &[(&str, &str)] = &[
    (
        "Traceback (most recent call last):\n  File \"/0/plugin.py\", line 60, in call\n  File \"/1/hermes_plugin/tools.py\", line 111, in call\n  File \"/1/hermes_plugin/tools.py\", line 95, in call\n  File \"/0/plugin.py\", line 31, in count\nKeyError: 'nothing'\nthread '<unnamed>' (1) panicked at runtime/src/lib.rs:1293:29:\nPython function threw an unexpected exception\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "KeyError: 'nothing' (at src/plugin.py:31)",
    ),
    // The innermost frame is in the SDK: the author's last one counts.
    (
        "Traceback (most recent call last):\n  File \"/0/plugin.py\", line 12, in recall\n  File \"/1/hermes_plugin/web.py\", line 40, in json\n  File \"/python/lib/json/__init__.py\", line 346, in loads\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0) (at src/plugin.py:12)",
    ),
    (
        "Traceback (most recent call last):\n  File \"/0/plugin.py\", line 36, in count\nValueError: invalid literal for int() with base 10: 'x'\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/1/hermes_plugin/tools.py\", line 95, in call\n  File \"/0/plugin.py\", line 38, in count\nRuntimeError: two\nlines\nthread '<unnamed>' (1) panicked at runtime/src/lib.rs:1293:29:\nPython function threw an unexpected exception\n",
        "RuntimeError: two lines (at src/plugin.py:38)",
    ),
    (
        "Traceback (most recent call last):\n  File \"/0/plugin.py\", line 33, in count\n  File \"/0/plugin.py\", line 33, in count\n  [Previous line repeated 994 more times]\nRecursionError: maximum recursion depth exceeded\nthread '<unnamed>' (1) panicked at runtime/src/lib.rs:1293:29:\nPython function threw an unexpected exception\n",
        "RecursionError: maximum recursion depth exceeded (at src/plugin.py:33)",
    ),
    // Names that the project gave its files itself.
    (
        "Traceback (most recent call last):\n  File \"/0/src/rules/words.py\", line 3, in count\n    assert text\n           ^^^^\nAssertionError\n",
        "AssertionError (at src/rules/words.py:3)",
    ),
    // The beginning of a long traceback is lost.
    (
        "y\", line 1, in f\n  File \"/0/plugin.py\", line 2, in f\nOSError: [Errno 44] No such file\n",
        "OSError: [Errno 44] No such file (at src/plugin.py:2)",
    ),
    // What the plugin logged before, even a traceback. The SDK explains the crash behind its sign.
    (
        "Traceback (most recent call last):\n  File \"/0/plugin.py\", line 3, in count\nKeyError: 'logged'\nWARNING:root:warned\n\u{1e}src/plugin.py:129: UnicodeEncodeError: 'utf-8' codec can't encode\n",
        "src/plugin.py:129: UnicodeEncodeError: 'utf-8' codec can't encode",
    ),
    ("half a line\u{1e}src/plugin.py:1: ValueError: x\n", "src/plugin.py:1: ValueError: x"),
    (
        "thread '<unnamed>' (1) panicked at runtime/src/lib.rs:1662:66:\ncalled `Result::unwrap()` on an `Err` value: PyErr { type: <class 'AttributeError'>, value: AttributeError(\"'dict' object has no attribute 'extra'\"), traceback: None }\n",
        "an answer or an error does not have the shape that the contract gives it: AttributeError: 'dict' object has no attribute 'extra'",
    ),
    (
        "thread '<unnamed>' (1) panicked at runtime/src/lib.rs:1662:66:\ncalled `Result::unwrap()` on an `Err` value: PyErr { type: <class 'UnicodeEncodeError'>, value: UnicodeEncodeError('utf-8', '\\ud83d', 0, 1, 'surrogates not allowed'), traceback: None }\n",
        "an answer or an error does not have the shape that the contract gives it: UnicodeEncodeError: 'utf-8', '\\ud83d', 0, 1, 'surrogates not allowed'",
    ),
];

const JAVASCRIPT: &[(&str, &str)] = &[
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\nFailed to call 'call': Value(Exception(\nException { message: Some(\"cannot read property 'foo' of \\\"null\\\"\"), stack: Some(\"    at run (/src/plugin.js:21:26)\\n    at call (/vendor/hermes-plugin/tools.js:67:51)\\n    at <anonymous> (/vendor/hermes-plugin/errors.js:41:57)\\n\") })\n)\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "cannot read property 'foo' of \"null\" (at src/plugin.js:21:26)",
    ),
    // Thrown in the SDK, called by the author.
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\nFailed to call 'recall': Value(Exception(\nException { message: Some(\"invalid URL\"), stack: Some(\"    at request (/vendor/hermes-plugin/imports.js:5:1)\\n    at recall (/src/notes.js:9:3)\\n\") })\n)\n",
        "invalid URL (at src/notes.js:9:3)",
    ),
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\nFailed to call 'status': Value(Exception(\nException { message: None, stack: Some(\"    at /src/plugin.js:2:1\\n\") })\n)\n",
        "an exception without a message (at src/plugin.js:2:1)",
    ),
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/call.rs:163:38:\nexpected array\n",
        "an answer or an error does not have the shape that the contract gives it: expected array",
    ),
    // The SDK's sentence, which names the place itself.
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\nFailed to call 'call': Value(Exception(\nException { message: Some(\"src/plugin.js:13: ReferenceError: x is not defined\"), stack: Some(\"\") })\n)\n",
        "src/plugin.js:13: ReferenceError: x is not defined",
    ),
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/call.rs:283:18:\ninvalid variant: Exception(Exception { message: Some(\"unknown variant tag: texts\"), stack: Some(\"\") })\n",
        "an answer or an error does not have the shape that the contract gives it: unknown variant tag: texts",
    ),
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/call.rs:283:18:\ninvalid variant: Error(FromJs { from: \"string\", to: \"variant\", message: None })\n",
        "an answer or an error does not have the shape that the contract gives it: invalid variant, string instead of variant",
    ),
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:35:35:\ninterface 'hermes:lifecycle/lifecycle@1.0.0' not found: FromJs { from: \"undefined\", to: \"object\", message: None }\n",
        "the module does not export what the contract calls: interface 'hermes:lifecycle/lifecycle@1.0.0' not found",
    ),
    (
        "thread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:132:43:\nfunction 'call' not found: FromJs { from: \"undefined\", to: \"function\", message: None }\n",
        "the module does not export what the contract calls: function 'call' not found",
    ),
];

const GO: &[(&str, &str)] = &[
    (
        "panic: runtime error: index out of range [5] with length 1\n\ngoroutine 1 [running]:\nmine/count.Words(...)\n\t/home/ada/mine/count/count.go:33\nmine/plugin.Tools.Call({0x1, 0x2})\n\t/home/ada/mine/plugin/plugin.go:50 +0x12\nexit status 2\n",
        "runtime error: index out of range [5] with length 1 (at count/count.go:33)",
    ),
    (
        "panic: assignment to entry in nil map [recovered]\n\tpanic: assignment to entry in nil map\n\ngoroutine 7 [running]:\nruntime.mapassign_faststr(0x1)\n\t/usr/lib/go-1.24/src/runtime/map_faststr.go:223 +0x3\nmine/bindings/tools.Call(0x1)\n\t/home/ada/mine/bindings/tools/tools.go:9 +0x3\nmain.count(0x2)\n\t/home/ada/mine/main.go:12 +0x4\n",
        "assignment to entry in nil map [recovered] panic: assignment to entry in nil map (at mine/main.go:12)",
    ),
    (
        "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmine/plugin.wait()\n\t/home/ada/mine/plugin/plugin.go:4 +0x3\n",
        "all goroutines are asleep - deadlock! (at plugin/plugin.go:4)",
    ),
    // As the template builds, with files named by package: the place is not in Go's library, in the SDK or in the bindings.
    (
        "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [sync.Mutex.Lock]:\ninternal/sync.runtime_SemacquireMutex(0x30e14c, 0x0, 0x2)\n\truntime/sema.go:95 +0x2\nsync.(*Mutex).Lock(...)\n\tsync/mutex.go:46\nhermes/sdk.ToJSON({0x1be3e0, 0x344070})\n\thermes/sdk/hermes.go:71 +0xd\nhermes/plugin.Call({{0x30e0a8, 0x6}})\n\thermes/plugin/plugin.go:72 +0x21\nhermes/bindings/exports/wit_exports.wasm_export_hermes_tools_tools_call(0x30e0a8, 0x6)\n\thermes/bindings/exports/wit_exports/wit_exports.go:320 +0x15\nhermes:tools/tools@1.1.0#call()\n\t<autogenerated>:1 +0x1\n",
        "all goroutines are asleep - deadlock! (at plugin/plugin.go:72)",
    ),
    (
        "panic: there is a resource already\n\ngoroutine 1 [running]:\nhermes/sdk/wit/runtime.(*Handle).Set(0x1)\n\thermes/sdk/wit/runtime/handle.go:42 +0x2\nhermes/bindings/exports/wit_exports.wasm_export_hermes_tools_tools_call(0x30e0a8, 0x6)\n\thermes/bindings/exports/wit_exports/wit_exports.go:320 +0x15\n",
        "there is a resource already (at runtime/handle.go:42)",
    ),
];

const C: &[(&str, &str)] = &[
    ("Assertion failed: count > 0 (src/plugin.c: run: 12)\n", "Assertion failed: count > 0 (at src/plugin.c:12)"),
    ("malloc: corrupted\nlist\n", "malloc: corrupted list"),
];

#[test]
fn the_crash_texts_of_languages_say_what_and_where_in_the_authors_file() {
    for (stderr, expected) in [RUST, PYTHON, JAVASCRIPT, GO, C].concat() {
        reads(stderr, expected);
    }
}

/// Whatever a guest writes, and wherever the end of it was cut, the words of its language's runtime are not needed to read the result.
#[test]
fn a_text_that_is_cut_anywhere_is_read_without_a_panic() {
    for (stderr, _) in [RUST, PYTHON, JAVASCRIPT, GO, C].concat() {
        for (at, _) in stderr.char_indices() {
            for part in [&stderr[at..], &stderr[..at]] {
                if let Some(crash) = Crash::read(part) {
                    assert!(!crash.what.is_empty(), "{part:?}");
                }
            }
        }
    }
    assert_eq!(Crash::read(" \n\n"), None);
    assert_eq!(Crash::read("note: run with `RUST_BACKTRACE=1`\n"), None);
    let long = Crash::read(&"ü".repeat(5_000)).map(|crash| crash.what.len());
    assert!(long.is_some_and(|bytes| bytes < 1_100), "{long:?}");
}

#[test]
fn what_an_author_can_do_follows_from_what_happened() {
    let remedy = |texts: &[(&str, &str)], at: usize| Crash::read(texts[at].0).and_then(|crash| crash.remedy());
    assert!(remedy(JAVASCRIPT, 3).is_some_and(|remedy| remedy.contains("every field")));
    assert!(remedy(PYTHON, PYTHON.len() - 1).is_some_and(|remedy| remedy.contains("every field")));
    assert!(remedy(JAVASCRIPT, JAVASCRIPT.len() - 1).is_some_and(|remedy| remedy.starts_with("export it")));
    assert_eq!((remedy(RUST, 0), remedy(PYTHON, 0)), (None, None));
}

#[test]
fn a_guest_that_ended_itself_is_told_so_unless_its_runtime_did_after_a_panic() {
    let by_exit = |text: &str| Crash::read(text).map(|crash| crash.by_exit().to_string());
    let fatal = "2026/01/01 00:00:00 cannot store turn 1\n";
    let expected = "it ended itself by calling `exit`: 2026/01/01 00:00:00 cannot store turn 1";
    assert_eq!(by_exit(fatal).as_deref(), Some(expected));
    assert_eq!(by_exit(GO[0].0).as_deref(), Some(GO[0].1));
}

#[test]
fn a_trap_names_the_functions_that_it_was_in() {
    let functions = ["abort", "count_words", "call", "export", "start"].map(str::to_owned);
    let crash = Crash::of_trap("unreachable".to_owned(), &functions);
    assert_eq!(
        crash.to_string(),
        "unreachable (in `abort`, called by `count_words`, called by `call`, called by `export`)"
    );
    assert!(crash.raw.contains("in start"));
    assert_eq!(Crash::of_trap("unreachable".to_owned(), &[]).to_string(), "unreachable");
}
