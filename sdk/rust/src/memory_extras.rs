//! What a memory provider can take part in besides recall. Each trait is exported by its name: `export!(Mine: MemoryProvider,
//! MemoryPrefetch);`

use crate::export::Slot;
use crate::memory_provider::{Query, Recollection};
use crate::{Error, MemoryProvider, MessageId, MessageRange, Progress};

use crate::bindings::memory_events::exports::hermes::memory::memory_events as events;
use crate::bindings::memory_mirror::exports::hermes::memory::memory_mirror as mirror;
use crate::bindings::memory_prefetch::exports::hermes::memory::memory_prefetch as prefetch;
use crate::bindings::memory_rewind::exports::hermes::memory::memory_rewind as rewind;
use crate::bindings::memory_upkeep::exports::hermes::memory::memory_upkeep as upkeep;

pub use mirror::{Action, Write};

/// Implemented by a memory provider that wants to take part in compaction.
pub trait MemoryEvents: MemoryProvider {
    /// What a summary of these messages should keep; empty for nothing. Called in the background before they are folded.
    fn before_compact(&mut self, messages: MessageRange) -> Result<String, Error>;
}

/// Implemented by a memory provider whose backend takes longer than a turn waits.
pub trait MemoryPrefetch: MemoryProvider {
    /// Recalls for the turn after the one that `query` describes. Called in the background, in an instance of its own.
    fn prefetch(&mut self, query: &Query) -> Result<Vec<Recollection>, Error>;
}

/// Implemented by a memory provider that wants to know what others write, such as the notes of `builtin`.
pub trait MemoryMirror: MemoryProvider {
    /// Another provider changed its store at the model's request. Called in the background, once for each write.
    fn written(&mut self, write: &Write) -> Result<(), Error>;
}

/// Implemented by a memory provider that forgets what the user takes back.
pub trait MemoryRewind: MemoryProvider {
    /// This message of the session and all later ones are gone. Called in the background.
    fn rewound(&mut self, session: &str, first: MessageId) -> Result<(), Error>;
}

/// Implemented by a memory provider that cares for its store: merges, forgets, indexes.
pub trait MemoryUpkeep: MemoryProvider {
    /// Does one step and says whether there is more. Called in the background while a session is idle, in an instance of its
    /// own; the user can interrupt it at any moment.
    fn upkeep(&mut self) -> Result<Progress, Error>;
}

impl<S: Slot<Plugin: MemoryEvents>> events::Guest for S {
    fn before_compact(messages: MessageRange) -> Result<String, Error> {
        S::call("before-compact", |provider| provider.before_compact(messages))
    }
}

impl<S: Slot<Plugin: MemoryPrefetch>> prefetch::Guest for S {
    fn prefetch(outlook: prefetch::Outlook) -> Result<Vec<prefetch::Prefetched>, Error> {
        let prefetch::Outlook { turn, author, text, budget, extra } = outlook;
        let query = Query { turn, author, text, budget, extra };
        let recalled = S::call("prefetch", |provider| provider.prefetch(&query))?;
        let prefetched = |Recollection { key, text, extra }| prefetch::Prefetched { key, text, extra };
        Ok(recalled.into_iter().map(prefetched).collect())
    }
}

impl<S: Slot<Plugin: MemoryMirror>> mirror::Guest for S {
    fn written(write: Write) -> Result<(), Error> {
        S::call("written", |provider| provider.written(&write))
    }
}

impl<S: Slot<Plugin: MemoryRewind>> rewind::Guest for S {
    fn rewound(session: String, first: MessageId) -> Result<(), Error> {
        S::call("rewound", |provider| provider.rewound(&session, first))
    }
}

impl<S: Slot<Plugin: MemoryUpkeep>> upkeep::Guest for S {
    fn upkeep() -> Result<Progress, Error> {
        S::call("upkeep", |provider| provider.upkeep())
    }
}
