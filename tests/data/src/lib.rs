//! Finds what tests need beside the sources: staged plugins and recorded behaviour.
//!
//! Data can be missing: plugins are built by `cargo xtask`, and recordings are not part of the repository. `cargo xtask
//! test` requires all of it, and a test fails without its data. A plain `cargo test` says what is missing and goes on.

#![forbid(unsafe_code)]

use std::env;
use std::path::{Path, PathBuf};

/// The variable that makes missing data a failure. `cargo xtask test` sets it.
pub const REQUIRED: &str = "HERMES_REQUIRE_TEST_DATA";

/// Reports data that a test cannot do without; the caller then returns.
///
/// # Panics
///
/// When the data is required.
#[track_caller]
pub fn missing(what: &str) {
    assert!(env::var_os(REQUIRED).is_none(), "missing test data: {what}");
    eprintln!("skipped: {what}");
}

/// A folder of staged plugins, such as `bundled` or `test-guests/flawed`.
///
/// # Panics
///
/// When it is missing and required.
#[track_caller]
pub fn staged(place: &str) -> Option<PathBuf> {
    let folder = repository().join("target").join(place);
    if folder.is_dir() {
        return Some(folder);
    }
    missing(&format!("no plugins are staged at {}; run `cargo xtask plugins`", folder.display()));
    None
}

/// A file of the recordings, such as `vectors/cost.json`. They lie in a folder `shared` beside the repository, or at
/// `HERMES_SHARED`.
///
/// # Panics
///
/// When it is missing and required.
#[track_caller]
pub fn recorded(file: &str) -> Option<PathBuf> {
    let shared = env::var_os("HERMES_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from);
    let path = shared.join(file);
    if path.is_file() {
        return Some(path);
    }
    missing(&format!(
        "there is no {}; put the recordings beside the repository, or set HERMES_SHARED to their folder",
        path.display()
    ));
    None
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    /// This test again in a process of its own, which looks for data that is not there.
    fn look(required: bool) -> Result<Output, std::io::Error> {
        let mut child = Command::new(env::current_exe()?);
        child.args(["--exact", "tests::missing_data_fails_a_test_only_where_it_is_required", "--nocapture"]);
        child.env(LOOKING, "yes").env("HERMES_SHARED", "/nowhere").env_remove(REQUIRED);
        if required {
            child.env(REQUIRED, "1");
        }
        child.output()
    }

    const LOOKING: &str = "HERMES_TEST_DATA_LOOKING";

    #[test]
    fn missing_data_fails_a_test_only_where_it_is_required() -> Result<(), std::io::Error> {
        if env::var_os(LOOKING).is_some() {
            assert_eq!(recorded("vectors/none.json"), None);
            return Ok(());
        }
        for required in [false, true] {
            let output = look(required)?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.success(), !required, "{said}");
            assert!(said.contains("/nowhere/vectors/none.json") && said.contains("HERMES_SHARED"), "{said}");
        }
        Ok(())
    }
}
