//! Dependencies have the same features for the binary and for the tests.
//!
//! Cargo compiles a crate once per set of features. One feature that only a test enables is enough to compile wasmtime and
//! its compiler a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

#[test]
fn the_tests_compile_no_dependency_of_the_binary_again() {
    let binary = features("normal,build");
    let tests = features("normal,build,dev");
    assert!(
        binary.keys().any(|package| package.starts_with("wasmtime ")),
        "the tree does not show the binary's dependencies"
    );
    let mut differing = Vec::new();
    for (package, features) in &binary {
        if tests.get(package) != Some(features) {
            differing.push(format!("{package}: {features:?} for the binary, {:?} for the tests", tests.get(package)));
        }
    }
    assert!(
        differing.is_empty(),
        "add the features that are missing for the binary to tests/Cargo.toml, under [dependencies]:\n{}",
        differing.join("\n")
    );
}

/// The sets of features of every package in the dependency tree of the workspace.
fn features(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--workspace", "--offline", "--prefix", "none", "--format", "{p}|{f}", "--edges", edges])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') else { continue };
        // Two versions of a crate are two crates.
        let name: Vec<&str> = package.split(' ').take(2).collect();
        found.entry(name.join(" ")).or_default().insert(features.to_owned());
    }
    found
}
