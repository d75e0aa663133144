//! `fuzz`: runs the targets in `fuzz/`, which check the rules at the boundaries with untrusted input.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bindings;
use crate::cargo::{Repository, succeeds};

/// Limits of memory in MiB, in total and for one allocation: a small input must not use more.
const MEMORY: &str = "-rss_limit_mb=2048";
const ALLOCATION: &str = "-malloc_limit_mb=512";
/// Time limit for one input in seconds. Every input takes milliseconds, or somewhat more on a busy machine.
const TIMEOUT: &str = "-timeout=30";

/// Turns off entropic scheduling, which takes most of the time for targets that run a compiler.
const SCHEDULE: &str = "-entropic=0";

/// The targets, and the duration for each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options<'a> {
    targets: Vec<&'a str>,
    seconds: u64,
}

impl<'a> Options<'a> {
    pub(crate) fn parse(arguments: &[&'a str]) -> Result<Self> {
        let mut options = Self { targets: Vec::new(), seconds: 600 };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--seconds" => {
                    let number = arguments.next().context("--seconds needs a number")?;
                    let seconds = number.parse().ok().filter(|seconds| *seconds > 0);
                    options.seconds = seconds.with_context(|| format!("`{number}` is not a number of seconds"))?;
                }
                option if option.starts_with('-') => bail!("no such option: `{option}`"),
                target => options.targets.push(target),
            }
        }
        Ok(options)
    }
}

/// The statistics of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    executions: String,
    coverage: String,
    features: String,
    peak: String,
}

impl Outcome {
    /// Reads a line of the fuzzer's output. Later values replace earlier ones.
    fn read_line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            let figure = match word {
                "stat::number_of_executed_units:" => &mut self.executions,
                "stat::peak_rss_mb:" => &mut self.peak,
                "cov:" => &mut self.coverage,
                "ft:" => &mut self.features,
                _ => continue,
            };
            if let Some(number) = words.next() {
                number.clone_into(figure);
            }
        }
    }
}

/// Runs the targets one after the other, and prints a row of `tests/evidence/measurements.md` for each.
pub(crate) fn run(repository: &Repository, options: &Options<'_>) -> Result<()> {
    let mut version = repository.cargo();
    version.args(["fuzz", "--version"]);
    if !succeeds(version) {
        bail!("cargo-fuzz is missing: install it with `cargo install cargo-fuzz --locked`");
    }
    let known = targets(repository.root())?;
    if let Some(unknown) = options.targets.iter().find(|target| !known.iter().any(|name| name == *target)) {
        bail!("no such target: `{unknown}`; there are: {}", known.join(", "));
    }
    let chosen: Vec<&str> = match options.targets.as_slice() {
        [] => known.iter().map(String::as_str).collect(),
        some => some.to_vec(),
    };
    // The host contains the Rust SDK, for new plugins.
    bindings::ensure(repository)?;
    let mut rows = String::new();
    let mut failed = Vec::new();
    for target in chosen {
        let (outcome, whole) = fuzz(repository, target, options.seconds)?;
        let Outcome { executions, coverage, features, peak } = outcome;
        rows.push_str(&format!(
            "| `{target}` | {executions} | {} | {coverage} | {features} | {peak} | {} |\n",
            options.seconds,
            if whole { "none" } else { "**found**" }
        ));
        if !whole {
            failed.push(target);
        }
    }
    println!(
        "| target | executions | seconds | edges | features | peak MiB | failures |\n|---|---|---|---|---|---|---|"
    );
    print!("{rows}");
    if !failed.is_empty() {
        bail!("a target failed: {}; the inputs are in fuzz/artifacts", failed.join(", "));
    }
    Ok(())
}

fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("cannot open {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Runs one target. Returns its statistics, and whether it found no failure.
fn fuzz(repository: &Repository, target: &str, seconds: u64) -> Result<(Outcome, bool)> {
    let mut fuzzer = command(repository, target);
    let seeds = repository.root().join("fuzz/seeds").join(target);
    if seeds.is_dir() {
        // New inputs go to the first folder; the seeds stay unchanged.
        let corpus = repository.root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
        fuzzer.arg(corpus).arg(seeds);
    }
    fuzzer.args([
        "--",
        &format!("-max_total_time={seconds}"),
        "-print_final_stats=1",
        SCHEDULE,
        MEMORY,
        ALLOCATION,
        TIMEOUT,
    ]);
    eprintln!("$ cargo fuzz run {target}: {seconds} s");
    let mut child = fuzzer.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot run cargo fuzz")?;
    let mut outcome = Outcome::default();
    if let Some(output) = child.stderr.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("cannot read the output of the fuzzer")?;
            let line = String::from_utf8_lossy(&line);
            outcome.read_line(&line);
            eprintln!("{line}");
        }
    }
    let whole = child.wait().context("cannot wait for cargo fuzz")?.success();
    if outcome.executions.is_empty() && outcome.coverage.is_empty() {
        bail!("the target `{target}` did not run");
    }
    Ok((outcome, whole))
}

fn command(repository: &Repository, target: &str) -> Command {
    let mut command = repository.cargo();
    command.args(["fuzz", "run", "--fuzz-dir", "fuzz", "--target-dir"]).arg(repository.fuzz_target());
    // The sanitizers are unstable, but the stable compiler has them too.
    command.arg(target).env("RUSTC_BOOTSTRAP", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_options_are_distinguished() {
        let all = Options { targets: Vec::new(), seconds: 600 };
        assert_eq!(Options::parse(&[]).expect("nothing is all"), all);
        let some = Options { targets: vec!["site", "lock"], seconds: 5 };
        assert_eq!(Options::parse(&["site", "--seconds", "5", "lock"]).expect("both"), some);
        for bad in [&["--seconds"][..], &["--seconds", "0"], &["--seconds", "ten"], &["--minutes", "1"]] {
            assert!(Options::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_target_has_a_row_in_the_measurements() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the repository");
        let page = std::fs::read_to_string(root.join("tests/evidence/measurements.md")).expect("the page can be read");
        for target in targets(root).expect("the targets can be listed") {
            assert!(
                page.contains(&format!("\n| `{target}` | ")),
                "tests/evidence/measurements.md has no row for {target}"
            );
        }
    }

    #[test]
    fn later_figures_replace_earlier_ones() {
        let mut outcome = Outcome::default();
        for line in [
            "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 40Mb",
            "#900\tDONE   cov: 340 ft: 1200 corp: 99/2Kb lim: 8 exec/s: 90 rss: 60Mb",
            "stat::number_of_executed_units: 900",
            "stat::peak_rss_mb:              61",
        ] {
            outcome.read_line(line);
        }
        let [executions, coverage, features, peak] = ["900", "340", "1200", "61"].map(str::to_owned);
        assert_eq!(outcome, Outcome { executions, coverage, features, peak });
    }

    #[test]
    fn every_target_is_known_to_cargo() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).expect("the manifest is there");
        let names = targets(&root).expect("the targets are there");
        assert!(!names.is_empty());
        for name in &names {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), names.len());
    }
}
