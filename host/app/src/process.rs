//! The processes of the program: the threads of one that runs commands, and the children that work for it.
//!
//! A child is the same program with an internal command. It compiles a plugin, tries a native library, serves a plugin's database,
//! or runs a program and ends it together with Hermes. The front end knows the words of these commands; what they do is here.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_capabilities::process;
use hermes_capabilities::sql::{self, WorkerProgram};
use hermes_runtime::compiler::{self, EXIT_NOT_A_COMPONENT, ServeError};
use hermes_runtime::{CompilerProcess, EXIT_UNFIT, executor};

pub use hermes_capabilities::process::{End, OwnProgram};
pub use hermes_runtime::{Compiler, FunctionFiles};

/// The most memory of a compiler, in bytes. The largest components, which contain the runtime of a language, need a quarter of it.
pub const COMPILER_MEMORY: u64 = 4 << 30;
/// The time limit of a compiler by the clock; its CPU time has a limit of its own. The largest components take half a
/// minute on a slow machine. On a busy machine it takes longer, because other programs compute too.
const COMPILER_TIME: Duration = Duration::from_secs(3600);
/// The exit code of a child whose parent has ended: that of Ctrl-C.
const ORPHANED: i32 = 130;

/// The threads of a process that runs commands. At least two: one for the turn, one for background work. From now on, programs of
/// plugins run below supervisors.
///
/// # Errors
///
/// When no thread can be started.
pub fn threads() -> io::Result<tokio::runtime::Runtime> {
    supervise_programs();
    hermes_runtime::share_heap();
    executor::shared(std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 4)))
}

/// Ends all programs that plugins and the user have started.
pub fn end_programs() {
    process::end_all();
}

/// Compiles in a child of this program, or in this process if the path of the program is unknown.
pub fn compiler() -> Compiler {
    match std::env::current_exe() {
        Ok(program) => Compiler::Child(CompilerProcess {
            program,
            arguments: vec!["compile-plugin".into(), format!("--memory={COMPILER_MEMORY}").into()],
            memory: COMPILER_MEMORY,
            timeout: COMPILER_TIME,
        }),
        Err(error) => {
            tracing::warn!(%error, "plugins are compiled in this process, because the path of its program is unknown");
            Compiler::InProcess
        }
    }
}

/// The child `compile-plugin`: reads the length of a component and the component from standard input, and writes the compiled code
/// to standard output. Returns the exit code for the parent.
///
/// # Errors
///
/// When the input cannot be read or the output cannot be written.
pub fn compile(memory: u64, background: bool, draft: Option<&FunctionFiles>) -> io::Result<u8> {
    compiler::confine(memory, background);
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    // Read the whole component first: afterwards a thread waits for the end of the input.
    let mut length = [0; 8];
    let read = input.read_exact(&mut length).and_then(|()| {
        bytes.extend(length);
        (&mut input).take(u64::from_le_bytes(length)).read_to_end(&mut bytes)
    });
    read.map_err(|error| io::Error::new(error.kind(), format!("the component cannot be read: {error}")))?;
    drop(input);
    end_with_parent();
    match compiler::serve(&mut bytes.as_slice(), &mut io::stdout().lock(), draft) {
        Ok(()) => Ok(0),
        Err(ServeError::NotAComponent(why)) => Ok(told(&why, EXIT_NOT_A_COMPONENT)),
        Err(ServeError::Io(error)) => Err(error),
    }
}

/// The child `try-library`: opens a native library. The exit code, or the signal that ends this process, tells the parent the result.
pub fn try_library(file: &Path) -> u8 {
    end_with_parent();
    match hermes_runtime::try_library(file) {
        Ok(()) => 0,
        Err(why) => told(&why, EXIT_UNFIT),
    }
}

/// Tells the parent why. Only the parent reads this, and it builds its own message from it.
fn told(why: &dyn std::fmt::Display, code: u8) -> u8 {
    let _ = writeln!(io::stderr(), "{why}");
    code
}

/// Ends this process with its parent: the parent keeps the input open until it ends.
fn end_with_parent() {
    let watch = std::thread::Builder::new().name("hermes-parent".to_owned());
    let started = watch.spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(ORPHANED);
    });
    if let Err(error) = started {
        tracing::debug!(%error, "this process does not watch its parent");
    }
}

/// From now on, the databases of plugins run in children of this program, or in this process if the path of the program is unknown.
pub fn use_sql_workers() {
    match this_program() {
        Ok(program) => {
            sql::run_in_workers(WorkerProgram { program, arguments: vec!["serve-sql".into()], environment: Vec::new() })
        }
        Err(error) => tracing::warn!(%error, "the statements of plugins run in this process"),
    }
}

/// On Linux the running program itself, even after an update has replaced its file.
fn this_program() -> io::Result<PathBuf> {
    let this = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && this.exists() { Ok(this.to_owned()) } else { std::env::current_exe() }
}

/// The child `serve-sql`: serves one database on standard input, which is a socket of the parent. Statements that still run end with
/// the process.
///
/// # Errors
///
/// When standard input is not such a socket.
pub fn serve_sql() -> io::Result<()> {
    sql::serve(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Lets supervisors run the programs of plugins from now on. Only Linux lets a process take over the children of others.
fn supervise_programs() {
    #[cfg(target_os = "linux")]
    process::supervise_with(process::SupervisorCommand {
        // This path works also after an update has replaced the file.
        program: "/proc/self/exe".into(),
        arguments: vec!["supervise-program".into()],
        probe: vec!["probe-sandbox".into()],
    });
}

/// The child `supervise-program`, with a program, its name and its arguments, and with a socket to the parent as standard input.
///
/// # Errors
///
/// When the program cannot be run, or this system has no supervisors.
#[cfg(target_os = "linux")]
pub fn supervise(command: &[OsString]) -> io::Result<()> {
    match command {
        [program, name, arguments @ ..] => process::supervise(program, name, arguments),
        [] | [_] => Ok(()),
    }
}

/// The child `supervise-program`.
///
/// # Errors
///
/// Always: this system has no supervisors.
#[cfg(not(target_os = "linux"))]
pub fn supervise(_: &[OsString]) -> io::Result<()> {
    Err(io::Error::other("this system has no supervisors"))
}

/// The child `probe-sandbox`: hands over as JSON what this machine offers to confine programs. Returns false if the system has nothing
/// to confine programs.
#[cfg(target_os = "linux")]
pub fn probe_sandbox(print: impl FnOnce(&str)) -> bool {
    hermes_sandbox::probe(|answer| print(&serde_json::to_string(answer).unwrap_or_default()));
    true
}

/// The child `probe-sandbox`.
#[cfg(not(target_os = "linux"))]
pub fn probe_sandbox(_: impl FnOnce(&str)) -> bool {
    false
}
