//! The ports that the pages for authors from other worlds show. `toolchains.rs` builds those with code.

use std::fs;
use std::path::Path;

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

const MARK: &str = "<!-- port: ";

/// The blocks of a page, each with the words of its mark.
pub(super) fn of(page: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/plugins/{page}.md"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut blocks = Vec::new();
    for part in text.split(MARK).skip(1) {
        let (place, rest) = part.split_once(" -->\n```").unwrap_or_else(|| panic!("{page}: a block follows its mark"));
        let (_, rest) = rest.split_once('\n').unwrap();
        let (code, _) = rest.split_once("\n```\n").unwrap_or_else(|| panic!("{page}: the block of {place} ends"));
        blocks.push((place.to_owned(), format!("{code}\n")));
    }
    blocks
}

#[test]
fn each_page_shows_a_port() {
    for (page, places) in [
        ("from-mcp", &["python tools src/plugin.py"][..]),
        ("from-pi", &["javascript hooks src/plugin.js"]),
        ("from-opencode", &["javascript tools src/plugin.js"]),
        ("from-zed", &["folder plugin.yaml", "folder skills/release/SKILL.md"]),
    ] {
        let found: Vec<String> = of(page).into_iter().map(|(place, _)| place).collect();
        assert_eq!(found, places, "{page}");
    }
}

#[test]
fn the_port_of_a_slash_command_is_a_command_of_a_session() {
    let server = Server::scripted([Reply::text("I will.")]);
    let home = Home::with(&server);
    for (place, text) in of("from-zed") {
        home.write_workspace(&format!("checklists/{}", place.strip_prefix("folder ").unwrap()), text);
    }
    home.hermes(&["plugins", "install", "./checklists", "--yes"]).run().success();
    home.set("plugins.enabled", json!(["checklists"]));
    let mut chat = home.hermes(&[]).talking().spawn();
    chat.say("/release 1.2");
    server.wait_for_finished(1);
    chat.wait().success();
    let sent = server.last_turn().body["messages"].to_string();
    assert!(sent.contains("Before you release 1.2: run the tests"), "{sent}");
}
