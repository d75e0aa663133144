//! A process group: the program and what it started, ended as one.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Groups of this process that have not ended.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends at once whatever still runs. For a process that is about to end itself: nobody else would.
pub fn end_all() {
    for leader in std::mem::take(&mut *running()) {
        signal(leader, Signal::Kill);
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

/// The group of a child that was started as the leader of one. What is left of it is killed when this is dropped.
pub(super) struct Group(Option<i32>);

impl Group {
    pub(super) fn of(child: &tokio::process::Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        running().extend(leader);
        Self(leader)
    }

    /// Asks all to end; false where nobody is left.
    pub(super) fn terminate(&mut self) -> bool {
        let left = self.0.is_some_and(|leader| signal(leader, Signal::Terminate));
        if let Some(leader) = self.0.take_if(|_| !left) {
            // Its number may be somebody else's at any moment from now on.
            running().remove(&leader);
        }
        left
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // What was ended by `end_all` is no longer ours: the number may be somebody else's by now.
            if running().remove(&leader) {
                signal(leader, Signal::Kill);
            }
        }
    }
}

#[cfg(unix)]
fn signal(leader: i32, signal: Signal) -> bool {
    let Some(leader) = rustix::process::Pid::from_raw(leader) else { return false };
    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    rustix::process::kill_process_group(leader, signal).is_ok()
}

/// Without groups there is the child alone, which is killed when its handle is dropped.
#[cfg(not(unix))]
fn signal(_: i32, _: Signal) -> bool {
    false
}
