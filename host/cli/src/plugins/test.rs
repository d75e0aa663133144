//! `hermes plugins test`: checks a plugin against the contract of its kinds, in the real runtime.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use hermes_conformance::{Check, FixtureUse, HttpFixtures, ModelFixtures, Report, Settings, Subject, examine};
use hermes_diagnostic::Diagnostic;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::table::{Align, Table};
use crate::text;
use hermes_app::{CodeStorage, Home, process};

/// The form of the files of `--http` and `--model`, for `--help`.
const FIXTURES: &str = "\
Fixtures are YAML or JSON. The first rule that fits a request answers it:

  # --http
  - request: POST https://api.example.org/v1/items
    answer: {status: 201, json: {id: 1}}
  - request: GET https://api.example.org/*
    answer: [503, {text: found, delay: 300ms}]

  # --model
  - contains: ferry
    reply: The ferry leaves at 07:45.
  - reply: {error: unavailable, message: busy, retry_after: 2s}

A list of answers is given in turn, and the last one repeats. docs/plugins/testing.md lists all fields.";

#[derive(Debug, Args)]
#[command(after_long_help = FIXTURES)]
pub(crate) struct TestArguments {
    /// A component, a plugin's folder, or a project that has been built
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Test its native library instead of the component; it runs outside the sandbox
    #[arg(long)]
    native: bool,
    /// Allow draft interfaces of the contract, which a later version of Hermes may change or remove
    #[arg(long)]
    allow_draft: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Number of conversations to generate for a context engine
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    conversations: u64,
    /// Seed of the first conversation; it increases by 1 for each further one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Turns of each conversation [default: chosen by its seed]
    #[arg(long)]
    turns: Option<u32>,
    /// The plugin's configuration, as a JSON object
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Answer its HTTP requests from this file of fixtures; without it, every request fails with 503
    #[arg(long, value_name = "FIXTURES")]
    http: Option<PathBuf>,
    /// Answer its requests to models from this file of fixtures; without it, a stand-in picks lines of the request
    #[arg(long, value_name = "FIXTURES")]
    model: Option<PathBuf>,
}

pub(crate) fn run(arguments: &TestArguments, console: Console) -> Result<ExitCode, Failure> {
    let subject = match arguments.native {
        true => Subject::find_native(&arguments.path),
        false => Subject::find(&arguments.path, hermes_app::skill_reader()),
    }
    .map_err(Diagnostic::from)?;
    if let Some(component) = subject.component() {
        super::check_drafts(&subject.manifest, component, arguments.allow_draft, "the plugin was not tested")?;
    }
    super::warn_of_unknown_fields(&subject.manifest, console);
    let home = Home::locate()?;
    let code = CodeStorage::of(&home)?;
    let settings = Settings {
        conversations: arguments.conversations,
        seed: arguments.seed,
        turns: arguments.turns,
        config: arguments.config.clone(),
        http: arguments.http.as_deref().map(HttpFixtures::read).transpose().map_err(Diagnostic::from)?,
        model: arguments.model.as_deref().map(ModelFixtures::read).transpose().map_err(Diagnostic::from)?,
        jobs: thread::available_parallelism().map_or(1, Into::into),
    };
    let progress = |what: &str| {
        if console.screen && !arguments.json {
            console.note(what);
        }
    };
    let report = examine(&subject, &code.runtime(&home, process::compiler()), &settings, &progress);
    let report = report.map_err(Diagnostic::from)?;
    if arguments.json {
        let value = serde_json::to_value(&report).map_err(|error| {
            Failure::new(Kind::General, "the report cannot be written", error.to_string(), "remove --json")
        })?;
        print(&text::json(&value))?;
    } else {
        print(&render(&report, arguments, console))?;
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { Kind::General.into() })
}

fn render(report: &Report, arguments: &TestArguments, console: Console) -> String {
    let mut out = format!("{} {}: {}\n", text::line(&report.plugin), report.version, report.kinds.join(", "));
    let mut group = "";
    for check in &report.checks {
        if check.group != group {
            group = check.group;
            out.push_str(&format!("\n{group}\n"));
        }
        out.push_str(&line(check, arguments, console));
    }
    if !report.not_judged.is_empty() {
        out.push_str("\nnot judged, because the cause is named above\n");
        for check in &report.not_judged {
            out.push_str(&format!("  – {}: {} (see “{}”)\n", check.group, check.what, check.because_of));
        }
    }
    if !report.calls.is_empty() {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right]);
        table.head(["calls", "count", "median", "slowest"]);
        for calls in &report.calls {
            let (median, slowest) = (time(calls.median_us), time(calls.slowest_us));
            let cells = [calls.call.to_string(), calls.count.to_string(), median, slowest];
            table.row(cells.map(|cell| (Tone::Plain, cell)));
        }
        out.push_str(&format!("\n{}", table.text(console)));
    }
    if let Some(memory) = report.memory {
        let (enough, limit) = (memory.enough_mib, memory.limit_mib);
        out.push_str(&format!("memory: {enough} MiB needed, limit {limit} MiB\n"));
    }
    for (option, found) in [("http", &report.http), ("model", &report.model)] {
        if let Some(found) = found {
            out.push_str(&fixtures(option, found));
        }
    }
    if report.failures().any(|check| !check.raw.is_empty()) {
        out.push_str("crashes: `--json` has what the language's runtime wrote, below `raw`\n");
    }
    let failures = report.failures().count();
    let all = report.checks.len();
    out.push_str(&match failures {
        0 => format!("\n{}\n", console.paint(Tone::Good, &format!("all {all} checks passed"))),
        _ => format!("\n{}\n", console.paint(Tone::Bad, &format!("{failures} of {all} checks failed"))),
    });
    out
}

fn line(check: &Check, arguments: &TestArguments, console: Console) -> String {
    let (tone, sign) = if check.passed { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
    let sign = console.paint(tone, sign);
    let seen = text::line(&check.seen);
    if check.passed {
        let seen = if seen.is_empty() { String::new() } else { console.paint(Tone::Faint, &format!(" ({seen})")) };
        return format!("  {sign} {}{seen}\n", check.what);
    }
    let mut line = format!("  {sign} {}\n      why: {seen}\n", check.what);
    check.each.iter().for_each(|why| line.push_str(&format!("        {}\n", text::line(why))));
    if let Some(fix) = &check.fix {
        line.push_str(&format!("      fix: {fix}\n"));
    }
    if let Some(seed) = check.seed {
        let path = arguments.path.display();
        let config = arguments.config.as_ref().map_or_else(String::new, |config| format!(" --config '{config}'"));
        let native = if arguments.native { " --native" } else { "" };
        let draft = if arguments.allow_draft { " --allow-draft" } else { "" };
        let file = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map_or_else(String::new, |path| format!(" --{name} {}", path.display()))
        };
        let fixtures = file("http", &arguments.http) + &file("model", &arguments.model);
        line.push_str(&format!(
            "      repeat: hermes plugins test {path}{native}{draft} --seed {seed} --conversations 1{config}{fixtures}\n"
        ));
    }
    line
}

/// The most lines of a list.
const MOST: usize = 20;

/// What was used of the fixtures for an import.
fn fixtures(option: &str, found: &FixtureUse) -> String {
    let requests = text::counted(found.requests, "request");
    if found.stand_in {
        return format!(
            "{option}: {requests}, each answered with 503; `--{option} FIXTURES` answers from a file and tests the rest\n"
        );
    }
    let mut out = format!("{option}: {requests}\n");
    let mut list = |title: &str, lines: Vec<String>| {
        if lines.is_empty() {
            return;
        }
        out.push_str(&format!("  {title}:\n"));
        let left = lines.len().saturating_sub(MOST);
        lines.iter().take(MOST).for_each(|line| out.push_str(&format!("    {}\n", text::line(line))));
        if left > 0 {
            out.push_str(&format!("    and {left} more\n"));
        }
    };
    list("unused fixtures", found.unused.clone());
    let unmatched = found.unmatched.iter().map(|unmatched| match unmatched.count {
        1 => unmatched.request.clone(),
        count => format!("{} ({count} times)", unmatched.request),
    });
    list("requests without a fixture", unmatched.collect());
    out
}

fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_shows_cause_fix_and_the_command_that_repeats_it() {
        let arguments = TestArguments {
            path: "./mine".into(),
            native: false,
            allow_draft: false,
            json: false,
            conversations: 300,
            seed: 1,
            turns: None,
            config: Some(r#"{"keep":1}"#.to_owned()),
            http: Some("http.yaml".into()),
            model: None,
        };
        let check = |passed: bool| Check {
            group: "plans",
            what: "keep the rules",
            passed,
            seen: "message 3\u{1b}[2J is lost".to_owned(),
            each: if passed { Vec::new() } else { vec!["`one`: lost".to_owned()] },
            raw: Vec::new(),
            fix: (!passed).then_some("cover it".into()),
            seed: (!passed).then_some(7),
        };
        let console = Console::plain(true);
        let failed = line(&check(false), &arguments, console);
        let expected = "  ✗ keep the rules\n      why: message 3\\u{1b}[2J is lost\n        `one`: lost\n      fix: cover it\n      repeat: hermes \
                        plugins test ./mine --seed 7 --conversations 1 --config '{\"keep\":1}' --http http.yaml\n";
        assert_eq!(failed.replace('\u{fffd}', ""), expected);
        assert!(line(&check(true), &arguments, console).starts_with("  ✓ keep the rules (message 3\\u{1b}[2J is"));
    }

    #[test]
    fn times_have_a_suitable_unit() {
        assert_eq!([999, 1_500, 2_100_000].map(time), ["999 µs", "1.5 ms", "2.1 s"]);
    }
}
