//! `cargo xtask measurements`: runs the commands that `tests/evidence/measurements.md` names, and writes what they print into it.
//!
//! A measurement is a line `<!-- measured with: COMMAND -->` and the block of text below it. Everything else on the page is words.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{Profile, Repository};

const PAGE: &str = "tests/evidence/measurements.md";
const MARK: &str = "<!-- measured with: ";
const MARK_END: &str = " -->";
const FENCE: &str = "```text\n";
const FENCE_END: &str = "```\n";

/// Runs the measurements whose commands have one of the texts, or all of them, and replaces their blocks on the page.
pub(crate) fn run(repository: &Repository, wanted: &[&str]) -> Result<()> {
    let page = repository.root().join(PAGE);
    let before = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let binary = repository.build_hermes(Profile::Release)?;
    let folder = binary.parent().context("the binary has no folder")?;
    let path = std::env::join_paths(
        [folder.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let home = tempfile::tempdir()?;
    let recordings = hermes_test_data::shared();
    let mut number = 0;
    let measured = replaced(&before, |command| {
        if !wanted.is_empty() && !wanted.iter().any(|text| command.contains(text)) {
            return Ok(None);
        }
        number += 1;
        eprintln!("measuring with: {command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(repository.root()).env("PATH", &path).env("HERMES_HOME", home.path());
        shell.env("HERMES_SHARED", &recordings);
        let output = shell.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run `{command}`"))?;
        ensure!(output.status.success(), "`{command}` failed: {}", output.status);
        let text = String::from_utf8(output.stdout).context("it printed something that is no text")?;
        ensure!(!text.trim().is_empty(), "`{command}` printed nothing");
        Ok(Some(format!("{}\n{}", circumstances(repository)?, text.trim_end())))
    });
    let measured = measured?;
    if number == 0 {
        bail!("no measurement has a command with {}", wanted.join(" or "));
    }
    fs::write(&page, measured).with_context(|| format!("cannot write {}", page.display()))?;
    println!("{number} measurements are in {PAGE}");
    Ok(())
}

/// Of which commit and on what kind of machine something was measured.
fn circumstances(repository: &Repository) -> Result<String> {
    let git = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("git").args(arguments).current_dir(repository.root()).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut line = format!("commit {}", git(&["show", "-s", "--format=%h of %cs", "HEAD"])?);
    if !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        line.push_str(" with changes");
    }
    let cores = std::thread::available_parallelism()?;
    write!(line, ", {cores} cores")?;
    if let Some(load) =
        fs::read_to_string("/proc/loadavg").ok().and_then(|text| Some(text.split(' ').nth(1)?.to_owned()))
    {
        write!(line, ", load of the last 5 minutes {load}")?;
    }
    Ok(line)
}

/// The page with new blocks. `measure` gets a command, and returns the text of its block; `None` leaves the block as it is.
fn replaced(page: &str, mut measure: impl FnMut(&str) -> Result<Option<String>>) -> Result<String> {
    let mut written = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find(MARK) {
        let (before, from) = rest.split_at(at);
        written.push_str(before);
        let (line, below) = from.split_once('\n').context("a mark is the last line of the page")?;
        let command = line.strip_prefix(MARK).and_then(|line| line.strip_suffix(MARK_END));
        let command = command.with_context(|| format!("this mark has no end: {line}"))?;
        let body = below.strip_prefix(FENCE).with_context(|| format!("no block of text is below: {line}"))?;
        let end = body.find(FENCE_END).with_context(|| format!("the block below this line has no end: {line}"))?;
        let (old, after) = body.split_at(end);
        let text = measure(command)?.map_or_else(|| old.to_owned(), |text| text + "\n");
        ensure!(!text.contains(FENCE_END), "`{command}` printed the end of a block");
        write!(written, "{line}\n{FENCE}{text}{FENCE_END}")?;
        rest = after.strip_prefix(FENCE_END).unwrap_or_default();
    }
    written.push_str(rest);
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_blocks_of_the_wanted_commands_change() {
        let page = "# Page\n\nWords.\n<!-- measured with: one -->\n```text\nold 1\n```\nMore.\n<!-- measured with: two -->\n```text\nold 2\n```\n";
        let run = |command: &str| Ok((command == "two").then(|| "new\nlines".to_owned()));
        let expected = page.replace("old 2", "new\nlines");
        assert_eq!(replaced(page, run).expect("the page is sound"), expected);
        assert_eq!(replaced(&expected, |_| Ok(None)).expect("the page is sound"), expected);
    }

    #[test]
    fn a_mark_without_its_block_is_an_error() {
        for page in [
            "<!-- measured with: one -->\nwords\n",
            "<!-- measured with: one -->\n```text\nold\n",
            "<!-- measured with: one\n\n",
        ] {
            assert!(replaced(page, |_| Ok(None)).is_err(), "{page}");
        }
    }

    #[test]
    fn the_page_of_the_project_is_sound() {
        let page = Repository::find().expect("the repository").root().join(PAGE);
        let text = fs::read_to_string(page).expect("the page");
        let mut commands = Vec::new();
        let same = replaced(&text, |command| {
            commands.push(command.to_owned());
            Ok(None)
        });
        assert_eq!(same.expect("the page is sound"), text);
        assert!(commands.len() >= 4, "{commands:?}");
    }
}
