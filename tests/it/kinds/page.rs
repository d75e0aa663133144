//! The pages contain the code that is built, and the session that was served.

use std::fs;

use super::{pages, read};

/// The beginning of a comment that names the content of the next block.
const MARK: &str = "<!-- block: ";
const SESSION: &str = "session";
const FENCE: &str = "```";

/// The page with current blocks. `content` gives the text for a name.
fn with_blocks(page: &str, content: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(name) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let opening = lines.next().filter(|line| line.starts_with(FENCE));
        let opening = opening.unwrap_or_else(|| panic!("a block follows the comment for {name}"));
        lines.by_ref().find(|line| *line == FENCE).unwrap_or_else(|| panic!("the block of {name} ends"));
        let content = content(name);
        text.push_str(&format!("{opening}\n{}\n{FENCE}\n", content.trim_end()));
    }
    text
}

/// Compares the page of a kind with the plugins and the session, or writes them into it.
pub(super) fn check(kind: &str, session: &str) {
    let path = pages().join(format!("{kind}.md"));
    let page = read(&path);
    for block in ["plugin.yaml", "rust/src/lib.rs", "javascript/plugin.js", SESSION] {
        assert!(page.contains(&format!("{MARK}{block} -->\n")), "{} has no block of {block}", path.display());
    }
    let content = |name: &str| match name {
        SESSION => session.to_owned(),
        file => read(&pages().join(kind).join(file)),
    };
    let current = with_blocks(&page, &content);
    if std::env::var_os("HERMES_WRITE_PAGES").is_some() {
        fs::write(&path, current).unwrap();
        return;
    }
    assert!(page == current, "run this test with HERMES_WRITE_PAGES=1 to write {}\n{current}", path.display());
}

#[test]
fn a_block_is_replaced_and_the_text_around_it_stays() {
    let page = "Before.\n<!-- block: a -->\n```rust\nold\n```\nAfter.\n```\nkept\n```\n";
    let current = with_blocks(page, &|name| format!("the text of {name}\n"));
    assert_eq!(current, page.replace("old", "the text of a"));
}
