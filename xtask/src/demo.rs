//! `demo`: demonstrates a typical session with the real binary, in a temporary home and workspace. Each step is shown as the
//! command that a user would type. The model is the built-in offline partner, which needs neither a key nor a network.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{Profile, Repository};
use crate::guests;

/// A window that is full after a few turns, in tokens.
const WINDOW: u32 = 8_000;
/// More turns than that window holds.
const MOST_FILLING_TURNS: usize = 12;

/// Builds the binary and runs the demonstration.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    eprint!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let stage = Stage::set(binary.clone())?;

    stage.say("A turn: the model asks for tools, which run as WebAssembly components.");
    stage
        .hermes(&["-z", "remember the ferry leaves at 17:40\nread notes.txt\nsearch berth"])?
        .shows(&["Harbour office"])?;
    stage.command("cat $HERMES_HOME/memories/MEMORY.md", &stage.read("memories/MEMORY.md")?).shows(&["17:40"])?;

    stage.say("Another process goes on with the conversation of this folder.");
    stage.hermes(&["-z", "read timetable.txt", "--continue"])?.shows(&["17:40"])?;

    stage.say("A small window, filled until the context engine compacts the conversation.");
    stage.configure(Some(WINDOW))?;
    stage.command("cat $HERMES_HOME/config.yaml", &stage.read("config.yaml")?);
    stage.fill()?;

    stage.say("Every word is still in the log.");
    stage.hermes(&["sessions", "list"])?;
    let id = stage.newest_session()?;
    stage.hermes(&["sessions", "show", &id])?.shows(&["remember the ferry leaves at 17:40"])?;
    stage.hermes(&["plugins", "list"])?.shows(&["compressor", "builtin", "files", "local"])?;

    println!("\nAll of it worked. To talk to the same partner yourself:\n\n  {}\n", binary.display());
    println!("To talk to a model, put this into ~/.hermes/config.yaml (any OpenAI-compatible endpoint will do):\n");
    println!(
        "  model:\n    base_url: http://localhost:11434/v1\n    default: NAME-OF-THE-MODEL\n    context_length: 32768"
    );
    Ok(())
}

/// A temporary home and workspace.
struct Stage {
    binary: PathBuf,
    root: tempfile::TempDir,
}

impl Stage {
    fn set(binary: PathBuf) -> Result<Self> {
        let root =
            tempfile::Builder::new().prefix("hermes-demo-").tempdir().context("cannot make a temporary folder")?;
        let stage = Self { binary, root };
        for folder in ["home", "workspace"] {
            fs::create_dir(stage.root.path().join(folder))?;
        }
        stage.configure(None)?;
        let workspace = stage.root.path().join("workspace");
        fs::write(workspace.join("notes.txt"), "Harbour office: open from nine to five.\nAsk for berth 12.\n")?;
        fs::write(workspace.join("timetable.txt"), "Harbour    17:40\nLighthouse 18:05\n")?;
        Ok(stage)
    }

    fn configure(&self, window: Option<u32>) -> Result<()> {
        let window = window.map_or_else(String::new, |window| format!("  context_length: {window}\n"));
        let config = format!("model:\n  provider: offline\n{window}");
        fs::write(self.root.path().join("home/config.yaml"), config).context("cannot write the configuration")
    }

    fn read(&self, path: &str) -> Result<String> {
        let path = self.root.path().join("home").join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn say(&self, text: &str) {
        println!("\n# {text}");
    }

    fn command(&self, line: &str, output: &str) -> Shown {
        println!("\n$ {line}");
        print!("{}", shortened(output));
        Shown { line: line.to_owned(), output: output.to_owned() }
    }

    fn hermes(&self, arguments: &[&str]) -> Result<Shown> {
        let (output, line) = self.run(arguments)?;
        Ok(self.command(&line, &output))
    }

    /// Runs the binary. Returns both output streams, as a terminal would show them, and the command line.
    fn run(&self, arguments: &[&str]) -> Result<(String, String)> {
        let line = command_line(arguments);
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(self.root.path().join("workspace")).stdin(Stdio::null());
        command.env_clear().env("HOME", self.root.path()).env("HERMES_HOME", self.root.path().join("home"));
        for kept in ["PATH", "SYSTEMROOT", "TMPDIR"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.env("LANG", "C.UTF-8").env("TZ", "UTC");
        let output = command.output().with_context(|| format!("cannot run {}", self.binary.display()))?;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            bail!("`{line}` failed: {}\n{text}", output.status);
        }
        Ok((text, line))
    }

    /// Runs turns until one of them reports a compaction.
    fn fill(&self) -> Result<()> {
        for _ in 0..MOST_FILLING_TURNS {
            let turn = self.hermes(&["-z", "fill 1500", "--continue"])?;
            if turn.output.to_lowercase().contains("compact") {
                return Ok(());
            }
        }
        bail!("{MOST_FILLING_TURNS} turns filled a window of {WINDOW} tokens and nothing was compacted")
    }

    fn newest_session(&self) -> Result<String> {
        let (listed, line) = self.run(&["sessions", "list", "--json"])?;
        let sessions: serde_json::Value =
            serde_json::from_str(&listed).with_context(|| format!("`{line}` printed no JSON:\n{listed}"))?;
        Ok(sessions[0]["id"].as_str().with_context(|| format!("`{line}` lists no session:\n{listed}"))?.to_owned())
    }
}

/// A command and its output.
struct Shown {
    line: String,
    output: String,
}

impl Shown {
    fn shows(self, texts: &[&str]) -> Result<Self> {
        match texts.iter().find(|text| !self.output.contains(**text)) {
            Some(missing) => bail!("the output of `{}` does not show `{missing}`", self.line),
            None => Ok(self),
        }
    }
}

/// The command line as a user would type it.
fn command_line(arguments: &[&str]) -> String {
    let plain = |argument: &str| argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=".contains(c));
    let typed = arguments.iter().map(|argument| {
        if !argument.is_empty() && plain(argument) {
            (*argument).to_owned()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    });
    std::iter::once("hermes".to_owned()).chain(typed).collect::<Vec<_>>().join(" ")
}

/// The first lines of an output, cut to the width of a screen.
fn shortened(output: &str) -> String {
    const LINES: usize = 24;
    const COLUMNS: usize = 160;
    let mut text = String::new();
    for line in output.lines().take(LINES) {
        text.extend(line.chars().take(COLUMNS));
        text.push_str(if line.chars().count() > COLUMNS { "…\n" } else { "\n" });
    }
    if let Some(left) = output.lines().count().checked_sub(LINES)
        && left > 0
    {
        text.push_str(&format!("… and {left} more lines\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        assert_eq!(command_line(&["sessions", "list", "--json"]), "hermes sessions list --json");
        assert_eq!(command_line(&["-z", "it's here", ""]), r"hermes -z 'it'\''s here' ''");
    }

    #[test]
    fn long_output_is_shortened_and_says_so() {
        let long = "x".repeat(200) + &"\ny".repeat(30);
        let short = shortened(&long);
        assert!(short.ends_with("y\n… and 7 more lines\n") && short.lines().count() == 25, "{short}");
        assert!(short.lines().next().is_some_and(|line| line.chars().count() == 161));
        assert_eq!(shortened("one\ntwo\n"), "one\ntwo\n");
    }
}
