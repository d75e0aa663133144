//! `sdk-check`: the request bodies of whole conversations against the types of the official Python SDKs.
//!
//! It needs Python with `venv` and the Python package index. The tests in `sessions::modes` need the same packages: there, a
//! server checks the requests while they arrive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::cargo::{Profile, Repository, must};
use crate::guests;

/// The variable with the Python that has the packages, for tests.
pub(crate) const PYTHON: &str = "HERMES_SDK_PYTHON";

/// The tests whose requests are checked: pictures, reasoning and refusals over several providers, damaged imports, a store of
/// an earlier version, a working day with tools and memory, and the Responses API.
const TESTS: [&str; 7] = [
    "sessions::modes::",
    "sessions::providers::",
    "sessions::responses::",
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

    let python = python(repository)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--"]).args(TESTS);
    tests.env("HERMES_BIN", binary).env("HERMES_RECORD_REQUESTS", &bodies).env(PYTHON, &python);
    must(tests)?;

    let mut check = Command::new(python);
    // The fixtures have requests that an earlier version sent.
    check
        .arg("-B")
        .arg(scripts(repository).join("check.py"))
        .arg(&bodies)
        .arg(repository.root().join("tests/it/fixtures"));
    must(check)
}

/// Generates odd replies, checks the requests behind them by the rules of the providers, and some by the types of the SDKs.
pub(crate) fn verify_history(repository: &Repository, replies: &str) -> Result<()> {
    let replies: u32 = replies.parse().context("the number of replies is not a number")?;
    let folder = repository.target().join("sdk-check");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bodies = std::path::absolute(folder.join("history.jsonl")).context("cannot name the file of requests")?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--lib", "--", "--nocapture", "turn::history_tests::"]);
    tests.env("HERMES_HISTORY_REPLIES", replies.to_string()).env("HERMES_HISTORY_BODIES", &bodies);
    must(tests)?;
    let mut check = Command::new(python(repository)?);
    check.arg("-B").arg(scripts(repository).join("history.py")).arg(&bodies);
    must(check)
}

/// The Python that has the official SDKs.
pub(crate) fn python(repository: &Repository) -> Result<PathBuf> {
    let python = environment(&repository.target().join("sdk-check"), &scripts(repository).join("requirements.txt"))?;
    std::path::absolute(&python).with_context(|| format!("cannot find {}", python.display()))
}

fn scripts(repository: &Repository) -> PathBuf {
    repository.root().join("tests/sdk")
}

/// A Python environment with pinned packages.
pub(crate) fn environment(folder: &Path, requirements: &Path) -> Result<PathBuf> {
    let environment = folder.join("python");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.is_file() {
        let mut create = Command::new(if cfg!(windows) { "python" } else { "python3" });
        create.args(["-m", "venv"]).arg(&environment);
        must(create)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    eprintln!("installing {} from the Python package index", requirements.display());
    let output = install.output().with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        bail!("{}", not_installed(requirements, &String::from_utf8_lossy(&output.stderr)));
    }
    Ok(python)
}

/// Why pip failed, from what it wrote: its last line names the package, and a warning before it a broken connection.
fn not_installed(requirements: &Path, said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.last().map_or("pip says nothing", |line| line.trim_start_matches("ERROR: "));
    let broken = lines.iter().find_map(|line| Some(line.split_once("connection broken by ")?.1));
    let connection = broken.map(|broken| format!("; the index cannot be reached: {broken}")).unwrap_or_default();
    format!(
        "cannot install {} from the Python package index: {last}{connection}; connect this machine to the index, or name a \
         mirror with PIP_INDEX_URL",
        requirements.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_cannot_be_reached_is_named_as_the_reason() {
        let said = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(Connection refused)': \
                    /simple/openai/\nERROR: Could not find a version\nERROR: No matching distribution found for openai\n";
        let reason = not_installed(Path::new("requirements.txt"), said);
        assert!(reason.contains("the index cannot be reached: 'NewConnectionError(Connection refused)"), "{reason}");
        assert!(reason.contains("No matching distribution found for openai"), "{reason}");
        let reason = not_installed(Path::new("requirements.txt"), "ERROR: no space left\n");
        assert!(reason.contains(": no space left; connect") && !reason.contains("reached"), "{reason}");
    }
}
