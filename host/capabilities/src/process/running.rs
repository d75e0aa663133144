//! A program that runs: below a supervisor, or as a child of the host where there is none.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use super::chain::{Asked, Start, follow};
use super::copies::Copies;
use super::group::Group;
use super::guard::Guard;
use super::sandbox::{Planned, Start as Confinable, TMPDIR};
use super::{Confinement, End, Run};
use crate::fault::{Fault, FaultKind};
use hermes_sandbox::Offer;

/// The command of the supervisor: a program that calls [`supervise`](super::supervise) with the arguments that follow.
#[derive(Debug, Clone)]
pub struct SupervisorCommand {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
    /// Instead of them, those with which it prints what this machine offers to confine programs, as JSON.
    pub probe: Vec<OsString>,
}

static SUPERVISOR: OnceLock<SupervisorCommand> = OnceLock::new();

/// Lets supervisors run the programs of this process from now on. The first call counts.
pub fn supervise_with(command: SupervisorCommand) {
    let _ = SUPERVISOR.set(command);
}

/// What this machine offers to confine programs. The first call of the process finds out, which takes some milliseconds.
///
/// # Errors
///
/// Why it could not be found out, for example because no process can be started. That is not remembered: the next call tries again.
pub fn offer() -> Result<&'static Offer, String> {
    static OFFER: OnceLock<Offer> = OnceLock::new();
    if let Some(offer) = OFFER.get() {
        return Ok(offer);
    }
    let found = probed()?;
    Ok(OFFER.get_or_init(|| found))
}

#[cfg(target_os = "linux")]
fn probed() -> hermes_sandbox::Answer {
    let command = SUPERVISOR.get().ok_or("this process runs programs without a supervisor")?;
    let mut probe = std::process::Command::new(&command.program);
    probe.args(&command.probe).env_clear().current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    let output = probe.output().map_err(|error| format!("the process that tries it: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| Err(format!("the process that tries it gave no answer ({})", output.status)))
}

#[cfg(not(target_os = "linux"))]
fn probed() -> hermes_sandbox::Answer {
    Ok(Offer::Nothing("only Linux has what the sandbox needs".to_owned()))
}

/// Renames what a confined program created against the rules, and says so.
pub(super) async fn undone(planned: Option<Arc<Planned>>) -> Vec<String> {
    let Some(planned) = planned else { return Vec::new() };
    tokio::task::spawn_blocking(move || planned.undo()).await.unwrap_or_default()
}

pub(super) type Input = Box<dyn AsyncWrite + Send + Unpin>;
pub(super) type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A program that was started, with the host's ends of its standard streams.
pub(super) struct Running {
    pub(super) input: Option<Input>,
    pub(super) output: Option<Output>,
    pub(super) errors: Option<Output>,
    process: Process,
    planned: Option<Arc<Planned>>,
    /// The folder of its temporary files.
    _confinement: Confinement,
    /// They are removed after the program's end.
    _copies: Option<Copies>,
}

enum Process {
    /// A child of the host, the leader of a group.
    Direct { child: Child, group: Option<Group>, _guard: Option<Guard> },
    #[cfg(target_os = "linux")]
    Supervised(supervised::Supervisor),
}

/// A program that is about to start: from now on, changes of its files have no effect.
pub(super) struct Prepared<'a> {
    run: &'a Run,
    start: Start,
    copies: Copies,
}

/// The variable with the path of a program that runs as a copy.
const OWN_PATH: &str = "HERMES_PROGRAM";
/// How often a start is tried while a copy is busy, and the pause between two tries.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Starts a program. Blocks until it runs.
pub(super) fn begin(run: &Run) -> io::Result<Running> {
    prepare(run)?.start()
}

/// Takes what was approved out of the reach of plugins.
pub(super) fn prepare(run: &Run) -> io::Result<Prepared<'_>> {
    let mut copies = Copies::new(&run.places);
    let asked =
        Asked { path: &run.path, arguments: &run.arguments, folder: &run.folder, environment: &run.environment };
    let start = follow(asked, &run.places, &mut copies)?;
    if start.pin != run.pin || start.real.as_ref().is_some_and(|real| *real != run.real) {
        return Err(io::Error::other("it changed after it was approved; ask again"));
    }
    copies.finish()?;
    Ok(Prepared { run, start, copies })
}

impl Prepared<'_> {
    pub(super) fn start(self) -> io::Result<Running> {
        let Self { run, start, copies } = self;
        let own_path = copies.any().then(|| (OWN_PATH.into(), Some(run.real.clone().into_os_string())));
        let mut environment = run.environment.clone();
        for (name, value) in start.variables.iter().cloned().chain(own_path) {
            environment.retain(|(own, _)| *own != name);
            environment.extend(value.map(|value| (name, value)));
        }
        let planned = self::plan(run, &environment, [&start.program, &run.real], &copies)?;
        if let Some(folder) = planned.as_ref().and_then(|planned| planned.other_temporary.clone()) {
            environment.retain(|(name, _)| name != TMPDIR);
            environment.push((TMPDIR.into(), folder.into()));
        }
        let mut tries = 1;
        let (started, process) = loop {
            let execution = Execution {
                program: start.program.as_os_str(),
                name: &start.name,
                arguments: &start.arguments,
                folder: &run.folder,
                environment: &environment,
                merged: run.merged,
                planned: planned.as_deref(),
            };
            match spawn(&execution, run.background) {
                Ok(started) => break started,
                // A child that this process forked meanwhile has the copy open until it becomes another program.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && copies.any() => {
                    let folder = run.places.private.display();
                    let why = format!(
                        "{error}; a copy of it in {folder} was started, where programs must be executable (no `noexec`)"
                    );
                    return Err(io::Error::new(error.kind(), why));
                }
                Err(error) => return Err(error),
            }
        };
        let Streams { input, output, errors } = started;
        let _confinement = run.confinement.clone();
        Ok(Running { input, output, errors, process, planned, _confinement, _copies: Some(copies) })
    }
}

/// The sandbox of a run, if it has one.
fn plan(
    run: &Run,
    environment: &[(OsString, OsString)],
    programs: [&Path; 2],
    copies: &Copies,
) -> io::Result<Option<Arc<Planned>>> {
    let Confinement::Confined(confined) = &run.confinement else { return Ok(None) };
    let files = programs.into_iter().chain(copies.folder()).map(Path::to_owned).collect();
    Planned::new(confined, Confinable { folder: &run.folder, environment, background: run.background, files })
        .map(Arc::new)
        .map(Some)
}

/// Starts a program of the host's own, as it is. Blocks until it runs.
pub(super) fn begin_own(execution: &Execution<'_>) -> io::Result<Running> {
    let (Streams { input, output, errors }, process) = spawn(execution, false)?;
    Ok(Running { input, output, errors, process, planned: None, _confinement: Confinement::Off, _copies: None })
}

/// What the system starts.
pub(super) struct Execution<'a> {
    pub(super) program: &'a OsStr,
    /// The argument 0.
    pub(super) name: &'a OsStr,
    pub(super) arguments: &'a [OsString],
    pub(super) folder: &'a Path,
    /// The whole environment.
    pub(super) environment: &'a [(OsString, OsString)],
    /// One pipe for both outputs.
    pub(super) merged: bool,
    /// Its sandbox.
    pub(super) planned: Option<&'a Planned>,
}

/// The host's ends of the standard streams.
struct Streams {
    input: Option<Input>,
    output: Option<Output>,
    errors: Option<Output>,
}

/// `guarded`: a program in the background, which outlives the call that started it.
fn spawn(execution: &Execution<'_>, guarded: bool) -> io::Result<(Streams, Process)> {
    #[cfg(target_os = "linux")]
    if let Some(command) = SUPERVISOR.get() {
        return supervised::begin(execution, command);
    }
    if execution.planned.is_some() {
        return Err(io::Error::other("it must be confined, and this process has no supervisor that confines programs"));
    }
    let mut command = Command::new(execution.program);
    command.args(execution.arguments).current_dir(execution.folder);
    #[cfg(unix)]
    command.arg0(execution.name);
    command.env_clear().envs(execution.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    let merged = if execution.merged { Some(merge(&mut command)?) } else { None };
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    // The pipe of both outputs must stay open in the program only.
    drop(command);
    let group = Group::of(&child);
    let streams = Streams {
        input: child.stdin.take().map(|pipe| Box::new(pipe) as Input),
        output: child.stdout.take().map(|pipe| Box::new(pipe) as Output),
        errors: child.stderr.take().map(|pipe| Box::new(pipe) as Output),
    };
    #[cfg(unix)]
    let streams = match merged {
        Some(output) => Streams { output: Some(output), errors: None, ..streams },
        None => streams,
    };
    let guard = guarded.then(|| Guard::of(&group));
    Ok((streams, Process::Direct { _guard: guard, child, group: Some(group) }))
}

/// Gives a program one pipe for both outputs. Returns the host's end.
#[cfg(unix)]
fn merge(command: &mut Command) -> io::Result<Output> {
    let (output, written) = io::pipe()?;
    command.stdout(written.try_clone()?).stderr(written);
    let output = tokio::net::unix::pipe::Receiver::from_owned_fd(output.into())?;
    Ok(Box::new(output) as Output)
}

impl Running {
    /// The same, with the sandbox that it was started in.
    pub(super) fn confined_by(self, planned: Option<Arc<Planned>>, confinement: Confinement) -> Self {
        Self { planned, _confinement: confinement, ..self }
    }

    /// Its sandbox, if it has one.
    pub(super) fn planned(&self) -> Option<Arc<Planned>> {
        self.planned.clone()
    }

    /// Waits for the end of the program. The future can be dropped and created again.
    pub(super) async fn ended(&mut self) -> Result<End, Fault> {
        match &mut self.process {
            Process::Direct { child, .. } => ended_as(child.wait().await),
            #[cfg(target_os = "linux")]
            Process::Supervised(supervisor) => Ok(supervisor.ended().await),
        }
    }

    /// Asks all processes to end. False if none is left.
    pub(super) fn terminate(&mut self) -> bool {
        match &mut self.process {
            Process::Direct { group, .. } => group.as_mut().is_some_and(Group::terminate),
            #[cfg(target_os = "linux")]
            Process::Supervised(supervisor) => supervisor.terminate(),
        }
    }

    /// Kills what is left.
    pub(super) fn kill(&mut self) {
        match &mut self.process {
            Process::Direct { group, .. } => drop(group.take()),
            #[cfg(target_os = "linux")]
            Process::Supervised(supervisor) => supervisor.kill(),
        }
    }
}

fn ended_as(status: std::io::Result<ExitStatus>) -> Result<End, Fault> {
    let status = status.map_err(|error| {
        Fault::new(FaultKind::Failed, "io", format!("the exit status of the program is unknown: {error}"))
    })?;
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Ok(End::Killed(signal));
    }
    Ok(End::Exited(status.code().unwrap_or(-1)))
}

#[cfg(target_os = "linux")]
mod supervised {
    use std::io::{self, Read as _};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::Stdio;
    use std::time::Duration;

    use rustix::process::{Pid, Signal};
    use tokio::io::AsyncReadExt as _;
    use tokio::net::unix::pipe;
    use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
    use tokio::process::{Child, Command};

    use super::super::End;
    use super::super::supervisor::{KILL, TERMINATE, send_plan, send_streams};
    use super::{Execution, Input, Output, Process, Streams, SupervisorCommand};

    /// How long a supervisor may take to start its program. A busy machine needs a while.
    const START: Duration = Duration::from_secs(60);
    /// The longest answer of a supervisor.
    const LONGEST: usize = 1 << 10;

    /// A supervisor. Dropping it closes its socket, which kills the program and everything below it.
    pub(super) struct Supervisor {
        child: Child,
        answers: OwnedReadHalf,
        requests: OwnedWriteHalf,
        answer: Vec<u8>,
        /// The program, which leads a group.
        leader: Option<Pid>,
        end: Option<End>,
    }

    pub(super) fn begin(execution: &Execution<'_>, supervisor: &SupervisorCommand) -> io::Result<(Streams, Process)> {
        let Execution { program, name, arguments, folder, environment, merged, planned } = execution;
        let (mut own, other) = UnixStream::pair()?;
        let mut command = Command::new(&supervisor.program);
        command.args(&supervisor.arguments).arg("--").arg(program).arg(name).args(*arguments);
        command.current_dir(folder).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(OwnedFd::from(other))).stdout(Stdio::null()).stderr(Stdio::null());
        // A Ctrl-C at the terminal must not end the supervisor before the program.
        command.arg0("hermes").process_group(0);
        let child = command.spawn()?;
        // The other end of the socket must stay open in the supervisor only.
        drop(command);

        let (input, output, errors) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let written = if *merged { &output.1 } else { &errors.1 };
        send_streams(&own, [input.0.as_fd(), output.1.as_fd(), written.as_fd()])?;
        drop((input.0, output.1, errors.1));
        send_plan(&own, planned.map(|planned| &planned.plan))?;
        own.set_read_timeout(Some(START))?;
        let leader = started(&mut own)?;
        own.set_nonblocking(true)?;
        let (answers, requests) = tokio::net::UnixStream::from_std(own)?.into_split();
        let supervisor = Supervisor { child, answers, requests, answer: Vec::new(), leader, end: None };
        let streams = Streams {
            input: Some(Box::new(pipe::Sender::from_owned_fd(input.1.into())?) as Input),
            output: Some(Box::new(pipe::Receiver::from_owned_fd(output.0.into())?) as Output),
            errors: Some(Box::new(pipe::Receiver::from_owned_fd(errors.0.into())?) as Output),
        };
        Ok((streams, Process::Supervised(supervisor)))
    }

    /// Reads the first answer: the number of the program, or why it cannot be started.
    fn started(own: &mut UnixStream) -> io::Result<Option<Pid>> {
        let mut line = Vec::new();
        let mut byte = [0];
        while line.len() < LONGEST {
            match own.read(&mut byte) {
                // A read with a time limit ends when another program of this process does.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(1) if byte[0] != b'\n' => line.push(byte[0]),
                Ok(_) => break,
                Err(error) => return Err(error),
            }
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        match line.split_once(' ') {
            Some(("started", pid)) => Ok(pid.parse().ok().and_then(Pid::from_raw)),
            Some(("failed", why)) => Err(match why.split_once(' ') {
                Some((code, text)) => match code.parse() {
                    Ok(0) | Err(_) => io::Error::other(text.to_owned()),
                    Ok(code) => io::Error::from_raw_os_error(code),
                },
                None => io::Error::other(why.to_owned()),
            }),
            _ => Err(io::Error::other("the process that supervises it ended")),
        }
    }

    impl Supervisor {
        pub(super) async fn ended(&mut self) -> End {
            while self.end.is_none() {
                let mut bytes = [0; 64];
                match self.answers.read(&mut bytes).await {
                    Ok(count @ 1..) if self.answer.len() < LONGEST => self.answer.extend(&bytes[..count]),
                    _ => {
                        // Something killed the supervisor. The group of the program is all that can be reached.
                        if let Some(leader) = self.leader {
                            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
                        }
                        self.end = Some(End::Killed(Signal::KILL.as_raw()));
                    }
                }
                if self.answer.ends_with(b"\n") {
                    let line = String::from_utf8_lossy(&self.answer);
                    let number = |text: &str| text.trim().parse().unwrap_or(-1);
                    self.end = Some(match line.split_once(' ') {
                        Some(("signal", signal)) => End::Killed(number(signal)),
                        Some((_, code)) => End::Exited(number(code)),
                        None => End::Exited(-1),
                    });
                }
            }
            // The supervisor ends after its last answer.
            let _ = self.child.wait().await;
            self.end.unwrap_or(End::Exited(-1))
        }

        pub(super) fn terminate(&mut self) -> bool {
            self.end.is_none() && self.requests.try_write(&[TERMINATE]).is_ok()
        }

        pub(super) fn kill(&mut self) {
            if self.end.is_none() {
                let _ = self.requests.try_write(&[KILL]);
            }
        }
    }
}
