//! `hermes lab`: starts the laboratory, which is a program of its own.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Kind};

/// The name of the program.
const PROGRAM: &str = "hermes-lab";

/// Becomes the laboratory: the process keeps its terminal, its folder and its variables, and signals and the exit code are the
/// laboratory's own. Returns only if that fails.
pub(crate) fn run(verbose: u8, arguments: &[OsString]) -> Failure {
    let hermes = std::env::current_exe().unwrap_or_default();
    let program = beside(&hermes).unwrap_or_else(|| PROGRAM.into());
    let verbose = std::iter::repeat_n("-v", verbose.into());
    let error = Command::new(&program).args(verbose).args(arguments).exec();
    absent(&program, &hermes, &error)
}

/// The program in the folder of this one.
fn beside(hermes: &Path) -> Option<PathBuf> {
    Some(hermes.with_file_name(PROGRAM)).filter(|program| program.is_file())
}

fn absent(program: &Path, hermes: &Path, error: &io::Error) -> Failure {
    let folder = hermes.parent().unwrap_or(hermes).display();
    let why = match error.kind() {
        ErrorKind::NotFound => format!("there is no program `{PROGRAM}` in {folder} or in a folder of PATH"),
        _ => format!("{}: {error}", program.display()),
    };
    let fix = format!("build it with `cargo xtask build`, or copy `{PROGRAM}` of the same release to {folder}");
    Failure::new(Kind::General, "the laboratory cannot start", why, fix)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_hermes_is_taken_and_its_absence_has_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let hermes = folder.path().join("hermes");
        assert_eq!(beside(&hermes), None);
        let failure = absent(Path::new(PROGRAM), &hermes, &ErrorKind::NotFound.into());
        assert!(failure.why.contains("no program `hermes-lab` in") && failure.fix.contains("cargo xtask build"));
        let lab = folder.path().join(PROGRAM);
        std::fs::write(&lab, "").unwrap();
        assert_eq!(beside(&hermes), Some(lab.clone()));
        let failure = absent(&lab, &hermes, &ErrorKind::PermissionDenied.into());
        assert!(failure.why.contains("hermes-lab: permission denied"), "{failure}");
    }
}
