//! Hostile plugins that several tests use.

use crate::Shell;

/// A function body that computes for ever.
pub const LOOP: &str = "(loop $for-ever (br $for-ever)) unreachable";

/// A tool that computes for ever.
pub fn looping_tool() -> Vec<u8> {
    Shell::with_tool(LOOP).build()
}

/// A tool that crashes.
pub fn crashing_tool() -> Vec<u8> {
    Shell::with_tool("unreachable").build()
}

/// A tool that also imports another interface, named with its version as in `wasi:http/types@0.2.0`, and calls it.
pub fn importing_more(import: &str) -> Vec<u8> {
    let (name, version) = import.split_once('@').unwrap();
    let (package, interface) = name.split_once('/').unwrap();
    let wit = format!(
        "world more {{ include tools-plugin; import {import}; }}
        package {package}@{version} {{ interface {interface} {{ count: func() -> u32; }} }}"
    );
    let call = format!("(drop (call ${interface}/count))");
    Shell::with_tool(&call).on("more", &wit).import(interface, "count").build()
}

/// A hook that computes for ever on every tool event.
pub fn looping_hook() -> Vec<u8> {
    hook(LOOP)
}

/// A hook that asks for approval of every tool.
pub fn asking_hook() -> Vec<u8> {
    let mut shell = Shell::of("hooks-plugin");
    let [at, length] = shell.memory().bytes(b"are you sure");
    let verdict = shell.memory().words(&[2, at, length]);
    with_tool_events(shell).body("hooks/on-event", &format!("(i32.const {verdict})")).build()
}

/// A hook with this body, called for every tool.
pub fn hook(wat: &str) -> Vec<u8> {
    with_tool_events(Shell::of("hooks-plugin")).body("hooks/on-event", &format!("{wat} (i32.const 1024)")).build()
}

fn with_tool_events(mut shell: Shell) -> Shell {
    let [at, length] = shell.memory().bytes(b"before-tool");
    let list = shell.memory().list(&[at, length], 1);
    shell.body("hooks/interests", &format!("(i32.const {list})"))
}

/// A memory provider whose `recall` has this body.
pub fn memory(wat: &str) -> Vec<u8> {
    Shell::of("memory-provider-plugin").body("memory-provider/recall", &format!("{wat} (i32.const 1024)")).build()
}

/// A memory provider that recalls thousands of texts of one kilobyte.
pub fn flooding_memory() -> Vec<u8> {
    const COUNT: usize = 5_000;
    let mut shell = Shell::of("memory-provider-plugin");
    let memory = shell.memory();
    let [key, length] = memory.bytes(b"key");
    let [text, size] = memory.bytes(&[b'm'; 1024]);
    let items = [key, length, text, size, 0, 0].repeat(COUNT);
    let at = memory.words(&items);
    let answer = memory.words(&[0, at, COUNT as u32]);
    shell.pages(8, None).body("memory-provider/recall", &format!("(i32.const {answer})")).build()
}

/// A plugin with thousands of skills, each with a description of `bytes` bytes.
pub fn flooding_skills(bytes: usize) -> Vec<u8> {
    const COUNT: usize = 5_000;
    let mut shell = Shell::of("skills-plugin");
    let memory = shell.memory();
    let [name, length] = memory.bytes(b"skill");
    let [text, size] = memory.bytes(&b"s".repeat(bytes));
    let skill = [name, length, text, size, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let at = memory.words(&skill.repeat(COUNT));
    let answer = memory.words(&[0, at, COUNT as u32]);
    shell.pages(8, None).body("skills/index", &format!("(i32.const {answer})")).build()
}

/// An engine with this body in one function and minimal answers in all others.
pub fn engine(function: &str, wat: &str) -> Vec<u8> {
    Shell::of("context-engine-plugin")
        .body(&format!("context-engine/{function}"), &format!("{wat} (i32.const 1024)"))
        .build()
}
