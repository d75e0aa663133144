//! Components with stamps that lie, sections that claim more than they have, and bodies that should exhaust the compiler.

use hermes_runtime::{Tier, exported_interfaces};
use hermes_zoo::Shell;

use super::{COMPONENT, CUSTOM, IMPORTS, PREAMBLE, TYPES, custom, importing, number, refusal, section};
use crate::Fixture;

const STAMP: &str = "hermes:abi";

fn good() -> Vec<u8> {
    Shell::with_tool("nop").build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stamp_and_foreign_sections_do_not_change_what_a_plugin_is() {
    let versions: String = (0..1_000).map(|at| format!(r#"{{"package":"hermes:plugin@{at}.0.0"}}"#)).collect();
    for (name, stamp, content) in [
        ("a stamp of another version", STAMP, br#"{"package":"hermes:plugin@9.9.9","sdk":"x"}"#.to_vec()),
        ("a thousand stamps", STAMP, versions.into_bytes()),
        ("a stamp of nested lists", STAMP, vec![b'['; 1 << 20]),
        ("a stamp that is no text", STAMP, vec![0xff; 1_000]),
        ("a section of eight mebibytes", "junk", vec![0xaa; 8 << 20]),
        ("names of functions that are no names", "component-name", vec![0xff; 64]),
        ("a producer of another tool", "producers", vec![0x80; 64]),
    ] {
        let component = [good(), custom(stamp, &content)].concat();
        // The interfaces of its imports and exports decide.
        assert_eq!(exported_interfaces(&component).unwrap(), ["tools"], "{name}");
        let answer = Fixture::new(&component, Tier::Tools).tool("good").await;
        assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{name}: {answer:?}");
    }
}

#[test]
fn a_stamp_makes_no_plugin_of_a_component_without_interfaces() {
    for (name, stamp, says) in [
        ("a good stamp", &br#"{"package":"hermes:plugin@1.0.0"}"#[..], ""),
        ("a later stamp", br#"{"package":"hermes:plugin@2.0.0"}"#, "2.0.0"),
        ("a stamp of another package", br#"{"package":"hermes:tools@1.0.0"}"#, "the contract"),
        ("a stamp with a number", br#"{"package":7}"#, "the contract"),
        ("a stamp with a line feed", b"{\"package\":\"hermes:plugin@1\\n\\u001b[2J\"}", "supports 1.1.0"),
    ] {
        let error = refusal(name, &[PREAMBLE, &custom(STAMP, stamp)].concat());
        assert!(error.contains(says), "{name}: {error}");
    }
}

#[test]
fn sections_that_claim_more_than_they_have_are_refused() {
    let most = [0xff, 0xff, 0xff, 0xff, 0x0f];
    for (name, tail) in [
        ("a section of four gibibytes", [&[IMPORTS][..], &most].concat()),
        ("a custom section of four gibibytes", [&[CUSTOM][..], &most].concat()),
        ("a length that never ends", [&[TYPES][..], &[0xff; 32]].concat()),
        ("a section without an end", vec![IMPORTS]),
        ("four billion types", section(TYPES, &most)),
        ("four billion imports", section(IMPORTS, &most)),
        ("an unknown section", section(99, b"x")),
        ("a name beyond its section", section(IMPORTS, &[1, 0, 0xff, 0xff, 0x03, b'a'])),
        ("a component that is cut off", section(COMPONENT, &PREAMBLE[..5])),
        ("a core module in the place of a component", section(COMPONENT, b"\0asm\x01\0\0\0")),
        ("a second beginning", PREAMBLE.to_vec()),
    ] {
        refusal(name, &[&good()[..], &tail].concat());
    }
}

#[test]
fn types_and_names_that_grow_without_end_are_refused() {
    // Each tuple contains the one before it twice: fifty of them have 2^50 parts.
    let mut doubling = number(50);
    doubling.push(0x7f);
    for at in 0..49 {
        doubling.extend([0x6f, 2, at, at]);
    }
    refusal("types that double", &[&good()[..], &section(TYPES, &doubling)].concat());
    // The same without anything else: the host only looks at names then.
    refusal(
        "types that double, alone",
        &[&importing(["hermes:host/log@1.0.0"])[..], &section(TYPES, &doubling)].concat(),
    );

    let long = format!("hermes:host/{}@1.0.0", "a".repeat(90_000));
    refusal("a long name of the contract", &importing([long.as_str()]));
    let foreign = format!("evil:{}/x@1.0.0", "a".repeat(90_000));
    refusal("a long foreign name", &importing([foreign.as_str()]));
    let many: Vec<String> = (0..50_000).map(|at| format!("hermes:host/x{at}@1.0.0")).collect();
    refusal("fifty thousand imports", &importing(many.iter().map(String::as_str)));
    let same = vec!["hermes:host/log@1.0.0"; 1_000];
    refusal("one import a thousand times", &importing(same));
}

#[test]
fn a_name_cannot_draw_on_the_terminal() {
    for name in [
        "wasi:cli/run@0.2.0\u{1b}[2J\u{1b}]0;owned\u{7}",
        "evil\u{202e}:sgol/tsoh@1.0.0",
        "evil\r\nit was granted:x/y@1.0.0",
        "hermes:host/log@1.0.0\u{1b}[31m",
        "hermes:host/\u{1b}[31mlog@2.0.0",
        "hermes:\u{202e}host/log@9.0.0",
    ] {
        let error = refusal(name, &importing([name]));
        assert!(!error.contains(['\r', '\n', '\u{7}']), "{error:?}");
    }
}

#[test]
fn components_in_components_do_not_exhaust_the_stack() {
    let mut nested = PREAMBLE.to_vec();
    for _ in 0..5_000 {
        nested = [PREAMBLE, &section(COMPONENT, &nested)].concat();
    }
    // Reading names runs in the host itself.
    assert_eq!(exported_interfaces(&nested).unwrap_or_default(), Vec::<String>::new());
    refusal("components in components", &nested);
}

/// A function with this body, which no call uses.
fn with_function(body: &str) -> Shell {
    Shell::with_tool("nop").fields(&format!("(func $unused {body})"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_should_exhaust_the_compiler_is_compiled_or_refused() {
    for (name, shell) in [
        (
            "two thousand blocks in each other",
            with_function(&format!("{}{}", "(block ".repeat(2_000), ")".repeat(2_000))),
        ),
        ("forty thousand locals", with_function(&format!("(local {})", "i64 ".repeat(40_000)))),
        ("a jump with twenty thousand targets", {
            with_function(&format!("(block $a (br_table {} (i32.const 7)))", "$a ".repeat(20_000)))
        }),
        ("ten thousand functions", {
            Shell::with_tool("nop").fields(&(0..10_000).map(|at| format!("(func $unused{at})")).collect::<String>())
        }),
        ("a function with a hundred thousand additions", {
            with_function(&format!(
                "(local $x i32) {}",
                "(local.set $x (i32.add (local.get $x) (i32.const 1)))".repeat(100_000)
            ))
        }),
    ] {
        let answer = Fixture::new(&shell.build(), Tier::Tools).tool("good").await;
        assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{name}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_and_tables_beyond_their_bounds_stop_the_start_and_nothing_else() {
    for (name, fields) in [
        ("data behind the memory", "(data (i32.const -1) \"xx\")"),
        ("data at the last byte", "(data (i32.const 262143) \"xx\")"),
        ("elements behind the table", "(table $t 2 funcref) (func $f) (elem (table $t) (i32.const 7) func $f)"),
        ("a start function that reads behind the memory", "(func $s (drop (i32.load (i32.const -4)))) (start $s)"),
        ("a start function that calls itself", "(func $s (call $s)) (start $s)"),
        ("a start function that grows for ever", {
            "(func $s (loop $l (drop (memory.grow (i32.const 16))) (br $l))) (start $s)"
        }),
    ] {
        let fixture = Fixture::new(&Shell::with_tool("nop").fields(fields).build(), Tier::Tools);
        for _ in 0..2 {
            let error = fixture.tool("good").await.expect_err(name);
            assert!(error.cause.is_failure() && error.to_string().contains("plugin `beast`"), "{name}: {error}");
        }
        let good = Fixture::new(&good(), Tier::Tools).tool("good").await;
        assert_eq!(good.as_deref().unwrap_or_default(), "good", "{name}: {good:?}");
    }
}
