//! Compiling plugins in a child process of this program.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hermes_runtime::compiler::{self, EXIT_NOT_A_COMPONENT, ServeError};
use hermes_runtime::{Compiler, CompilerProcess, EXIT_UNFIT, FunctionFiles};

use crate::failure::{Failure, Kind};

/// Most memory of a compiler. The largest components, which contain the runtime of a language, need a quarter of it.
pub(crate) const MEMORY: u64 = 4 << 30;
/// The time limit of a compiler by the clock; its CPU time has a limit of its own. The largest components take half a
/// minute on a slow machine. On a busy machine it takes longer, because other programs compute too.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Compiles in a child process of this program, or in this process if the path of the program is unknown.
pub(crate) fn compiler() -> Compiler {
    match std::env::current_exe() {
        Ok(program) => Compiler::Child(CompilerProcess {
            program,
            arguments: vec!["compile-plugin".into(), format!("--memory={MEMORY}").into()],
            memory: MEMORY,
            timeout: TIMEOUT,
        }),
        Err(error) => {
            tracing::warn!(%error, "plugins are compiled in this process, because the path of its program is unknown");
            Compiler::InProcess
        }
    }
}

/// `hermes compile-plugin`: reads the length of a component and the component from standard input, and writes the
/// compiled code to standard output.
pub(crate) fn serve(memory: u64, background: bool, draft: Option<&FunctionFiles>) -> Result<ExitCode, Failure> {
    let failed = |why: String| {
        let fix = "use `hermes plugins list`, which compiles all plugins; this command is internal";
        Failure::new(Kind::General, "nothing was compiled", why, fix)
    };
    if io::stdout().is_terminal() || io::stdin().is_terminal() {
        return Err(failed("the command reads and writes binary data, which a terminal cannot handle".to_owned()));
    }
    compiler::confine(memory, background);
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    // Read the whole component first: afterwards a thread waits for the end of the input.
    let mut length = [0; 8];
    let read = input.read_exact(&mut length).and_then(|()| {
        bytes.extend(length);
        (&mut input).take(u64::from_le_bytes(length)).read_to_end(&mut bytes)
    });
    read.map_err(|error| failed(format!("the component cannot be read: {error}")))?;
    drop(input);
    end_with_parent();
    match compiler::serve(&mut bytes.as_slice(), &mut io::stdout().lock(), draft) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ServeError::NotAComponent(why)) => {
            // Only the parent reads this, and it builds its own message from it.
            let _ = writeln!(io::stderr(), "{why}");
            Ok(ExitCode::from(EXIT_NOT_A_COMPONENT))
        }
        Err(ServeError::Io(error)) => Err(failed(error.to_string())),
    }
}

/// `hermes try-library`: opens a native library. The exit code, or the signal that ends this process, says what came of it.
pub(crate) fn try_library(file: &Path) -> ExitCode {
    end_with_parent();
    match hermes_runtime::try_library(file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Only the parent reads this, and it builds its own message from it.
            let _ = writeln!(io::stderr(), "{why}");
            ExitCode::from(EXIT_UNFIT)
        }
    }
}

/// Ends this process with its parent: the parent keeps the input open until it ends.
fn end_with_parent() {
    let watch = std::thread::Builder::new().name("hermes-parent".to_owned());
    let started = watch.spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(Kind::Interrupted as i32);
    });
    if let Err(error) = started {
        tracing::debug!(%error, "this process does not watch its parent");
    }
}
