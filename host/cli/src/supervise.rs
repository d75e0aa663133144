//! Programs of plugins run below a second process of this program, which ends them with this one.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::failure::{Failure, Kind};

/// Lets supervisors run the programs of plugins from now on.
#[cfg(target_os = "linux")]
pub(crate) fn programs() {
    hermes_capabilities::process::supervise_with(hermes_capabilities::process::SupervisorCommand {
        // This path works also after an update has replaced the file.
        program: "/proc/self/exe".into(),
        arguments: vec!["supervise-program".into()],
        probe: vec!["probe-sandbox".into()],
    });
}

/// Only Linux lets a process take over the children of others.
#[cfg(not(target_os = "linux"))]
pub(crate) fn programs() {}

/// `hermes supervise-program -- PROGRAM NAME ARGUMENTS`, with a socket to the host as standard input.
#[cfg(target_os = "linux")]
pub(crate) fn serve(command: &[OsString]) -> Result<ExitCode, Failure> {
    let served = match command {
        [program, name, arguments @ ..] => hermes_capabilities::process::supervise(program, name, arguments),
        [] | [_] => Ok(()),
    };
    served.map(|()| ExitCode::SUCCESS).map_err(|error| refused(&error.to_string()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn serve(_: &[OsString]) -> Result<ExitCode, Failure> {
    Err(refused("this system has no supervisors"))
}

/// `hermes probe-sandbox`: prints what this machine offers to confine programs.
#[cfg(target_os = "linux")]
pub(crate) fn probe() -> ExitCode {
    hermes_sandbox::probe(|answer| {
        // A parent that is gone needs no answer.
        let _ = crate::console::print(&serde_json::to_string(answer).unwrap_or_default());
    });
    ExitCode::SUCCESS
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn probe() -> ExitCode {
    ExitCode::FAILURE
}

fn refused(why: &str) -> Failure {
    let fix = "run the program itself; this command is internal";
    Failure::new(Kind::General, "no program was run", why, fix)
}
