//! Programs that the host runs for itself, such as git or a server of tools: nobody approves them, and they end with the host
//! like all others.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::running::{Execution, Input, Output, Running, begin_own, undone};
use super::sandbox::{self, Planned, Start, TMPDIR};
use super::{Confined, Confinement, End, GRACE, Sandbox};

/// A program of the host that runs. Dropping it ends the program and everything that it started.
pub struct OwnProgram {
    running: Running,
    /// Its standard input, until it is taken.
    pub input: Option<Input>,
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
        Self::without_input(command, false).await
    }

    /// The same with one pipe for both outputs, so that their order is kept: `output` has both.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn watch(command: &Command) -> io::Result<Self> {
        Self::without_input(command, true).await
    }

    async fn without_input(command: &Command, merged: bool) -> io::Result<Self> {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => drop(variables.insert(name.to_owned(), value.to_owned())),
                None => drop(variables.remove(name)),
            }
        }
        let mut own = Self::begin(command, variables.into_iter().collect(), merged, None).await?;
        // The end of its input.
        own.input = None;
        Ok(own)
    }

    /// Starts a program that the host talks to over its standard streams. It gets these variables and no others, and is confined
    /// if there is a sandbox, whatever the mode of its rules.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn talk(
        program: &OsStr,
        arguments: &[OsString],
        folder: &Path,
        environment: Vec<(OsString, OsString)>,
        sandbox: Option<Sandbox>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        Self::begin(&command, environment, false, sandbox).await
    }

    async fn begin(
        command: &Command,
        mut environment: Vec<(OsString, OsString)>,
        merged: bool,
        sandbox: Option<Sandbox>,
    ) -> io::Result<Self> {
        let program = command.get_program().to_owned();
        let arguments: Vec<OsString> = command.get_args().map(ToOwned::to_owned).collect();
        let folder = command.get_current_dir().map_or_else(|| PathBuf::from("."), ToOwned::to_owned);
        let begun = tokio::task::spawn_blocking(move || {
            let confined = sandbox.map(confined).transpose()?;
            let start = |confined: &Arc<Confined>| {
                let files =
                    if program.as_encoded_bytes().contains(&b'/') { vec![folder.join(&program)] } else { Vec::new() };
                let start = Start { folder: &folder, environment: &environment, background: true, files };
                Planned::new(confined, start).map(|planned| Arc::new(planned.watching_granted(confined)))
            };
            let planned = confined.as_ref().map(start).transpose()?;
            if let Some(folder) = planned.as_ref().and_then(|planned| planned.other_temporary.clone()) {
                environment.retain(|(name, _)| name != TMPDIR);
                environment.push((TMPDIR.into(), folder.into()));
            }
            let execution = Execution {
                program: &program,
                name: &program,
                arguments: &arguments,
                folder: &folder,
                environment: &environment,
                merged,
                planned: planned.as_deref(),
            };
            let running = begin_own(&execution)?;
            Ok::<_, io::Error>(running.confined_by(planned, confined.map_or(Confinement::Off, Confinement::Confined)))
        });
        let mut running = begun.await.map_err(io::Error::other)??;
        let (input, output, errors) = (running.input.take(), running.output.take(), running.errors.take());
        Ok(Self { running, input, output, errors })
    }

    /// Ends it with everything that it started: first asks, and kills after a moment what is left. Returns a line for each file in
    /// its granted folders that starts programs or instructs agents, and appeared while it ran confined.
    pub async fn end(&mut self) -> Vec<String> {
        self.input = None;
        // Without input, most programs end by themselves.
        let _ = tokio::time::timeout(GRACE, self.running.ended()).await;
        // Processes that the program started may still run.
        if self.running.terminate() {
            let _ = tokio::time::timeout(GRACE, self.running.ended()).await;
        }
        self.running.kill();
        let _ = self.running.ended().await;
        undone(self.running.planned()).await
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

/// A sandbox with a folder for temporary files of its own.
fn confined(sandbox: Sandbox) -> io::Result<Arc<Confined>> {
    let scratch = sandbox::scratch(&sandbox.home)?;
    Ok(Arc::new(Confined::new(sandbox, scratch)))
}
