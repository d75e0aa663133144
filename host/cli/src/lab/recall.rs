//! `hermes lab recall`: compares memories on dialogues with labelled evidence.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hermes_app::Reporter as _;
use hermes_lab::recall::{self, Bm25, Contender, Only, Provider, RecallReport, RecallTool, SessionSearch};
use hermes_lab::report;
use hermes_plugin_host::{Catalog, Plugins, PluginsError, Selection};
use hermes_runtime::Runtime;
use serde_json::Value;

use super::{can_be_written, scratch, unwritten};
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::progress::Terminal;
use crate::text;

/// The engine whose tool is a column.
const ENGINE: &str = "lossless";

/// The dialogues and the memories to compare.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecallArguments {
    /// Files of LoCoMo, of its audit with corrections, or of LongMemEval; folders with chats of BEAM and their questions
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// Also measure a memory provider by name, with settings of its own as NAME='{"key":1}'
    #[arg(long = "provider", value_name = "PROVIDER")]
    providers: Vec<String>,
    /// Of a file with several dialogues, only those with these numbers, starting at 0, such as 0,5-9
    #[arg(long, value_name = "NUMBERS")]
    only: Option<Only>,
    /// The number of hits of an answer
    #[arg(long, value_name = "HITS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    k: u16,
    /// Leave out times and sizes on the disk, which differ between runs
    #[arg(long)]
    no_timing: bool,
    /// Plot evidence recall over the number of hits to an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A memory provider of the command line.
struct Choice {
    /// As it was written, which names the column.
    label: String,
    name: String,
    section: Option<Value>,
}

impl Choice {
    fn parse(value: &str) -> Result<Self, Failure> {
        let value = value.trim();
        let refused = |why: String| {
            let fix = "write --provider NAME, or with settings: --provider 'NAME={\"key\": 1}'";
            Failure::new(Kind::Usage, "the memory provider on the command line is invalid", why, fix)
        };
        let (name, json) = value.split_once('=').map_or((value, None), |(name, json)| (name.trim_end(), Some(json)));
        if name.is_empty() {
            return Err(refused(format!("`{value}` names no memory provider")));
        }
        let section = json.map(|json| match serde_json::from_str(json) {
            Ok(section @ Value::Object(_)) => Ok(section),
            Ok(_) => Err(refused(format!("the settings of `{name}` are not a JSON object"))),
            Err(error) => Err(refused(format!("the settings of `{name}` are not a JSON object: {error}"))),
        });
        let section = section.transpose()?;
        let label = section.as_ref().map_or_else(|| name.to_owned(), |section| format!("{name}={section}"));
        Ok(Self { label, name: name.to_owned(), section })
    }

    /// Beside an engine that the host needs. No secret of the user is passed to it, so that no dialogue reaches an account.
    fn selection(&self) -> Selection {
        let entries = self.section.iter().map(|section| (self.name.clone(), section.clone())).collect();
        Selection { memory: Some(self.name.clone()), entries, ..Selection::only(Selection::ENGINE) }
    }
}

fn load(
    selection: &Selection,
    runtime: &Runtime,
    catalog: &Catalog,
    console: Console,
) -> Result<Plugins, PluginsError> {
    let shown = Terminal::new(console);
    let compiling = |name: &str, elapsed| shown.compiling(name, elapsed);
    Plugins::select(runtime, catalog, selection, &compiling)
}

pub(super) fn run(arguments: &RecallArguments, console: Console) -> Result<ExitCode, Failure> {
    if let Some(path) = &arguments.plot {
        can_be_written(path).map_err(|error| unwritten("plot", path, &error))?;
    }
    let choices = arguments.providers.iter().map(|value| Choice::parse(value)).collect::<Result<Vec<_>, _>>()?;
    let columns = [Bm25::NAME, SessionSearch::NAME, RecallTool::NAME];
    report::check_names(columns.into_iter().chain(choices.iter().map(|choice| choice.label.as_str())))?;
    let (dialogues, notes) = recall::read(&arguments.data, arguments.only.as_ref())?;
    let setup = launch::read()?;
    let (runtime, catalog) = (setup.runtime(), setup.catalog());
    let engine = load(&Selection::only(ENGINE), &runtime, &catalog, console)?;
    let providers = choices.iter().map(|choice| load(&choice.selection(), &runtime, &catalog, console));
    let providers = providers.collect::<Result<Vec<_>, _>>()?;
    let mut contenders: Vec<Box<dyn Contender + '_>> =
        vec![Box::new(Bm25), Box::new(SessionSearch), Box::new(RecallTool::of(&engine))];
    for (choice, plugins) in choices.iter().zip(&providers) {
        contenders.push(Box::new(Provider::new(choice.label.clone(), choice.name.clone(), plugins)));
    }
    let k = usize::from(arguments.k);
    let scratch = scratch()?;
    let mut outcomes = Vec::new();
    // One after the other, because their times are measured.
    for (number, contender) in contenders.iter().enumerate() {
        let folder = scratch.path().join(number.to_string());
        outcomes.push(recall::compare(contender.as_ref(), &dialogues, k, &folder).map_err(|error| {
            let fix = "free some space, or set TMPDIR to another folder";
            Failure::new(Kind::General, "the temporary folder cannot be used", error.to_string(), fix)
        })?);
    }
    let report = RecallReport::new(&dialogues, notes, outcomes, k, !arguments.no_timing);
    // Print the report first, so that it is not lost if a file cannot be written.
    print(&if arguments.json { text::escaped(&report.to_json()) + "\n" } else { report.to_text() })?;
    if let Some(path) = &arguments.plot {
        fs::write(path, recall::svg(&report)).map_err(|error| unwritten("plot", path, &error))?;
    }
    let failed = report.columns.iter().any(|column| !column.failures.is_empty());
    Ok(if failed { Kind::General.into() } else { ExitCode::SUCCESS })
}
