//! A process group: a program and the processes that it started, ended together.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The leaders of groups that have not ended.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all running groups. For a process that is about to end.
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

/// The group of a child that was started as its leader. Dropping this kills the rest of the group.
pub(super) struct Group(Option<i32>);

impl Group {
    pub(super) fn of(child: &tokio::process::Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        running().extend(leader);
        Self(leader)
    }

    /// The number of the group, while it has not ended.
    pub(super) fn leader(&self) -> Option<i32> {
        self.0
    }

    /// Asks all processes of the group to end. False if none is left.
    pub(super) fn terminate(&mut self) -> bool {
        let left = self.0.is_some_and(|leader| signal(leader, Signal::Terminate));
        if let Some(leader) = self.0.take_if(|_| !left) {
            // From now on the number may belong to another process.
            running().remove(&leader);
        }
        left
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // After `end_all`, the number may belong to another process.
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

/// Without groups, only the child is killed, when its handle is dropped.
#[cfg(not(unix))]
fn signal(_: i32, _: Signal) -> bool {
    false
}
