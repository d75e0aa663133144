//! What else happens around a memory.

use crate::export::Slot;
use crate::{Error, MemoryProvider, MessageRange};

use crate::bindings::memory_events::exports::hermes::plugin::memory_events as wit;

/// What a memory provider may want to be told of, or asked, beside turns.
pub trait MemoryEvents: MemoryProvider {
    /// What a summary of these messages should keep; empty for nothing. In the background, before they are folded.
    fn before_compact(&mut self, messages: MessageRange) -> Result<String, Error>;
}

impl<S: Slot<Plugin: MemoryEvents>> wit::Guest for S {
    fn before_compact(messages: MessageRange) -> Result<String, Error> {
        S::call("before-compact", |provider| provider.before_compact(messages))
    }
}
