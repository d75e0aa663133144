//! `cargo xtask COMMAND`: builds, tests, demonstrates and measures the project.
//!
//! Guests are a separate workspace. They are built by a separate cargo with its own target folder, because two cargos that
//! share a target folder can wait for each other for ever.

// A build may panic.
#![allow(clippy::disallowed_methods)]

mod bindings;
mod cargo;
mod checks;
mod compare;
mod demo;
mod fuzz;
mod guests;
mod measurements;
mod memory_services;
mod natives;
mod processes;
mod responder;
mod round_trips;
mod sdk_check;
mod startup;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Profile, Repository};

const HELP: &str = "\
usage: cargo xtask COMMAND

  demo          build Hermes and demonstrate it, without a key or a network
  test [--long] [ARGS]
                run all tests, with --long also long seeds and whole matrices; the last line counts those that were left out for want of data, which are failures if
                HERMES_REQUIRE_TEST_DATA is set, as .ci/run does; ARGS go to cargo nextest, or to cargo test if nextest
                is not installed; uses Python 3 and its package index, for the official SDKs that check requests
  languages [rust|python|javascript|c|go|kept …]
                build, test, install and use new plugins in these languages (all), and print times, sizes and memory; needs
                their compilers, and downloads packages; `kept` builds the components in docs/plugins/kinds from JavaScript
  mistakes [rust|python|javascript|c|go …]
                make the mistakes that tests/mistakes lists for these languages (all) in new plugins, and print what finds each of them
                and what an author reads; HERMES_MISTAKE=NAME makes only those with this text in their name
  verify [N]    run N generated conversations through each engine and check that nothing is lost (1000000)
  verify-history [N]
                generate N odd replies (100000), and check that the next requests are valid for every provider, some of them against
                the types of the official Python SDKs; needs Python 3 and its package index
  chaos migration [MESSAGES] [--old BINARY]
                migrate a store of an older version with so many messages (1000000): kill the process at 50 moments, fill the
                disk, hold the store; BINARY, of commit 4403e97, then holds it in the middle of a turn
  chaos backends [N]
                N kills while turns are delivered to memory services that fail (1000)
  chaos install [N]
                N kills during install, update, grant and reload of components and native libraries (200)
  chaos [N]     N turns with random restarts, kills, forks and switches of engine and model (2000)
  fuzz [TARGET…] [--seconds N]
                fuzz each target for N seconds (600); needs cargo-fuzz
  attack [ARGS] run the tests that attack Hermes, the slow ones too; ARGS go to cargo nextest or cargo test
  sdk-check     record the requests of whole conversations and check them against the types of the official Python
                SDKs; needs Python 3 and its package index
  memory-services
                run the memory `mem0` with its vendor's library, and compare the requests of `honcho` with those of its
                vendor's client; needs Python 3 and its package index
  lint          check formatting and run clippy for the host and the guests; warnings are errors
  check [ARGS]  `lint` and `test` in one build: clippy compiles the crates for the tests
  build         build the release binary with all plugins, target/release/hermes, and the laboratory beside it, target/release/hermes-lab
  bindings      generate the Rust SDK's bindings to the contract again: sdk/rust/src/bindings, which git ignores; commands that build
                plugins do so by themselves if the contract changed
  plugins       build the plugins and stage them in target/bundled and target/test-guests
  bench startup [--peer COMMAND] [--runs N]
                measure time and memory of `hermes --version` and of a one-shot turn
  bench chat    measure the start of a chat on a terminal, and the time from a key to the screen while a reply streams
  bench engines [ENGINE…] [MESSAGES…]
                measure the calls of engines in sessions of 1,000, 10,000 and 100,000 messages
  bench plugins measure a call, a crash with recovery, an empty recall, idle memory and loading of plugins
  bench assembly
                measure the assembly of a request at 10, 1,000 and 10,000 messages
  bench sessions
                measure memory per idle session, and the time to wake one
  bench round-trips [--sizes N,N,…] [--engines NAME,NAME,…] [--trips N] [--binary PATH]
                measure the time from the end of a reply to the next request in sessions of 0, 1,000, 5,000 and 20,000
                messages, with a tool call and two commits in between
  bench store [--sizes N,N,…] [--crowd N] [--folder PATH]
                measure appending and searching in small and large stores
  bench checkpoints [--sizes N,N,…] [--rounds N] [--folder PATH]
                measure what a checkpoint adds to a command, next to `git status` on the same files
  bench questions [--sizes N,N,…] [--questions N] [--folder PATH]
                measure searches that answer questions, at 6,000 and 1,000,000 messages
  bench compare --base REVISION [--rounds N]
                run these benchmarks for an earlier commit and for this checkout in turns (5 rounds), and print ratios
  bench compare --base-binary PATH --binary PATH [--rounds N]
                the same for two release binaries, without what needs their sources
  measurements [TEXT…]
                run the commands that tests/evidence/measurements.md names (those with one of the texts), with a release build, and
                write what they print into the page";

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
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [processes::RELAY, command @ ..] = arguments.as_slice() {
        return processes::relay(command);
    }
    let repository = Repository::find()?;
    match arguments.as_slice() {
        ["bindings"] => bindings::write(&repository),
        ["plugins"] => guests::build(&repository).map(|staged| print!("{staged}")),
        ["build"] => build(&repository),
        ["demo"] => demo::run(&repository),
        ["test", passed_on @ ..] => checks::test(&repository, passed_on),
        ["verify"] => checks::verify(&repository, "1000000"),
        ["verify", conversations] => checks::verify(&repository, conversations),
        ["verify-history"] => sdk_check::verify_history(&repository, "100000"),
        ["verify-history", replies] => sdk_check::verify_history(&repository, replies),
        ["languages", languages @ ..] => checks::languages(&repository, languages),
        ["mistakes", languages @ ..] => checks::mistakes(&repository, languages),
        ["chaos"] => checks::chaos(&repository, "2000"),
        ["chaos", "migration", options @ ..] => checks::migration(&repository, options),
        ["chaos", "backends"] => checks::backends(&repository, "1000"),
        ["chaos", "backends", kills] => checks::backends(&repository, kills),
        ["chaos", "install"] => checks::installs(&repository, "200"),
        ["chaos", "install", kills] => checks::installs(&repository, kills),
        ["chaos", steps] => checks::chaos(&repository, steps),
        ["fuzz", options @ ..] => fuzz::run(&repository, &fuzz::Options::parse(options)?),
        ["attack", passed_on @ ..] => checks::attack(&repository, passed_on),
        ["sdk-check"] => sdk_check::run(&repository),
        ["memory-services"] => memory_services::run(&repository),
        ["lint"] => checks::lint(&repository),
        ["check", passed_on @ ..] => checks::check(repository, passed_on),
        ["measurements", wanted @ ..] => measurements::run(&repository, wanted),
        ["bench", "startup", options @ ..] => startup::run(&repository, &startup::Options::parse(options)?),
        ["bench", "chat"] => chat(&repository),
        ["bench", "compare", options @ ..] => compare::run(&repository, &compare::Options::parse(options)?),
        ["bench", "engines", options @ ..] => {
            print!("{}", guests::build_measured(&repository)?);
            measured(&repository, "hermes-lab", "engines", options)
        }
        ["bench", "assembly"] => measured(&repository, "hermes-models", "assembly", &[]),
        ["bench", "plugins"] => {
            print!("{}", guests::build_measured(&repository)?);
            measured(&repository, "hermes-runtime", "plugins", &[])
        }
        ["bench", "sessions"] => sessions(&repository),
        ["bench", "round-trips", options @ ..] => round_trips::run(&repository, &round_trips::Options::parse(options)?),
        ["bench", "store", options @ ..] => measured(&repository, "hermes-store", "store", options),
        ["bench", "checkpoints", options @ ..] => measured(&repository, "hermes-checkpoints", "checkpoints", options),
        ["bench", "questions", options @ ..] => measured(&repository, "hermes-store", "questions", options),
        [] | ["help" | "-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        unknown => bail!("no such command: `{}`\n{HELP}", unknown.join(" ")),
    }
}

/// Runs a benchmark of a package.
fn measured(repository: &Repository, package: &str, name: &str, options: &[&str]) -> Result<()> {
    let mut bench = repository.cargo();
    bench.args(["bench", "--quiet", "--package", package, "--bench", name, "--"]).args(options);
    cargo::must(bench)
}

/// Memory per idle session and the time to wake one: figures that a test of the agent prints.
fn sessions(repository: &Repository) -> Result<()> {
    let mut test = repository.cargo();
    test.args(["test", "--release", "--quiet", "--package", "hermes-agent", "--lib"]);
    test.args(["an_idle_session_takes_little_memory_and_wakes_quickly", "--", "--nocapture"]);
    cargo::must(test)
}

/// The release binary at a pseudo-terminal. What measures it needs no optimisation.
fn chat(repository: &Repository) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Release)?;
    let mut bench = repository.cargo();
    bench.args(["bench", "--quiet", "--workspace", "--profile", "dev", "--bench", "chat"]).env("HERMES_BIN", binary);
    cargo::must(bench)
}

fn build(repository: &Repository) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Release)?;
    println!("built {}", binary.display());
    Ok(())
}
