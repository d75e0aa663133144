//! Compiling plugins in a child process of this program.

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use hermes_runtime::compiler::{self, EXIT_NOT_A_COMPONENT, ServeError};
use hermes_runtime::{Compiler, CompilerProcess};

use crate::failure::{Failure, Kind};

/// Most memory of a compiler: the largest components, with a whole language's runtime in them, take a quarter of it.
pub(crate) const MEMORY: u64 = 4 << 30;
/// How long a compiler may take by the clock; what it computes is limited by itself. The largest components take half a
/// minute on a slow machine, and a compiler gives way to whatever else keeps a busy one from it.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// A child of this program; this process itself where the system does not tell which program that is.
pub(crate) fn compiler() -> Compiler {
    match std::env::current_exe() {
        Ok(program) => Compiler::Child(CompilerProcess {
            program,
            arguments: vec!["compile-plugin".into(), format!("--memory={MEMORY}").into()],
            memory: MEMORY,
            timeout: TIMEOUT,
        }),
        Err(error) => {
            tracing::warn!(%error, "plugins are compiled in this process, since its program cannot be found");
            Compiler::InProcess
        }
    }
}

/// `hermes compile-plugin`: a component on standard input, led by its length, its compiled code on standard output.
pub(crate) fn serve(memory: u64) -> Result<ExitCode, Failure> {
    let failed = |why: String| {
        let fix = "this command is for the program itself; `hermes plugins list` compiles what is not compiled yet";
        Failure::new(Kind::General, "nothing was compiled", why, fix)
    };
    if io::stdout().is_terminal() || io::stdin().is_terminal() {
        return Err(failed("it reads a component and writes code, and a terminal is neither".to_owned()));
    }
    compiler::confine(memory);
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    // All of it first, so that what follows can be waited for beside the work.
    let mut length = [0; 8];
    let read = input.read_exact(&mut length).and_then(|()| {
        bytes.extend(length);
        (&mut input).take(u64::from_le_bytes(length)).read_to_end(&mut bytes)
    });
    read.map_err(|error| failed(format!("the component cannot be read: {error}")))?;
    drop(input);
    end_with_parent();
    match compiler::serve(&mut bytes.as_slice(), &mut io::stdout().lock()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ServeError::NotAComponent(why)) => {
            // Nobody but the parent reads this, and it makes its own sentence of it.
            let _ = writeln!(io::stderr(), "{why}");
            Ok(ExitCode::from(EXIT_NOT_A_COMPONENT))
        }
        Err(ServeError::Io(error)) => Err(failed(error.to_string())),
    }
}

/// The parent holds the input open as long as it lives.
fn end_with_parent() {
    let watch = std::thread::Builder::new().name("hermes-parent".to_owned());
    let started = watch.spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(Kind::Interrupted as i32);
    });
    if let Err(error) = started {
        tracing::debug!(%error, "the compiler does not watch its parent");
    }
}
