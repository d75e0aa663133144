//! `bench compare`: the same measurements of this checkout and of an earlier commit, in one run.
//!
//! Both are built in release, or named as binaries; of binaries only what a user notices is measured. Every round measures one after the other, so that a busy machine slows both, and the
//! table compares medians over the rounds.

mod days;
mod figures;
mod sides;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cargo::Repository;
use crate::compare::days::Days;
use crate::compare::figures::{Figure, Table};
use crate::compare::sides::Side;
use crate::responder::Responder;

/// A figure that is worse than the base's by more than this factor is marked.
const TOLERATED: f64 = 1.1;

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    base: Base,
    rounds: usize,
}

/// What this checkout is compared with.
#[derive(Debug, PartialEq, Eq)]
enum Base {
    Revision(String),
    /// A binary, and the binary to compare with it.
    Binaries(PathBuf, PathBuf),
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        let (mut base, mut base_binary, mut binary, mut rounds) = (None, None, None, 5);
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let value = *rest.next().with_context(|| format!("`{option}` needs a value"))?;
            match *option {
                "--base" => base = Some(value.to_owned()),
                "--base-binary" => base_binary = Some(PathBuf::from(value)),
                "--binary" => binary = Some(PathBuf::from(value)),
                "--rounds" => {
                    rounds = value.parse().with_context(|| format!("`--rounds {value}` is not a number"))?;
                }
                unknown => bail!(
                    "no such option: `{unknown}`; the options are --base REVISION, or --base-binary PATH with --binary PATH, and --rounds N"
                ),
            }
        }
        if rounds == 0 {
            bail!("`--rounds 0` measures nothing");
        }
        let base = match (base, base_binary, binary) {
            (Some(revision), None, None) => Base::Revision(revision),
            (None, Some(base), Some(now)) => Base::Binaries(base, now),
            _ => bail!(
                "name the commit to compare with: --base REVISION, or two binaries: --base-binary PATH --binary PATH"
            ),
        };
        Ok(Self { base, rounds })
    }
}

/// Builds both sides, measures them in turns, and prints a table with a ratio for each figure.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let mut sides = match &options.base {
        Base::Revision(revision) => [Side::checked_out(repository, revision)?, Side::here(repository)?],
        Base::Binaries(base, now) => [Side::of_binary(base), Side::of_binary(now)],
    };
    let copies = tempfile::tempdir().context("cannot make a temporary folder")?;
    for side in &mut sides {
        side.copy_binary(copies.path())?;
    }
    let days = [Days::prepare(sides[0].binary())?, Days::prepare(sides[1].binary())?];
    let server = Responder::start()?;
    let mut tables = [Table::default(), Table::default()];
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for (side, table) in sides.iter().zip(&mut tables) {
            table.add(side.starts(&server)?);
        }
        for ((side, days), table) in sides.iter().zip(&days).zip(&mut tables) {
            table.add(days.measure(side.binary())?);
        }
        for bench in figures::BENCHES {
            for (side, table) in sides.iter().zip(&mut tables) {
                table.add(side.bench(bench)?);
            }
        }
    }
    let [base, now] = &tables;
    println!("{} rounds, interleaved; medians; base: {}\n", options.rounds, sides[0].name());
    println!("{:<64} {:>12} {:>12} {:>7}", "", "base", "now", "ratio");
    let mut worse = Vec::new();
    for figure in base.names() {
        let (Some(before), Some(after)) = (base.median(figure), now.median(figure)) else {
            println!("{figure:<64} measured only in the base");
            continue;
        };
        let ratio = after / before;
        let mark = if figure.is_worse(ratio, TOLERATED) { "worse" } else { "" };
        if !mark.is_empty() {
            worse.push(figure);
        }
        println!("{:<64} {before:>12.3} {after:>12.3} {ratio:>6.2}x {mark}", figure.to_string());
    }
    for figure in now.names().filter(|figure| base.median(figure).is_none()) {
        println!("{figure:<64} measured only now");
    }
    println!("\n{} of {} figures are worse by more than a tenth", worse.len(), base.names().count());
    Ok(())
}

/// Milliseconds.
fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A figure of one run with its value.
type Measured = (Figure, f64);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_required_and_wrong_options_are_named() {
        let options = Options::parse(&["--rounds", "3", "--base", "v0.1"]).unwrap();
        assert_eq!(options, Options { base: Base::Revision("v0.1".into()), rounds: 3 });
        for (wrong, named) in [
            (&[][..], "--base"),
            (&["--base"], "--base"),
            (&["--base-binary", "old"], "--binary"),
            (&["--base", "x", "--rounds", "0"], "0"),
            (&["--runs", "3"], "--runs"),
        ] {
            let error = format!("{:#}", Options::parse(wrong).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }
}
