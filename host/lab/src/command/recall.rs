//! `hermes lab recall`: compares memories on dialogues with labelled evidence.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hermes_app::{ChosenEmbeddings, EmbeddingChoice, Reporter as _, Setup};
use hermes_console::console::{Console, print};
use hermes_console::failure::{Failure, Kind};
use hermes_console::progress::Terminal;
use hermes_console::text;
use hermes_diagnostic::Diagnostic;
use hermes_plugin_host::{Catalog, Plugins, Selection};
use hermes_runtime::Runtime;
use serde_json::Value;

use super::{check_output, scratch, write};
use crate::recall::{self, Bm25, Contender, Only, Provider, RecallReport, RecallTool, SessionSearch};
use crate::report;

/// The engine whose tool is a column.
const ENGINE: &str = "lossless";
/// The embeddings of `config.yaml` on the command line.
const CONFIGURED: &str = "configured";

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
    /// Give memory providers vectors of texts: `configured` for auxiliary.embeddings of config.yaml, or the address of an
    /// OpenAI-compatible API, which gets no key
    #[arg(long, value_name = "configured|URL")]
    embeddings: Option<String>,
    /// The embedding model at the address of --embeddings
    #[arg(long, value_name = "NAME", requires = "embeddings")]
    embeddings_model: Option<String>,
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

impl RecallArguments {
    /// What computes vectors of texts, if the command line asks for any.
    fn embeddings(&self, setup: &Setup) -> Result<Option<ChosenEmbeddings>, Failure> {
        const WHAT: &str = "the embedding model on the command line is invalid";
        const FIX: &str = "write --embeddings https://HOST/v1 --embeddings-model NAME, or --embeddings configured";
        let refused = |why: String| Failure::new(Kind::Usage, WHAT, why, FIX);
        let Some(place) = self.embeddings.as_deref().map(str::trim) else { return Ok(None) };
        let chosen = match (place, &self.embeddings_model) {
            (CONFIGURED, None) => setup.embeddings(&EmbeddingChoice::Configured)?,
            (CONFIGURED, Some(_)) => {
                return Err(refused("--embeddings configured names the model of config.yaml".to_owned()));
            }
            (url, None) => return Err(refused(format!("no model is named for `{url}`"))),
            (url, Some(model)) => {
                let choice = EmbeddingChoice::At { base_url: url.to_owned(), model: model.clone() };
                setup.embeddings(&choice).map_err(|error| refused(format!("`{url}`: {error}")))?
            }
        };
        Ok(Some(chosen))
    }
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
    fn selection(&self, embedder: Option<&Embedder>) -> Selection {
        let sections = self.section.iter().map(|section| (self.name.clone(), section.clone()));
        let entries = embedder.and_then(Embedder::entry).into_iter().chain(sections).collect();
        let embedder = embedder.map(|embedder| embedder.name.clone());
        let alone = Selection::only(Selection::ENGINE);
        let disabled = alone.disabled.iter().filter(|name| **name != self.name).cloned().collect();
        Selection { memory: Some(self.name.clone()), embedder, entries, disabled, ..alone }
    }
}

/// A plugin that computes vectors of texts.
struct Embedder {
    name: String,
    /// Its section of `config.yaml`.
    section: Option<Value>,
}

impl Embedder {
    fn of(setup: &Setup, chosen: &ChosenEmbeddings) -> Option<Self> {
        let name = chosen.plugin.clone()?;
        let section = setup.config.settings().plugins.entries.0.get(&name).cloned();
        Some(Self { name, section: section.filter(Value::is_object) })
    }

    fn entry(&self) -> Option<(String, Value)> {
        Some((self.name.clone(), self.section.clone()?))
    }
}

fn load(selection: &Selection, runtime: &Runtime, catalog: &Catalog, console: Console) -> Result<Plugins, Failure> {
    let shown = Terminal::new(console);
    let compiling = |name: &str, elapsed| shown.compiling(name, elapsed);
    Ok(Plugins::select(runtime, catalog, selection, &compiling).map_err(Diagnostic::from)?)
}

pub(super) fn run(arguments: &RecallArguments, console: Console) -> Result<ExitCode, Failure> {
    check_output("plot", arguments.plot.as_deref())?;
    let choices = arguments.providers.iter().map(|value| Choice::parse(value)).collect::<Result<Vec<_>, _>>()?;
    let columns = [Bm25::NAME, SessionSearch::NAME, RecallTool::NAME];
    report::check_names(columns.into_iter().chain(choices.iter().map(|choice| choice.label.as_str())))?;
    let (dialogues, notes) = recall::read(&arguments.data, arguments.only.as_ref())?;
    let setup = super::setup()?;
    let embeddings = arguments.embeddings(&setup)?;
    let embedder = embeddings.as_ref().and_then(|chosen| Embedder::of(&setup, chosen));
    let (runtime, catalog) = (setup.runtime(), setup.catalog());
    let engine = load(&Selection::only(ENGINE), &runtime, &catalog, console)?;
    let providers =
        choices.iter().map(|choice| load(&choice.selection(embedder.as_ref()), &runtime, &catalog, console));
    let providers = providers.collect::<Result<Vec<_>, _>>()?;
    let mut contenders: Vec<Box<dyn Contender + '_>> =
        vec![Box::new(Bm25), Box::new(SessionSearch), Box::new(RecallTool::of(&engine))];
    for (choice, plugins) in choices.iter().zip(&providers) {
        let provider = Provider::new(choice.label.clone(), choice.name.clone(), plugins);
        contenders.push(Box::new(match &embeddings {
            Some(chosen) => provider.with_embeddings(&chosen.source),
            None => provider,
        }));
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
    let report = RecallReport::new(&dialogues, notes, outcomes, k, !arguments.no_timing)
        .with_embeddings(embeddings.map(|chosen| chosen.name));
    // Print the report first, so that it is not lost if a file cannot be written.
    let shown = match arguments.json {
        true => text::escaped(&report.to_json()) + "\n",
        false => console.report_text(&report.to_text()),
    };
    print(&shown)?;
    if let Some(path) = &arguments.plot {
        write("plot", path, recall::svg(&report), console)?;
    }
    let failed = report.columns.iter().any(|column| !column.failures.is_empty());
    Ok(if failed { Kind::General.into() } else { ExitCode::SUCCESS })
}
