//! A plugin project: its source files, and the build of its component.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use hermes_diagnostic::{Category, Diagnostic};
use hermes_plugin_host::artifact::{self, Place, TARGET};
use hermes_plugin_host::{Language, Manifest, skills_in, toolchain};
use notify::RecursiveMode;
use serde_json::Value;
use tokio::process::Command;

use crate::failure;

/// A folder with a `plugin.yaml`.
pub struct Project {
    folder: PathBuf,
    language: Language,
    build: Build,
}

/// How to build a project.
enum Build {
    /// With a command of the user.
    Command(Vec<String>),
    /// With cargo, and these further arguments for it.
    Cargo(Vec<String>),
    /// With the commands of the project's language.
    Language,
    /// It has only skills, and no code.
    None,
}

/// The component that a build made.
pub struct Built {
    /// Its file.
    pub component: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Every source file of the project with its size and modification time. It changes with every edit.
#[derive(Debug, PartialEq, Eq)]
pub struct Sources(Vec<(PathBuf, u64, Option<SystemTime>)>);

impl Project {
    /// Opens a project. `command` builds it in place of the command of its language; `cargo` are further arguments for cargo.
    ///
    /// # Errors
    ///
    /// When the folder is no project, or nothing is known to build it.
    pub fn open(folder: &Path, command: Option<&str>, cargo: &[String]) -> Result<Self, Diagnostic> {
        let failed = |why: String, fix: &str| failure(Category::Usage, "the project cannot be opened", why, fix);
        let folder = folder
            .canonicalize()
            .map_err(|error| failed(format!("{}: {error}", folder.display()), "give the folder of a plugin project"))?;
        let command = command
            .map(|command| {
                shlex::split(command)
                    .filter(|words| !words.is_empty())
                    .ok_or_else(|| failed(format!("`{command}` is not a valid command"), "check its quotes"))
            })
            .transpose()?;
        let language = Language::of_project(&folder).unwrap_or(Language::Other);
        let build = match command {
            Some(command) => Build::Command(command),
            None if language == Language::Rust => Build::Cargo(cargo.to_vec()),
            None if !cargo.is_empty() => {
                return Err(failed(
                    format!("{} is not a Rust project, and the arguments after `--` are for cargo", folder.display()),
                    "remove them, or give the whole build command with --build",
                ));
            }
            None if language.build_commands(&folder).is_empty() && has_only_skills(&folder) => Build::None,
            None if language.build_commands(&folder).is_empty() => {
                return Err(failed(
                    format!("{} has no Cargo.toml, build.py, package.json, build.go or Makefile", folder.display()),
                    "give the folder of a project, or give the build command with --build",
                ));
            }
            None => Build::Language,
        };
        let project = Self { folder, language, build };
        project.manifest()?;
        Ok(project)
    }

    /// Its absolute path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The current text of `plugin.yaml`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn manifest_text(&self) -> Result<String, Diagnostic> {
        let path = self.folder.join("plugin.yaml");
        fs::read_to_string(&path).map_err(|error| {
            let fix = "write a plugin.yaml; `hermes plugins new` creates a project that has one";
            failure(Category::Plugin, "the manifest cannot be read", format!("{}: {error}", path.display()), fix)
        })
    }

    /// The current manifest.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is invalid.
    pub fn manifest(&self) -> Result<Manifest, Diagnostic> {
        Manifest::parse(&self.manifest_text()?).map_err(|error| {
            let what = format!("{} is invalid", self.folder.join("plugin.yaml").display());
            let fix = "correct it; `hermes plugins new` creates a project with a valid one";
            failure(Category::Plugin, what, error.to_string(), fix)
        })
    }

    /// The files of its skills, by their names below the project.
    ///
    /// # Errors
    ///
    /// When they are more than an installation copies, or cannot be read.
    pub fn skills(&self) -> Result<Vec<(String, PathBuf)>, Diagnostic> {
        Ok(hermes_install::skill_files(&self.folder)?)
    }

    /// The folders to watch: the project without hidden folders and the output of builds.
    pub(crate) fn watched(&self) -> Vec<(PathBuf, RecursiveMode)> {
        let mut watched = vec![(self.folder.clone(), RecursiveMode::NonRecursive)];
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() && self.is_source(&entry.file_name()) {
                watched.push((entry.path(), RecursiveMode::Recursive));
            }
        }
        watched
    }

    /// The current source files. Output of a build is left out: it would trigger the next build.
    pub fn state(&self) -> Sources {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(found) = entry.metadata() else { continue };
                if !self.is_source(&name) {
                    continue;
                }
                if found.is_dir() {
                    folders.push(path);
                } else if path.extension().is_none_or(|extension| extension != "wasm") {
                    files.push((path, found.len(), found.modified().ok()));
                }
            }
        }
        files.sort();
        Sources(files)
    }

    /// Builds the component; none if the plugin has only skills. The compiler writes to standard error.
    ///
    /// # Errors
    ///
    /// When a program of the build is missing or fails, or when there is no component afterwards.
    pub async fn build(&self, manifest: &Manifest) -> Result<Option<Built>, Diagnostic> {
        let found = || {
            artifact::find_component(&self.folder, Some(manifest), Place::Local)
                .map_err(|error| failed(error.to_string(), &error.fix(&self.folder)))
        };
        let component = match &self.build {
            Build::None => return Ok(None),
            Build::Command(words) => {
                self.run(words, Stdio::inherit()).await?;
                found()?
            }
            Build::Language => {
                for words in self.language.build_commands(&self.folder) {
                    let words: Vec<String> = words.iter().copied().map(str::to_owned).collect();
                    self.run(&words, Stdio::inherit()).await?;
                }
                found()?
            }
            Build::Cargo(arguments) => {
                let messages = self.run(&cargo_build(arguments), Stdio::piped()).await?;
                built_component(&messages, &self.folder.join("Cargo.toml")).ok_or_else(|| {
                    failed(
                        "cargo built no component".to_owned(),
                        "set `crate-type = [\"cdylib\"]` in the section [lib] of Cargo.toml",
                    )
                })?
            }
        };
        let bytes = fs::read(&component).map_err(|error| {
            failed(format!("{} cannot be read: {error}", component.display()), "see the output of the build above")
        })?;
        Ok(Some(Built { component, bytes }))
    }

    fn is_source(&self, name: &OsStr) -> bool {
        !self.language.output().iter().any(|output| name == *output) && !name.to_string_lossy().starts_with('.')
    }

    async fn run(&self, words: &[String], stdout: Stdio) -> Result<String, Diagnostic> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| failed("the build command is empty".to_owned(), "give a command"))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).stdout(stdout).kill_on_drop(true);
        // Build scripts can call `hermes plugins component` with the same program.
        if let Ok(hermes) = std::env::current_exe() {
            command.env("HERMES", hermes);
        }
        let running = command.spawn().map_err(|error| {
            let fix = match toolchain::remedy(program) {
                Some(remedy) => format!("{remedy}, or give another build command with --build"),
                None => "install it, or give another build command with --build".to_owned(),
            };
            failed(format!("`{program}` cannot be run: {error}"), &fix)
        })?;
        let output = running.wait_with_output().await.map_err(|error| failed(error.to_string(), "try again"))?;
        if !output.status.success() {
            let fix = match self.build {
                Build::Cargo(_) => "see its output above; `rustup target add wasm32-wasip2` installs a missing target",
                Build::Command(_) | Build::Language | Build::None => "see its output above",
            };
            return Err(failed(format!("`{program}` failed ({})", output.status), fix));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Whether a folder has skills and no component.
fn has_only_skills(folder: &Path) -> bool {
    let is_component = |entry: fs::DirEntry| entry.path().extension() == Some(OsStr::new("wasm"));
    !skills_in(folder).is_empty() && !fs::read_dir(folder).into_iter().flatten().flatten().any(is_component)
}

/// The profile of builds under development: the release, but a build after a change takes a second. Optimising the whole
/// component anew, as the release of a template does, takes most of ten.
const PROFILE: [&str; 5] = [
    "profile.hermes-dev.inherits=\"release\"",
    "profile.hermes-dev.lto=\"off\"",
    "profile.hermes-dev.codegen-units=16",
    "profile.hermes-dev.incremental=true",
    "profile.hermes-dev.opt-level=1",
];

/// The command for a Rust project. Arguments that choose a profile have precedence.
fn cargo_build(arguments: &[String]) -> Vec<String> {
    let chooses = |argument: &String| {
        matches!(argument.as_str(), "--release" | "-r" | "--profile") || argument.starts_with("--profile=")
    };
    let mut words: Vec<&str> = vec!["cargo", "build", "--target", TARGET, "--message-format=json-render-diagnostics"];
    if !arguments.iter().any(chooses) {
        words.extend(["--profile", "hermes-dev"]);
        words.extend(PROFILE.iter().flat_map(|line| ["--config", line]));
    }
    words.into_iter().map(str::to_owned).chain(arguments.iter().cloned()).collect()
}

fn failed(why: String, fix: &str) -> Diagnostic {
    failure(Category::Plugin, "the plugin was not built", why, fix)
}

/// The component of this package in the messages of cargo.
fn built_component(messages: &str, manifest: &Path) -> Option<PathBuf> {
    messages
        .lines()
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
    fn the_projects_own_component_is_found_in_the_messages_of_cargo() {
        let messages = [
            r#"{"reason":"compiler-artifact","manifest_path":"/p/dep/Cargo.toml","filenames":["/p/target/dep.wasm"]}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/p/target/m.rlib","/p/target/m.wasm"]}"#,
            r#"{"reason":"build-finished","success":true}"#,
            "not json",
        ]
        .join("\n");
        assert_eq!(built_component(&messages, Path::new("/p/Cargo.toml")), Some(PathBuf::from("/p/target/m.wasm")));
        assert_eq!(built_component(&messages, Path::new("/q/Cargo.toml")), None);
    }

    #[test]
    fn only_edits_change_the_state_and_not_the_output_of_a_build() {
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
    fn a_python_project_is_rebuilt_only_for_its_sources() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "name: mine\n").unwrap();
        };
        ["plugin.yaml", "pyproject.toml", "build.py"].into_iter().for_each(write);
        let project = Project::open(folder.path(), None, &[]).unwrap();
        let before = project.state();
        for path in [".venv/bin/python", "build/mine.unfinished", "src/__pycache__/plugin.pyc"] {
            write(path);
            assert_eq!(project.state(), before, "{path}");
        }
        write("src/plugin.py");
        assert_ne!(project.state(), before);
        let refused = Project::open(folder.path(), None, &["--locked".to_owned()]).err().unwrap();
        assert!(refused.why.contains("cargo"), "{}", refused.why);
    }

    #[test]
    fn cargo_builds_fast_unless_the_arguments_choose_a_profile() {
        let command = |arguments: &[&str]| {
            cargo_build(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).join(" ")
        };
        let usual = command(&["--features", "x"]);
        assert!(usual.contains("--profile hermes-dev --config profile.hermes-dev.inherits=\"release\""), "{usual}");
        assert!(usual.ends_with("--features x"), "{usual}");
        for chosen in [&["--release"][..], &["-r"], &["--profile", "mine"], &["--profile=mine"]] {
            assert!(!command(chosen).contains("hermes-dev"), "{chosen:?}");
        }
    }

    #[tokio::test]
    async fn a_missing_build_tool_is_named_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("plugin.yaml"), "name: mine\n").unwrap();
        let project = Project::open(folder.path(), Some("no-such-tool x"), &[]).unwrap();
        let failure = project.build(&project.manifest().unwrap()).await.err().unwrap();
        assert!(failure.why.contains("no-such-tool") && failure.fix.to_string().contains("install it"), "{failure:?}");
    }

    #[test]
    fn a_folder_that_cannot_be_built_is_refused_with_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        let error = |command: Option<&str>| Project::open(folder.path(), command, &[]).err().unwrap();
        assert!(error(None).why.contains("Cargo.toml"));
        assert!(error(Some("make 'x")).why.contains("make 'x"));
        assert!(error(Some("make")).why.contains("plugin.yaml"));
    }
}
