//! A small process between the host and one program. It ends the program with everything that the program has started, also
//! when the host is killed.
//!
//! The supervisor is a subreaper (`PR_SET_CHILD_SUBREAPER`): a process whose parent ends becomes its child, so that even one with a
//! session of its own (`setsid`) stays below it. Its standard input is a socket to the host. The host sends the program's
//! standard streams, the plan of a sandbox or none, and then single bytes; the end of the socket means that the host is gone. The supervisor answers in
//! lines: `started PID` or `failed ERRNO TEXT`, and at the end `exited CODE` or `signal NUMBER`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hermes_sandbox::{Plan, Side};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};

use super::GRACE;

/// Asks the program and its descendants to end, and kills them after [`GRACE`].
pub(super) const TERMINATE: u8 = b't';
/// Kills them at once.
pub(super) const KILL: u8 = b'k';
/// Standard input, output and error.
const STREAMS: usize = 3;
/// How long the supervisor waits for processes that were killed. Some cannot end while the system works for them.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between the first two rounds of killing. Each further one is twice as long.
const ROUND: Duration = Duration::from_millis(5);
/// The longest pause between two rounds.
const LONGEST_ROUND: Duration = Duration::from_millis(80);
/// How long the last child may take to be reaped after the program has ended, before others are looked for.
const MOMENT: Duration = Duration::from_millis(3);

/// Sends the program's streams.
pub(super) fn send_streams(socket: impl AsFd, streams: [BorrowedFd<'_>; STREAMS]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&streams));
    rustix::net::sendmsg(socket, &[IoSlice::new(b"s")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends the plan of the sandbox, or none, with its length before it.
pub(super) fn send_plan(mut socket: impl io::Write, plan: Option<&Plan>) -> io::Result<()> {
    let plan = match plan {
        Some(plan) => serde_json::to_vec(plan)?,
        None => Vec::new(),
    };
    let length = u32::try_from(plan.len()).map_err(io::Error::other)?;
    socket.write_all(&[&length.to_le_bytes(), plan.as_slice()].concat())
}

fn receive_plan() -> io::Result<Option<Plan>> {
    // Not through the buffer of the standard input, which would read further than the plan.
    let mut socket = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    if length == [0; 4] {
        return Ok(None);
    }
    let mut plan = Vec::new();
    socket.take(u32::from_le_bytes(length).into()).read_to_end(&mut plan)?;
    Ok(Some(serde_json::from_slice(&plan)?))
}

fn receive_streams(socket: impl AsFd) -> io::Result<[OwnedFd; STREAMS]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let streams: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(streams) => Some(streams),
            _ => None,
        })
        .flatten()
        .collect();
    streams.try_into().map_err(|_| io::Error::other("the host sent no streams"))
}

/// What happened.
enum Event {
    /// A byte of the host.
    Asked(u8),
    /// The host is gone.
    Left,
    /// The program has ended.
    Ended(WaitStatus),
    /// No child is left, and so no descendant.
    Alone,
}

/// Runs a program below this process, which does nothing else; `name` is its argument 0. The current folder and the environment are those of the program.
///
/// # Errors
///
/// When the host cannot be reached.
pub fn serve(program: &OsStr, name: &OsStr, arguments: &[OsString]) -> io::Result<()> {
    let [input, output, errors] = receive_streams(io::stdin())?;
    let confined = match receive_plan()? {
        None => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            false
        }
        Some(plan) => match hermes_sandbox::enter(&plan) {
            // The first process of the namespace: the kernel makes it the parent of orphans, and ends all others with it.
            Ok(Side::Inside(_)) => true,
            Ok(Side::Outside(first)) => {
                // They must stay open in the program only.
                drop((input, output, errors));
                return first.wait();
            }
            Err(error) => {
                tell(&format!("failed 0 no sandbox: {error}\n"));
                return Ok(());
            }
        },
    };
    let mut command = Command::new(program);
    command
        .arg0(name)
        .args(arguments)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors));
    command.process_group(0);
    let leader = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => {
            tell(&format!("failed {} {error}\n", error.raw_os_error().unwrap_or_default()));
            return Ok(());
        }
    };
    // The streams must not stay open here.
    drop(command);
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    // From here on the program must not outlive this process. The host may be gone already, which `listen` then finds. The number of a confined
    // program means something else to the host.
    tell(&format!("started {}\n", if confined { 0 } else { leader.as_raw_nonzero().get() }));
    let (events, happened) = channel();
    let asked = events.clone();
    let mut supervised = Supervised { leader, confined, happened, end: None, alone: false };
    let thread = || std::thread::Builder::new();
    let begun = thread().spawn(move || listen(&asked)).and_then(|_| thread().spawn(move || reap(leader, &events)));
    if let Err(error) = begun {
        supervised.kill();
        return Err(error);
    }
    match supervised.run() {
        Some(end) => tell(&match (end.exit_status(), end.terminating_signal()) {
            (Some(code), _) => format!("exited {code}\n"),
            (None, Some(signal)) => format!("signal {signal}\n"),
            (None, None) => "exited -1\n".to_owned(),
        }),
        None => tell("signal 9\n"),
    }
    Ok(())
}

/// Sends a line to the host. If the host is gone, nobody waits for it.
fn tell(line: &str) {
    let _ = rustix::net::send(io::stdin(), line.as_bytes(), SendFlags::NOSIGNAL);
}

fn listen(events: &Sender<Event>) {
    let mut byte = [0];
    loop {
        let event = match rustix::io::read(io::stdin(), &mut byte) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(1..) => Event::Asked(byte[0]),
            Ok(0) | Err(_) => Event::Left,
        };
        let is_last = matches!(event, Event::Left);
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// Reaps every child, also those that were left to this process by others.
fn reap(leader: Pid, events: &Sender<Event>) {
    loop {
        let event = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == leader => Event::Ended(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => Event::Alone,
        };
        let is_last = matches!(event, Event::Alone);
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

struct Supervised {
    leader: Pid,
    /// Whether this process is the first one of a namespace.
    confined: bool,
    happened: Receiver<Event>,
    end: Option<WaitStatus>,
    alone: bool,
}

impl Supervised {
    fn run(mut self) -> Option<WaitStatus> {
        self.watch();
        self.kill();
        self.end
    }

    /// Returns when no process is left, or when all must be killed.
    fn watch(&mut self) {
        let mut deadline: Option<Instant> = None;
        while !self.alone {
            let event = match deadline {
                None => self.happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => self.happened.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(Event::Asked(TERMINATE)) => self.terminate(&mut deadline),
                Ok(Event::Ended(end)) => {
                    self.end = Some(end);
                    // Usually no process is left, and there is nothing to look for.
                    match self.happened.recv_timeout(MOMENT) {
                        Ok(Event::Alone) => self.alone = true,
                        Ok(Event::Asked(TERMINATE)) | Err(_) => self.terminate(&mut deadline),
                        Ok(_) => return,
                    }
                }
                Ok(Event::Alone) => self.alone = true,
                Ok(Event::Asked(_) | Event::Left) | Err(_) => return,
            }
        }
    }

    fn terminate(&self, deadline: &mut Option<Instant>) {
        if deadline.is_none() {
            *deadline = Some(Instant::now() + GRACE);
            self.signal_all(Signal::TERM);
        }
    }

    /// Kills all descendants, again and again, until none is left.
    fn kill(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut pause = ROUND;
        while !self.alone && Instant::now() < until {
            // A stopped process cannot start others meanwhile.
            self.signal_all(Signal::STOP);
            self.signal_all(Signal::KILL);
            let next = Instant::now() + pause;
            while !self.alone {
                match self.happened.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(Event::Alone) => self.alone = true,
                    Ok(Event::Ended(end)) => self.end = Some(end),
                    Ok(Event::Asked(_) | Event::Left) => {}
                    // Without threads nothing happens.
                    Err(RecvTimeoutError::Disconnected) => {
                        std::thread::sleep(next.saturating_duration_since(Instant::now()));
                        break;
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            // Each round reads all processes of the machine. Many supervisors at once would keep it from ending those that were killed.
            pause = (2 * pause).min(LONGEST_ROUND);
        }
    }

    fn signal_all(&self, signal: Signal) {
        if self.confined {
            // With the number of the first process, this reaches all others of the namespace (`kill(-1, …)`).
            let _ = rustix::process::kill_process_group(Pid::INIT, signal);
            return;
        }
        let Some(processes) = Processes::read() else {
            // Without /proc, the group is all that can be reached.
            let _ = rustix::process::kill_process_group(self.leader, signal);
            return;
        };
        for process in processes.below(rustix::process::getpid()) {
            process.signal(signal);
        }
    }
}

/// A process, and when it started: a number alone may belong to another one a moment later.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: Pid,
    parent: i32,
    started: String,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program may contain blanks and brackets.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let (state, parent, started) = (fields.first()?, fields.get(1)?.parse().ok()?, fields.get(19)?);
        (*state != "Z").then(|| Self { pid, parent, started: (*started).to_owned() })
    }

    fn signal(&self, signal: Signal) {
        match rustix::process::pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) => {
                if Self::read(self.pid).is_some_and(|now| now.started == self.started) {
                    let _ = rustix::process::pidfd_send_signal(handle, signal);
                }
            }
            Err(rustix::io::Errno::SRCH) => {}
            // An old kernel.
            Err(_) => drop(rustix::process::kill_process(self.pid, signal)),
        }
    }
}

struct Processes(HashMap<i32, Vec<Process>>);

impl Processes {
    fn read() -> Option<Self> {
        let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
        let names = std::fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for process in names.filter_map(|name| Process::read(Pid::from_raw(name.parse().ok()?)?)) {
            by_parent.entry(process.parent).or_default().push(process);
        }
        // A /proc that hides this process shows no descendants either.
        (!by_parent.is_empty()).then_some(Self(by_parent))
    }

    fn below(mut self, pid: Pid) -> Vec<Process> {
        let mut found = self.0.remove(&pid.as_raw_nonzero().get()).unwrap_or_default();
        let mut next = 0;
        while let Some(process) = found.get(next) {
            let children = self.0.remove(&process.pid.as_raw_nonzero().get()).unwrap_or_default();
            found.extend(children);
            next += 1;
        }
        found
    }
}
