//! `hermes lab`: compares engines on recorded conversations, and tests them on generated ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use hermes_app::{ModelChoice, Reporter as _};
use hermes_lab::external::External;
use hermes_lab::replay::{self, Column, ColumnError, Everything, Outcome};
use hermes_lab::report::{self, Compared};
use hermes_lab::verify::{self, Proof, Trial};
use hermes_lab::{Contestant, Engine, FaultMode, Prices, Recording, Report, StandIn, Terms, plot};
use hermes_plugin_host::{Plugins, Selection};
use hermes_runtime::Runtime;

use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::progress::Terminal;

/// The name of the column without compaction.
const NONE: &str = "none";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Replay recorded conversations through engines, side by side
    Replay(ReplayArguments),
    /// Test with generated conversations that an engine loses no message
    Verify(VerifyArguments),
}

/// The recordings and the engines to replay.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArguments {
    /// Recordings: exported sessions, OpenAI-style JSON lines, or a session of the pi coding agent
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// An engine, `none` for no compaction, or the name of an --external; the first is the baseline of the comparison
    /// [default: `none` and the engine of config.yaml]
    #[arg(long = "engine", value_name = "NAME")]
    engines: Vec<String>,
    /// Also compare a program of your own: it reads requests as JSON lines on standard input, and answers each on standard
    /// output with the context that it would send
    #[arg(long = "external", value_name = "NAME=COMMAND")]
    externals: Vec<String>,
    /// The model's context window in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = Terms::STANDARD.window)]
    window: u32,
    /// Read the prices of tokens from this JSON or YAML file: input, cache_write, cache_read, output
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// What the simulated summariser does
    #[arg(long, value_name = "BEHAVIOUR", default_value = "sound", value_parser = behaviours())]
    summariser: String,
    /// Same as --summariser none
    #[arg(long, conflicts_with = "summariser")]
    no_model: bool,
    /// Use the engines' settings in config.yaml instead of their defaults
    #[arg(long)]
    configured: bool,
    /// Do not test whether the engines' tools can find compacted text
    #[arg(long)]
    no_recall: bool,
    /// Also measure how long compaction takes
    #[arg(long)]
    timing: bool,
    /// Seconds to wait for each answer of an --external
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// Plot the context size over requests to an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The behaviours of the simulated summariser, for the help.
fn behaviours() -> PossibleValuesParser {
    let meanings: [&str; FaultMode::NAMES.len()] = [
        "It writes a summary",
        "There is no summariser",
        "Each call fails",
        "It takes three times as long",
        "It writes an empty summary",
        "Its summary is longer than the source",
        "Its summary contains harmful instructions",
    ];
    let values = FaultMode::NAMES.into_iter().zip(meanings);
    PossibleValuesParser::new(values.map(|(name, meaning)| PossibleValue::new(name).help(meaning)))
}

/// The engine and the conversations to generate.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArguments {
    /// The engine to test
    engine: String,
    /// Alternate with this engine during each conversation
    #[arg(long = "with", value_name = "ENGINE")]
    other: Option<String>,
    /// Number of conversations
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    conversations: u64,
    /// Seed of the first conversation; it increases by 1 for each further one
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Turns of each conversation [default: chosen by its seed]
    #[arg(long, value_name = "COUNT")]
    turns: Option<u32>,
    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &LabCommand, console: Console) -> Result<ExitCode, Failure> {
    match command {
        LabCommand::Replay(arguments) => replay(arguments, console),
        LabCommand::Verify(arguments) => verify(arguments, console),
    }
}

/// The source of a column's requests.
enum Contender {
    Everything,
    Engine(Box<Plugins>),
    External(String),
}

fn replay(arguments: &ReplayArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    let terms = terms(arguments)?;
    if let Some(path) = &arguments.plot {
        can_be_written(path).map_err(|error| unplotted(path, &error))?;
    }
    let fault_mode =
        if arguments.no_model { FaultMode::None } else { FaultMode::parse(&arguments.summariser).unwrap_or_default() };
    let stand_in = StandIn::new(terms.bytes_per_token, fault_mode);
    let mut recordings = Vec::new();
    for file in &arguments.files {
        recordings.extend(Recording::read(file)?);
    }
    let contenders = contenders(arguments, &setup, console)?;
    let scratch = scratch()?;
    let mut compared = Vec::new();
    for (number, recording) in recordings.iter().enumerate() {
        let one = |at: usize, (name, contender): &(String, Contender)| {
            let home = scratch.path().join(format!("{number}-{at}"));
            column(name, contender, recording, arguments, (terms, stand_in), &home)
        };
        // Columns are independent, so running them in parallel changes no figure.
        let outcomes: Vec<Result<Outcome, Failure>> = thread::scope(|scope| {
            let one = &one;
            let running: Vec<_> =
                contenders.iter().enumerate().map(|(at, contender)| scope.spawn(move || one(at, contender))).collect();
            running.into_iter().map(|column| column.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        compared.push(Compared::new(recording, outcomes, arguments.timing));
    }
    let report = Report::new(terms, fault_mode, compared);
    // Print the report first, so that it is not lost if the plot cannot be written.
    print(&if arguments.json { report.to_json() + "\n" } else { report.to_text() })?;
    if let Some(path) = &arguments.plot {
        fs::write(path, plot::svg(&report.recordings, &report.terms)).map_err(|error| unplotted(path, &error))?;
    }
    let failed = report.recordings.iter().flat_map(|compared| &compared.columns).any(|column| column.error.is_some());
    Ok(if failed { Kind::General.into() } else { ExitCode::SUCCESS })
}

/// Checks that a file can be written, before a replay that takes minutes. It creates no file.
fn can_be_written(path: &Path) -> io::Result<()> {
    let exists = path.try_exists()?;
    fs::OpenOptions::new().append(true).create(true).open(path)?;
    if exists { Ok(()) } else { fs::remove_file(path) }
}

fn unplotted(path: &Path, error: &io::Error) -> Failure {
    let why = format!("{}: {error}", path.display());
    Failure::new(Kind::General, "the plot cannot be written", why, "choose another name or another folder")
}

fn terms(arguments: &ReplayArguments) -> Result<Terms, Failure> {
    let prices = arguments.prices.as_deref().map(Prices::read).transpose()?;
    let terms = Terms { prices: prices.unwrap_or(Prices::STANDARD), ..Terms::STANDARD };
    Ok(terms.with_window(arguments.window)?)
}

/// The columns in order: the names of --engine, then the commands of --external that are not among them.
fn contenders(
    arguments: &ReplayArguments,
    setup: &Setup,
    console: Console,
) -> Result<Vec<(String, Contender)>, Failure> {
    let mut externals: Vec<(&str, &str)> = Vec::new();
    for external in &arguments.externals {
        let pair = external.split_once('=').map(|(name, command)| (name.trim(), command.trim()));
        externals.push(pair.filter(|(name, command)| !name.is_empty() && !command.is_empty()).ok_or_else(|| {
            let fix = "write --external NAME='COMMAND'";
            let why = format!("`{external}` does not have the form NAME=COMMAND");
            Failure::new(Kind::Usage, "the value of --external is invalid", why, fix)
        })?);
    }
    let mut names: Vec<&str> = arguments.engines.iter().map(String::as_str).collect();
    let configured = setup.selection(&ModelChoice::default()).engine;
    if names.is_empty() && externals.is_empty() {
        names = vec![NONE, configured.as_str()];
    }
    let unnamed = externals.iter().map(|(name, _)| *name).filter(|name| !arguments.engines.iter().any(|e| e == name));
    names.extend(unnamed.collect::<Vec<_>>());
    report::check_names(names.iter().copied())?;
    report::check_names(externals.iter().map(|(name, _)| *name))?;
    let runtime = setup.runtime();
    let contender = |name: &str| -> Result<Contender, Failure> {
        if let Some((_, command)) = externals.iter().find(|(external, _)| *external == name) {
            return Ok(Contender::External((*command).to_owned()));
        }
        if name == NONE {
            return Ok(Contender::Everything);
        }
        select(name, arguments.configured, &runtime, setup, console).map(Box::new).map(Contender::Engine)
    };
    names.into_iter().map(|name| Ok((name.to_owned(), contender(name)?))).collect()
}

/// Selects an engine and no other plugins.
fn select(
    name: &str,
    configured: bool,
    runtime: &Runtime,
    setup: &Setup,
    console: Console,
) -> Result<Plugins, Failure> {
    let flags = ModelChoice { engine: Some(name.to_owned()), ..Default::default() };
    let Selection { entries, variables, settings, .. } = setup.selection(&flags);
    let entries = if configured { entries } else { Default::default() };
    let selection = Selection { entries, variables, settings, ..Selection::only(name) };
    let shown = Terminal::new(console);
    let compiling = |name: &str, elapsed| shown.compiling(name, elapsed);
    Ok(Plugins::select(runtime, &setup.catalog(), &selection, &compiling)?)
}

fn column(
    name: &str,
    contender: &Contender,
    recording: &Recording,
    arguments: &ReplayArguments,
    (terms, stand_in): (Terms, StandIn),
    home: &Path,
) -> Result<Outcome, Failure> {
    let mut column: Box<dyn Column> = match contender {
        Contender::Everything => Box::new(Everything::default()),
        Contender::External(command) => {
            let patience = Duration::from_secs(arguments.patience);
            Box::new(External::start(name, command, &recording.name, terms, stand_in, patience)?)
        }
        Contender::Engine(plugins) => {
            let recall = !arguments.no_recall;
            let contestant = Contestant {
                name: name.to_owned(),
                plugins,
                terms,
                stand_in,
                home,
                session: recording.name.clone(),
                recall,
            };
            let made = fs::create_dir_all(home).map_err(|error| error.to_string());
            match made.and_then(|()| Engine::start(&contestant)) {
                Ok(engine) => Box::new(engine),
                Err(why) => return Ok(Outcome::ended(name, ColumnError { request: 0, why })),
            }
        }
    };
    Ok(replay::replay(recording, column.as_mut(), &terms))
}

fn verify(arguments: &VerifyArguments, console: Console) -> Result<ExitCode, Failure> {
    if [Some(&arguments.engine), arguments.other.as_ref()].into_iter().flatten().any(|name| name == NONE) {
        let fix = "name an engine, such as `hermes lab verify lossless`; `none` is a column of `hermes lab replay`";
        return Err(Failure::new(Kind::Usage, "`none` cannot be tested", "`none` is not a context engine", fix));
    }
    let setup = launch::read()?;
    let runtime = setup.runtime();
    let plugins = select(&arguments.engine, false, &runtime, &setup, console)?;
    let other = arguments.other.as_deref().map(|name| select(name, false, &runtime, &setup, console)).transpose()?;
    let scratch = scratch()?;
    let jobs = arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
    let trial = Trial {
        plugins: &plugins,
        other: other.as_ref(),
        seed: arguments.seed,
        conversations: arguments.conversations,
        turns: arguments.turns,
        jobs,
        scratch: scratch.path(),
    };
    let step = (arguments.conversations / 20).max(5_000);
    let progress = |done: u64| {
        if done.is_multiple_of(step) {
            console.note(&format!("{done} of {} conversations", arguments.conversations));
        }
    };
    let proof = verify::verify(&trial, &progress).map_err(|why| {
        Failure::new(Kind::General, "the engine cannot be tested", why, "free some memory or disk space, and try again")
    })?;
    print(&if arguments.json { json(&proof)? } else { render(&proof, arguments) })?;
    Ok(if proof.failed == 0 { ExitCode::SUCCESS } else { Kind::General.into() })
}

fn json(proof: &Proof) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(proof);
    text.map(|text| text + "\n").map_err(|error| {
        Failure::new(Kind::General, "the result cannot be written", error.to_string(), "remove --json")
    })
}

fn render(proof: &Proof, arguments: &VerifyArguments) -> String {
    let mut text = String::new();
    for (what, count) in &proof.counts {
        text.push_str(&format!("{count:>12}  {what}\n"));
    }
    if proof.failed == 0 {
        text.push_str(
            "\nnothing was lost: every view is valid, every message is sent or summarised, and no group of messages is \
             split\n",
        );
        return text;
    }
    text.push_str(&format!("\n{} conversations failed\n", proof.failed));
    for failure in &proof.failures {
        let (engine, seed, turns) = (&arguments.engine, failure.seed, failure.turns);
        let with = arguments.other.as_ref().map_or_else(String::new, |other| format!(" --with {other}"));
        text.push_str(&format!(
            "seed {seed}, {turns} turns, event {}: {}\n  repeat: hermes lab verify {engine}{with} --seed {seed} --turns \
             {turns} --conversations 1\n",
            failure.event, failure.why
        ));
    }
    text
}

fn scratch() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("hermes-lab-").tempdir().map_err(|error| {
        let fix = "free some space, or set TMPDIR to another folder";
        Failure::new(Kind::General, "no temporary folder can be created", error.to_string(), fix)
    })
}

fn panicked() -> Failure {
    Failure::new(Kind::General, "a column of the report panicked", "this is a bug in the lab", "report the bug")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: LabCommand,
    }

    fn parse(words: &[&str]) -> Result<LabCommand, clap::Error> {
        Line::try_parse_from(std::iter::once("lab").chain(words.iter().copied())).map(|line| line.command)
    }

    #[test]
    fn checking_a_path_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.svg"), folder.path().join("old.svg"));
        fs::write(&old, "kept").unwrap();
        assert!(can_be_written(&new).is_ok() && !new.exists());
        assert!(can_be_written(&old).is_ok());
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        assert!(can_be_written(folder.path()).is_err());
        assert!(can_be_written(&folder.path().join("nowhere").join("plot.svg")).is_err());
    }

    #[test]
    fn no_conversations_and_no_engine_are_usage_errors() {
        assert_eq!(parse(&["verify", "lossless", "--conversations", "0"]).unwrap_err().exit_code(), 2);
        for words in [&["verify", "none"][..], &["verify", "lossless", "--with", "none"]] {
            let failure = run(&parse(words).unwrap(), Console::plain(false)).unwrap_err();
            assert_eq!(failure.kind, Kind::Usage, "{failure}");
            assert!(failure.fix.contains("lab verify lossless"), "{failure}");
        }
    }
}
