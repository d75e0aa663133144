//! Finds what tests need beside the sources: staged plugins and recorded behaviour.
//!
//! Data can be missing: plugins are built by `cargo xtask`, and recordings are not part of the repository. A test without its data
//! says so and passes. `cargo xtask test` counts these tests in its last line; `.ci/run` requires all data, and a test fails
//! without it.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, thread};

/// The variable that makes missing data a failure. `.ci/run` sets it.
pub const REQUIRED: &str = "HERMES_REQUIRE_TEST_DATA";

/// The variable with the file in which tests note what they leave out. `cargo xtask` sets it; [`LeftOut`] reads the file.
pub const NOTES: &str = "HERMES_LEFT_OUT";

/// The variable that lets long tests run at their full length. `cargo xtask test --long` sets it.
pub const LONG: &str = "HERMES_LONG";

/// How much a test does: `short` in the usual run, which gates each change, and `long` in the long one.
pub fn at_length<T>(short: T, long: T) -> T {
    if env::var_os(LONG).is_some() { long } else { short }
}

/// Reports data that a test cannot do without; the caller then returns. `what` completes "for want of", `why` says where the data
/// was looked for and how to get it.
///
/// # Panics
///
/// When data is required.
#[track_caller]
pub fn missing(what: &str, why: &str) {
    assert!(env::var_os(REQUIRED).is_none(), "missing test data: {why}");
    note(what, why);
}

/// Reports a program that a test cannot do without, and that no machine has to have; the caller then returns.
#[track_caller]
pub fn not_installed(program: &str) {
    note(program, &format!("{program} is not installed"));
}

/// Runs a part of a test that needs files which may not be read or written: root could. Effective rights belong to a thread, so
/// this is a thread that has given up those with which root passes the permissions of files.
///
/// # Panics
///
/// When it cannot give them up, and when `act` panics.
pub fn as_ordinary_user<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let run = thread::Builder::new().spawn_scoped(scope, || {
            give_up_rights();
            act()
        });
        match run.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => panic!("the system starts no thread: {error}"),
        }
    })
}

#[cfg(target_os = "linux")]
fn give_up_rights() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let given_up = capabilities(None).and_then(|mut sets| {
        sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER);
        set_capabilities(None, sets)
    });
    assert!(given_up.is_ok(), "this thread keeps the rights of root: {given_up:?}");
}

#[cfg(not(target_os = "linux"))]
fn give_up_rights() {}

/// Says why this test is left out, also in the file that counts such tests.
#[track_caller]
fn note(what: &str, why: &str) {
    eprintln!("skipped: {why}");
    let Some(notes) = env::var_os(NOTES) else { return };
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // The harness names the thread of a test after it.
    let thread = thread::current();
    let line = format!("{what}\t{program} {}\n", thread.name().unwrap_or_default());
    // One write: tests run beside each other.
    let written = OpenOptions::new().append(true).create(true).open(&notes);
    let written = written.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot note the skipped test in {}: {written:?}", notes.display());
}

/// The tests that were left out, by what they lack.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<String, BTreeSet<String>>);

impl LeftOut {
    /// Reads the file to which [`NOTES`] points.
    ///
    /// # Errors
    ///
    /// When it cannot be read. A file that no test has written is empty.
    pub fn read(notes: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(notes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let mut left_out = Self::default();
        for (what, test) in text.lines().filter_map(|line| line.split_once('\t')) {
            left_out.0.entry(what.to_owned()).or_default().insert(test.to_owned());
        }
        Ok(left_out)
    }

    /// Whether every test ran.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// In one line.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no test was left out");
        }
        f.write_str("left out:")?;
        for (at, (what, tests)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let tests = if tests.len() == 1 { "1 test".to_owned() } else { format!("{} tests", tests.len()) };
            write!(f, "{comma} {tests} for want of {what}")?;
        }
        Ok(())
    }
}

/// A folder of staged plugins, such as `bundled` or `test-guests/flawed`.
///
/// # Panics
///
/// When it is missing although data is required, or although `cargo xtask`, which stages plugins, runs the tests.
#[track_caller]
pub fn staged(place: &str) -> Option<PathBuf> {
    let folder = repository().join("target").join(place);
    if folder.is_dir() {
        return Some(folder);
    }
    let why = format!("no plugins are staged at {}; run `cargo xtask plugins`", folder.display());
    assert!(env::var_os(NOTES).is_none(), "missing test data: {why}");
    missing("built plugins", &why);
    None
}

/// A file of the recordings, such as `vectors/cost.json`. They lie in a folder `shared` beside the repository, or at
/// `HERMES_SHARED`.
///
/// # Panics
///
/// When it is missing and data is required.
#[track_caller]
pub fn recorded(file: &str) -> Option<PathBuf> {
    let path = shared().join(file);
    if path.is_file() {
        return Some(path);
    }
    let why = format!(
        "there is no {}; put the recordings beside the repository, or set HERMES_SHARED to their folder",
        path.display()
    );
    missing("recorded cases (tests/evidence/vectors.md)", &why);
    None
}

/// The folder of the recordings, which may be missing.
pub fn shared() -> PathBuf {
    env::var_os("HERMES_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    const LOOKING: &str = "HERMES_TEST_DATA_LOOKING";

    /// Tests of this binary again, in a process of its own, where they look for data that is not there.
    fn look(tests: &str, variables: &[(&str, &Path)]) -> Result<Output, io::Error> {
        let mut child = Command::new(env::current_exe()?);
        child.args([tests, "--nocapture"]).env(LOOKING, "yes").env("HERMES_SHARED", "/nowhere");
        child.env_remove(REQUIRED).env_remove(NOTES).envs(variables.iter().copied()).output()
    }

    #[test]
    fn missing_data_fails_a_test_only_where_it_is_required() -> Result<(), io::Error> {
        if env::var_os(LOOKING).is_some() {
            assert_eq!(recorded("vectors/none.json"), None);
            return Ok(());
        }
        for required in [false, true] {
            let variables = [(REQUIRED, Path::new("1"))];
            let output = look("missing_data_fails", if required { &variables } else { &[] })?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.success(), !required, "{said}");
            assert!(said.contains("/nowhere/vectors/none.json") && said.contains("HERMES_SHARED"), "{said}");
        }
        Ok(())
    }

    /// Left out for two reasons, and for one of them twice.
    #[test]
    fn counted_one() {
        if env::var_os(LOOKING).is_some() {
            assert_eq!((recorded("vectors/one.json"), recorded("vectors/two.json")), (None, None));
            not_installed("an absent program");
        }
    }

    #[test]
    fn counted_two() {
        if env::var_os(LOOKING).is_some() {
            assert_eq!(recorded("vectors/one.json"), None);
        }
    }

    #[test]
    fn tests_without_their_data_are_counted_by_what_they_lack() -> Result<(), io::Error> {
        let notes = env::temp_dir().join(format!("hermes-left-out-{}", std::process::id()));
        // As nextest does: a process for each test. And as `cargo test` does.
        for runs in [&["tests::counted_one", "tests::counted_two"][..], &["tests::counted_"]] {
            assert_eq!(LeftOut::read(&notes)?.to_string(), "no test was left out");
            for tests in runs {
                let output = look(tests, &[(NOTES, &notes)])?;
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            let left_out = LeftOut::read(&notes)?;
            fs::remove_file(&notes)?;
            let line = "left out: 1 test for want of an absent program, 2 tests for want of recorded cases (tests/evidence/vectors.md)";
            assert_eq!(left_out.to_string(), line);
        }
        Ok(())
    }
}
