//! `bench startup`: measures the start of Hermes, and of a peer for comparison.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cargo::{Profile, Repository};
use crate::guests;
use crate::processes::{self, Run, measure};
use crate::responder::Responder;

/// When and how the peer was measured. Its figures are from another day, so no ratio is computed from them.
const RECORDED: &str = "Hermes Agent 0.19.0, 2026-11-21, two busy cores";

/// A measured command, with its target and the recorded figures of the peer.
struct Case {
    arguments: &'static [&'static str],
    aim_ms: f64,
    recorded: &'static str,
}

const CASES: [Case; 2] = [
    Case { arguments: &["--version"], aim_ms: 10.0, recorded: "346 ms, 41 MiB" },
    Case { arguments: &["-z", "hi"], aim_ms: 60.0, recorded: "2300 to 3100 ms, 115 MiB" },
];
const AIM_MIB: f64 = 40.0;

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    peer: Option<String>,
    runs: usize,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self { peer: None, runs: 15 };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let value = rest.next().with_context(|| format!("`{option}` needs a value"));
            match *option {
                "--peer" => options.peer = Some((*value?).to_owned()),
                "--runs" => {
                    let value = value?;
                    options.runs = value.parse().with_context(|| format!("`--runs {value}` is not a number"))?;
                }
                unknown => bail!("no such option: `{unknown}`; there are --peer COMMAND and --runs N"),
            }
        }
        if options.runs == 0 {
            bail!("`--runs 0` measures nothing");
        }
        Ok(options)
    }
}

/// A program with its own home folder.
pub(crate) struct Contender {
    name: &'static str,
    program: Vec<String>,
    home: tempfile::TempDir,
}

impl Contender {
    pub(crate) fn new(name: &'static str, program: Vec<String>, server: &Responder) -> Result<Self> {
        let home = tempfile::tempdir().context("cannot make a temporary folder")?;
        let config = format!(
            "model:\n  provider: custom\n  default: bench\n  base_url: {}\n  api_key: not-a-key\n  context_length: 128000\n",
            server.url()
        );
        fs::write(home.path().join("config.yaml"), config)?;
        fs::create_dir(home.path().join("workspace"))?;
        Ok(Self { name, program, home })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Run> {
        let (program, first) = self.program.split_first().context("the command is empty")?;
        let mut command = processes::command(program)?;
        command.args(first).args(arguments).current_dir(self.home.path().join("workspace"));
        command.env_clear().env("HOME", self.home.path()).env("HERMES_HOME", self.home.path());
        for kept in ["PATH", "SYSTEMROOT", "TMPDIR"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.env("LANG", "C.UTF-8").env("TZ", "UTC");
        measure(&mut command)
    }
}

/// Builds the release binary, measures it and the peer if there is one, and prints the table.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Release)?;
    let server = Responder::start()?;
    let mut contenders = vec![Contender::new("hermes", vec![binary.display().to_string()], &server)?];
    if let Some(peer) = &options.peer {
        contenders.push(Contender::new("peer", peer.split_whitespace().map(str::to_owned).collect(), &server)?);
    }

    // The first run creates the home and fills the caches, so the later runs are warm starts.
    let mut measured = vec![vec![Vec::with_capacity(options.runs); CASES.len()]; contenders.len()];
    for round in 0..=options.runs {
        for (contender, measured) in contenders.iter().zip(&mut measured) {
            for (case, measured) in CASES.iter().zip(measured) {
                let run = contender.run(case.arguments)?;
                if round > 0 {
                    measured.push(run);
                }
            }
        }
    }

    println!("\n{} runs of each, interleaved, warm; {} bytes", options.runs, size(&binary)?);
    println!("recorded: {RECORDED}\n");
    println!(
        "{:<8} {:<10} {:>26} {:>10}   {:<26} recorded peer",
        "", "command", "wall ms, median [min-max]", "peak MiB", "aim"
    );
    for (number, case) in CASES.iter().enumerate() {
        let own = Figures::of(&measured[0][number]);
        let aim = format!(
            "{} ms {}, {AIM_MIB} MiB {}",
            case.aim_ms,
            verdict(own.median <= case.aim_ms),
            verdict(own.peak <= AIM_MIB)
        );
        println!("{} {aim:<26} {}", row(contenders[0].name, case, &own), case.recorded);
        if let (Some(contender), Some(peer)) = (contenders.get(1), measured.get(1)) {
            let peer = Figures::of(&peer[number]);
            println!("{}", row(contender.name, case, &peer));
            println!(
                "{:19} {:>25.1}x {:>9.1}x   of the peer to hermes",
                "",
                peer.median / own.median,
                peer.peak / own.peak
            );
        }
    }
    Ok(())
}

fn row(name: &str, case: &Case, figures: &Figures) -> String {
    let wall = format!("{:.1} [{:.1}-{:.1}]", figures.median, figures.min, figures.max);
    format!("{name:<8} {:<10} {wall:>26} {:>10.1}  ", case.arguments.join(" "), figures.peak)
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn size(binary: &Path) -> Result<u64> {
    Ok(fs::metadata(binary).with_context(|| format!("cannot read {}", binary.display()))?.len())
}

/// Statistics in milliseconds and MiB.
#[derive(Debug, PartialEq)]
struct Figures {
    median: f64,
    min: f64,
    max: f64,
    peak: f64,
}

impl Figures {
    fn of(runs: &[Run]) -> Self {
        let mut walls: Vec<Duration> = runs.iter().map(|run| run.wall).collect();
        walls.sort();
        let ms = |wall: Option<&Duration>| wall.map_or(f64::NAN, |wall| wall.as_secs_f64() * 1000.0);
        let middle = walls.len() / 2;
        let median = if walls.len() % 2 == 1 {
            ms(walls.get(middle))
        } else {
            (ms(walls.get(middle.wrapping_sub(1))) + ms(walls.get(middle))) / 2.0
        };
        let peak = runs.iter().filter_map(|run| run.peak).max().map_or(f64::NAN, |peak| peak as f64 / 1024.0 / 1024.0);
        Self { median, min: ms(walls.first()), max: ms(walls.last()), peak }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_median_the_minimum_and_the_maximum() {
        let run =
            |ms, mib: u64| Run { wall: Duration::from_millis(ms), processor: None, peak: Some(mib * 1024 * 1024) };
        let odd = Figures::of(&[run(30, 5), run(10, 9), run(20, 7)]);
        assert_eq!(odd, Figures { median: 20.0, min: 10.0, max: 30.0, peak: 9.0 });
        assert_eq!(Figures::of(&[run(30, 5), run(10, 9)]).median, 20.0);
    }

    #[test]
    fn options_are_read_in_any_order_and_errors_name_them() {
        let options = Options::parse(&["--runs", "3", "--peer", "old --hermes"]).unwrap();
        assert_eq!(options, Options { peer: Some("old --hermes".into()), runs: 3 });
        for (wrong, named) in
            [(&["--run", "3"][..], "--run"), (&["--runs"], "--runs"), (&["--runs", "0"], "0"), (&["--runs", "x"], "x")]
        {
            let error = format!("{:#}", Options::parse(wrong).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
