//! The worker's side: runs the statements that it receives.

use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use super::super::{Budget, CONNECTIONS, Database, Place, lock};
use super::frame::{self, Assignment, CallId, Reply, Request};

/// Memory of a worker beside SQLite's: its code's data, four results and the statements on their way.
const BESIDE: u64 = 512 << 20;

/// Serves one database until the host closes the stream, which it also does by ending. Then the process must end, even
/// if a statement still runs.
///
/// # Errors
///
/// When the stream fails, or the host sends something else than frames.
pub fn serve(stream: UnixStream) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let assignment = frame::read_assignment(&mut input)?;
    confine(&assignment);
    let place = assignment.path.map_or(Place::Memory, Place::File);
    let worker = Arc::new(Worker {
        database: Database::here(place, assignment.quota),
        output: Mutex::new(BufWriter::new(stream)),
        cancelled: Mutex::default(),
    });
    let (jobs, queue) = mpsc::channel::<(CallId, Request)>();
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..CONNECTIONS {
        let (worker, queue) = (Arc::clone(&worker), Arc::clone(&queue));
        std::thread::Builder::new().spawn(move || {
            loop {
                let job = lock(&queue).recv();
                let Ok((call, request)) = job else { return };
                worker.run(call, request);
            }
        })?;
    }
    while let Some((call, request)) = frame::read_request(&mut input)? {
        if let Request::Cancel = request {
            if let Some(flag) = lock(&worker.cancelled).get(&call) {
                flag.store(true, Ordering::Relaxed);
            }
            continue;
        }
        lock(&worker.cancelled).insert(call, Arc::default());
        if jobs.send((call, request)).is_err() {
            break;
        }
    }
    worker.database.close_idle();
    Ok(())
}

struct Worker {
    database: Database,
    output: Mutex<BufWriter<UnixStream>>,
    /// The calls that run or wait, each with whether its caller has gone.
    cancelled: Mutex<HashMap<CallId, Arc<AtomicBool>>>,
}

impl Worker {
    fn run(&self, call: CallId, request: Request) {
        let flag = lock(&self.cancelled).get(&call).map(Arc::clone).unwrap_or_default();
        let budget = |left| Budget { cancelled: Arc::new(move || flag.load(Ordering::Relaxed)), ..Budget::of(left) };
        let done = match request {
            Request::Query { statement, left } => self.database.query(&statement, &budget(left)).map(Reply::Rows),
            Request::Execute { statements, left } => {
                self.database.execute(&statements, &budget(left)).map(Reply::Changes)
            }
            Request::Cancel => return,
        };
        lock(&self.cancelled).remove(&call);
        let reply = done.unwrap_or_else(Reply::Failed);
        // Without a host there is no one to answer; the reader ends the process.
        let _ = frame::write_reply(&mut *lock(&self.output), call, &reply);
    }
}

/// A second limit of memory, for what SQLite does not count. A worker that exceeds it ends.
fn confine(assignment: &Assignment) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // The sanitizer of a fuzzer maps more memory for itself than the limit allows.
    if cfg!(fuzzing) {
        return;
    }
    let memory = assignment.quota.memory.saturating_add(BESIDE);
    for (resource, limit) in [(Resource::Data, memory), (Resource::Core, 0)] {
        let most = getrlimit(resource).maximum;
        let limit = most.map_or(limit, |most| most.min(limit));
        if let Err(error) = setrlimit(resource, Rlimit { current: Some(limit), maximum: most }) {
            tracing::debug!(%error, ?resource, "the limit cannot be set");
        }
    }
}
