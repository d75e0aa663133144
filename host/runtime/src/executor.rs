//! Threads: the async runtimes of this program, and whether the system starts a thread at all.
//!
//! A library that gets no thread panics or waits forever (tokio, rayon, notify), so the system is asked before. The clippy
//! configuration forbids the functions of the standard library that panic.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// How long a thread for blocking work lives on without work. Work waits for one of these threads where the system starts no other.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// An async runtime with `workers` threads.
///
/// # Errors
///
/// When the system does not start the threads.
pub fn shared(workers: usize) -> io::Result<Runtime> {
    // One more for blocking work.
    starts(workers + 1)?;
    started(Builder::new_multi_thread().worker_threads(workers))
}

/// An async runtime on the thread that waits for it, so that tasks run in a fixed order.
///
/// # Errors
///
/// When the system does not start the thread for blocking work.
pub fn single() -> io::Result<Runtime> {
    starts(1)?;
    started(&mut Builder::new_current_thread())
}

fn started(builder: &mut Builder) -> io::Result<Runtime> {
    let runtime = builder.thread_keep_alive(IDLE).enable_all().build()?;
    // From now on there is a thread for blocking work.
    runtime.spawn_blocking(|| ());
    Ok(runtime)
}

/// Whether the system starts this many threads beside each other.
///
/// # Errors
///
/// The system's reason why not.
pub fn starts(threads: usize) -> io::Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let waiting: Vec<io::Result<JoinHandle<()>>> = (0..threads)
        .map(|_| {
            let gate = Arc::clone(&gate);
            thread::Builder::new().spawn(move || drop(gate.lock()))
        })
        .collect();
    drop(closed);
    // Their memory is free again before this returns.
    waiting.into_iter().try_for_each(|thread| thread?.join().map_err(|_| io::Error::other("a thread panicked")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn blocking_work_runs_in_both_runtimes() {
        for runtime in [shared(2).unwrap(), single().unwrap()] {
            let done = runtime.block_on(async { tokio::task::spawn_blocking(|| 7).await.unwrap() });
            assert_eq!(done, 7);
        }
    }

    /// This test again in a process of its own, whose memory has no room for the stacks.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_system_without_room_for_threads_is_an_error() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        const CHILD: &str = "HERMES_TEST_THREADS";
        if std::env::var_os(CHILD).is_some() {
            let size = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = size.split(' ').next().unwrap().parse().unwrap();
            let maximum = getrlimit(Resource::As).maximum;
            // A stack has 2 MiB: room for at most three of them.
            let current = Some(pages * rustix::param::page_size() as u64 + (7 << 20));
            setrlimit(Resource::As, Rlimit { current, maximum }).unwrap();
            assert!(starts(8).is_err() && shared(8).is_err());
            assert!(starts(1).is_ok());
            std::process::exit(0);
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "executor::tests::a_system_without_room_for_threads_is_an_error"]).env(CHILD, "yes");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}
