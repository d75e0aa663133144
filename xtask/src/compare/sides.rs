//! A measured commit: its sources, its binary and its benchmarks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::figures::{BENCHES, Bench, Figure};
use super::{Measured, ms};
use crate::cargo::{self, Profile, Repository};
use crate::guests;
use crate::processes::{self, Run};
use crate::responder::Responder;
use crate::startup::Contender;

/// How many turns a round measures after the first turn.
const LATER_TURNS: usize = 5;

pub(super) struct Side {
    name: String,
    binary: PathBuf,
    /// The executable and the package's folder of each benchmark; none if only a binary is compared.
    benches: BTreeMap<&'static str, (PathBuf, PathBuf)>,
}

impl Side {
    /// A binary that was built before.
    pub(super) fn of_binary(binary: &Path) -> Self {
        Self { name: binary.display().to_string(), binary: binary.to_owned(), benches: BTreeMap::new() }
    }

    /// This checkout, including uncommitted changes.
    pub(super) fn here(repository: &Repository) -> Result<Self> {
        print!("{}", guests::build_measured(repository)?);
        let binary = repository.build_hermes(Profile::Release)?;
        Ok(Self { name: "this checkout".into(), binary, benches: built(repository.cargo())? })
    }

    /// Another commit, in its own work tree and target folder below this checkout's. Both are kept for the next run.
    pub(super) fn checked_out(repository: &Repository, revision: &str) -> Result<Self> {
        let commit = commit(repository.root(), revision)?;
        let folder = repository.root().join("target/compare").join(&commit);
        if !folder.join("Cargo.toml").is_file() {
            let mut add = git(repository.root());
            add.args(["worktree", "add", "--force", "--detach"]).arg(&folder).arg(&commit);
            cargo::must(add)?;
        }
        let cargo = || {
            let mut cargo = repository.cargo();
            // The benchmarks look for the staged plugins in the folder's own target folder.
            cargo.current_dir(&folder).env_remove("CARGO_TARGET_DIR");
            cargo
        };
        let mut build = cargo();
        // The commit's own xtask knows how to build and stage it.
        build.args(["xtask", "build"]);
        cargo::must(build)?;
        let binary = folder.join("target/release/hermes");
        if !binary.is_file() {
            bail!("`cargo xtask build` of {commit} left no {}", binary.display());
        }
        Ok(Self { name: commit, binary, benches: built(cargo())? })
    }

    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Replaces the binary by a copy of it in this folder. How a file was written decides how it lies in the system's cache, and with it
    /// a tenth of a start. Copies are written alike.
    pub(super) fn copy_binary(&mut self, folder: &Path) -> Result<()> {
        let copy = folder.join(format!("{}-hermes", self.name.replace([' ', '/'], "-")));
        std::fs::copy(&self.binary, &copy).with_context(|| format!("cannot copy {}", self.binary.display()))?;
        self.binary = copy;
        Ok(())
    }

    /// Wall time and memory of `--version`, of the first turn in a new home, and of later turns.
    pub(super) fn starts(&self, server: &Responder) -> Result<Vec<Measured>> {
        let contender = Contender::new("", vec![self.binary.display().to_string()], server)?;
        let mut measured = figures("first turn in a new home", contender.run(&["-z", "hi"])?);
        for _ in 0..LATER_TURNS {
            measured.extend(figures("later turn", contender.run(&["-z", "hi"])?));
            measured.extend(figures("--version", contender.run(&["--version"])?));
        }
        Ok(measured)
    }

    /// Runs a benchmark once, and returns its figures and its peak memory.
    pub(super) fn bench(&self, bench: &Bench) -> Result<Vec<Measured>> {
        if self.benches.is_empty() {
            return Ok(Vec::new());
        }
        let (executable, package) =
            self.benches.get(bench.name).with_context(|| format!("{} has no benchmark {}", self.name, bench.name))?;
        let mut command = processes::command(executable)?;
        command.current_dir(package).args(bench.arguments).arg("--bench");
        let (run, printed) = processes::output(&mut command)?;
        let mut measured = bench.read(&printed);
        if measured.is_empty() {
            bail!("nothing in the output of the benchmark {} could be read:\n{printed}", bench.name);
        }
        if let Some(peak) = run.peak {
            measured.push((Figure { group: bench.name, what: "peak memory, MiB".into() }, mib(peak)));
        }
        Ok(measured)
    }
}

/// Builds the benchmarks in release.
fn built(mut cargo: Command) -> Result<BTreeMap<&'static str, (PathBuf, PathBuf)>> {
    cargo.args(["bench", "--no-run"]);
    for bench in BENCHES {
        cargo.args(["--package", bench.package, "--bench", bench.name]);
    }
    let artifacts = cargo::artifacts(cargo)?;
    let mut benches = BTreeMap::new();
    for bench in BENCHES {
        let found = artifacts.iter().find_map(|artifact| {
            let executable = artifact.executable.clone().filter(|_| artifact.name == bench.name)?;
            Some((executable, artifact.manifest.parent()?.to_owned()))
        });
        benches.insert(bench.name, found.with_context(|| format!("cargo built no benchmark {}", bench.name))?);
    }
    Ok(benches)
}

fn commit(root: &Path, revision: &str) -> Result<String> {
    let mut parse = git(root);
    parse.args(["rev-parse", "--verify", "--quiet", "--short=12"]).arg(format!("{revision}^{{commit}}"));
    let output = parse.output().context("cannot run git")?;
    if !output.status.success() {
        bail!("this repository has no commit `{revision}`: name one that `git log` shows");
    }
    Ok(String::from_utf8(output.stdout).context("git wrote what is not UTF-8")?.trim().to_owned())
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    git
}

fn figures(what: &str, run: Run) -> Vec<Measured> {
    let named = |what: String, value| (Figure { group: "start", what }, value);
    let mut measured = vec![named(format!("{what}, ms"), ms(run.wall))];
    measured.extend(run.processor.map(|time| named(format!("{what}, processor ms"), ms(time))));
    measured.extend(run.peak.map(|peak| named(format!("{what}, peak MiB"), mib(peak))));
    measured
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}
