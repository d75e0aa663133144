//! Runs a plugin's statements in another process, which can be ended.
//!
//! SQLite checks a deadline between the steps of its machine, but not within a function, a full-text query or the planner:
//! one such step can take hours. So the host runs each database in a worker: a process of the same program that serves one
//! plugin. A statement that does not stop at its deadline ends with its worker. SQLite rolls its transaction back, and
//! the next call gets a new worker. The worker also makes SQLite's memory countable, which has one limit per process.

mod frame;
mod serve;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use self::serve::serve;

use self::frame::{Assignment, CallId, Reply, Work};
use super::{Budget, CONNECTIONS, LOOK, Quota, Rows, SqlError, Statement, lock};

/// How long a worker may take to close its database.
const LEAVING: Duration = Duration::from_millis(500);
/// How long the host tries to pass a request to a worker.
const WRITING: Duration = Duration::from_secs(2);

/// A program that serves a database on its standard input, a socket, by [`serve`].
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment: nothing else is passed on.
    pub environment: Vec<(OsString, OsString)>,
}

static PROGRAM: OnceLock<WorkerProgram> = OnceLock::new();

/// From now on, every new database of this process runs in workers. Without this, statements run in this process: for
/// tests and measurements. The first program that is set stays.
pub fn run_in_workers(program: WorkerProgram) {
    let _ = PROGRAM.set(program);
}

/// A database in a worker. The worker is started by the first call, and ends with this value.
pub(super) struct Remote {
    program: WorkerProgram,
    assignment: Assignment,
    /// How many calls may still begin at the same time.
    seats: Mutex<usize>,
    left: Condvar,
    worker: Mutex<Option<Arc<Worker>>>,
}

/// How a call to a worker ended.
enum Outcome {
    Replied(Reply),
    /// It did not stop in time: this is the error of the call.
    Stuck(SqlError),
    /// The worker has ended.
    Ended,
}

impl Remote {
    /// `None` if this process has named no program.
    pub(super) fn new(path: Option<PathBuf>, quota: Quota) -> Option<Self> {
        Some(Self::with(PROGRAM.get()?.clone(), path, quota))
    }

    pub(super) fn with(program: WorkerProgram, path: Option<PathBuf>, quota: Quota) -> Self {
        let seats = if path.is_some() { CONNECTIONS } else { 1 };
        // The worker has another working directory.
        let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
        Self {
            program,
            assignment: Assignment { path, quota },
            seats: Mutex::new(seats),
            left: Condvar::new(),
            worker: Mutex::default(),
        }
    }

    /// The id of the process, if it runs.
    #[cfg(test)]
    pub(super) fn process(&self) -> Option<u32> {
        lock(&self.worker).as_ref().map(|worker| lock(&worker.child).id())
    }

    pub(super) fn query(&self, statement: &Statement, budget: &Budget) -> Result<Rows, SqlError> {
        match self.call(Work::Query(statement), budget)? {
            Reply::Rows(rows) => Ok(rows),
            Reply::Failed(error) => Err(error),
            Reply::Changes(_) => Err(unexpected()),
        }
    }

    pub(super) fn execute(&self, statements: &[Statement], budget: &Budget) -> Result<Vec<u64>, SqlError> {
        match self.call(Work::Execute(statements), budget)? {
            Reply::Changes(changes) => Ok(changes),
            Reply::Failed(error) => Err(error),
            Reply::Rows(_) => Err(unexpected()),
        }
    }

    fn call(&self, work: Work<'_>, budget: &Budget) -> Result<Reply, SqlError> {
        let _seat = self.sit(budget)?;
        let mut was_retried = false;
        loop {
            let worker = self.worker()?;
            match worker.ask(work, budget) {
                Outcome::Replied(reply) => return Ok(reply),
                Outcome::Stuck(error) => {
                    self.end(&worker);
                    return Err(error);
                }
                Outcome::Ended => {
                    let detail = self.end(&worker);
                    // A statement beside this one may have ended the worker. A query can be repeated without harm.
                    let can_retry = matches!(work, Work::Query(_)) && !was_retried && !budget.left().is_zero();
                    if !can_retry {
                        return Err(SqlError::Ended { detail });
                    }
                    was_retried = true;
                }
            }
        }
    }

    /// Waits until fewer calls run than the database has connections: what a worker has begun, it can finish.
    fn sit(&self, budget: &Budget) -> Result<Seat<'_>, SqlError> {
        let mut seats = lock(&self.seats);
        loop {
            if *seats > 0 {
                *seats -= 1;
                return Ok(Seat(self));
            }
            if budget.is_cancelled() {
                return Err(SqlError::Cancelled);
            }
            let left = budget.left();
            if left.is_zero() {
                return Err(SqlError::Busy);
            }
            seats = self.left.wait_timeout(seats, left.min(LOOK)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn worker(&self) -> Result<Arc<Worker>, SqlError> {
        let mut current = lock(&self.worker);
        if let Some(worker) = &*current {
            return Ok(Arc::clone(worker));
        }
        let worker = Worker::start(&self.program, &self.assignment);
        let worker = Arc::new(worker.map_err(|error| SqlError::NoWorker { detail: error.to_string() })?);
        *current = Some(Arc::clone(&worker));
        Ok(worker)
    }

    /// Ends a worker, so that the next call starts another. Returns how it ended.
    fn end(&self, worker: &Arc<Worker>) -> String {
        let mut current = lock(&self.worker);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, worker)) {
            *current = None;
        }
        drop(current);
        worker.end()
    }
}

struct Seat<'a>(&'a Remote);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        *lock(&self.0.seats) += 1;
        self.0.left.notify_one();
    }
}

/// A reply of the wrong kind, which no worker of this program sends.
fn unexpected() -> SqlError {
    SqlError::Ended { detail: "its reply is not one to this call".to_owned() }
}

/// One process.
struct Worker {
    child: Mutex<Child>,
    requests: Mutex<BufWriter<UnixStream>>,
    waiting: Arc<Mutex<Waiting>>,
    calls: AtomicU64,
}

/// The calls that wait for a reply.
#[derive(Default)]
struct Waiting {
    calls: HashMap<CallId, mpsc::Sender<Reply>>,
    /// No more replies will come.
    is_over: bool,
}

impl Worker {
    fn start(program: &WorkerProgram, assignment: &Assignment) -> io::Result<Self> {
        let (own, others) = UnixStream::pair()?;
        let mut command = Command::new(&program.program);
        command.args(&program.arguments).env_clear().envs(program.environment.iter().cloned());
        command.stdin(Stdio::from(OwnedFd::from(others))).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C that stops a turn must not end it: the host ends what has to end.
        command.current_dir("/").process_group(0);
        // Dropping the worker after an error ends the process.
        let worker = Self {
            child: Mutex::new(command.spawn()?),
            requests: Mutex::new(BufWriter::new(own.try_clone()?)),
            waiting: Arc::default(),
            calls: AtomicU64::new(0),
        };
        // The command keeps the other end of the stream open until it is dropped.
        drop(command);
        own.set_write_timeout(Some(WRITING))?;
        frame::write_assignment(&mut *lock(&worker.requests), assignment)?;
        let (waiting, quota) = (Arc::clone(&worker.waiting), assignment.quota);
        let reader = std::thread::Builder::new().name("hermes-sql".to_owned());
        reader.spawn(move || {
            read_replies(&own, &quota, &waiting);
            let mut waiting = lock(&waiting);
            waiting.is_over = true;
            // A call that waits for a reply sees that its sender is gone.
            waiting.calls.clear();
        })?;
        Ok(worker)
    }

    fn ask(&self, work: Work<'_>, budget: &Budget) -> Outcome {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = mpsc::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.is_over {
                return Outcome::Ended;
            }
            waiting.calls.insert(call, sender);
        }
        let outcome = self.pass_and_wait(call, work, &reply, budget);
        lock(&self.waiting).calls.remove(&call);
        outcome
    }

    fn pass_and_wait(&self, call: CallId, work: Work<'_>, reply: &mpsc::Receiver<Reply>, budget: &Budget) -> Outcome {
        let written = frame::write_work(&mut *lock(&self.requests), call, budget.left(), work);
        if written.is_err() {
            // Nothing can follow a part of a frame.
            return Outcome::Ended;
        }
        // Why the call ends, and until when it may do so by itself.
        let mut stopping: Option<(SqlError, Instant)> = None;
        loop {
            let until = stopping.as_ref().map_or(budget.until, |(_, until)| *until);
            let left = until.saturating_duration_since(Instant::now());
            match reply.recv_timeout(left.min(LOOK)) {
                Ok(reply) => return Outcome::Replied(reply),
                Err(RecvTimeoutError::Disconnected) => return Outcome::Ended,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            match &stopping {
                Some((error, until)) if now >= *until => return Outcome::Stuck(error.clone()),
                Some(_) => {}
                None if budget.is_cancelled() => {
                    stopping = Some((SqlError::Cancelled, now + budget.grace));
                    if frame::write_cancel(&mut *lock(&self.requests), call).is_err() {
                        return Outcome::Ended;
                    }
                }
                None if budget.left().is_zero() => stopping = Some((SqlError::Time, now + budget.grace)),
                None => {}
            }
        }
    }

    /// Ends the process, and tells how it ended.
    fn end(&self) -> String {
        let mut child = lock(&self.child);
        // It may have ended by itself.
        let ended = child.try_wait().ok().flatten();
        let status = ended.or_else(|| {
            let _ = child.kill();
            child.wait().ok()
        });
        let _ = lock(&self.requests).get_ref().shutdown(Shutdown::Both);
        match status.map(|status| (status.signal(), status.to_string())) {
            Some((Some(signal), _)) if signal == libc::SIGKILL => {
                "the host ended it, because a statement did not stop".to_owned()
            }
            Some((_, status)) => status,
            None => "unknown".to_owned(),
        }
    }
}

impl Drop for Worker {
    /// Lets the worker close its database, which it does when the stream ends.
    fn drop(&mut self) {
        let _ = lock(&self.requests).get_ref().shutdown(Shutdown::Both);
        let until = Instant::now() + LEAVING;
        while matches!(lock(&self.child).try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.end();
    }
}

fn read_replies(stream: &UnixStream, quota: &Quota, waiting: &Mutex<Waiting>) {
    let mut input = BufReader::new(stream);
    loop {
        match frame::read_reply(&mut input, quota) {
            Ok(Some((call, reply))) => {
                // A caller that was too late has gone.
                if let Some(sender) = lock(waiting).calls.remove(&call) {
                    let _ = sender.send(reply);
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "a database's worker");
                return;
            }
        }
    }
}
