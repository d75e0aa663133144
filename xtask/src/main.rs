//! `cargo xtask COMMAND`: builds, tests, demonstrates and measures the project.
//!
//! Guests are a workspace of their own and are built by a cargo of their own, with a target folder of its own: two
//! cargos that share one wait for each other for ever.

mod cargo;
mod checks;
mod demo;
mod fuzz;
mod guests;
mod natives;
mod processes;
mod responder;
mod startup;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Profile, Repository};

const HELP: &str = "\
usage: cargo xtask COMMAND

  demo          build what is needed and run the main job, without a key or a network
  test [ARGS]   every test; ARGS go to cargo nextest, or to cargo test where nextest is not installed
  verify [N]    N generated conversations through each engine, nothing lost (1000000); what it prints belongs into
                docs/measurements.md
  unrest [N]    N restarts, kills, forks and switches of engine and model over conversations (2000)
  fuzz [TARGET…] [--seconds N]
                looks for bytes that break what holds at a boundary, each target for so long (600), with cargo-fuzz
  lint          formatting and clippy, warnings refused, for the host and for the guests
  build         a complete release binary: target/release/hermes
  plugins       build the guests and stage them: target/bundled, target/test-guests
  bench startup [--peer COMMAND] [--runs N]
                wall time and memory of `hermes --version` and of a one-shot turn
  bench engines [ENGINE…] [MESSAGES…]
                what calls of engines take in sessions of 1,000, 10,000 and 100,000 messages
  bench plugins what a plugin costs: a crash and what comes after, a call, memory at rest, loading ten of them
  bench assembly
                putting a request together at 10, 1,000 and 10,000 messages
  bench store [--sizes N,N,…] [--crowd N] [--folder PATH]
                what it costs to append and to search in small and large stores";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let repository = Repository::find()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["plugins"] => guests::build(&repository).map(|staged| print!("{staged}")),
        ["build"] => build(&repository),
        ["demo"] => demo::run(&repository),
        ["test", passed_on @ ..] => checks::test(&repository, passed_on),
        ["verify"] => checks::verify(&repository, "1000000"),
        ["verify", conversations] => checks::verify(&repository, conversations),
        ["examples"] => checks::examples(&repository),
        ["unrest"] => checks::unrest(&repository, "2000"),
        ["unrest", steps] => checks::unrest(&repository, steps),
        ["fuzz", options @ ..] => fuzz::run(&repository, &fuzz::Options::parse(options)?),
        ["lint"] => checks::lint(&repository),
        ["bench", "startup", options @ ..] => startup::run(&repository, &startup::Options::parse(options)?),
        ["bench", "engines", options @ ..] => {
            print!("{}", guests::build(&repository)?);
            measured(&repository, "hermes-lab", "engines", options)
        }
        ["bench", "assembly"] => measured(&repository, "hermes-models", "assembly", &[]),
        ["bench", "plugins"] => {
            print!("{}", guests::build(&repository)?);
            measured(&repository, "hermes-runtime", "plugins", &[])
        }
        ["bench", "store", options @ ..] => measured(&repository, "hermes-store", "store", options),
        [] | ["help" | "-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        unknown => bail!("no such command: `{}`\n{HELP}", unknown.join(" ")),
    }
}

/// Runs a measurement that is kept beside what it measures.
fn measured(repository: &Repository, package: &str, name: &str, options: &[&str]) -> Result<()> {
    let mut bench = repository.cargo();
    bench.args(["bench", "--quiet", "--package", package, "--bench", name, "--"]).args(options);
    cargo::must(bench)
}

fn build(repository: &Repository) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Release)?;
    println!("built {}", binary.display());
    Ok(())
}
