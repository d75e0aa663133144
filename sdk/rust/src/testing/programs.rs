//! Programs whose outcome the test scripts. Nothing runs.

use std::collections::{BTreeMap, VecDeque};

use super::Host;
use crate::Error;
use crate::bindings::imports::process as wit;

/// What a program does: its standard output (and exit code 0), a whole [`Exit`](crate::process::Exit), or an [`Error`].
#[derive(Clone, Debug)]
pub struct Outcome(Result<wit::Exit, Error>);

impl From<&str> for Outcome {
    fn from(output: &str) -> Self {
        let (output, errors) = (output.as_bytes().to_vec(), Vec::new());
        Self(Ok(wit::Exit { end: wit::End::Exited(0), output, errors, truncated: false, extra: Vec::new() }))
    }
}

impl From<wit::Exit> for Outcome {
    fn from(exit: wit::Exit) -> Self {
        Self(Ok(exit))
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        Self(Err(error))
    }
}

type Server = Box<dyn FnMut(&[u8]) -> Vec<u8>>;

/// A program in the background. One with a server runs until it is stopped; another one has ended at once.
struct Running {
    described: wit::Background,
    output: Vec<u8>,
    errors: Vec<u8>,
    server: Option<Server>,
}

#[derive(Default)]
pub(crate) struct Programs {
    outcomes: BTreeMap<String, VecDeque<Outcome>>,
    servers: BTreeMap<String, Server>,
    commands: Vec<wit::Command>,
    running: Vec<Running>,
}

impl Programs {
    pub(crate) fn run(&mut self, command: &wit::Command) -> Result<wit::Exit, Error> {
        self.commands.push(command.clone());
        let Some(outcomes) = self.outcomes.get_mut(&command.program) else { return Err(unknown(&command.program)) };
        match outcomes.pop_front() {
            Some(outcome) => outcome.0,
            None => panic!("the test has no further outcome of `{0}`: add `.program(\"{0}\", …)`", command.program),
        }
    }

    pub(crate) fn start(&mut self, command: &wit::Command) -> Result<wit::ProgramId, Error> {
        let id = u32::try_from(self.running.len()).unwrap_or(u32::MAX).saturating_add(1);
        let server = self.servers.remove(&command.program);
        let (output, errors, end) = if server.is_some() {
            self.commands.push(command.clone());
            (Vec::new(), Vec::new(), None)
        } else {
            let exit = self.run(command)?;
            (exit.output, exit.errors, Some(exit.end))
        };
        let described = wit::Background {
            id,
            program: command.program.clone(),
            arguments: command.arguments.clone(),
            started_at: 0,
            end,
            extra: Vec::new(),
        };
        self.running.push(Running { described, output, errors, server });
        Ok(id)
    }

    pub(crate) fn read(&mut self, id: wit::ProgramId, _wait_ms: u32) -> Result<wit::Chunk, Error> {
        let program = self.program(id)?;
        Ok(wit::Chunk {
            output: std::mem::take(&mut program.output),
            errors: std::mem::take(&mut program.errors),
            output_lost: 0,
            errors_lost: 0,
            end: program.described.end.clone(),
            extra: Vec::new(),
        })
    }

    pub(crate) fn write(&mut self, id: wit::ProgramId, bytes: &[u8]) -> Result<(), Error> {
        let program = self.program(id)?;
        match &mut program.server {
            Some(server) if program.described.end.is_none() => {
                let output = server(bytes);
                program.output.extend(output);
                Ok(())
            }
            _ => Err(Error::failed("the program's input is closed").with_code("input-closed")),
        }
    }

    pub(crate) fn close_input(&mut self, id: wit::ProgramId) -> Result<(), Error> {
        let program = self.program(id)?;
        // A server that has no more input ends.
        if program.server.take().is_some() {
            program.described.end = Some(wit::End::Exited(0));
        }
        Ok(())
    }

    pub(crate) fn wait(&mut self, id: wit::ProgramId, _wait_ms: u32) -> Result<Option<wit::End>, Error> {
        Ok(self.program(id)?.described.end.clone())
    }

    pub(crate) fn stop(&mut self, id: wit::ProgramId) -> Result<wit::End, Error> {
        let program = self.program(id)?;
        program.server = None;
        Ok(program.described.end.get_or_insert(wit::End::Stopped).clone())
    }

    pub(crate) fn programs(&mut self) -> Result<Vec<wit::Background>, Error> {
        Ok(self.running.iter().map(|program| program.described.clone()).collect())
    }

    fn program(&mut self, id: wit::ProgramId) -> Result<&mut Running, Error> {
        let found = self.running.iter_mut().find(|program| program.described.id == id);
        found.ok_or_else(|| Error::invalid(format!("no background program has the number {id}")).with_code("unknown"))
    }
}

fn unknown(program: &str) -> Error {
    let why = format!("the program `{program}` was not granted; in a test, `.program(\"{program}\", …)` grants it");
    Error::denied(why).with_code("not-granted")
}

impl Host {
    /// Grants a program, and gives the outcome of one run.
    ///
    /// ```
    /// use hermes_plugin::process::Command;
    /// use hermes_plugin::{Error, testing};
    ///
    /// let host = testing::Host::new().program("git", "main\n");
    /// assert_eq!(Command::new("git").arg("branch").run()?.output_text(), "main\n");
    /// assert_eq!(host.commands()[0].arguments, ["branch"]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn program(self, name: &str, outcome: impl Into<Outcome>) -> Self {
        let mut programs = self.state.process.borrow_mut();
        programs.outcomes.entry(name.to_owned()).or_default().push_back(outcome.into());
        drop(programs);
        self
    }

    /// Grants a program that runs in the background: `answer` returns its output for each input. It runs once.
    pub fn background(self, name: &str, answer: impl FnMut(&[u8]) -> Vec<u8> + 'static) -> Self {
        self.state.process.borrow_mut().servers.insert(name.to_owned(), Box::new(answer));
        self
    }

    /// The programs that the plugin ran or started.
    pub fn commands(&self) -> Vec<wit::Command> {
        self.state.process.borrow().commands.clone()
    }
}
