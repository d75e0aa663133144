//! Who records what plugins change, so that the user can undo it.
//!
//! A file tool of the host names each path before it changes it. A program may change anything while it runs.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::process::order::Run;

/// Records the changes of a session. All functions block.
pub trait ChangeRecorder: Send + Sync {
    /// A file tool begins. It is recorded when the value is dropped.
    fn change(&self) -> Box<dyn PendingChange>;

    /// A program that the user approved is about to start.
    fn program(&self, run: &Run) -> Box<dyn RunningProgram>;
}

/// A change of files that is under way.
pub trait PendingChange {
    /// This path, with links resolved, is about to change.
    fn will_change(&self, path: &Path);
}

/// A program that runs. Dropping it says that the program was stopped and ends soon.
pub trait RunningProgram: Send {
    /// The program has ended.
    fn ended(self: Box<Self>);
}

/// The recorder of a session, if it has one.
#[derive(Clone, Default)]
pub struct Changes(Option<Arc<dyn ChangeRecorder>>);

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Changes").field(&self.0.is_some()).finish()
    }
}

impl Changes {
    /// Changes that this recorder records.
    pub fn recorded_by(recorder: Arc<dyn ChangeRecorder>) -> Self {
        Self(Some(recorder))
    }

    /// Whether somebody records them.
    pub fn are_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// A file tool begins.
    pub fn begin(&self) -> Pending {
        Pending(self.0.as_ref().map(|recorder| recorder.change()))
    }

    /// A program that the user approved is about to start. Blocks.
    pub fn program(&self, run: &Run) -> Option<Box<dyn RunningProgram>> {
        self.0.as_ref().map(|recorder| recorder.program(run))
    }
}

/// A change that is recorded when this is dropped, if somebody records changes.
pub struct Pending(Option<Box<dyn PendingChange>>);

impl Pending {
    /// This path, with links resolved, is about to change. Blocks.
    pub fn will_change(&self, path: &Path) {
        if let Some(pending) = &self.0 {
            pending.will_change(path);
        }
    }
}
