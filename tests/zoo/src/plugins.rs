//! Plugins that more than one test meets.

use crate::Shell;

/// The deed of a guest that computes without end.
pub const LOOP: &str = "(loop $for-ever (br $for-ever)) unreachable";

/// A tool that computes without end.
pub fn looping_tool() -> Vec<u8> {
    Shell::with_tool(LOOP).build()
}

/// A tool that crashes.
pub fn crashing_tool() -> Vec<u8> {
    Shell::with_tool("unreachable").build()
}

/// A hook that is told of every tool and computes without end about it.
pub fn looping_hook() -> Vec<u8> {
    hook(LOOP)
}

/// A hook that wants the user to be asked about every tool.
pub fn asking_hook() -> Vec<u8> {
    let mut shell = Shell::of("hooks-plugin");
    let [at, length] = shell.memory().bytes(b"are you sure");
    let verdict = shell.memory().words(&[2, at, length]);
    told_of_tools(shell).body("hooks/on-event", &format!("(i32.const {verdict})")).build()
}

/// A hook that is told of every tool and does this.
pub fn hook(deed: &str) -> Vec<u8> {
    told_of_tools(Shell::of("hooks-plugin")).body("hooks/on-event", &format!("{deed} (i32.const 1024)")).build()
}

fn told_of_tools(mut shell: Shell) -> Shell {
    let [at, length] = shell.memory().bytes(b"before-tool");
    let list = shell.memory().list(&[at, length], 1);
    shell.body("hooks/interests", &format!("(i32.const {list})"))
}

/// A memory that does this when it is asked what it remembers.
pub fn memory(deed: &str) -> Vec<u8> {
    Shell::of("memory-provider-plugin").body("memory-provider/recall", &format!("{deed} (i32.const 1024)")).build()
}

/// A memory that remembers thousands of things, a kilobyte each.
pub fn flooding_memory() -> Vec<u8> {
    const COUNT: usize = 5_000;
    let mut shell = Shell::of("memory-provider-plugin");
    let memory = shell.memory();
    let [key, length] = memory.bytes(b"key");
    let [text, size] = memory.bytes(&[b'm'; 1024]);
    let items = [key, length, text, size].repeat(COUNT);
    let at = memory.words(&items);
    let answer = memory.words(&[0, at, COUNT as u32]);
    shell.pages(8, None).body("memory-provider/recall", &format!("(i32.const {answer})")).build()
}

/// Skills by the thousand, each with a description of so many bytes.
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

/// An engine that misbehaves in one function and answers as little as it can in the others.
pub fn engine(function: &str, deed: &str) -> Vec<u8> {
    Shell::of("context-engine-plugin")
        .body(&format!("context-engine/{function}"), &format!("{deed} (i32.const 1024)"))
        .build()
}
