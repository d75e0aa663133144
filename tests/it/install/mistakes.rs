//! Typical mistakes of plugin authors, each made in an unmodified template. The build, the unit tests or `plugins test` must find it, and say
//! what is wrong, where, and what to do.
//!
//! `tests/mistakes` lists them, one file for each language. `cargo xtask mistakes` builds them with the tools of each language and prints what
//! an author reads. The test of the lists alone needs no tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_tests::Home;
use serde::Deserialize;
use serde_json::Value;

/// A mistake in the project of a template.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    /// Names it in the table and in `HERMES_MISTAKE`.
    name: String,
    /// The kind of the template.
    kind: String,
    /// What the author did, in one sentence.
    is: String,
    #[serde(default)]
    edits: Vec<Edit>,
    /// Files that the template lacks, by path.
    #[serde(default)]
    add: BTreeMap<String, String>,
    found_by: Finder,
    /// The name of the check of `plugins test` that must fail.
    check: Option<String>,
    /// Parts of what the author reads: what is wrong, where, and what to do. An empty text is a part that is missing, which the table shows. What
    /// follows the third must be there too.
    says: Vec<String>,
}

/// Replaces a text in a file. The text must occur there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    from: String,
    to: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Finder {
    Build,
    Test,
    UnitTests,
}

/// The commands of a language: to install packages, to run the unit tests, to build.
struct Language {
    name: &'static str,
    install: &'static [&'static str],
    unit_tests: &'static str,
    build: &'static str,
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "rust",
        install: &[],
        unit_tests: "cargo test --quiet",
        build: "cargo build --quiet --release --target wasm32-wasip2",
    },
    Language { name: "python", install: &[], unit_tests: "python3 build.py test", build: "python3 build.py" },
    Language {
        name: "javascript",
        install: &["npm install --no-audit --no-fund"],
        unit_tests: "npm test",
        build: "npm run build",
    },
    Language { name: "c", install: &[], unit_tests: "make test", build: "make" },
    Language { name: "go", install: &[], unit_tests: "go test ./...", build: "go run build.go" },
];

/// The name of every project.
const NAME: &str = "mine";

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn mistakes(language: &str) -> Vec<Mistake> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("mistakes/{language}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mistakes: Vec<Mistake> =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for mistake in &mistakes {
        let name = &mistake.name;
        assert!(
            mistake.check.is_none() || mistake.found_by == Finder::Test,
            "{name}: `check` names a check of `plugins test`"
        );
        assert!(mistake.says.iter().any(|part| !part.is_empty()), "{name}: an author must read something");
        assert!(!mistake.edits.is_empty() || !mistake.add.is_empty(), "{name} changes nothing");
    }
    mistakes
}

/// The files below a folder.
fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The files of a new project.
fn template(language: &str, kind: &str) -> Files {
    let home = Home::new();
    home.hermes(&["plugins", "new", NAME, "--kind", kind, "--lang", language]).run().success();
    files(&home.workspace().join(NAME))
}

/// The project after the mistake.
fn mistaken(template: &Files, mistake: &Mistake) -> Result<Files, String> {
    let mut files = template.clone();
    for Edit { file, from, to } in &mistake.edits {
        let content = files.get_mut(Path::new(file)).ok_or_else(|| format!("the template has no {file}"))?;
        let text = String::from_utf8(content.clone()).map_err(|error| format!("{file}: {error}"))?;
        if !text.contains(from) || from == to {
            return Err(format!("{file} does not contain this text, or the edit changes nothing:\n{from}"));
        }
        *content = text.replacen(from, to, 1).into_bytes();
    }
    for (path, text) in &mistake.add {
        if files.insert(PathBuf::from(path), text.clone().into_bytes()).is_some() {
            return Err(format!("the template has a {path}: edit it"));
        }
    }
    Ok(files)
}

/// A folder that holds one project after the other. Builds are incremental, since only files that differ are written.
struct Bench {
    home: Home,
    folder: PathBuf,
    present: Files,
}

impl Bench {
    fn new() -> Self {
        let home = Home::new();
        let folder = home.workspace().join(NAME);
        Self { home, folder, present: Files::new() }
    }

    fn place(&mut self, project: Files) {
        for gone in self.present.keys().filter(|path| !project.contains_key(*path)) {
            fs::remove_file(self.folder.join(gone)).unwrap();
        }
        for (path, content) in project.iter().filter(|(path, content)| self.present.get(*path) != Some(content)) {
            let path = self.folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        self.present = project;
    }

    /// Runs a command of the project. Returns whether it succeeded, and what it printed.
    fn run(&self, command: &str) -> (bool, String) {
        let words: Vec<&str> = command.split(' ').collect();
        let mut child = Command::new(words[0]);
        child.args(&words[1..]).current_dir(&self.folder).env("HERMES", hermes_tests::binary());
        // The tests' own cargo has set variables for its packages.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO")) {
            if name != "CARGO_HOME" {
                child.env_remove(name);
            }
        }
        let output = child.output().unwrap_or_else(|error| panic!("cannot run {command}: {error}"));
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.success(), text)
    }

    /// Runs `plugins test`, and returns its report.
    fn examine(&self) -> Value {
        let tested = self.home.hermes(&["plugins", "test", NAME, "--json", "--conversations", "40"]).run();
        serde_json::from_str(&tested.stdout).unwrap_or_else(|error| panic!("{error}\n{tested}"))
    }
}

/// The failed checks of a report.
fn failures(report: &Value) -> Vec<&Value> {
    report["checks"].as_array().into_iter().flatten().filter(|check| check["passed"] == false).collect()
}

/// What an author reads about a mistake, or why it was not found as the list says.
fn found(bench: &Bench, language: &Language, mistake: &Mistake) -> Result<String, String> {
    if mistake.found_by == Finder::UnitTests {
        return match bench.run(language.unit_tests) {
            (true, text) => Err(format!("the unit tests pass\n{text}")),
            (false, text) => Ok(text),
        };
    }
    let (built, text) = bench.run(language.build);
    match (mistake.found_by, built) {
        (Finder::Build, true) => Err(format!("it builds\n{text}")),
        (Finder::Build, false) => Ok(text),
        (_, false) => Err(format!("it does not build\n{text}")),
        (_, true) => {
            let report = bench.examine();
            let failures = failures(&report);
            // Without a name, any check may find it.
            let is_it = |what: &Value| mistake.check.as_ref().is_none_or(|check| what == check.as_str());
            let check = mistake.check.as_deref().unwrap_or("a check");
            let found = failures.iter().find(|failed| is_it(&failed["what"])).ok_or_else(|| match failures.len() {
                0 => "every check passes".to_owned(),
                _ => format!(
                    "`{check}` does not fail, and these do:\n{}",
                    serde_json::to_string_pretty(&failures).unwrap_or_default()
                ),
            })?;
            let each = found["each"].as_array().into_iter().flatten();
            let read = [&found["seen"]].into_iter().chain(each).chain([&found["fix"]]);
            Ok(read.filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The line of a text that contains a part, short enough for a table.
fn line_with(text: &str, part: &str) -> String {
    let line = text.lines().find(|line| line.contains(part)).unwrap_or_default();
    line.replace('|', "\\|").trim().chars().take(300).collect()
}

fn every_mistake_is_found(name: &str) {
    let language = LANGUAGES.iter().find(|language| language.name == name).unwrap();
    let only = std::env::var("HERMES_MISTAKE").unwrap_or_default();
    let mut list = mistakes(name);
    list.retain(|mistake| mistake.name.contains(&only));
    println!(
        "\n| language | mistake | found by | what it says | what | where | remedy |\n|---|---|---|---|---|---|---|"
    );
    let mut bench = Bench::new();
    let mut problems = Vec::new();
    let kinds: BTreeSet<String> = list.iter().map(|mistake| mistake.kind.clone()).collect();
    for kind in kinds {
        let template = template(name, &kind);
        bench.place(template.clone());
        for command in language.install.iter().chain([&language.build]) {
            let (works, text) = bench.run(command);
            assert!(works, "{command}, in the template {kind}\n{text}");
        }
        let report = bench.examine();
        assert!(failures(&report).is_empty(), "the template {kind}: {:#?}", failures(&report));
        for mistake in list.iter().filter(|mistake| mistake.kind == kind) {
            bench.place(mistaken(&template, mistake).unwrap_or_else(|why| panic!("{}: {why}", mistake.name)));
            let text = match found(&bench, language, mistake) {
                Ok(text) => text,
                Err(why) => {
                    problems.push(format!("{name}, {}: {why}", mistake.name));
                    continue;
                }
            };
            let lacks: Vec<&String> = mistake.says.iter().filter(|part| !text.contains(part.as_str())).collect();
            if !lacks.is_empty() {
                problems.push(format!("{name}, {}: an author does not read {lacks:?}, but\n{text}", mistake.name));
            }
            let part = |at: usize| match mistake.says.get(at).filter(|part| !part.is_empty()) {
                Some(part) if text.contains(part.as_str()) => "yes",
                _ => "no",
            };
            let by = match (mistake.found_by, &mistake.check) {
                (Finder::Build, _) => "build".to_owned(),
                (Finder::UnitTests, _) => "unit tests".to_owned(),
                (Finder::Test, check) => format!("test: {}", check.as_deref().unwrap_or_default()),
            };
            let shown = mistake
                .says
                .iter()
                .find(|part| !part.is_empty())
                .map_or_else(String::new, |part| line_with(&text, part));
            println!("| `{name}` | {} | {by} | {shown} | {} | {} | {} |", mistake.is, part(0), part(1), part(2));
        }
        bench.place(template);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// These tests need the tools of each language, so they are not part of `cargo xtask test`.
mod written_in {
    #[test]
    fn rust() {
        super::every_mistake_is_found("rust");
    }

    #[test]
    fn python() {
        super::every_mistake_is_found("python");
    }

    #[test]
    fn javascript() {
        super::every_mistake_is_found("javascript");
    }

    #[test]
    fn c() {
        super::every_mistake_is_found("c");
    }

    #[test]
    fn go() {
        super::every_mistake_is_found("go");
    }
}

/// The least number of mistakes in all languages.
const LEAST: usize = 39;

#[test]
fn every_listed_mistake_can_be_made_in_the_template_of_its_kind() {
    let mut names = BTreeSet::new();
    for language in LANGUAGES.iter().filter(|language| is_listed(language.name)) {
        let mut templates: BTreeMap<String, Files> = BTreeMap::new();
        for mistake in mistakes(language.name) {
            let template =
                templates.entry(mistake.kind.clone()).or_insert_with(|| template(language.name, &mistake.kind));
            if let Err(why) = mistaken(template, &mistake) {
                panic!("{}, {}: {why}", language.name, mistake.name);
            }
            assert!(names.insert((language.name, mistake.name.clone())), "{} is listed twice", mistake.name);
        }
    }
    assert!(names.len() >= LEAST, "{} mistakes are listed", names.len());
}

fn is_listed(language: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("mistakes/{language}.yaml")).is_file()
}
