//! Programs that the host runs for itself, such as git: nobody approves them, and they end with the host like all others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use super::End;
use super::running::{Execution, Output, Running, begin_own};

/// A program of the host that runs. Dropping it ends the program and everything that it started.
pub struct OwnProgram {
    running: Running,
    /// Its standard output, until it is taken.
    pub output: Option<Output>,
    /// Its standard error, until it is taken.
    pub errors: Option<Output>,
}

impl OwnProgram {
    /// Starts a command: its program, arguments, variables and folder. Its streams do not count: it gets no input, and its outputs
    /// are pipes.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn start(command: &Command) -> io::Result<Self> {
        let program = command.get_program().to_owned();
        let arguments: Vec<OsString> = command.get_args().map(ToOwned::to_owned).collect();
        let folder = command.get_current_dir().map_or_else(|| PathBuf::from("."), ToOwned::to_owned);
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => drop(variables.insert(name.to_owned(), value.to_owned())),
                None => drop(variables.remove(name)),
            }
        }
        let environment: Vec<_> = variables.into_iter().collect();
        let begun = tokio::task::spawn_blocking(move || {
            begin_own(&Execution {
                program: &program,
                name: &program,
                arguments: &arguments,
                folder: &folder,
                environment: &environment,
                merged: false,
                planned: None,
            })
        });
        let mut running = begun.await.map_err(io::Error::other)??;
        // The end of its input.
        running.input = None;
        let (output, errors) = (running.output.take(), running.errors.take());
        Ok(Self { running, output, errors })
    }

    /// Waits for its end. The future can be dropped and created again.
    ///
    /// # Errors
    ///
    /// When the system does not tell how it ended.
    pub async fn ended(&mut self) -> io::Result<End> {
        self.running.ended().await.map_err(|fault| io::Error::other(fault.message))
    }
}
