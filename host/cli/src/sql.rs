//! Running the statements of plugins' databases in child processes of this program.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hermes_capabilities::sql::{self, WorkerProgram};

use crate::failure::{Failure, Kind};

/// From now on, plugins' databases run in child processes of this program, or in this process if the path of the program is
/// unknown.
pub(crate) fn use_workers() {
    match program() {
        Ok(program) => {
            sql::run_in_workers(WorkerProgram { program, arguments: vec!["serve-sql".into()], environment: Vec::new() })
        }
        Err(error) => tracing::warn!(%error, "the statements of plugins run in this process"),
    }
}

/// On Linux the running program itself, even after an update has replaced its file.
fn program() -> io::Result<PathBuf> {
    let this = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && this.exists() { Ok(this.to_owned()) } else { std::env::current_exe() }
}

/// `hermes serve-sql`: serves one database on standard input, which is a socket of the parent.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    let failed = |error: io::Error| {
        let fix = "this command is internal: Hermes runs it for plugins with a database";
        Failure::new(Kind::General, "no database is served", error.to_string(), fix)
    };
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    // Statements that still run end with the process.
    sql::serve(stream).map(|()| ExitCode::SUCCESS).map_err(failed)
}
