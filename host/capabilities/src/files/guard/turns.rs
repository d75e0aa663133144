//! The order of changes within a session.
//!
//! A move judges each file of a folder by its new path, and a write judges a file by the path of its folder. If a folder moved between
//! the check of a write and the write itself, a file could appear at a place that nobody judged. So a move happens alone.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

use crate::files::replace::PATIENCE;

/// How often a change looks whether it may begin.
const LOOK: Duration = Duration::from_millis(5);

/// The changes of a session that are under way.
#[derive(Debug, Default)]
pub(in crate::files) struct Turns(RwLock<()>);

impl Turns {
    /// Waits until no move is under way. `None` after some time: a slow file system must not stop the session.
    pub(in crate::files) fn beside_others(&self) -> Option<RwLockReadGuard<'_, ()>> {
        within(PATIENCE, || self.0.try_read())
    }

    /// Waits until no change is under way.
    pub(in crate::files) fn alone(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        within(PATIENCE, || self.0.try_write())
    }
}

fn within<T>(patience: Duration, attempt: impl Fn() -> TryLockResult<T>) -> Option<T> {
    let until = Instant::now() + patience;
    loop {
        match attempt() {
            Ok(turn) => return Some(turn),
            // The lock protects no data.
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}
