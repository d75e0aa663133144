//! Programs of the user's machine, without a shell. Needs the permission `process` with their names, and the user's
//! approval of each run unless it was given for good.
//!
//! ```no_run
//! use hermes_plugin::{Error, process::Command};
//!
//! fn branch() -> Result<String, Error> {
//!     let exit = Command::new("git").args(["branch", "--show-current"]).run()?;
//!     if !exit.success() {
//!         return Err(Error::failed(format!("git does not tell the branch: {}", exit.errors_text())));
//!     }
//!     Ok(exit.output_text().trim().to_owned())
//! }
//! ```
//!
//! A run that was not allowed answers an error of the kind `denied`. Where its code is [`REFUSED`] the user said no:
//! pass the message on to the model as it is, and try nothing else to the same end.

use std::borrow::Cow;

use crate::Error;
use crate::imports::process as wit;

pub use wit::{Command, End, Exit};

/// The code of an error that is the user's no.
pub const REFUSED: &str = "refused";
/// The code of an error where nobody could be asked, as in work in the background.
pub const UNATTENDED: &str = "unattended";

/// Runs a program and waits for its end.
pub fn run(command: &Command) -> Result<Exit, Error> {
    wit::run(command)
}

impl Command {
    /// A program as it was granted, in the workspace, without arguments and input, for as long as the call may take.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            root: "workspace".to_owned(),
            folder: String::new(),
            input: Vec::new(),
            timeout_ms: None,
        }
    }

    /// Another argument. Nothing in it means anything to a shell: there is none.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// More arguments. What comes from a model may begin with `-`: put `--` in front where the program knows it.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// A directory below the workspace to run it in.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<String>) -> Self {
        self.folder = folder.into();
        self
    }

    /// What it reads on its standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// How long it may take, in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, milliseconds: u32) -> Self {
        self.timeout_ms = Some(milliseconds);
        self
    }

    /// Runs it and waits for its end.
    pub fn run(&self) -> Result<Exit, Error> {
        run(self)
    }
}

impl Exit {
    /// Whether it ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.end == End::Exited(0)
    }

    /// Its standard output as text.
    pub fn output_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.output)
    }

    /// Its standard error as text.
    pub fn errors_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_put_together_word_by_word() {
        let command = Command::new("git").args(["log", "-1"]).arg("--").arg("a b; rm").folder("sub").timeout_ms(5);
        assert_eq!(command.arguments, ["log", "-1", "--", "a b; rm"]);
        assert_eq!((command.root.as_str(), command.folder.as_str(), command.timeout_ms), ("workspace", "sub", Some(5)));
    }

    #[test]
    fn only_a_code_of_0_is_success() {
        let exit = |end| Exit { end, output: b"a\xff".to_vec(), errors: Vec::new(), truncated: false };
        assert!(exit(End::Exited(0)).success());
        for end in [End::Exited(1), End::Killed(9), End::TimedOut] {
            assert!(!exit(end).success());
        }
        assert_eq!(exit(End::TimedOut).output_text(), "a\u{fffd}");
    }
}
