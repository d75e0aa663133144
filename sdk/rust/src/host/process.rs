//! Programs on the user's machine, without a shell. Needs the permission `process` with their names, and the user's approval of
//! each run unless there is a permanent one.
//!
//! ```no_run
//! use hermes_plugin::{Error, process::Command};
//!
//! fn branch() -> Result<String, Error> {
//!     let exit = Command::new("git").args(["branch", "--show-current"]).run()?;
//!     if !exit.success() {
//!         return Err(Error::failed(format!("git branch failed: {}", exit.errors_text())));
//!     }
//!     Ok(exit.output_text().trim().to_owned())
//! }
//! ```
//!
//! A server or another program that outlives the call runs in the background:
//!
//! ```no_run
//! use hermes_plugin::{Error, process::Command};
//!
//! # fn ask() -> Result<String, Error> {
//! let program = Command::new("mcp-server").variable("MODE", "stdio").start()?;
//! program.write("{\"method\":\"ping\"}\n")?;
//! let answer = program.read(5_000)?;
//! # Ok(answer.output_text().into_owned())
//! # }
//! ```
//!
//! A run without approval returns an error of the kind `denied`. If its code is [`REFUSED`], the user refused it: return the
//! message to the model, and do not try another way to the same end.

use std::borrow::Cow;

use crate::Error;
use crate::imports::process as wit;

pub use wit::{Background, Chunk, Command, End, Exit};

/// Error code: the user refused.
pub const REFUSED: &str = "refused";
/// Error code: there was no user to ask, as in background work.
pub const UNATTENDED: &str = "unattended";

/// Runs a program and waits until it exits.
pub fn run(command: &Command) -> Result<Exit, Error> {
    wit::run(command)
}

/// A program in the background of the session. Keep its number to find it in another instance of the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Program(pub u32);

/// The plugin's background programs in this session: all that run, and those that ended last.
pub fn programs() -> Result<Vec<Background>, Error> {
    wit::programs()
}

impl Program {
    /// Takes what it wrote since the last time. Waits for at most this time if there is nothing to take.
    pub fn read(self, wait_ms: u32) -> Result<Chunk, Error> {
        wit::read(self.0, wait_ms)
    }

    /// Appends to its standard input, without waiting until it reads.
    pub fn write(self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        wit::write(self.0, bytes.as_ref())
    }

    /// Closes its standard input, after what was written.
    pub fn close_input(self) -> Result<(), Error> {
        wit::close_input(self.0)
    }

    /// Waits for its end, for at most this time; none if it still runs.
    pub fn wait(self, wait_ms: u32) -> Result<Option<End>, Error> {
        wit::wait(self.0, wait_ms)
    }

    /// Ends it together with the programs that it started.
    pub fn stop(self) -> Result<End, Error> {
        wit::stop(self.0)
    }
}

impl Chunk {
    /// The standard output as text.
    pub fn output_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.output)
    }

    /// The standard error as text.
    pub fn errors_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.errors)
    }
}

impl Command {
    /// A granted program in the workspace, without arguments or input. Its time limit is that of the plugin's call.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            root: "workspace".to_owned(),
            folder: String::new(),
            input: Vec::new(),
            timeout_ms: None,
            extra: Vec::new(),
        }
    }

    /// Adds an argument. It is passed as it is: there is no shell.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments. Arguments from a model can begin with `-`: put `--` before them if the program supports it.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment. The user sees it in the question.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory, relative to the workspace.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<String>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the time limit in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, milliseconds: u32) -> Self {
        self.timeout_ms = Some(milliseconds);
        self
    }

    /// Starts the program in the background. It ends with the session, or at the time limit if one is set.
    pub fn start(&self) -> Result<Program, Error> {
        wit::start(self).map(Program)
    }

    /// Runs the program and waits until it exits.
    pub fn run(&self) -> Result<Exit, Error> {
        run(self)
    }
}

impl Exit {
    /// Whether the program exited with code 0.
    pub fn success(&self) -> bool {
        self.end == End::Exited(0)
    }

    /// The standard output as text.
    pub fn output_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.output)
    }

    /// The standard error as text.
    pub fn errors_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_built_word_by_word() {
        let command = Command::new("git").args(["log", "-1"]).arg("--").arg("a b; rm").folder("sub").timeout_ms(5);
        assert_eq!(command.arguments, ["log", "-1", "--", "a b; rm"]);
        assert_eq!((command.root.as_str(), command.folder.as_str(), command.timeout_ms), ("workspace", "sub", Some(5)));
    }

    #[test]
    fn only_exit_code_0_is_success() {
        let exit =
            |end| Exit { end, output: b"a\xff".to_vec(), errors: Vec::new(), truncated: false, extra: Vec::new() };
        assert!(exit(End::Exited(0)).success());
        for end in [End::Exited(1), End::Killed(9), End::TimedOut] {
            assert!(!exit(end).success());
        }
        assert_eq!(exit(End::TimedOut).output_text(), "a\u{fffd}");
    }
}
