//! Errors and notices as the real binary prints them.
//!
//! Each subject has one test and one file in `errors/snapshots`, which reads like a terminal from top to bottom. Run the tests with
//! `INSTA_UPDATE=always` to accept changed texts.

mod chat;
mod command_line;
mod configuration;
mod installations;
mod lab;
mod languages;
mod models;
mod plugins;
mod sessions;
mod store;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use hermes_tests::{Hermes, Home, KEY, Output};
use regex::Regex;

/// Each code with its exit code.
const CODES: &str = include_str!("../../docs/use/errors.md");

/// What differs between two runs or two machines, and what replaces it.
static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\d{8}_\d{6}_[0-9a-f]{6}", "20260131_120000_abcdef"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:8000"),
        (r"process \d+", "process 4321"),
        (r" \(os error \d+\)", ""),
        (r"room for \d+", "room for 3700"),
        (r"this version of Hermes has version \S+", "this version of Hermes has version 1.0.0"),
        // A migration of the store raises it.
        (r"this version knows \d+", "this version knows 7"),
        // The consent screen wraps it on a terminal.
        (r"blake3:[0-9a-f]{50,63}\n {12}[0-9a-f]{1,14}\b|blake3:[0-9a-f]{64}", "blake3:0123456789abcdef"),
        // Depends on the path of the source.
        (r"\.origins/notes/[0-9a-f]{16}", ".origins/notes/0123456789abcdef"),
        (r"\w+-unknown-linux-\w+|\w+-apple-darwin", "x86_64-unknown-linux-gnu"),
        (r"digest [0-9a-f]{12} -> [0-9a-f]{12}", "digest 0123456789ab -> ba9876543210"),
        (r"\(digest [0-9a-f]{12}\)", "(digest 0123456789ab)"),
        (r"component   [0-9.]+ KiB", "component   170.0 KiB"),
        (r"load time .*\n", ""),
        // The contract grows.
        (r"worlds\.wit:\d+:\d+ \| \d+", "worlds.wit:60:13 | 60"),
        // Depends on what other tests have compiled.
        (r"note: compiling the plugin .*\n", ""),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
    .into()
});

/// The screens of a subject, one below the other.
#[derive(Default)]
pub(crate) struct Screens(String);

impl Screens {
    /// Runs a command that ends with one error. The error has a code of `docs/use/errors.md`, a cause and a fix, and the exit code is the
    /// one of that page.
    #[track_caller]
    pub(crate) fn error(&mut self, situation: &str, home: &Home, command: Hermes) {
        let line = command.to_string();
        let output = command.run().refused();
        let codes = codes(&output);
        assert_eq!(codes.len(), 1, "{situation}: not one error\n{output}");
        assert_eq!(
            output.status.code(),
            Some(exit_code(&codes[0])),
            "{situation}: the exit code of `{}`\n{output}",
            codes[0]
        );
        self.add(situation, home, &line, &output.stderr, &output);
    }

    /// Runs a command that succeeds and prints a note or a warning.
    #[track_caller]
    pub(crate) fn notice(&mut self, situation: &str, home: &Home, command: Hermes) {
        let line = command.to_string();
        let output = command.run().success();
        let lines = || output.stderr.lines().filter(|line| line.starts_with("note: ") || line.starts_with("warning: "));
        assert!(lines().count() > 0, "{situation}: there is no notice\n{output}");
        self.add(situation, home, &line, &output.stderr, &output);
    }

    /// Runs a command that succeeds. Shows standard error, then standard output.
    #[track_caller]
    pub(crate) fn success(&mut self, situation: &str, home: &Home, command: Hermes) {
        let line = command.to_string();
        let output = command.run().success();
        self.add(situation, home, &line, &format!("{}{}", output.stderr, output.stdout), &output);
    }

    /// Adds what a terminal showed.
    pub(crate) fn shown(&mut self, situation: &str, home: &Home, line: &str, screen: &str) {
        assert!(!screen.contains(KEY), "{situation}: a key is shown\n{screen}");
        self.0.push_str(&portable(&format!("# {situation}\n$ {line}\n{screen}\n\n"), home));
    }

    /// Types lines into a chat. Shows what was typed, then standard output without the lines of the status, then standard error.
    #[track_caller]
    fn chat(&mut self, situation: &str, home: &Home, lines: &[&str]) {
        let command = home.hermes(&["chat"]).stdin(&format!("{}\n", lines.join("\n")));
        let line = command.to_string();
        let output = command.run();
        codes(&output);
        let typed = lines.iter().map(|line| format!("> {line}\n"));
        let is_status = |line: &&str| line.contains(" · ");
        let shown = output.stdout.lines().filter(|line| !is_status(line)).map(|line| format!("{line}\n"));
        let screen: String = typed.chain(shown).chain([output.stderr.clone()]).collect();
        self.add(situation, home, &line, &screen, &output);
    }

    #[track_caller]
    fn add(&mut self, situation: &str, home: &Home, line: &str, screen: &str, output: &Output) {
        assert!(!screen.contains(KEY), "{situation}: a key is shown\n{output}");
        let code = output.status.code().unwrap();
        let end = if code == 0 { String::new() } else { format!("(exit code {code})\n") };
        self.0.push_str(&portable(&format!("# {situation}\n$ {line}\n{screen}{end}\n"), home));
    }

    /// All screens.
    pub(crate) fn text(self) -> String {
        self.0
    }
}

/// Without what differs between two runs or two machines.
fn portable(text: &str, home: &Home) -> String {
    let path = home.path();
    let root = path.parent().unwrap();
    let mut text = text.to_owned();
    for (folder, name) in
        [(path.as_path(), "~/.hermes"), (&home.workspace(), "~/work"), (&root.join("user"), "~"), (root, "/tmp")]
    {
        text = text.replace(folder.to_str().unwrap(), name);
    }
    VARYING.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

/// The codes of the errors on the screen, each of which has a cause and a fix.
#[track_caller]
fn codes(output: &Output) -> Vec<String> {
    let lines: Vec<&str> = output.stderr.lines().collect();
    let mut codes = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(error) = line.strip_prefix("error: ") else { continue };
        let (what, code) = error.strip_suffix(']').and_then(|error| error.rsplit_once(" [")).unwrap_or_default();
        assert!(!what.is_empty() && !code.is_empty(), "an error without a code\n{output}");
        for (line, label) in [(at + 1, "  why: "), (at + 2, "  fix: ")] {
            let text = lines.get(line).and_then(|line| line.strip_prefix(label));
            assert!(text.is_some_and(|text| !text.trim().is_empty()), "`{code}` lacks `{}`\n{output}", label.trim());
        }
        exit_code(code);
        codes.push(code.to_owned());
    }
    codes
}

#[test]
fn the_snapshots_show_more_than_fifty_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/errors/snapshots");
    let codes = Regex::new(r"(?m)^error: .* \[([a-z-]+\.[a-z-]+)\]$").unwrap();
    let mut shown = BTreeSet::new();
    for snapshot in fs::read_dir(folder).unwrap().flatten() {
        let text = fs::read_to_string(snapshot.path()).unwrap();
        shown.extend(codes.captures_iter(&text).map(|captures| captures[1].to_owned()));
    }
    assert!(shown.len() > 50, "{shown:?}");
}

/// The exit code of an error by `docs/use/errors.md`.
#[track_caller]
fn exit_code(code: &str) -> i32 {
    let row = CODES.lines().find_map(|line| line.strip_prefix(&format!("| `{code}` | ")));
    let exit = row.and_then(|row| row.split(' ').next()?.parse().ok());
    exit.unwrap_or_else(|| panic!("docs/use/errors.md has no row for `{code}`"))
}
