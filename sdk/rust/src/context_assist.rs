//! Inserting folded passages without a tool call.

use crate::export::Slot;
use crate::{ContextEngine, Error};

use crate::bindings::context_assist::exports::hermes::context_engine::context_assist as wit;
pub use wit::{Draft, Place, Quote, ToolResult};

/// Implemented by a context engine that can point to passages which belong beside a new message.
pub trait ContextAssist: ContextEngine {
    /// Passages of the conversation within `budget` tokens, best first. The host quotes them verbatim after the message, and
    /// skips passages that the view shows anyway.
    fn assist(&mut self, draft: &Draft, budget: u32) -> Result<Vec<Quote>, Error>;
}

impl<S: Slot<Plugin: ContextAssist>> wit::Guest for S {
    fn assist(draft: Draft, budget: u32) -> Result<Vec<Quote>, Error> {
        S::call("assist", |engine| engine.assist(&draft, budget))
    }
}
