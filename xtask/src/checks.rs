//! `test`, `lint` and the longer checks of a change.

use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use hermes_test_data::{LONG, LeftOut, NOTES, REQUIRED};

use crate::cargo::{Profile, Repository, must, succeeds};
use crate::guests;
use crate::sdk_check;

/// Runs the chaos test with this many steps.
pub(crate) fn chaos(repository: &Repository, steps: &str) -> Result<()> {
    steps.parse::<u32>().with_context(|| format!("`{steps}` is not a number of steps"))?;
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--", "--nocapture", "unrest::"]);
    tests.env("HERMES_BIN", binary).env("HERMES_UNREST", steps);
    must(tests)
}

/// Kills Hermes so many times while it delivers turns to memory services.
pub(crate) fn backends(repository: &Repository, kills: &str) -> Result<()> {
    kills.parse::<u32>().with_context(|| format!("`{kills}` is not a number of kills"))?;
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--", "--nocapture", "chaos::backends::"]);
    tests.env("HERMES_BIN", binary).env("HERMES_KILLED_DELIVERIES", kills);
    must(tests)
}

/// Kills Hermes so many times while plugins are installed, updated, granted and reloaded.
pub(crate) fn installs(repository: &Repository, kills: &str) -> Result<()> {
    kills.parse::<u32>().with_context(|| format!("`{kills}` is not a number of kills"))?;
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--", "--nocapture", "chaos::installs::"]);
    tests.env("HERMES_BIN", binary).env("HERMES_KILLED_INSTALLS", kills);
    must(tests)
}

/// Messages of the store that [`migration`] migrates.
const MIGRATED: &str = "1000000";
/// How often [`migration`] kills the process.
const KILLS: &str = "50";

/// Runs the test of the migration with a large store.
pub(crate) fn migration(repository: &Repository, options: &[&str]) -> Result<()> {
    let (messages, old) = match options {
        [] => (MIGRATED, None),
        ["--old", old] => (MIGRATED, Some(old)),
        [messages] => (*messages, None),
        [messages, "--old", old] => (*messages, Some(old)),
        _ => bail!("usage: cargo xtask chaos migration [MESSAGES] [--old BINARY]"),
    };
    messages.parse::<u32>().with_context(|| format!("`{messages}` is not a number of messages"))?;
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--", "--nocapture", "chaos::migration::"]);
    tests.env("HERMES_BIN", binary).env("HERMES_MIGRATION_MESSAGES", messages).env("HERMES_MIGRATION_KILLS", KILLS);
    if let Some(old) = old {
        let old = std::path::absolute(old).with_context(|| format!("{old} is not a path"))?;
        tests.env("HERMES_MIGRATION_OLD", old);
    }
    must(tests)
}

/// The bundled engines.
const ENGINES: [&str; 2] = ["lossless", "compressor"];

/// Runs this many generated conversations through each engine, with the release binary.
pub(crate) fn verify(repository: &Repository, conversations: &str) -> Result<()> {
    conversations.parse::<u64>().with_context(|| format!("`{conversations}` is not a number of conversations"))?;
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Release)?;
    let home = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut failed = Vec::new();
    for engine in ENGINES {
        println!("\n$ hermes lab verify {engine} --conversations {conversations}");
        let mut trial = Command::new(&binary);
        trial.args(["lab", "verify", engine, "--conversations", conversations]).env("HERMES_HOME", home.path());
        let status = trial.status().with_context(|| format!("cannot run {}", binary.display()))?;
        if !status.success() {
            failed.push(engine);
        }
    }
    if !failed.is_empty() {
        bail!("an engine lost something or could not run: {}", failed.join(", "));
    }
    Ok(())
}

/// Tests of plugins in other languages.
const LANGUAGES: &str = "install::toolchains::";

/// Tests of mistakes in these languages.
const MISTAKES: &str = "install::mistakes::written_in::";

/// Builds, tests and uses new projects in these languages, all if none is given, and prints the times.
pub(crate) fn languages(repository: &Repository, languages: &[&str]) -> Result<()> {
    in_languages(repository, LANGUAGES, languages)
}

/// Makes the mistakes that are listed for these languages, all if none is given, and prints what an author reads.
pub(crate) fn mistakes(repository: &Repository, languages: &[&str]) -> Result<()> {
    in_languages(repository, MISTAKES, languages)
}

fn in_languages(repository: &Repository, module: &str, languages: &[&str]) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let mut tests = repository.cargo();
    tests.args(["test", "--workspace", "--test", "it", "--", "--nocapture", "--test-threads", "1"]);
    if languages.is_empty() {
        tests.arg(module);
    }
    tests.args(languages.iter().map(|language| format!("{module}{language}")));
    tests.env("HERMES_BIN", binary);
    let notes = Notes::new()?;
    notes.take(&mut tests);
    notes.after(must(tests))
}

/// Where the tests of one run note which of them lack their data.
struct Notes {
    folder: tempfile::TempDir,
}

impl Notes {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir().context("cannot make a temporary folder")? })
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("left-out")
    }

    /// Makes the tests of a command note what they leave out.
    fn take(&self, tests: &mut Command) {
        tests.env(NOTES, self.file());
    }

    /// Prints in one line what was left out, after everything else.
    fn after(&self, result: Result<()>) -> Result<()> {
        let left_out = LeftOut::read(&self.file()).context("cannot read which tests were left out")?;
        if result.is_ok() || !left_out.is_empty() {
            println!("{left_out}");
        }
        result
    }
}

/// Tests that attack Hermes are in a module of this name, in whichever crate.
const ATTACK: &str = "attack::";
/// Makes the tests that attack Hermes use every input, not only those that fit into a usual run.
const ATTACK_ALL: &str = "HERMES_ATTACK_ALL";

/// Runs the tests that attack Hermes, also the inputs that take long.
pub(crate) fn attack(repository: &Repository, passed_on: &[&str]) -> Result<()> {
    print!("{}", guests::build(repository)?);
    let binary = repository.build_hermes(Profile::Dev)?;
    let mut tests = repository.cargo();
    if has_nextest(repository) {
        tests.args(["nextest", "run", "--workspace", "--no-fail-fast", ATTACK]);
    } else {
        tests.args(["test", "--workspace", "--no-fail-fast", ATTACK]);
    }
    tests.args(passed_on).env("HERMES_BIN", binary).env(ATTACK_ALL, "1");
    let notes = Notes::new()?;
    notes.take(&mut tests);
    notes.after(must(tests))
}

fn has_nextest(repository: &Repository) -> bool {
    let mut nextest = repository.cargo();
    nextest.args(["nextest", "--version"]);
    succeeds(nextest)
}

/// How many tests nextest runs at once.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

/// How many tests run at once unless the user says so. End-to-end tests mostly wait for a server, a clock or a disk: one for
/// each processor leaves half of the processors' time unused.
fn threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// The option for tests at their full length: long seeds, cargo builds of every kind of project, whole matrices.
const LONG_OPTION: &str = "--long";

/// Prints how long a step took.
fn timed<T>(step: &str, work: impl FnOnce() -> T) -> T {
    let begun = std::time::Instant::now();
    let done = work();
    let seconds = begun.elapsed().as_secs();
    println!("time: {step} {}:{:02}", seconds / 60, seconds % 60);
    done
}

/// Prints the tests that took longest, from nextest's report.
fn print_slowest(repository: &Repository) {
    const SHOWN: usize = 10;
    let Ok(report) = std::fs::read_to_string(repository.root().join("target/nextest/default/junit.xml")) else {
        return;
    };
    let attribute = |case: &str, name: &str| {
        let value = case.split_once(&format!(" {name}=\""))?.1;
        Some(value.split('"').next()?.to_owned())
    };
    let cases = report.split("<testcase").skip(1).filter_map(|case| {
        let head = case.split('>').next()?;
        let seconds: f64 = attribute(head, "time")?.parse().ok()?;
        Some((seconds, format!("{}::{}", attribute(head, "classname")?, attribute(head, "name")?)))
    });
    let mut cases: Vec<(f64, String)> = cases.collect();
    cases.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("the slowest tests:");
    cases.iter().take(SHOWN).for_each(|(seconds, name)| println!("  {seconds:7.1} s  {name}"));
}

/// Runs every test of the host, end-to-end tests among them, and of the guests.
pub(crate) fn test(repository: &Repository, passed_on: &[&str]) -> Result<()> {
    std::thread::scope(|scope| {
        // The package index answers while the processors compile.
        let sdks = scope.spawn(|| sdk_check::python(repository));
        let sdks = || sdks.join().unwrap_or_else(|_| bail!("the installation of the official SDKs panicked"));
        test_with(repository, passed_on, sdks)
    })
}

/// Runs every test once `sdks` names the Python with the official SDKs.
fn test_with(
    repository: &Repository,
    passed_on: &[&str],
    sdks: impl FnOnce() -> Result<std::path::PathBuf>,
) -> Result<()> {
    let is_long = passed_on.contains(&LONG_OPTION);
    let passed_on: Vec<&str> = passed_on.iter().copied().filter(|option| *option != LONG_OPTION).collect();
    print!("{}", timed("guests", || guests::build(repository))?);
    // The end-to-end tests run the binary; no package may depend on it, so cargo would not build it for them.
    let binary = timed("the binary", || repository.build_hermes(Profile::Dev))?;

    let notes = Notes::new()?;
    let nextest = has_nextest(repository);
    let mut host = repository.cargo();
    if nextest {
        host.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
        if std::env::var_os(TEST_THREADS).is_none() {
            host.env(TEST_THREADS, threads().to_string());
        }
    } else {
        host.args(["test", "--workspace", "--no-fail-fast"]);
    }
    host.args(&passed_on).env("HERMES_BIN", binary);
    if is_long {
        host.env(LONG, "1");
    }
    let mut failures = Vec::new();
    let mut step = |name: &str, result: Result<()>| {
        if let Err(error) = result {
            failures.push(format!("{name}: {error:#}"));
        }
    };
    // Without them, the tests that need them are left out or fail, and all others run.
    let sdks = sdks();
    match &sdks {
        Ok(python) => {
            host.env(sdk_check::PYTHON, python);
        }
        Err(error) if std::env::var_os(REQUIRED).is_some() => step("the official SDKs", Err(anyhow!("{error:#}"))),
        Err(_) => {}
    }
    if !nextest && passed_on.is_empty() {
        // Nextest leaves them out by its configuration.
        host.args(["--", "--skip", LANGUAGES, "--skip", MISTAKES]);
    }
    notes.take(&mut host);
    step("host", timed("the tests of the host", || must(host)));
    if nextest {
        print_slowest(repository);
    }

    // Arguments select tests of the host, so they exclude the other steps.
    if passed_on.is_empty() {
        let mut draft = draft_host(repository);
        notes.take(&mut draft);
        step("a host of the draft", timed("a host of the draft", || must(draft)));
        if nextest {
            let mut examples = repository.cargo();
            examples.args(["test", "--workspace", "--doc", "--quiet"]);
            step("examples in the documentation", timed("examples in the documentation", || must(examples)));
        }
        let mut native = repository.guests_cargo();
        repository.lint(&mut native);
        native.args(["test", "--workspace", "--no-fail-fast", "--quiet", "--manifest-path"]);
        native.arg(repository.guests_manifest()?);
        notes.take(&mut native);
        step("guests", timed("the tests of the guests", || must(native)));
    }

    if let Err(error) = &sdks {
        println!("the official Python SDKs are missing: {error:#}");
    }
    notes.after(if failures.is_empty() {
        println!("all tests passed");
        Ok(())
    } else {
        Err(anyhow!("not all passed\n  {}", failures.join("\n  ")))
    })
}

/// The tests of a host that serves the draft of a later version of the contract. Only the bindings and the runtime are built
/// again for it.
fn draft_host(repository: &Repository) -> Command {
    let mut draft = repository.cargo();
    draft.args(["test", "--workspace", "--quiet", "--features", "hermes-runtime/draft", "--test", "draft"]);
    draft
}

/// Checks formatting and runs clippy in both workspaces.
pub(crate) fn lint(repository: &Repository) -> Result<()> {
    formatting(repository)?;
    // The binary's build script warns if no plugins are staged. The tests need them in any case.
    print!("{}", guests::build(repository)?);
    must(components_clippy(repository)?)?;
    // The guests' own tests run on this machine.
    let mut clippy = repository.guests_cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--manifest-path"]);
    clippy.arg(repository.guests_manifest()?).args(["--", "-D", "warnings"]);
    must(clippy)?;
    let mut clippy = repository.cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    must(clippy)?;
    println!("formatting and lints are clean");
    Ok(())
}

/// `lint` and `test` in one build. Only the guests' components are linted in a build of their own: what the host includes is made
/// by the compiler alone.
pub(crate) fn check(repository: Repository, passed_on: &[&str]) -> Result<()> {
    timed("formatting", || formatting(&repository))?;
    print!("{}", timed("guests", || guests::build(&repository))?);
    timed("lints of the components", || must(components_clippy(&repository)?))?;
    let repository = repository.linted();
    // What no test builds.
    let mut benchmarks = repository.cargo();
    benchmarks.args(["build", "--workspace", "--bench", "*"]);
    timed("the benchmarks, with their dependencies", || must(benchmarks))?;
    test(&repository, passed_on)
}

fn formatting(repository: &Repository) -> Result<()> {
    let mut format = repository.cargo();
    format.args(["fmt", "--all", "--check"]);
    must(format)?;
    let mut format = repository.guests_cargo();
    format.args(["fmt", "--all", "--check", "--manifest-path"]).arg(repository.guests_manifest()?);
    must(format)?;
    let mut format = repository.cargo();
    format.args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]);
    must(format)
}

/// Clippy over the guests as components.
fn components_clippy(repository: &Repository) -> Result<Command> {
    let mut clippy = repository.guests_cargo();
    clippy.args(["clippy", "--workspace", "--target", guests::TARGET, "--manifest-path"]);
    clippy.arg(repository.guests_manifest()?).args(["--", "-D", "warnings"]);
    Ok(clippy)
}
