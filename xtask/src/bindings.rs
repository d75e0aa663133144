//! The Rust SDK's bindings to the contract, which are generated and not part of the repository: `sdk/rust/src/bindings`.
//!
//! Every build of guests comes through here first, so that a new clone needs no step of its own. The generator is compiled only if the
//! contract or the generator changed since the bindings were written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cargo::{Repository, must};

/// Makes the test of the bindings write them. `tests/bindings.rs` reads it.
const WRITE: &str = "HERMES_WRITE_BINDINGS";
/// What the bindings were generated from, below the target folder.
const INPUTS: &str = "target/bindings.inputs";

/// Writes the bindings unless they are current. An older checkout, which `bench compare` builds, has them in its repository.
pub(crate) fn ensure(repository: &Repository) -> Result<()> {
    let root = repository.root();
    if !fs::read_to_string(root.join(".gitignore")).is_ok_and(|ignored| ignored.contains("/sdk/rust/src/bindings/*")) {
        return Ok(());
    }
    let inputs = inputs(root)?;
    let is_current = fs::read_to_string(root.join(INPUTS)).is_ok_and(|written| written == inputs);
    if is_current && exist(root) {
        return Ok(());
    }
    write(repository)
}

/// Writes the bindings. A test contains the generator, so that no other command has to compile it.
pub(crate) fn write(repository: &Repository) -> Result<()> {
    let root = repository.root();
    let inputs = inputs(root)?;
    let mut test = repository.cargo();
    // With the whole workspace selected, dependencies have the features of every other build.
    test.args(["test", "--quiet", "--workspace", "--test", "bindings", "the_bindings_of_the_rust_sdk_are_current"]);
    test.env(WRITE, "1");
    eprintln!("writing the bindings of the Rust SDK");
    must(test)?;
    let file = root.join(INPUTS);
    fs::write(&file, inputs).with_context(|| format!("cannot write {}", file.display()))
}

/// Whether every file that `mod.rs` names is there.
fn exist(root: &Path) -> bool {
    let folder = root.join("sdk/rust/src/bindings");
    let Ok(text) = fs::read_to_string(folder.join("mod.rs")) else { return false };
    let mut named =
        text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    named.all(|name| folder.join(format!("{name}.rs")).is_file())
}

/// All texts that decide what is generated: the contract, the generator, and its version.
fn inputs(root: &Path) -> Result<String> {
    let read = |file: &Path| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
    let manifest = read(&root.join("Cargo.toml"))?;
    let versions: String = manifest.lines().filter(|line| line.starts_with("wit-bindgen")).collect();
    let mut files: Vec<PathBuf> = vec![root.join("xtask/tests/bindings.rs")];
    for folder in ["wit/1.1.0", "wit/1.1.0/deps"] {
        let folder = root.join(folder);
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot open {}", folder.display()))? {
            files.push(entry?.path());
        }
    }
    files.retain(|file| !file.is_dir());
    files.sort();
    files.iter().map(|file| read(file)).chain([Ok(versions)]).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bindings_without_one_of_their_files_are_written_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sdk/rust/src/bindings");
        fs::create_dir_all(&folder).unwrap();
        assert!(!exist(root.path()));
        fs::write(folder.join("mod.rs"), "//! Generated.\nmod contract;\n\npub mod tools;\n").unwrap();
        fs::write(folder.join("contract.rs"), "").unwrap();
        assert!(!exist(root.path()));
        fs::write(folder.join("tools.rs"), "").unwrap();
        assert!(exist(root.path()));
    }
}
