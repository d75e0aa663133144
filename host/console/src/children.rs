//! Internal commands: other processes of the same program run them.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use hermes_app::process::{self, COMPILER_MEMORY, FunctionFiles};

use crate::console;
use crate::failure::{Failure, Kind};

/// The command of a child. Both programs have these commands, because each is its own child.
#[derive(Debug, Subcommand)]
pub enum ChildCommand {
    /// Compile a component (other Hermes processes run this)
    #[command(hide = true)]
    CompilePlugin {
        /// Memory limit in bytes
        #[arg(long, value_name = "BYTES", default_value_t = COMPILER_MEMORY)]
        memory: u64,
        /// Nobody waits for the code: lower this process's priority
        #[arg(long)]
        background: bool,
        /// Compile fast, to slower code
        #[arg(long)]
        draft: bool,
        /// A file with functions that were compiled before
        #[arg(long, value_name = "FILE", requires = "functions_bytes")]
        functions: Option<PathBuf>,
        /// The bytes of that file to read
        #[arg(long, value_name = "BYTES")]
        functions_bytes: Option<u64>,
        /// The file for the functions of this compilation
        #[arg(long, value_name = "FILE")]
        functions_to: Option<PathBuf>,
    },
    /// Open a native library (other Hermes processes run this)
    #[command(hide = true)]
    TryLibrary {
        /// The file of the library
        file: PathBuf,
    },
    /// Run the statements of a plugin's database (other Hermes processes run this)
    #[command(hide = true)]
    ServeSql,
    /// Print what this machine offers to confine programs (other Hermes processes run this)
    #[command(hide = true)]
    ProbeSandbox,
    /// Run a program and end it with everything that it starts (other Hermes processes run this)
    #[command(hide = true)]
    SuperviseProgram {
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
        command: Vec<OsString>,
    },
}

impl ChildCommand {
    /// The word of the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CompilePlugin { .. } => "compile-plugin",
            Self::TryLibrary { .. } => "try-library",
            Self::ServeSql => "serve-sql",
            Self::ProbeSandbox => "probe-sandbox",
            Self::SuperviseProgram { .. } => "supervise-program",
        }
    }

    /// Does the work of the child.
    ///
    /// # Errors
    ///
    /// When a person or another program runs the command, or when the parent is gone.
    pub fn serve(self) -> Result<ExitCode, Failure> {
        match self {
            Self::CompilePlugin { memory, background, draft, functions, functions_bytes, functions_to } => {
                let failed = |why: String| {
                    let fix = "use `hermes plugins list`, which compiles all plugins; this command is internal";
                    Failure::new(Kind::General, "nothing was compiled", why, fix)
                };
                if io::stdout().is_terminal() || io::stdin().is_terminal() {
                    let why = "the command reads and writes binary data, which a terminal cannot handle";
                    return Err(failed(why.to_owned()));
                }
                let files = FunctionFiles { known: functions.zip(functions_bytes), next: functions_to };
                let done = process::compile(memory, background, draft.then_some(&files));
                done.map(ExitCode::from).map_err(|error| failed(error.to_string()))
            }
            Self::TryLibrary { file } => Ok(process::try_library(&file).into()),
            Self::ServeSql => process::serve_sql().map(|()| ExitCode::SUCCESS).map_err(|error| {
                let fix = "this command is internal: Hermes runs it for plugins with a database";
                Failure::new(Kind::General, "no database is served", error.to_string(), fix)
            }),
            // A parent that is gone needs no answer.
            Self::ProbeSandbox => Ok(match process::probe_sandbox(|answer| drop(console::print(answer))) {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }),
            Self::SuperviseProgram { command } => {
                process::supervise(&command).map(|()| ExitCode::SUCCESS).map_err(|error| {
                    let fix = "run the program itself; this command is internal";
                    Failure::new(Kind::General, "no program was run", error.to_string(), fix)
                })
            }
        }
    }
}
