//! `sdk-check`: the request bodies of whole conversations against the types of the official Python SDKs.
//!
//! It needs Python with `venv` and the Python package index, so it is a command of its own and not a test.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::cargo::{Profile, Repository, must};
use crate::guests;

/// The tests whose requests are checked: pictures, reasoning and refusals over two providers, damaged imports, a store of
/// an earlier version, and a working day with tools and memory over both wire formats.
const TESTS: [&str; 5] = [
    "sessions::providers::",
    "sessions::damaged::",
    "sessions::released::",
    "cache::prefix::twenty",
    "cache::breakpoints::",
];

/// Runs the tests, which record their requests, and checks every request.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let folder = repository.target().join("sdk-check");
    let bodies = folder.join("bodies");
    if bodies.exists() {
        fs::remove_dir_all(&bodies).with_context(|| format!("cannot empty {}", bodies.display()))?;
    }
    fs::create_dir_all(&bodies).with_context(|| format!("cannot make {}", bodies.display()))?;

    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--"]).args(TESTS);
    tests.env("HERMES_BIN", binary).env("HERMES_RECORD_REQUESTS", &bodies);
    must(tests)?;

    let scripts = repository.root().join("tests/sdk");
    let python = environment(&folder, &scripts.join("requirements.txt"))?;
    let mut check = Command::new(python);
    // The fixtures have requests that an earlier version sent.
    check.arg(scripts.join("check.py")).arg(&bodies).arg(repository.root().join("tests/it/fixtures"));
    must(check)
}

/// A Python environment with pinned packages.
pub(crate) fn environment(folder: &Path, requirements: &Path) -> Result<std::path::PathBuf> {
    let environment = folder.join("python");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.is_file() {
        let mut create = Command::new(if cfg!(windows) { "python" } else { "python3" });
        create.args(["-m", "venv"]).arg(&environment);
        must(create)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    must(install)?;
    Ok(python)
}
