//! Progress and notices of a running operation, for a front end to show.

use std::ops::ControlFlow;
use std::time::Duration;

use hermes_diagnostic::Notice;

/// Receives notices and progress. Every method may be called from any thread; none may block for long.
pub trait Reporter: Send + Sync {
    /// Something that the user may want to know.
    fn note(&self, text: &str);

    /// Something that the user should correct.
    fn warning(&self, notice: &Notice);

    /// A plugin is being compiled; `elapsed` is the time so far. `Break` stops the compiler.
    fn compiling(&self, plugin: &str, elapsed: Duration) -> ControlFlow<()>;

    /// The compilation has ended.
    fn compiled(&self);

    /// Bytes of a download that have arrived, and the number of all bytes if it is known.
    fn bytes(&self, done: u64, all: Option<u64>);
}

/// A reporter that shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Reporter for Quiet {
    fn note(&self, _: &str) {}

    fn warning(&self, _: &Notice) {}

    fn compiling(&self, _: &str, _: Duration) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn compiled(&self) {}

    fn bytes(&self, _: u64, _: Option<u64>) {}
}
