//! Limits of a running statement: time, as long as the caller waits, and memory.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Budget, SqlError, lock};

/// Steps of SQLite's virtual machine between two checks: few, because one step may copy a value of [`super::MAX_VALUE`].
pub(super) const STEPS: std::ffi::c_int = 250;
/// Time between two checks of the memory.
const PAUSE: Duration = Duration::from_millis(2);
/// How many bytes the process may grow while a statement runs. Sorting and grouping use memory that SQLite only counts for
/// the whole process.
const GROWTH: u64 = 512 << 20;

/// Watches the statements of one connection.
#[derive(Default)]
pub(super) struct Watch {
    running: Mutex<Option<Running>>,
}

struct Running {
    budget: Budget,
    /// The memory of the process at the first check, and the time of the last check.
    memory: Option<(u64, Instant)>,
    stopped: Option<SqlError>,
}

impl Watch {
    /// Starts to watch a statement with this budget.
    pub(super) fn begin(&self, budget: &Budget) {
        *lock(&self.running) = Some(Running { budget: budget.clone(), memory: None, stopped: None });
    }

    /// The statement has ended. Returns why it was stopped, if it was.
    pub(super) fn end(&self) -> Option<SqlError> {
        lock(&self.running).take().and_then(|running| running.stopped)
    }

    /// Whether to stop the statement. SQLite calls this.
    pub(super) fn look(&self) -> bool {
        let mut running = lock(&self.running);
        let Some(running) = running.as_mut() else { return false };
        if running.stopped.is_none() {
            running.stopped = running.reason();
        }
        running.stopped.is_some()
    }
}

impl Running {
    fn reason(&mut self) -> Option<SqlError> {
        let now = Instant::now();
        if now >= self.budget.until {
            return Some(SqlError::Time);
        }
        if self.budget.is_cancelled() {
            return Some(SqlError::Cancelled);
        }
        match self.memory {
            None => self.memory = resident().map(|bytes| (bytes, now)),
            Some((before, last)) if now.duration_since(last) >= PAUSE => {
                self.memory = Some((before, now));
                if resident()?.saturating_sub(before) > GROWTH {
                    return Some(SqlError::Memory);
                }
            }
            Some(_) => {}
        }
        None
    }
}

/// Bytes of memory of the process, if the system reports them.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
