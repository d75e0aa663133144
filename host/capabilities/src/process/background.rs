//! Programs in the background: they belong to a session, and end with it.
//!
//! Each program has a task of its own, which reads its outputs at once, so that it never waits for a reader. The task ends
//! the program and what it started when it is asked to, when the program's time is up, or when the table is dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_private_files::TemporaryFolder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::child::not_started;
use super::ring::Ring;
use super::running::{Input, Running, begin, undone};
use super::sandbox;
use super::{End, GRACE, MAX_BACKGROUND, MAX_ENDED, MAX_INPUT, Run, invalid};
use crate::changes::RunningProgram;
use crate::fault::{Fault, FaultKind};

/// Identifies a background program of one plugin in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u32);

/// A background program in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub id: ProgramId,
    /// The program, as it was granted.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// When it started, in Unix milliseconds.
    pub started_at: u64,
    /// How it ended; none while it runs.
    pub end: Option<End>,
}

/// What a program wrote since the last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub errors: Vec<u8>,
    /// Bytes of the output that were lost before those above.
    pub output_lost: u64,
    /// Bytes of standard error that were lost before those above.
    pub errors_lost: u64,
    /// How it ended. Nothing follows then.
    pub end: Option<End>,
    /// What the sandbox denied, as far as it is known: a line for each.
    pub denied: Vec<String>,
}

/// The background programs of one plugin in one session. Dropping the last clone ends them.
#[derive(Clone, Default)]
pub struct Background(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    last: u32,
    programs: BTreeMap<ProgramId, Entry>,
    /// Programs that are about to run.
    starting: usize,
    /// No program can start any more.
    closed: bool,
    /// The session's folder for temporary files, once a confined program needs it.
    scratch: Option<Arc<TemporaryFolder>>,
}

struct Entry {
    program: Arc<Program>,
    /// Gone after the input was closed.
    input: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// True asks the program to end. So does dropping it.
    stop: watch::Sender<bool>,
}

/// What the table and the program's task share.
struct Program {
    name: String,
    arguments: Vec<String>,
    started_at: u64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    output: Ring,
    errors: Ring,
    /// Bytes of input that the program has not taken.
    waiting: usize,
    end: Option<End>,
    ended_at: Option<Instant>,
    /// What the sandbox denied, and nobody has read.
    denied: Vec<String>,
}

/// One of the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Errors,
}

impl Program {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes that the program wrote.
    fn wrote(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.state();
        match stream {
            Stream::Output => state.output.push(bytes),
            Stream::Errors => state.errors.push(bytes),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Keeps what the sandbox denied for the next read.
    fn denied(&self, lines: Vec<String>) {
        if !lines.is_empty() {
            self.state().denied.extend(lines);
            self.changed.notify_waiters();
        }
    }

    fn ended(&self, end: End) {
        let mut state = self.state();
        (state.end, state.ended_at) = (Some(end), Some(Instant::now()));
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until `ready` gives a value, for at most this time.
    async fn until<T>(&self, time: Duration, ready: impl Fn(&mut State) -> Option<T>) -> Option<T> {
        let until = Instant::now().checked_add(time);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the state is read, so that no change goes unseen.
            changed.as_mut().enable();
            if let Some(value) = ready(&mut self.state()) {
                return Some(value);
            }
            let left = until.map_or(time, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || tokio::time::timeout(left, changed).await.is_err() {
                return ready(&mut self.state());
            }
        }
    }
}

impl State {
    fn take(&mut self) -> Chunk {
        let ((output, output_lost), (errors, errors_lost)) = (self.output.take(), self.errors.take());
        let denied = std::mem::take(&mut self.denied);
        Chunk { output, errors, output_lost, errors_lost, end: self.end, denied }
    }

    fn has_news(&self) -> bool {
        self.end.is_some() || !self.output.is_empty() || !self.errors.is_empty() || !self.denied.is_empty()
    }
}

impl Background {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a program. It ends after `time`, if there is one. `now` is the Unix time in milliseconds. Blocks until the program
    /// runs.
    pub fn start(&self, run: Run, time: Option<Duration>, now: u64) -> Result<ProgramId, Fault> {
        self.start_recorded(run, time, now, None)
    }

    /// As [`Self::start`], for a program whose changes are recorded.
    pub fn start_recorded(
        &self,
        run: Run,
        time: Option<Duration>,
        now: u64,
        recorded: Option<Box<dyn RunningProgram>>,
    ) -> Result<ProgramId, Fault> {
        {
            let mut table = self.table();
            let running = table.programs.values().filter(|entry| entry.program.state().end.is_none()).count();
            if table.closed || running + table.starting >= MAX_BACKGROUND {
                return Err(too_many(table.closed));
            }
            table.starting += 1;
        }
        let begun = begin(&run);
        let mut table = self.table();
        table.starting -= 1;
        let mut running = begun.map_err(|error| not_started(&run, &error))?;
        if table.closed {
            // Dropping the program ends it.
            return Err(too_many(true));
        }
        let (input, queue) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let state = Mutex::new(State { waiting: run.input.len(), ..State::default() });
        let program = Arc::new(Program {
            name: run.program,
            arguments: run.arguments,
            started_at: now,
            state,
            changed: Notify::new(),
        });
        tokio::spawn(feed(running.input.take(), run.input, queue, Arc::clone(&program)));
        let watched = Watched { running, program: Arc::clone(&program), recorded };
        tokio::spawn(watched.watch(time, stopped));
        table.last += 1;
        let id = ProgramId(table.last);
        table.programs.insert(id, Entry { program, input: Some(input), stop });
        table.forget();
        Ok(id)
    }

    fn program(&self, id: ProgramId) -> Result<Arc<Program>, Fault> {
        self.table().programs.get(&id).map(|entry| Arc::clone(&entry.program)).ok_or_else(|| unknown(id))
    }

    /// Takes what a program wrote. Waits for news for at most this time.
    pub async fn read(&self, id: ProgramId, wait: Duration) -> Result<Chunk, Fault> {
        let program = self.program(id)?;
        let news = program.until(wait, |state| state.has_news().then(|| state.take())).await;
        Ok(news.unwrap_or_else(|| program.state().take()))
    }

    /// Appends to the standard input of a program.
    pub fn write(&self, id: ProgramId, bytes: Vec<u8>) -> Result<(), Fault> {
        let mut table = self.table();
        let entry = table.programs.get_mut(&id).ok_or_else(|| unknown(id))?;
        let mut state = entry.program.state();
        let Some(input) = entry.input.as_ref().filter(|_| state.end.is_none()) else { return Err(input_closed(id)) };
        let waiting = state.waiting.saturating_add(bytes.len());
        if waiting > MAX_INPUT {
            return Err(input_full(id, state.waiting));
        }
        state.waiting = waiting;
        input.send(bytes).map_err(|_| input_closed(id))
    }

    /// Closes the standard input of a program, after what was written.
    pub fn close_input(&self, id: ProgramId) -> Result<(), Fault> {
        let mut table = self.table();
        table.programs.get_mut(&id).ok_or_else(|| unknown(id))?.input = None;
        Ok(())
    }

    /// Waits for the end of a program for at most this time.
    pub async fn wait(&self, id: ProgramId, wait: Duration) -> Result<Option<End>, Fault> {
        Ok(self.program(id)?.until(wait, |state| state.end).await)
    }

    /// Ends a program and returns its end.
    pub async fn stop(&self, id: ProgramId) -> Result<End, Fault> {
        let program = {
            let table = self.table();
            let entry = table.programs.get(&id).ok_or_else(|| unknown(id))?;
            entry.stop.send_replace(true);
            Arc::clone(&entry.program)
        };
        let end = program.until(GRACE * 8, |state| state.end).await;
        end.ok_or_else(|| Fault::new(FaultKind::Failed, "io", format!("program {} does not end", id.0)))
    }

    /// The programs that run, and those that ended last.
    pub fn list(&self) -> Vec<Listed> {
        let listed = |(id, entry): (&ProgramId, &Entry)| {
            let Program { name, arguments, started_at, .. } = &*entry.program;
            let end = entry.program.state().end;
            Listed { id: *id, program: name.clone(), arguments: arguments.clone(), started_at: *started_at, end }
        };
        let mut table = self.table();
        table.forget();
        table.programs.iter().map(listed).collect()
    }

    /// Ends the programs that are no longer granted.
    pub fn keep(&self, granted: impl Fn(&str) -> bool) {
        for entry in self.table().programs.values().filter(|entry| !granted(&entry.program.name)) {
            entry.stop.send_replace(true);
        }
    }

    /// An open table for the same session, which does not use the numbers of this one again.
    #[must_use]
    pub fn successor(&self) -> Self {
        let table = self.table();
        let (last, scratch) = (table.last, table.scratch.clone());
        Self(Arc::new(Mutex::new(Table { last, scratch, ..Table::default() })))
    }

    /// The session's folder for temporary files. The last program that uses it, or the table, removes it.
    pub(super) fn scratch(&self, home: &std::path::Path) -> std::io::Result<Arc<TemporaryFolder>> {
        let mut table = self.table();
        let scratch = match table.scratch.take() {
            Some(scratch) => scratch,
            None => Arc::new(sandbox::scratch(home)?),
        };
        Ok(Arc::clone(table.scratch.insert(scratch)))
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.table().closed
    }

    /// Ends all programs, and starts none from now on.
    pub fn close(&self) {
        self.table().closed = true;
        self.keep(|_| false);
    }
}

impl Table {
    /// Forgets the programs that ended first.
    fn forget(&mut self) {
        let ended = |(id, entry): (&ProgramId, &Entry)| Some((entry.program.state().ended_at?, *id));
        let mut ended: Vec<(Instant, ProgramId)> = self.programs.iter().filter_map(ended).collect();
        ended.sort();
        for (_, id) in &ended[..ended.len().saturating_sub(MAX_ENDED)] {
            self.programs.remove(id);
        }
    }
}

/// A running program, in its task.
struct Watched {
    running: Running,
    program: Arc<Program>,
    recorded: Option<Box<dyn RunningProgram>>,
}

impl Watched {
    async fn watch(mut self, time: Option<Duration>, stopped: watch::Receiver<bool>) {
        let (output, errors) = (self.running.output.take(), self.running.errors.take());
        let mut readers = [
            read_all(output, Stream::Output, Arc::clone(&self.program)),
            read_all(errors, Stream::Errors, Arc::clone(&self.program)),
        ];
        let planned = self.running.planned();
        let end = tokio::select! {
            end = self.running.ended() => end.unwrap_or(End::Exited(-1)),
            () = expired(time) => End::TimedOut,
            () = asked(stopped) => End::Stopped,
        };
        // A process that outlives the program would keep its outputs open and run on unseen.
        if self.running.terminate() {
            let silence = async {
                let _ = self.running.ended().await;
                finished(&mut readers).await;
            };
            let _ = tokio::time::timeout(GRACE, silence).await;
        }
        self.running.kill();
        let _ = self.running.ended().await;
        drop(self.running);
        // A process that left the group may keep an output open forever.
        let _ = tokio::time::timeout(GRACE, finished(&mut readers)).await;
        readers.iter().for_each(JoinHandle::abort);
        self.program.denied(undone(planned).await);
        self.program.ended(end);
        if let Some(recorded) = self.recorded {
            tokio::task::spawn_blocking(|| recorded.ended());
        }
    }
}

/// Reads an output to its end.
fn read_all(
    pipe: Option<impl AsyncRead + Unpin + Send + 'static>,
    stream: Stream,
    program: Arc<Program>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            program.wrote(stream, &buffer[..count]);
        }
    })
}

async fn finished(readers: &mut [JoinHandle<()>]) {
    for reader in readers.iter_mut().filter(|reader| !reader.is_finished()) {
        let _ = reader.await;
    }
}

async fn expired(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the program is asked to end, or its table is gone.
async fn asked(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// Writes the input, piece by piece, until it is closed or the program no longer reads.
async fn feed(pipe: Option<Input>, first: Vec<u8>, mut queue: mpsc::UnboundedReceiver<Vec<u8>>, program: Arc<Program>) {
    let Some(mut pipe) = pipe else { return };
    let mut piece = first;
    loop {
        let written = pipe.write_all(&piece).await;
        program.state().waiting -= piece.len();
        if written.is_err() {
            return;
        }
        match queue.recv().await {
            Some(next) => piece = next,
            None => return,
        }
    }
}

fn unknown(id: ProgramId) -> Fault {
    invalid("unknown", format!("there is no background program {} in this session", id.0))
}

fn too_many(closed: bool) -> Fault {
    let why = if closed {
        "the session ends, so no program can start in the background".to_owned()
    } else {
        format!("{MAX_BACKGROUND} programs run in the background, which is the most for a plugin: stop one of them")
    };
    Fault::new(FaultKind::Exhausted, "too-many", why)
}

fn input_full(id: ProgramId, waiting: usize) -> Fault {
    let why = format!("program {} has not read {waiting} bytes of its input; at most {MAX_INPUT} can be waiting", id.0);
    Fault::new(FaultKind::Exhausted, "input-full", why)
}

fn input_closed(id: ProgramId) -> Fault {
    Fault::new(FaultKind::Failed, "input-closed", format!("the input of program {} is closed", id.0))
}
