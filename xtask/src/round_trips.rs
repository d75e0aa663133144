//! `bench round-trips`: what the host needs between the end of a model's reply and its next request.
//!
//! Between the two it stores the reply, runs `read_file` on a small file, stores the result, and writes the whole request. The
//! process, the store, the plugins and the HTTP connection are the real ones; the model answers at once.

mod model;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{Profile, Repository};
use crate::guests;
use crate::processes::{self, Run, measure};
pub(crate) use crate::round_trips::model::Model;
use crate::round_trips::model::Trip;

const AIM_MS: f64 = 3.0;
const SESSION: &str = "20260101_000000_bench0";

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    sizes: Vec<usize>,
    engines: Vec<String>,
    trips: usize,
    binary: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self {
            sizes: vec![0, 1_000, 5_000, 20_000],
            engines: vec!["compressor".to_owned(), "lossless".to_owned()],
            trips: 40,
            binary: None,
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let value = *rest.next().with_context(|| format!("`{option}` needs a value"))?;
            let number = |text: &str| text.parse().with_context(|| format!("`{option} {value}` is not a number"));
            match *option {
                "--sizes" => options.sizes = value.split(',').map(number).collect::<Result<_>>()?,
                "--engines" => options.engines = value.split(',').map(str::to_owned).collect(),
                "--trips" => options.trips = number(value)?,
                "--binary" => options.binary = Some(value.into()),
                unknown => bail!(
                    "no such option: `{unknown}`; there are --sizes N,N,…, --engines NAME,NAME,…, --trips N and --binary PATH"
                ),
            }
        }
        if options.trips == 0 {
            bail!("`--trips 0` measures nothing");
        }
        Ok(options)
    }
}

/// Builds the release binary unless one is given, and measures each size with each engine.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            print!("{}", guests::build(repository)?);
            repository.build_hermes(Profile::Release)?
        }
    };
    println!("{} round trips each; ms from the end of a reply to the first byte of the next request\n", options.trips);
    println!(
        "{:<12} {:>9} {:>8} {:>8} {:>8} {:>14} {:>9}   {:<8}",
        "engine", "messages", "median", "least", "p90", "to last byte", "peak MiB", "aim"
    );
    for engine in &options.engines {
        for size in &options.sizes {
            let home = Home::with(&binary, engine, *size)?;
            let model = Model::start(options.trips)?;
            let run = home.turn(&binary, &model)?;
            println!("{}", row(engine, *size, &model.trips(), &run));
        }
    }
    Ok(())
}

fn row(engine: &str, size: usize, trips: &[Trip], run: &Run) -> String {
    let first = Times::of(trips.iter().map(|trip| trip.to_first_byte));
    let last = Times::of(trips.iter().map(|trip| trip.to_last_byte));
    let peak = run.peak.map_or(f64::NAN, |peak| peak as f64 / 1024.0 / 1024.0);
    let verdict = if first.median <= AIM_MS { "met" } else { "missed" };
    format!(
        "{engine:<12} {size:>9} {:>8.2} {:>8.2} {:>8.2} {:>14.2} {peak:>9.1}   {AIM_MS} {verdict:<6}",
        first.median, first.least, first.p90, last.median
    )
}

/// Milliseconds.
#[derive(Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) median: f64,
    least: f64,
    p90: f64,
}

impl Times {
    pub(crate) fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort();
        let at = |share: f64| {
            let at = (times.len() as f64 * share) as usize;
            times.get(at.min(times.len().saturating_sub(1))).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
        };
        Self { median: at(0.5), least: at(0.0), p90: at(0.9) }
    }
}

/// A home with a session of so many messages.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    engine: String,
    messages: usize,
}

impl Home {
    pub(crate) fn with(binary: &Path, engine: &str, messages: usize) -> Result<Self> {
        Self::of(binary, engine, messages, usize::from(messages > 0))
    }

    /// A home with so many short sessions.
    pub(crate) fn of_sessions(binary: &Path, sessions: usize) -> Result<Self> {
        Self::of(binary, "compressor", 4, sessions)
    }

    fn of(binary: &Path, engine: &str, messages: usize, sessions: usize) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let home = Self { folder, engine: engine.to_owned(), messages };
        fs::create_dir(home.workspace())?;
        fs::write(home.workspace().join("notes.txt"), "The office closes at five.\n")?;
        home.configure(engine, "http://127.0.0.1:9/v1")?;
        if sessions > 0 {
            let file = home.folder.path().join("session.jsonl");
            fs::write(&file, export(sessions, messages, engine, &home.workspace()))?;
            measure(home.hermes(binary)?.args(["sessions", "import"]).arg(&file))?;
        }
        // Plugins are compiled before the measurement.
        measure(home.hermes(binary)?.args(["doctor"])).ok();
        Ok(home)
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// The window is so large that nothing is compacted.
    fn configure(&self, engine: &str, url: &str) -> Result<()> {
        let config = json!({
            "model": {"provider": "custom", "default": "bench", "base_url": url, "api_key": "not-a-key",
                "context_length": 100_000_000},
            "context": {"engine": engine},
            "agent": {"max_turns": 100_000},
        });
        // YAML contains JSON.
        Ok(fs::write(self.folder.path().join("config.yaml"), config.to_string())?)
    }

    pub(crate) fn hermes(&self, binary: &Path) -> Result<Command> {
        let mut command = processes::command(binary)?;
        command.current_dir(self.workspace()).env_clear();
        command.env("HOME", self.folder.path()).env("HERMES_HOME", self.folder.path());
        for kept in ["PATH", "SYSTEMROOT", "TMPDIR"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        Ok(command)
    }

    /// One turn with all round trips.
    pub(crate) fn turn(&self, binary: &Path, model: &Model) -> Result<Run> {
        self.configure(&self.engine, &model.url())?;
        let mut command = self.hermes(binary)?;
        if self.messages > 0 {
            command.args(["--resume", SESSION, "--imported", "none"]);
        }
        measure(command.args(["-z", "Read the notes as often as you like."]))
    }
}

/// An export of sessions in which a user and a model talk, with a tool call in every other reply.
fn export(sessions: usize, messages: usize, engine: &str, workspace: &Path) -> String {
    let mut lines = vec![json!({"type": "header", "format": "hermes-sessions", "version": 1, "exported_at": 2})];
    for number in 0..sessions {
        lines.extend(session(number, messages, engine, workspace));
    }
    lines.push(json!({"type": "end", "sessions": sessions, "messages": sessions * messages}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn session(number: usize, messages: usize, engine: &str, workspace: &Path) -> Vec<Value> {
    let totals =
        json!({"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0, "requests": 0, "cost": 0.0});
    let id = if number == 0 { SESSION.to_owned() } else { format!("20260101_000000_bench{number}") };
    let mut lines = vec![json!({"type": "session", "id": id, "source": "cli", "title": null, "workspace": workspace,
        "engine": engine, "provider": "custom", "model": "bench", "context_length": 100_000_000, "started_at": 1,
        "updated_at": 2, "totals": totals, "parent": null})];
    let message = |id: usize, role: &str, content: String| {
        json!({"type": "message", "id": id, "role": role, "content": content, "sent": null, "reasoning": null,
            "tool_calls": [], "tool_call_id": null, "tool_name": null, "origin": "said", "created_at": 1})
    };
    for at in 1..=messages {
        let id = number * messages + at;
        let words = format!("message {id} about the ferry to berth {} and its cargo of timber, ", id % 31).repeat(3);
        lines.push(match at % 4 {
            1 => message(id, "user", words),
            2 if at + 2 <= messages => {
                let mut caller = message(id, "assistant", String::new());
                let call =
                    json!({"id": format!("call_{id}"), "name": "read_file", "arguments": "{\"path\":\"notes.txt\"}"});
                caller["tool_calls"] = json!([call]);
                caller
            }
            3 if at < messages => {
                let mut result = message(id, "tool", words);
                result["tool_call_id"] = format!("call_{}", id - 1).into();
                result["tool_name"] = "read_file".into();
                result
            }
            _ => message(id, "assistant", words),
        });
    }
    lines
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_median_the_least_and_the_ninth_tenth() {
        let times = Times::of((1..=10).rev().map(Duration::from_millis));
        assert_eq!(times, Times { median: 6.0, least: 1.0, p90: 10.0 });
    }

    #[test]
    fn options_are_read_and_errors_name_them() {
        let options = Options::parse(&["--sizes", "0,7", "--engines", "lossless", "--trips", "3"]).unwrap();
        let expected = Options { sizes: vec![0, 7], engines: vec!["lossless".to_owned()], trips: 3, binary: None };
        assert_eq!(options, expected);
        for (wrong, named) in [(&["--size", "3"][..], "--size"), (&["--trips"], "--trips"), (&["--trips", "0"], "0")] {
            let error = format!("{:#}", Options::parse(wrong).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_session_has_as_many_messages_as_wanted_and_every_call_its_result() {
        for messages in 1..12 {
            let text = export(1, messages, "lossless", Path::new("/tmp"));
            let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.iter().filter(|line| line["type"] == "message").count(), messages);
            let calls = lines.iter().filter_map(|line| line["tool_calls"][0]["id"].as_str());
            let results: Vec<&str> = lines.iter().filter_map(|line| line["tool_call_id"].as_str()).collect();
            assert_eq!(calls.collect::<Vec<_>>(), results, "{messages}");
        }
    }
}
