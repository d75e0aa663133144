//! The command line of the program: compares engines on recorded conversations and tests them on generated ones; compares memories and cache lifetimes.

mod cache;
mod choice;
mod recall;
mod tools;
mod verify;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use hermes_app::Setup;
use hermes_app::files::{Place, Readers};
use hermes_app::{Home, ModelChoice, process};
use hermes_console::console::{Console, print};
use hermes_console::failure::{Failure, Kind};
use hermes_console::{output, text};
use hermes_plugin_host::Plugins;

use self::cache::CacheArguments;
use self::choice::EngineChoice;
use self::recall::RecallArguments;
use self::tools::ToolsArguments;
use self::verify::VerifyArguments;
use crate::external::External;
use crate::replay::{self, Column, ColumnError, Everything, Outcome};
use crate::report::{self, Compared};
use crate::{
    Contestant, Engine, FaultMode, LabError, Prices, Recording, Report, StandIn, Terms, plot, prices, terms, trace,
};

/// The name of the column without compaction.
const NONE: &str = "none";

/// A command of the laboratory.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Replay recorded conversations through engines, side by side
    Replay(ReplayArguments),
    /// Test with generated conversations that an engine loses no message
    Verify(VerifyArguments),
    /// Compare which memories find the messages that answer a question, without a model
    Recall(RecallArguments),
    /// Simulate weeks of use of a recorded conversation, and compare what each cache lifetime costs
    Cache(CacheArguments),
    /// Count how often `tool_search` finds the right tool for a question, over the lists of MCP servers
    Tools(ToolsArguments),
}

/// The recordings and the engines to replay.
#[derive(Debug, Clone, Args)]
pub(super) struct ReplayArguments {
    /// Recordings: exported sessions, bodies of requests, or sessions of other agents
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// An engine by name, the path of one that is not installed, either with settings of its own as NAME='{"key":1}', `none`
    /// for no compaction, or the name of an --external; the first is the baseline of the comparison
    /// [default: `none` and the engine of config.yaml]
    #[arg(long = "engine", value_name = "ENGINE")]
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
    /// Write what happened at each request to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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

/// Runs a command.
pub(crate) fn run(command: &LabCommand, console: Console) -> Result<ExitCode, Failure> {
    match command {
        LabCommand::Replay(arguments) => replay(arguments, console),
        LabCommand::Verify(arguments) => verify::run(arguments, console),
        LabCommand::Recall(arguments) => recall::run(arguments, console),
        LabCommand::Cache(arguments) => cache::run(arguments, console),
        LabCommand::Tools(arguments) => tools::run(arguments, console),
    }
}

/// A column of the command line.
enum Chosen {
    Engine(EngineChoice),
    External(String),
}

/// The source of a column's requests.
enum Contender {
    Everything,
    Engine(Box<Plugins>),
    External(String),
}

fn replay(arguments: &ReplayArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = setup()?;
    let terms = terms(arguments)?;
    check_output("plot", arguments.plot.as_deref())?;
    check_output("trace", arguments.trace.as_deref())?;
    let fault_mode =
        if arguments.no_model { FaultMode::None } else { FaultMode::parse(&arguments.summariser).unwrap_or_default() };
    let stand_in = StandIn::new(terms.bytes_per_token, fault_mode);
    let mut recordings = Vec::new();
    for file in &arguments.files {
        recordings.extend(Recording::read(file).map_err(LabError::from)?);
    }
    let contenders = contenders(arguments, &setup, console)?;
    let scratch = scratch()?;
    let mut lines = Vec::new();
    let mut compared = Vec::new();
    for (number, recording) in recordings.iter().enumerate() {
        let one = |at: usize, (name, contender): &(String, Contender)| {
            let home = scratch.path().join(format!("{number}-{at}"));
            column(name, contender, recording, arguments, (terms, stand_in), &home)
        };
        // Columns are independent, so running them in parallel changes no figure.
        let outcomes: Vec<Result<Outcome, Failure>> = thread::scope(|scope| {
            let one = &one;
            let contenders = contenders.iter().enumerate();
            let running: Vec<_> = contenders
                .map(|(at, contender)| thread::Builder::new().spawn_scoped(scope, move || one(at, contender)))
                .collect();
            let ended = |column: io::Result<thread::ScopedJoinHandle<'_, Result<Outcome, Failure>>>| {
                column.map_err(|error| no_thread(&error))?.join().unwrap_or_else(|_| Err(panicked()))
            };
            running.into_iter().map(ended).collect()
        });
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        if let Some(path) = &arguments.trace {
            for outcome in &outcomes {
                trace::write(&mut lines, &recording.name, &outcome.name, &outcome.trace)
                    .map_err(|error| unwritten("trace", path, &error))?;
            }
        }
        compared.push(Compared::new(recording, outcomes, arguments.timing));
    }
    let report = Report::new(terms, fault_mode, compared);
    // Print the report first, so that it is not lost if a file cannot be written.
    let shown = match arguments.json {
        true => text::escaped(&report.to_json()) + "\n",
        false => console.report_text(&report.to_text()),
    };
    print(&shown)?;
    if let Some(path) = &arguments.plot {
        write("plot", path, plot::svg(&report.recordings, &report.terms), console)?;
    }
    if let Some(path) = &arguments.trace {
        write("trace", path, lines, console)?;
    }
    let failed = report.recordings.iter().flat_map(|compared| &compared.columns).any(|column| column.error.is_some());
    Ok(if failed { Kind::General.into() } else { ExitCode::SUCCESS })
}

/// Checks that an output can be written, before a replay that takes minutes.
fn check_output(what: &str, path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    Place::of(path).and_then(|place| place.check()).map_err(|error| unwritten(what, path, &error))
}

/// Writes what a command has measured.
fn write(what: &str, path: &Path, content: impl AsRef<[u8]>, console: Console) -> Result<(), Failure> {
    output::write(path, content.as_ref(), Readers::Everybody, console).map_err(|error| unwritten(what, path, &error))
}

fn unwritten(file: &str, path: &Path, error: &io::Error) -> Failure {
    let why = format!("{}: {error}", path.display());
    Failure::new(Kind::General, format!("the {file} cannot be written"), why, "choose another name or another folder")
}

fn terms(arguments: &ReplayArguments) -> Result<Terms, Failure> {
    let prices = arguments.prices.as_deref().map(prices::read).transpose()?;
    let terms = Terms { prices: prices.unwrap_or(Prices::STANDARD), ..Terms::STANDARD };
    Ok(terms::with_window(terms, arguments.window)?)
}

/// The columns in order: those of --engine, then the commands of --external that are not among them.
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
    let mut engines = arguments.engines.clone();
    if engines.is_empty() && externals.is_empty() {
        engines = vec![NONE.to_owned(), setup.selection(&ModelChoice::default()).engine];
    }
    let unnamed = externals.iter().map(|(name, _)| *name).filter(|name| !arguments.engines.iter().any(|e| e == name));
    engines.extend(unnamed.map(str::to_owned));
    report::check_names(externals.iter().map(|(name, _)| *name))?;
    let runtime = setup.runtime();
    let mut contenders = Vec::new();
    let mut chosen = Vec::new();
    for engine in engines {
        if let Some((name, command)) = externals.iter().find(|(external, _)| *external == engine) {
            chosen.push(((*name).to_owned(), Chosen::External((*command).to_owned())));
            continue;
        }
        let choice = EngineChoice::parse(&engine)?;
        chosen.push((choice.to_string(), Chosen::Engine(choice)));
    }
    report::check_names(chosen.iter().map(|(name, _)| name.as_str()))?;
    for (name, chosen) in chosen {
        let contender = match chosen {
            Chosen::External(command) => Contender::External(command),
            Chosen::Engine(choice) if choice.is(NONE) => Contender::Everything,
            Chosen::Engine(choice) => {
                Contender::Engine(Box::new(choice.load(arguments.configured, &runtime, setup, console)?))
            }
        };
        contenders.push((name, contender));
    }
    Ok(contenders)
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

/// Reads the home without showing its warnings.
fn setup() -> Result<Setup, Failure> {
    Ok(Setup::read(Home::locate()?, process::compiler())?)
}

fn scratch() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("hermes-lab-").tempdir().map_err(|error| {
        let fix = "free some space, or set TMPDIR to another folder";
        Failure::new(Kind::General, "no temporary folder can be created", error.to_string(), fix)
    })
}

fn no_thread(error: &io::Error) -> Failure {
    let fix = "end other programs, or raise the limits of threads and memory";
    Failure::new(Kind::General, "no thread can be started", error.to_string(), fix)
}

fn panicked() -> Failure {
    Failure::new(Kind::General, "a column of the report panicked", "this is a bug in the lab", "report the bug")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn checking_a_path_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.svg"), folder.path().join("old.svg"));
        fs::write(&old, "kept").unwrap();
        let check = |path: &Path| check_output("plot", Some(path));
        assert!(check(&new).is_ok() && !new.exists());
        assert!(check(&old).is_ok());
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        assert!(check(folder.path()).is_err());
        assert!(check(&folder.path().join("nowhere").join("plot.svg")).is_err());
    }
}
