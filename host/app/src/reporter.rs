//! What a front end shows while an operation runs.

use std::ops::ControlFlow;
use std::time::Duration;

use hermes_diagnostic::Notice;

/// Receives notices and progress. Every method may be called from any thread; none may block for long.
pub trait Reporter: Send + Sync {
    /// Something that the user may want to know.
    fn note(&self, text: &str);

    /// Something that the user should put right.
    fn warning(&self, notice: &Notice);

    /// A plugin is being compiled, for so long already. `Break` stops the compiler.
    fn compiling(&self, plugin: &str, elapsed: Duration) -> ControlFlow<()>;

    /// Nothing is being compiled any more.
    fn compiled(&self);

    /// So many bytes of a download have arrived, of so many if that is known.
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
