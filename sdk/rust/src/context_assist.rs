//! Bringing back what the view folds, without being asked.

use crate::export::Slot;
use crate::{ContextEngine, Error};

use crate::bindings::context_assist::exports::hermes::plugin::context_assist as wit;
pub use wit::{Draft, Place, Quote, ToolResult};

/// What a context engine may do beside planning: point at passages that belong beside a message which is about to take its
/// final form.
pub trait ContextAssist: ContextEngine {
    /// Passages of the conversation, best first, in `budget` tokens. The host puts them behind the message word for word; what
    /// the view shows anyway is left out.
    fn assist(&mut self, draft: &Draft, budget: u32) -> Result<Vec<Quote>, Error>;
}

impl<S: Slot<Plugin: ContextAssist>> wit::Guest for S {
    fn assist(draft: Draft, budget: u32) -> Result<Vec<Quote>, Error> {
        S::call("assist", |engine| engine.assist(&draft, budget))
    }
}
