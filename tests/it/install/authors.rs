//! A plugin author's workflow: create a plugin, build it, test it, use it.
//!
//! Building needs the crates of the SDK, from the registry or cargo's cache, and takes minutes. All kinds share one target folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_test_data::at_length;
use hermes_tests::Home;
use serde_json::{Value, json};

const KINDS: [&str; 6] = ["context-engine", "memory-provider", "tools", "skills", "hooks", "embedder"];

/// Cargo in a project, with a target folder shared by all tests.
fn cargo(project: &Path, arguments: &[&str]) -> Result<(), String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authors");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(project).env("CARGO_TARGET_DIR", &target);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let of_the_outer = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if of_the_outer || matches!(name.as_str(), "RUSTFLAGS" | "CARGO_ENCODED_RUSTFLAGS" | "RUSTC_WORKSPACE_WRAPPER")
        {
            command.env_remove(name);
        }
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The component of a built project.
fn component(project: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authors/wasm32-wasip2/release");
    target.join(format!("{}.wasm", project.replace('-', "_")))
}

/// Creates an installable folder of manifest and component.
fn folder_of(home: &Home, project: &str, place: &str) -> PathBuf {
    let from = home.workspace().join(project);
    let folder = home.workspace().join(place);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(from.join("plugin.yaml"), folder.join("plugin.yaml")).unwrap();
    fs::copy(component(project), folder.join(format!("{project}.wasm"))).unwrap();
    folder
}

/// The files below a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// One folder in which the projects are built, each with the same SDK. Cargo compiles a crate again for each folder in which it
/// lies, and again if its files are newer.
struct Bench {
    folder: PathBuf,
    /// Where the SDK waits for the next project.
    sdk: PathBuf,
}

impl Bench {
    fn of(home: &Home) -> Self {
        Self { folder: home.workspace().join("bench"), sdk: home.workspace().join("sdk") }
    }

    /// Moves a new project onto the bench. Its SDK must be that of the project before.
    fn place(&self, project: &Path) {
        fs::rename(project, &self.folder).unwrap();
        let vendor = self.folder.join("vendor");
        if self.sdk.exists() {
            assert!(contents(&vendor) == contents(&self.sdk), "{} has another SDK", project.display());
            fs::remove_dir_all(&vendor).unwrap();
            fs::rename(&self.sdk, &vendor).unwrap();
        }
    }

    /// Moves the project back, without the SDK.
    fn clear(&self, project: &Path) {
        fs::rename(self.folder.join("vendor"), &self.sdk).unwrap();
        fs::rename(&self.folder, project).unwrap();
    }
}

#[test]
fn a_new_plugin_of_every_kind_builds_passes_its_own_test_and_keeps_the_contract() {
    let home = Home::new();
    let bench = Bench::of(&home);
    // Each one is built with its SDK by cargo. The long run has all of them.
    for kind in KINDS.into_iter().take(at_length(2, KINDS.len())) {
        let project = format!("new-{kind}");
        let made = home.hermes(&["plugins", "new", &project, "--kind", kind]).run().success();
        assert!(made.stdout.contains("cargo build --release --target wasm32-wasip2"), "{made}");
        let folder = home.workspace().join(&project);
        bench.place(&folder);
        for arguments in [&["test", "--quiet"][..], &["build", "--quiet", "--release", "--target", "wasm32-wasip2"]] {
            if let Err(why) = cargo(&bench.folder, arguments) {
                // Without a network and without cached crates nothing can be built.
                if ["download", "registry", "network", "index.crates.io"].iter().any(|part| why.contains(part)) {
                    return hermes_test_data::missing(
                        "the crates of the SDK",
                        &format!("the crates of the SDK cannot be downloaded: {why}"),
                    );
                }
                panic!("{kind}: cargo {arguments:?} failed\n{why}");
            }
        }
        bench.clear(&folder);
        let place = folder_of(&home, &project, &format!("built-{kind}"));
        let place = place.to_str().unwrap();
        let tested = home.hermes(&["plugins", "test", place, "--json", "--conversations", "30"]).run();
        let report: Value = serde_json::from_str(&tested.stdout).unwrap_or_else(|error| panic!("{error}\n{tested}"));
        assert!(tested.status.success(), "{kind}\n{report:#}");
        assert!(report["kinds"].as_array().unwrap().contains(&json!(kind)), "{report:#}");
    }
}

#[test]
fn a_new_plugin_needs_a_name_and_overwrites_nothing() {
    let home = Home::new();
    home.write_workspace("mine/notes.txt", "precious");
    let refused = home.hermes(&["plugins", "new", "mine", "--kind", "tools"]).run();
    assert!(!refused.status.success() && refused.stderr.contains("nothing is overwritten"), "{refused}");
    assert_eq!(fs::read_dir(home.workspace().join("mine")).unwrap().count(), 1);
    let refused = home.hermes(&["plugins", "new", "My Plugin", "--kind", "tools"]).run();
    assert_eq!(refused.status.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("the character `M` is not allowed"), "{refused}");
}

#[test]
fn a_plugin_that_breaks_the_contract_gets_cause_and_fix() {
    let home = Home::new();
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-guests/flawed");
    let arguments =
        ["plugins", "test", guest.to_str().unwrap(), "--conversations", "3", "--config", r#"{"flaw":"any-tool"}"#];
    let tested = home.hermes(&arguments).run();
    assert_eq!(tested.status.code(), Some(1), "{tested}");
    for part in ["✗ answers a name that it does not have with an error", "why: ", "fix: ", "1 of ", "✓ "] {
        assert!(tested.stdout.contains(part), "{part}\n{tested}");
    }
}
