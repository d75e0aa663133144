//! Other events that concern a memory provider.

use crate::export::Slot;
use crate::{Error, MemoryProvider, MessageRange};

use crate::bindings::memory_events::exports::hermes::memory::memory_events as wit;

/// Implemented by a memory provider that wants to take part in compaction.
pub trait MemoryEvents: MemoryProvider {
    /// What a summary of these messages should keep; empty for nothing. Called in the background before they are folded.
    fn before_compact(&mut self, messages: MessageRange) -> Result<String, Error>;
}

impl<S: Slot<Plugin: MemoryEvents>> wit::Guest for S {
    fn before_compact(messages: MessageRange) -> Result<String, Error> {
        S::call("before-compact", |provider| provider.before_compact(messages))
    }
}
