//! The complete plugins of `docs/plugins/kinds`: in Rust, built with the other guests, and in JavaScript, as kept components. Each passes
//! `plugins test` and serves the session that its page shows.
//!
//! `HERMES_WRITE_PAGES=1` writes code and session into the pages. `cargo xtask languages kept` builds the kept components.

pub(crate) mod kept;
mod page;
mod session;

use std::fs;
use std::path::{Path, PathBuf};

use hermes_tests::Home;

use self::session::Stage;

/// The kinds, which are also the names of the pages.
pub(crate) const KINDS: [&str; 6] = ["context-engine", "embedder", "hooks", "memory-provider", "skills", "tools"];

/// The folder of the pages.
pub(crate) fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plugins/kinds")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The manifest of a kind's plugins, and the name in it.
fn manifest(kind: &str) -> (String, String) {
    let manifest = read(&pages().join(kind).join("plugin.yaml"));
    let name =
        manifest.lines().find_map(|line| line.strip_prefix("name: ")).expect("the manifest has a name").to_owned();
    (manifest, name)
}

/// Tests a component, and returns the session in which it served.
pub(crate) fn run(kind: &str, component: &[u8]) -> String {
    let (manifest, name) = manifest(kind);
    let home = Home::new();
    home.write_workspace("plugin/plugin.yaml", &manifest);
    home.write_workspace(&format!("plugin/{name}.wasm"), component);
    let tested = home.hermes(&["plugins", "test", "plugin", "--conversations", "40"]).run();
    assert!(tested.status.success(), "{kind}: {tested}");

    let stage = Stage::new(kind);
    stage.home.write_workspace("plugin/plugin.yaml", &manifest);
    stage.home.write_workspace(&format!("plugin/{name}.wasm"), component);
    stage.home.hermes(&["plugins", "install", "./plugin", "--yes"]).run().success();
    stage.play(kind, &name)
}

/// Both plugins serve the same session, and the page shows it together with their code.
fn holds(kind: &str) {
    let Some(staged) = hermes_test_data::staged(&format!("kinds/{kind}")) else { return };
    let session = run(kind, &fs::read(staged.join(format!("{kind}.wasm"))).unwrap());
    assert_eq!(run(kind, &kept::component(kind)), session, "{kind}: the plugin in JavaScript serves another session");
    page::check(kind, &session);
}

#[test]
fn the_context_engine_of_its_page_works_in_both_languages() {
    holds("context-engine");
}

#[test]
fn the_embedder_of_its_page_works_in_both_languages() {
    holds("embedder");
}

#[test]
fn the_hooks_of_their_page_work_in_both_languages() {
    holds("hooks");
}

#[test]
fn the_memory_provider_of_its_page_works_in_both_languages() {
    holds("memory-provider");
}

#[test]
fn the_skills_of_their_page_work_in_both_languages() {
    holds("skills");
}

#[test]
fn the_tools_of_their_page_work_in_both_languages() {
    holds("tools");
}
