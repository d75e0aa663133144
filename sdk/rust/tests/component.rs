//! Checks the imports and exports of a component built with the SDK.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use wasmparser::{Parser, Payload};

#[derive(Debug, Default)]
struct Component {
    imports: Vec<String>,
    exports: Vec<String>,
    stamps: Vec<String>,
}

/// Builds and parses `examples/two_kinds.rs`, as a plugin author would.
fn two_kinds() -> &'static Component {
    static COMPONENT: OnceLock<Component> = OnceLock::new();
    COMPONENT.get_or_init(|| read(&build()))
}

fn build() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    // Strip it like a release build, and reuse the macros compiled for the tests.
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", "two_kinds", "--target", "wasm32-wasip2", "--target-dir"])
        .arg(target)
        .env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", "-Cstrip=symbols")
        .current_dir(package)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .unwrap();
    assert!(status.success(), "the example does not build; is the target there? rustup target add wasm32-wasip2");
    target.join("wasm32-wasip2/debug/examples/two_kinds.wasm")
}

fn read(path: &Path) -> Component {
    let bytes = std::fs::read(path).unwrap();
    wasmparser::Validator::new().validate_all(&bytes).unwrap();
    let mut component = Component::default();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(&bytes) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 0 => {
                component.imports.extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                component.exports.extend(section.into_iter().map(|export| export.unwrap().name.name.to_owned()));
            }
            Payload::CustomSection(section) if section.name() == "hermes:abi" => {
                component.stamps.push(String::from_utf8(section.data().to_vec()).unwrap());
            }
            _ => {}
        }
    }
    component.exports.sort();
    component
}

#[test]
fn a_component_exports_lifecycle_and_the_named_interfaces() {
    assert_eq!(
        two_kinds().exports,
        ["hermes:lifecycle/lifecycle@1.0.0", "hermes:memory/memory-provider@1.0.0", "hermes:tools/tools@1.1.0"]
    );
}

#[test]
fn a_component_imports_what_it_uses_and_only_the_wasi_that_std_links() {
    let (ours, wasi): (Vec<_>, Vec<_>) = two_kinds().imports.iter().partition(|import| import.starts_with("hermes:"));
    assert_eq!(ours, ["hermes:types/types@1.0.0", "hermes:host/log@1.0.0", "hermes:storage/documents@1.0.0"]);
    for import in wasi {
        let known = ["wasi:io/", "wasi:cli/", "wasi:clocks/", "wasi:random/"];
        assert!(known.iter().any(|package| import.starts_with(package)), "{import}");
    }
}

#[test]
fn the_version_stamp_survives_linking_and_stripping() {
    let [stamp] = two_kinds().stamps.as_slice() else { panic!("{:?}", two_kinds().stamps) };
    assert_eq!(stamp, &format!(r#"{{"package":"{}","sdk":"hermes-plugin 0.1.0"}}"#, hermes_plugin::CONTRACT));
}
