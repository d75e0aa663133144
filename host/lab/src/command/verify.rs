//! `hermes lab verify`: tests an engine on generated conversations.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use hermes_console::console::{Console, print};
use hermes_console::failure::{Failure, Kind};
use hermes_console::text;
use hermes_engine_trials::trace;
use hermes_engine_trials::verify::{self, Proof, Trial};

use super::choice::EngineChoice;
use super::{NONE, check_output, scratch, unwritten, write};

/// The engine and the conversations to generate.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArguments {
    /// The engine to test: its name, or a path, each with or without settings as in `lab replay --engine`
    #[arg(required_unless_present = "option")]
    engine: Option<String>,
    /// Same as the argument ENGINE
    #[arg(id = "option", long = "engine", value_name = "ENGINE", conflicts_with = "engine")]
    option: Option<String>,
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
    /// Write every event of the conversations to this file, as JSON lines; choose few conversations
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The engines of a run.
struct Engines {
    tested: EngineChoice,
    other: Option<EngineChoice>,
}

impl Engines {
    fn of(arguments: &VerifyArguments) -> Result<Self, Failure> {
        let tested = arguments.engine.as_ref().or(arguments.option.as_ref()).map_or("", String::as_str);
        let tested = EngineChoice::parse(tested)?;
        let other = arguments.other.as_deref().map(EngineChoice::parse).transpose()?;
        if tested.is(NONE) || other.as_ref().is_some_and(|other| other.is(NONE)) {
            let fix = "name an engine, such as `hermes lab verify lossless`; `none` is a column of `hermes lab replay`";
            return Err(Failure::new(Kind::Usage, "`none` cannot be tested", "`none` is not a context engine", fix));
        }
        Ok(Self { tested, other })
    }

    /// The engines as words of a command line.
    fn words(&self) -> String {
        let quoted = |engine: &EngineChoice| {
            let text = engine.to_string();
            shlex::try_quote(&text).map(|quoted| quoted.into_owned()).unwrap_or(text)
        };
        let other = self.other.as_ref().map_or_else(String::new, |other| format!(" --with {}", quoted(other)));
        quoted(&self.tested) + &other
    }
}

pub(super) fn run(arguments: &VerifyArguments, console: Console) -> Result<ExitCode, Failure> {
    let engines = Engines::of(arguments)?;
    check_output("trace", arguments.trace.as_deref())?;
    let setup = super::setup()?;
    let runtime = setup.runtime();
    let plugins = engines.tested.load(false, &runtime, &setup, console)?;
    let other = engines.other.as_ref().map(|other| other.load(false, &runtime, &setup, console)).transpose()?;
    let scratch = scratch()?;
    let jobs = arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
    let trial = Trial {
        plugins: &plugins,
        other: other.as_ref(),
        seed: arguments.seed,
        conversations: arguments.conversations,
        turns: arguments.turns,
        jobs,
        trace: arguments.trace.is_some(),
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
    print(&if arguments.json { text::json(&proof) } else { render(&proof, &engines) })?;
    if let Some(path) = &arguments.trace {
        let mut lines = Vec::new();
        trace::write_events(&mut lines, &proof.trace).map_err(|error| unwritten("trace", path, &error))?;
        write("trace", path, lines, console)?;
    }
    Ok(if proof.failed == 0 { ExitCode::SUCCESS } else { Kind::General.into() })
}

fn render(proof: &Proof, engines: &Engines) -> String {
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
        let (words, seed, turns) = (engines.words(), failure.seed, failure.turns);
        text.push_str(&format!(
            "seed {seed}, {turns} turns, event {}: {}\n  repeat: hermes lab verify {words} --seed {seed} --turns {turns} \
             --conversations 1\n",
            failure.event, failure.why
        ));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: VerifyArguments,
    }

    fn parse(words: &[&str]) -> Result<VerifyArguments, clap::Error> {
        Line::try_parse_from(std::iter::once("verify").chain(words.iter().copied())).map(|line| line.arguments)
    }

    #[test]
    fn no_conversations_and_no_engine_are_usage_errors() {
        for words in [&["lossless", "--conversations", "0"][..], &[], &["lossless", "--engine", "lossless"]] {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2);
        }
        for words in [&["none"][..], &["--engine", "none"], &["lossless", "--with", "none"]] {
            let failure = Engines::of(&parse(words).unwrap()).err().unwrap();
            assert_eq!(failure.kind, Kind::Usage, "{failure}");
            assert!(failure.fix.contains("lab verify lossless"), "{failure}");
        }
    }

    #[test]
    fn the_command_that_repeats_a_failure_quotes_settings() {
        let arguments = parse(&["--engine", "./my engine", "--with", "lossless={\"keep\": 5}"]).unwrap();
        let words = Engines::of(&arguments).unwrap().words();
        let again: Vec<String> = shlex::split(&words).unwrap();
        assert_eq!(again, ["./my engine", "--with", "lossless={\"keep\":5}"]);
    }
}
