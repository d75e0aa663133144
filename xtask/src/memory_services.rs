//! `memory-services`: the memory providers with a server against the packages that their vendors publish.
//!
//! It needs Python with `venv` and the Python package index, so it is a command of its own.

use anyhow::Result;

use crate::cargo::{Profile, Repository, must};
use crate::guests;
use crate::sdk_check::environment;

/// The tests, which are ignored in a usual run, and the variable with the Python that they start.
const TESTS: &str = "plugins::memory_services::";
const PYTHON: &str = "HERMES_MEMORY_PYTHON";

pub(crate) fn run(repository: &Repository) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let requirements = repository.root().join("tests/memory-services/requirements.txt");
    let python = environment(&repository.target().join("memory-services"), &requirements)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--", "--ignored", "--nocapture", TESTS]);
    tests.env("HERMES_BIN", binary).env(PYTHON, std::path::absolute(python)?);
    must(tests)
}
