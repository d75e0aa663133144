//! A plugin's project: what belongs to it, and how it becomes a component.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use hermes_plugin_host::Manifest;
use notify::RecursiveMode;
use serde_json::Value;
use tokio::process::Command;

use crate::failure::{Failure, Kind};

const TARGET: &str = "wasm32-wasip2";

/// A folder with a `plugin.yaml`.
pub(super) struct Project {
    folder: PathBuf,
    /// In place of cargo.
    command: Option<Vec<String>>,
    cargo: Vec<String>,
}

/// What came of a build.
pub(super) struct Built {
    pub(super) component: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// Every file of the project with its size and time: what changes when somebody edits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State(Vec<(PathBuf, u64, Option<SystemTime>)>);

impl Project {
    pub(super) fn open(folder: &Path, command: Option<&str>, cargo: &[String]) -> Result<Self, Failure> {
        let failed = |why: String, fix: &str| Failure::new(Kind::Usage, "there is nothing to develop", why, fix);
        let folder = folder.canonicalize().map_err(|error| {
            failed(format!("{}: {error}", folder.display()), "give the folder of a plugin's project")
        })?;
        let command = command
            .map(|command| {
                shlex::split(command)
                    .filter(|words| !words.is_empty())
                    .ok_or_else(|| failed(format!("`{command}` is no command"), "close its quotes"))
            })
            .transpose()?;
        if command.is_none() && !folder.join("Cargo.toml").is_file() {
            return Err(failed(
                format!("{} has no Cargo.toml", folder.display()),
                "give the folder of a Rust project, or say with --build what builds it",
            ));
        }
        let project = Self { folder, command, cargo: cargo.to_vec() };
        project.manifest()?;
        Ok(project)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `plugin.yaml` as it stands.
    pub(super) fn manifest_text(&self) -> Result<String, Failure> {
        let path = self.folder.join("plugin.yaml");
        fs::read_to_string(&path).map_err(|error| {
            let fix = "write one; docs/plugins.md says what belongs into it";
            Failure::new(Kind::Plugin, "the project has no plugin", format!("{}: {error}", path.display()), fix)
        })
    }

    pub(super) fn manifest(&self) -> Result<Manifest, Failure> {
        Manifest::parse(&self.manifest_text()?).map_err(|error| {
            let what = format!("{} cannot be used", self.folder.join("plugin.yaml").display());
            Failure::new(Kind::Plugin, what, error.to_string(), "correct it; docs/plugins.md says what belongs into it")
        })
    }

    /// What is watched: the project without what is hidden and what cargo makes.
    pub(super) fn watched(&self) -> Vec<(PathBuf, RecursiveMode)> {
        let mut watched = vec![(self.folder.clone(), RecursiveMode::NonRecursive)];
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() && is_source(&entry.file_name()) {
                watched.push((entry.path(), RecursiveMode::Recursive));
            }
        }
        watched
    }

    /// What is there now. What a build itself writes is left out, or it would ask for the next one.
    pub(super) fn state(&self) -> State {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(found) = entry.metadata() else { continue };
                if !is_source(&name) {
                    continue;
                }
                if found.is_dir() {
                    folders.push(path);
                } else if name != "Cargo.lock" && path.extension().is_none_or(|extension| extension != "wasm") {
                    files.push((path, found.len(), found.modified().ok()));
                }
            }
        }
        files.sort();
        State(files)
    }

    /// Builds it. What the compiler says goes to standard error.
    pub(super) async fn build(&self, manifest: &Manifest) -> Result<Built, Failure> {
        let component = match &self.command {
            Some(words) => {
                self.run(words, Stdio::inherit()).await?;
                self.find(manifest)?
            }
            None => {
                let fixed = ["cargo", "build", "--release", "--target", TARGET];
                let mut words: Vec<String> = fixed.map(str::to_owned).to_vec();
                words.push("--message-format=json-render-diagnostics".to_owned());
                words.extend(self.cargo.iter().cloned());
                let said = self.run(&words, Stdio::piped()).await?;
                made(&said, &self.folder.join("Cargo.toml")).ok_or_else(|| {
                    failed(
                        "cargo made no component".to_owned(),
                        "set `crate-type = [\"cdylib\"]` in the section [lib] of Cargo.toml",
                    )
                })?
            }
        };
        let bytes = fs::read(&component).map_err(|error| {
            failed(format!("{} cannot be read: {error}", component.display()), "see what the build says above")
        })?;
        Ok(Built { component, bytes })
    }

    async fn run(&self, words: &[String], stdout: Stdio) -> Result<String, Failure> {
        let (program, arguments) = words.split_first().ok_or_else(|| failed("no command".to_owned(), "give one"))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).stdout(stdout).kill_on_drop(true);
        let running = command.spawn().map_err(|error| {
            failed(
                format!("`{program}` cannot be run: {error}"),
                "install it, or say with --build what builds the plugin",
            )
        })?;
        let output = running.wait_with_output().await.map_err(|error| failed(error.to_string(), "try again"))?;
        if !output.status.success() {
            let fix = if self.command.is_none() {
                "see above; where the target is missing, `rustup target add wasm32-wasip2` installs it"
            } else {
                "see above"
            };
            return Err(failed(format!("`{program}` ended with {}", output.status), fix));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Where a build of one's own left the component: where the manifest says, else the only one there, else cargo's newest.
    fn find(&self, manifest: &Manifest) -> Result<PathBuf, Failure> {
        let named = manifest.component.as_ref().map(|file| self.folder.join(file)).filter(|path| path.is_file());
        let beside =
            || Some(components(&self.folder)).filter(|found| found.len() == 1).and_then(|mut found| found.pop());
        let newest = || {
            let profiles = ["release", "debug"].map(|profile| self.folder.join("target").join(TARGET).join(profile));
            let found = profiles.iter().flat_map(|profile| components(profile));
            found.max_by_key(|path| fs::metadata(path).and_then(|found| found.modified()).ok())
        };
        named.or_else(beside).or_else(newest).ok_or_else(|| {
            failed(
                format!("the build left no component in {}", self.folder.display()),
                "have it write the file that `component:` in plugin.yaml names",
            )
        })
    }
}

fn failed(why: String, fix: &str) -> Failure {
    Failure::new(Kind::Plugin, "the plugin was not built", why, fix)
}

fn is_source(name: &OsStr) -> bool {
    name != "target" && !name.to_string_lossy().starts_with('.')
}

fn components(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "wasm")).collect()
}

/// The component that cargo says it made of this package.
fn made(said: &str, manifest: &Path) -> Option<PathBuf> {
    said.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter(|message| message["manifest_path"].as_str().map(Path::new) == Some(manifest))
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .rfind(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn of_all_that_cargo_makes_the_projects_own_component_is_taken() {
        let said = [
            r#"{"reason":"compiler-artifact","manifest_path":"/p/dep/Cargo.toml","filenames":["/p/target/dep.wasm"]}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/p/target/m.rlib","/p/target/m.wasm"]}"#,
            r#"{"reason":"build-finished","success":true}"#,
            "not json",
        ]
        .join("\n");
        assert_eq!(made(&said, Path::new("/p/Cargo.toml")), Some(PathBuf::from("/p/target/m.wasm")));
        assert_eq!(made(&said, Path::new("/q/Cargo.toml")), None);
    }

    #[test]
    fn what_a_build_writes_is_no_change_and_what_a_person_writes_is() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("plugin.yaml", "name: mine\n");
        write("Cargo.toml", "");
        let project = Project::open(folder.path(), None, &[]).unwrap();
        let before = project.state();
        for path in ["target/x/y.rs", ".git/HEAD", "Cargo.lock", "mine.wasm"] {
            write(path, "x");
            assert_eq!(project.state(), before, "{path}");
        }
        write("src/deep/er.rs", "x");
        assert_ne!(project.state(), before);
    }

    #[test]
    fn a_folder_that_cannot_be_built_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let error = |command: Option<&str>| Project::open(folder.path(), command, &[]).err().unwrap();
        assert!(error(None).why.contains("Cargo.toml"));
        assert!(error(Some("make 'x")).why.contains("make 'x"));
        assert!(error(Some("make")).why.contains("plugin.yaml"));
    }
}
