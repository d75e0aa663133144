//! A fair queue for the writers of all processes.
//!
//! SQLite has no queue: if two processes write without a pause, one of them can wait for more than a second. So a writer
//! first takes the turn, which is an operating-system lock on a file, waits for the current writer, and releases the turn
//! as soon as it writes. The queue only makes writers fair; SQLite's own locks protect the data.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hermes_private_files as private;

/// The folder of locks in a home.
pub(crate) const LOCKS: &str = "locks";
const NAME: &str = "writers.lock";
/// A process that is stopped while it has the turn, as under a debugger, must not block the others forever. After this
/// time they continue without the turn.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Between two checks. Short compared to a write, which takes as long as the disk needs.
const PAUSE: Duration = Duration::from_micros(300);
/// How long a process pauses after a wait, so that the other waiting processes come first.
const YIELD_PAUSE: Duration = Duration::from_micros(450);

/// The queue of one home folder.
#[derive(Debug)]
pub(crate) struct Queue {
    path: PathBuf,
    /// `None` if the file cannot be opened: then there is no queue.
    file: OnceLock<Option<File>>,
    /// Whether other writers were waiting the last time.
    waited: AtomicBool,
}

/// The turn of the next writer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(Option<&'a File>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            let _ = file.unlock();
        }
    }
}

impl Queue {
    /// Creates nothing before the first writer.
    pub(crate) fn of_home(home: &Path) -> Self {
        Self { path: home.join(LOCKS).join(NAME), file: OnceLock::new(), waited: AtomicBool::new(false) }
    }

    /// Waits for the turn. Only one of the threads that share this value may wait at a time.
    pub(crate) fn next(&self) -> Turn<'_> {
        let Some(file) = self.file.get_or_init(|| open(&self.path)) else { return Turn(None) };
        if self.waited.swap(false, Ordering::Relaxed) {
            std::thread::sleep(YIELD_PAUSE);
        }
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Turn(Some(file)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < TIMEOUT => {
                    self.waited.store(true, Ordering::Relaxed);
                    std::thread::sleep(PAUSE);
                }
                Err(_) => return Turn(None),
            }
        }
    }
}

fn open(path: &Path) -> Option<File> {
    private::create_folder(path.parent()?).ok()?;
    private::open_file(path).ok()
}

/// SQLite's own wait for the current writer: half a second in short steps. With SQLite's default pauses, most of the
/// time would pass between two writes.
pub(crate) fn wait_for_writer(tries: i32) -> bool {
    const MAX_TRIES: i32 = 1_400;
    std::thread::sleep(PAUSE);
    tries < MAX_TRIES
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn only_one_writer_has_the_turn() {
        let home = tempfile::tempdir().unwrap();
        let held = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // A separate file handle, as in another process.
                scope.spawn(|| {
                    let queue = Queue::of_home(home.path());
                    for _ in 0..100 {
                        let _turn = queue.next();
                        assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0);
                        held.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn without_a_file_no_writer_waits() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(LOCKS), "no folder").unwrap();
        let queue = Queue::of_home(home.path());
        assert!(queue.next().0.is_none());
    }
}
