//! Finds what a plugin's project has built. Tests, development and installation use the same lookup, so that all of them
//! get the same file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::language::Language;
use crate::manifest::Manifest;
use crate::toolchain::{self, OUTPUT, changed};

/// Cargo's name for the target of components.
pub const TARGET: &str = "wasm32-wasip2";
/// The profiles of cargo whose builds are used.
const PROFILES: [&str; 2] = ["release", "debug"];

/// Where the files of a project come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A folder of the user, with the builds of their tools.
    Local,
    /// A download. It contains what its author published, and no build.
    Fetched,
}

/// Why a project has no usable build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ArtifactError {
    #[error("the folder has several components ({}), and plugin.yaml names none of them", .found.join(", "))]
    Several { found: Vec<String> },
    #[error("the component `{name}` in plugin.yaml does not exist")]
    Missing { name: String },
    #[error("there is no .wasm file beside plugin.yaml")]
    NoComponent,
    #[error("the project was not built")]
    NotBuilt,
    #[error("the build {} is older than {}", .artifact.display(), .source_file.display())]
    Outdated { artifact: PathBuf, source_file: PathBuf },
    #[error("it contains the source of the plugin, but not its component")]
    SourceOnly,
}

impl ArtifactError {
    /// What to do with the project in this folder.
    pub fn fix(&self, folder: &Path) -> String {
        let build = Language::of_project(folder).unwrap_or(Language::Other).words().build;
        match self {
            Self::Several { .. } => "name one in plugin.yaml, as `component: FILE.wasm`".to_owned(),
            Self::Missing { .. } => format!("{build}, or correct `component` in plugin.yaml"),
            Self::NoComponent => format!("give the folder that contains the component, or {build}"),
            Self::NotBuilt | Self::Outdated { .. } if !makes_component(folder) => {
                format!(
                    "write `crate-type = [\"cdylib\"]` below `[lib]` in Cargo.toml, without which cargo makes no component, and {build}"
                )
            }
            Self::NotBuilt | Self::Outdated { .. } => build.to_owned(),
            Self::SourceOnly => {
                "ask its author to publish the component, or download the source, build it, and give that folder"
                    .to_owned()
            }
        }
    }
}

/// Whether a project of Rust says that it makes a component. Others have no such word.
fn makes_component(folder: &Path) -> bool {
    let Ok(cargo) = hermes_private_files::read_text(&folder.join("Cargo.toml"), 1 << 20) else { return true };
    // A workspace has its packages elsewhere, and a program is a component too.
    cargo.contains("cdylib") || !cargo.contains("[package]") || folder.join("src/main.rs").exists()
}

/// The component of a project: the file that its manifest names, what cargo built or another build wrote to `build`, or the only
/// `.wasm` file in the folder. A build that is older than its sources is an error.
pub fn find_component(folder: &Path, manifest: Option<&Manifest>, place: Place) -> Result<PathBuf, ArtifactError> {
    let named = manifest.and_then(|manifest| manifest.component.as_deref());
    if let Some(path) = named.map(|name| folder.join(name)).filter(|path| path.is_file()) {
        return Ok(path);
    }
    let language = Language::of_project(folder).unwrap_or(Language::Other);
    let is_rust = language == Language::Rust;
    let has_output = !is_rust && language != Language::Other && place == Place::Local;
    if let Some(built) = built_beside(folder, manifest).filter(|_| has_output) {
        return match toolchain::newer_source(folder, language, &built) {
            Some(source_file) => Err(ArtifactError::Outdated { artifact: built, source_file }),
            None => Ok(built),
        };
    }
    if is_rust && place == Place::Local {
        let package = Package::of(folder);
        let names = [named, manifest.map(|manifest| manifest.name.as_str())];
        if let Some(built) = package.built(&package.component(names), Some(TARGET)) {
            return up_to_date(built, folder);
        }
    }
    let mut beside = components(folder);
    let is_project = is_rust || !language.build_commands(folder).is_empty();
    match (beside.len(), named, is_project) {
        (1, None, _) => Ok(beside.remove(0)),
        (0, _, true) | (_, Some(_), true) => {
            Err(if place == Place::Local { ArtifactError::NotBuilt } else { ArtifactError::SourceOnly })
        }
        (_, Some(name), false) => Err(ArtifactError::Missing { name: name.to_owned() }),
        (0, None, false) => Err(ArtifactError::NoComponent),
        (_, None, _) => {
            let names = beside.iter().filter_map(|path| path.file_name());
            Err(ArtifactError::Several { found: names.map(|name| name.to_string_lossy().into_owned()).collect() })
        }
    }
}

/// What the build of another language than Rust wrote: the component with the name in the manifest, with the plugin's name, or the only one.
fn built_beside(folder: &Path, manifest: Option<&Manifest>) -> Option<PathBuf> {
    let output = folder.join(OUTPUT);
    let names = manifest.map(|manifest| match &manifest.component {
        Some(name) => name.clone(),
        None => format!("{}.wasm", manifest.name),
    });
    let named = names.map(|name| output.join(name)).filter(|path| path.is_file());
    named.or_else(|| match <[PathBuf; 1]>::try_from(components(&output)) {
        Ok([only]) => Some(only),
        Err(_) => None,
    })
}

/// A native library of a project: beside the manifest, or what cargo built.
pub fn find_library(folder: &Path, name: &str, place: Place) -> Result<Option<PathBuf>, ArtifactError> {
    let beside = folder.join(name);
    if beside.is_file() {
        return Ok(Some(beside));
    }
    if place == Place::Fetched || !folder.join("Cargo.toml").is_file() {
        return Ok(None);
    }
    let built = Package::of(folder).built(&BTreeSet::from([name.to_owned()]), None);
    built.map(|built| up_to_date(built, folder)).transpose()
}

/// The `.wasm` files of a folder, in order of their names.
pub fn components(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> =
        entries.filter(|path| path.extension() == Some(OsStr::new("wasm")) && path.is_file()).collect();
    found.sort();
    found
}

/// What cargo says about the package of a folder.
struct Package {
    /// The folders in which cargo may have put its output.
    target_folders: Vec<PathBuf>,
    /// The names of its libraries.
    libraries: Vec<String>,
}

impl Package {
    fn of(folder: &Path) -> Self {
        match metadata(folder) {
            Some(metadata) => {
                let path = |key: &str| metadata[key].as_str().map(PathBuf::from);
                Self {
                    // The default folder may hold a build from before another one was set.
                    target_folders: path("target_directory")
                        .into_iter()
                        .chain(path("workspace_root").map(|root| root.join("target")))
                        .collect(),
                    libraries: libraries(&metadata, &folder.join("Cargo.toml")),
                }
            }
            // Without cargo, its usual places remain.
            None => {
                let set = std::env::var_os("CARGO_TARGET_DIR").map(|set| folder.join(set));
                Self { target_folders: set.into_iter().chain([folder.join("target")]).collect(), libraries: Vec::new() }
            }
        }
    }

    /// The possible names of the component's file.
    fn component(&self, others: [Option<&str>; 2]) -> BTreeSet<String> {
        let own = self.libraries.iter().map(String::as_str);
        // Other names count only if cargo could not be asked.
        let others = others.into_iter().flatten().filter(|_| self.libraries.is_empty());
        let stems = own.chain(others).map(|name| name.trim_end_matches(".wasm").replace('-', "_"));
        stems.map(|stem| format!("{stem}.wasm")).collect()
    }

    /// The newest build with one of these names.
    fn built(&self, names: &BTreeSet<String>, target: Option<&str>) -> Option<PathBuf> {
        let folders =
            self.target_folders.iter().map(|folder| target.map_or(folder.clone(), |target| folder.join(target)));
        let folders: Vec<_> = folders.flat_map(|folder| PROFILES.map(|profile| folder.join(profile))).collect();
        let named = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        let found = named.filter(|path| path.is_file()).max_by_key(|path| changed(path));
        // Without the names of the package, the only component of a folder is taken.
        found.or_else(|| {
            let lone = folders.iter().map(|folder| components(folder)).filter(|found| found.len() == 1);
            if self.libraries.is_empty() && target.is_some() { lone.flatten().next() } else { None }
        })
    }
}

/// Most time for `cargo metadata`, which takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// The output of `cargo metadata`. Cargo runs outside of the folder, so that it obeys no configuration and no choice of a
/// toolchain in there, and it runs no code of the project. It has a deadline, because a pipe among a stranger's files
/// would keep it waiting.
fn metadata(folder: &Path) -> Option<Value> {
    let manifest = folder.join("Cargo.toml");
    if !manifest.is_file() {
        return None;
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"]);
    cargo.arg(manifest).current_dir(folder.ancestors().last()?);
    let mut child = cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let (sender, output) = mpsc::channel();
    let mut pipe = child.stdout.take()?;
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let read = pipe.read_to_end(&mut text).map(|_| text);
        // Nobody listens any more after the deadline.
        let _ = sender.send(read);
    });
    // Without a reader the channel is closed.
    drop(reader);
    let output = output.recv_timeout(PATIENCE).ok().and_then(Result::ok);
    if output.is_none() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let succeeded = child.wait().ok()?.success();
    output.filter(|_| succeeded).and_then(|output| serde_json::from_slice(&output).ok())
}

/// The names of the libraries of the package with this manifest.
fn libraries(metadata: &Value, manifest: &Path) -> Vec<String> {
    let manifest = manifest.canonicalize().ok();
    let is_own = |package: &&Value| {
        let path = package["manifest_path"].as_str().map(Path::new);
        path.and_then(|path| path.canonicalize().ok()) == manifest
    };
    let packages = metadata["packages"].as_array().into_iter().flatten().filter(is_own);
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let built = targets.filter(|target| {
        let kinds = target["kind"].as_array().into_iter().flatten();
        kinds.filter_map(Value::as_str).any(|kind| kind == "cdylib" || kind == "bin")
    });
    built.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect()
}

/// Refuses a build that is older than one of its sources. Cargo lists the sources beside each build.
fn up_to_date(artifact: PathBuf, folder: &Path) -> Result<PathBuf, ArtifactError> {
    let listed = fs::read_to_string(artifact.with_extension("d")).unwrap_or_default();
    let listed = listed.lines().filter_map(|line| line.split_once(": ")).flat_map(|(_, sources)| paths(sources));
    let sources = listed.chain([folder.join("Cargo.toml")]).map(|path| folder.join(path));
    let built = changed(&artifact);
    match sources.filter(|source| changed(source) > built).min() {
        Some(source_file) => Err(ArtifactError::Outdated { artifact, source_file }),
        None => Ok(artifact),
    }
}

/// The paths of a line for make, in which spaces of names have a backslash.
fn paths(line: &str) -> Vec<PathBuf> {
    const SPACE: &str = "\u{0}";
    let line = line.replace("\\ ", SPACE);
    line.split(' ').filter(|path| !path.is_empty()).map(|path| PathBuf::from(path.replace(SPACE, " "))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::testing::folder;

    const CARGO: &str =
        "[package]\nname = \"my-own\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";

    fn manifest(component: Option<&str>) -> Manifest {
        let component = component.map_or_else(String::new, |name| format!("component: {name}\n"));
        Manifest::parse(&format!("name: my-plugin\n{component}")).unwrap()
    }

    #[test]
    fn the_named_file_the_build_and_the_only_file_are_found_in_this_order() {
        let built = "target/wasm32-wasip2/release/my_own.wasm";
        let project = [("Cargo.toml", CARGO), ("src/lib.rs", "")];
        for (files, named, expected) in [
            (&[("a.wasm", ""), ("b.wasm", "")][..], Some("b.wasm"), "b.wasm"),
            (&[("a.wasm", "")], None, "a.wasm"),
            (&[project[0], project[1], (built, "")], None, built),
            (&[project[0], project[1], (built, ""), ("target/wasm32-wasip2/release/other.wasm", "")], None, built),
            (&[project[0], project[1], (built, "")], Some("my-own.wasm"), built),
            (&[project[0], project[1], (built, ""), ("old.wasm", "")], None, built),
            (&[project[0], project[1], ("published.wasm", "")], None, "published.wasm"),
            (&[("build.py", ""), ("build/my-plugin.wasm", ""), ("build/other.wasm", "")], None, "build/my-plugin.wasm"),
            (&[("build.py", ""), ("build/engine.wasm", "")], Some("engine.wasm"), "build/engine.wasm"),
            (&[("package.json", "{}"), ("build/lone.wasm", ""), ("old.wasm", "")], None, "build/lone.wasm"),
        ] {
            let folder = folder(files);
            let found = find_component(folder.path(), Some(&manifest(named)), Place::Local);
            assert_eq!(found, Ok(folder.path().join(expected)), "{files:?}");
        }
    }

    #[test]
    fn a_project_without_a_usable_build_says_what_to_do() {
        let project = [("Cargo.toml", CARGO), ("src/lib.rs", "")];
        let several = ArtifactError::Several { found: vec!["1.wasm".into(), "2.wasm".into()] };
        let missing = ArtifactError::Missing { name: "b.wasm".into() };
        for (files, named, place, expected) in [
            (&[("x", "")][..], None, Place::Local, ArtifactError::NoComponent),
            (&[("1.wasm", ""), ("2.wasm", "")], None, Place::Local, several),
            (&[("a.wasm", "")], Some("b.wasm"), Place::Local, missing),
            (&project, None, Place::Local, ArtifactError::NotBuilt),
            (&project, None, Place::Fetched, ArtifactError::SourceOnly),
            (&[("pyproject.toml", ""), ("build.py", "")], None, Place::Local, ArtifactError::NotBuilt),
            (&[("package.json", "{}")], None, Place::Fetched, ArtifactError::SourceOnly),
        ] {
            let folder = folder(files);
            let error = find_component(folder.path(), Some(&manifest(named)), place).unwrap_err();
            assert_eq!(error, expected, "{files:?}");
            assert!(!error.fix(folder.path()).is_empty());
        }
    }

    #[test]
    fn a_build_that_is_older_than_its_sources_is_refused() {
        let built = "target/wasm32-wasip2/release/my_own.wasm";
        let folder = folder(&[("Cargo.toml", CARGO), ("src/lib.rs", ""), ("src/a b.rs", ""), (built, "")]);
        let path = |name: &str| folder.path().join(name);
        let source = path("src/a b.rs");
        let list = format!("{}: {}\n", path(built).display(), source.display().to_string().replace(' ', "\\ "));
        fs::write(path(built).with_extension("d"), list).unwrap();
        let set = |file: &Path, ago: u64| {
            let time = SystemTime::now() - Duration::from_secs(ago);
            fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
        };
        set(&path("Cargo.toml"), 100);
        set(&path("src/lib.rs"), 10); // Not part of the build.
        set(&source, 100);
        set(&path(built), 50);
        assert_eq!(find_component(folder.path(), None, Place::Local), Ok(path(built)));
        for changed in [source.clone(), path("Cargo.toml")] {
            set(&changed, 10);
            let error = find_component(folder.path(), None, Place::Local).unwrap_err();
            assert_eq!(error, ArtifactError::Outdated { artifact: path(built), source_file: changed.clone() });
            set(&changed, 100);
        }
    }

    #[test]
    fn a_build_of_another_language_that_is_older_than_a_source_is_refused() {
        let folder = folder(&[("build.py", ""), ("src/plugin.py", ""), ("build/my-plugin.wasm", "")]);
        let built = folder.path().join("build/my-plugin.wasm");
        let source_file = folder.path().join("src/plugin.py");
        let time = SystemTime::now() - Duration::from_secs(50);
        fs::File::options().write(true).open(&built).unwrap().set_modified(time).unwrap();
        fs::File::options().write(true).open(folder.path().join("build.py")).unwrap().set_modified(time).unwrap();
        let error = find_component(folder.path(), Some(&manifest(None)), Place::Local).unwrap_err();
        assert!(error.fix(folder.path()).contains("build.py"), "{}", error.fix(folder.path()));
        assert_eq!(error, ArtifactError::Outdated { artifact: built.clone(), source_file });
        fs::write(&built, "newer").unwrap();
        assert_eq!(find_component(folder.path(), Some(&manifest(None)), Place::Local), Ok(built));
    }

    #[test]
    fn another_target_folder_is_known_from_cargo() {
        let workspace = folder(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"member\"]\nresolver = \"3\"\n"),
            ("member/Cargo.toml", &CARGO.replace("[workspace]\n", "")),
            ("member/src/lib.rs", ""),
            ("target/wasm32-wasip2/release/my_own.wasm", ""),
        ]);
        let found = find_component(&workspace.path().join("member"), None, Place::Local).unwrap();
        assert!(found.ends_with("target/wasm32-wasip2/release/my_own.wasm"), "{}", found.display());
    }
}
