//! The Rust SDK's bindings: generated from the contract before plugins are built, so that plugins compile no generator.
//!
//! `cargo xtask bindings` writes them (`xtask/src/bindings.rs` says when); this test fails if they are not current.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};

/// If set, the bindings are written instead of compared.
const WRITE: &str = "HERMES_WRITE_BINDINGS";
const VERSION: &str = "1.1.0";

/// The interfaces that a plugin can export: module and interface.
const EXPORTS: [(&str, &str); 14] = [
    ("lifecycle", "lifecycle/lifecycle"),
    ("context_engine", "context-engine/context-engine"),
    ("context_assist", "context-engine/context-assist"),
    ("memory_provider", "memory/memory-provider"),
    ("memory_events", "memory/memory-events"),
    ("memory_prefetch", "memory/memory-prefetch"),
    ("memory_mirror", "memory/memory-mirror"),
    ("memory_rewind", "memory/memory-rewind"),
    ("memory_upkeep", "memory/memory-upkeep"),
    ("tools", "tools/tools"),
    ("tool_preview", "tools/tool-preview"),
    ("skills", "skills/skills"),
    ("embedder", "embeddings/embedder"),
    ("hooks", "hooks/hooks"),
];

/// The module of the imports and the shared types.
const CONTRACT: &str = "contract";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn options(with: &str, path: &str) -> Opts {
    Opts {
        format: true,
        generate_all: true,
        generate_unused_types: true,
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        with: vec![(with.to_owned(), WithOption::Path(path.to_owned()))],
        ..Opts::default()
    }
}

/// The bindings of one world of the contract, or of a world that is given as text.
fn generate(world: &str, text: Option<&str>, options: Opts) -> String {
    let mut resolve = Resolve::default();
    let (mut package, _) = resolve.push_path(repository().join("wit").join(VERSION)).unwrap();
    if let Some(text) = text {
        package = resolve.push_str("world.wit", text).unwrap();
    }
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, code) = files.iter().next().unwrap();
    finished(std::str::from_utf8(code).unwrap())
}

/// What native libraries need to exchange the contract's types as bytes. Components are built faster without.
const SERIALIZE: &str = "#[cfg_attr(feature = \"serialize\", derive(serde::Serialize, serde::Deserialize))]";

/// The code with a feature for `serde`, and with a tab for each level: it is nested so deeply that a third of it would be spaces.
fn finished(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for line in code.lines() {
        let text = line.trim_start_matches(' ');
        let spaces = line.len() - text.len();
        let indent = "\t".repeat(spaces / 4) + &" ".repeat(spaces % 4);
        out.extend([&indent, text.trim_end(), "\n"]);
        if text.starts_with("#[derive(") && text.contains("PartialEq") {
            out.extend([&indent, SERIALIZE, "\n"]);
        }
    }
    out
}

/// An interface as the worlds of the contract name it, with the version of its package.
fn with_version(interface: &str) -> String {
    let worlds = fs::read_to_string(repository().join("wit").join(VERSION).join("worlds.wit")).unwrap();
    let (_, rest) = worlds.split_once(&format!("export hermes:{interface}@")).unwrap();
    let (version, _) = rest.split_once(';').unwrap();
    format!("hermes:{interface}@{version}")
}

/// All generated files by name.
fn generated() -> BTreeMap<String, String> {
    let types = "hermes:types/types@1.0.0";
    let imports = generate("imports", None, options(&format!("{types}/error"), "crate::Error"));
    let exports = EXPORTS.map(|(module, interface)| {
        let world = module.replace('_', "-");
        let text = format!("package hermes:sdk; world {world} {{ export {}; }}", with_version(interface));
        let options = Opts {
            pub_export_macro: true,
            export_macro_name: Some("export".to_owned()),
            ..options(types, "crate::bindings::types")
        };
        (format!("{module}.rs"), generate(&world, Some(&text), options))
    });
    exports.into_iter().chain([(format!("{CONTRACT}.rs"), imports)]).collect()
}

#[test]
fn the_bindings_of_the_rust_sdk_are_current() {
    let folder = repository().join("sdk/rust/src/bindings");
    let generated = generated();
    if std::env::var_os(WRITE).is_some() {
        for (name, code) in &generated {
            // A file that stays as it is makes nobody build again.
            if fs::read_to_string(folder.join(name)).ok().as_ref() != Some(code) {
                fs::write(folder.join(name), code).unwrap();
            }
        }
    }
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let written: BTreeMap<String, String> = entries
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .filter(|(name, _)| name != "mod.rs")
        .collect();
    assert_eq!(written.keys().collect::<Vec<_>>(), generated.keys().collect::<Vec<_>>());
    for (name, code) in &generated {
        assert!(written[name] == *code, "sdk/rust/src/bindings/{name} is out of date: run `cargo xtask bindings`");
    }
}

#[test]
fn the_bindings_name_every_interface_that_a_plugin_can_export() {
    let worlds = fs::read_to_string(repository().join("wit").join(VERSION).join("worlds.wit")).unwrap();
    let (_, everything) = worlds.split_once("world everything {").unwrap();
    let exported = everything.lines().filter_map(|line| line.trim().strip_prefix("export hermes:"));
    let exported: Vec<&str> = exported.filter_map(|name| name.split('@').next()).collect();
    assert!(exported.len() > 10, "{exported:?}");
    for name in exported {
        assert!(EXPORTS.iter().any(|(_, interface)| *interface == name), "{name} has no bindings in the Rust SDK");
    }
}

#[test]
fn the_sdk_links_the_version_of_wit_bindgen_that_wrote_the_bindings() {
    let code = fs::read_to_string(repository().join("sdk/rust/src/bindings").join(format!("{CONTRACT}.rs"))).unwrap();
    let version = code.split('`').nth(2).unwrap().split_whitespace().next().unwrap().trim_end_matches('.');
    assert!(version.split('.').count() == 3, "the first line names the generator: {version}");
    for manifest in ["plugins/Cargo.toml", "sdk/templates/rust/vendor/hermes-plugin.toml"] {
        let manifest = fs::read_to_string(repository().join(manifest)).unwrap();
        let line = manifest.lines().find(|line| line.starts_with("wit-bindgen =")).unwrap();
        assert!(line.contains(&format!("\"={version}\"")), "{line}");
    }
}
