//! A memory provider for tests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::MessageId;
use hermes_plugin_host::{
    CallError, Cause, Fault, FaultKind, MemoryExtras, MemoryPrefetch, MemoryProvider, MemoryRewind, MemoryUpkeep,
    Outlook, Progress, Query, Recollection, TurnRecord,
};

/// A slow memory provider that records its calls and the engine's rewinds.
#[derive(Default)]
pub(in crate::session) struct ScriptedMemory {
    /// How long it takes to store a turn.
    pub(in crate::session) takes: Duration,
    pub(in crate::session) notes: Mutex<Vec<String>>,
    /// The causes with which the next calls of `sync-turn` fail.
    failures: Mutex<VecDeque<Cause>>,
    /// How many of the next recalls fail.
    pub(in crate::session) failing_recalls: Mutex<u32>,
    /// What it was asked and what it stored.
    pub(in crate::session) queries: Mutex<Vec<Query>>,
    pub(in crate::session) turns: Mutex<Vec<TurnRecord>>,
    /// How often a conversation began.
    pub(in crate::session) beginnings: Mutex<u32>,
    /// With the optional functions. All of them but `prefetch` fail.
    pub(in crate::session) is_complete: bool,
}

impl ScriptedMemory {
    pub(in crate::session) fn new(takes: Duration) -> Arc<Self> {
        Arc::new(Self { takes, ..Self::default() })
    }

    /// A fast provider that fails with these causes and then works.
    pub(in crate::session) fn failing(causes: impl IntoIterator<Item = Cause>) -> Arc<Self> {
        let failures = Mutex::new(causes.into_iter().collect());
        Arc::new(Self { failures, ..Self::default() })
    }

    /// The same with the optional functions.
    pub(in crate::session) fn complete(causes: impl IntoIterator<Item = Cause>) -> Arc<Self> {
        let failures = Mutex::new(causes.into_iter().collect());
        Arc::new(Self { failures, is_complete: true, ..Self::default() })
    }

    fn error(&self, call: &'static str, cause: Cause) -> CallError {
        CallError { plugin: "memory".to_owned(), version: "1.0.0".to_owned(), call, cause }
    }

    pub(super) fn extras(self: &Arc<Self>) -> MemoryExtras {
        MemoryExtras {
            prefetch: vec![self.clone()],
            rewind: vec![self.clone()],
            upkeep: vec![self.clone()],
            ..MemoryExtras::default()
        }
    }

    pub(super) fn note(&self, note: String) {
        self.notes.lock().unwrap().push(note);
    }

    pub(in crate::session) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }
}

/// Records whether a call ended or was dropped.
struct SyncGuard<'a>(&'a ScriptedMemory, u32, bool);

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        let Self(memory, turn, finished) = self;
        memory.note(format!("{} {turn}", if *finished { "stored" } else { "cancelled" }));
    }
}

#[async_trait]
impl MemoryProvider for ScriptedMemory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn system_prompt(&self) -> Result<String, CallError> {
        Ok(String::new())
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recollection>, CallError> {
        self.queries.lock().unwrap().push(query);
        let mut failing = self.failing_recalls.lock().unwrap();
        if let Some(left) = failing.checked_sub(1) {
            *failing = left;
            return Err(self.error("recall", Cause::Fault(Box::new(Fault::new(FaultKind::Unavailable, "", "away")))));
        }
        Ok(Vec::new())
    }

    async fn sync_turn(&self, turn: &TurnRecord) -> Result<(), CallError> {
        if let Some(cause) = self.failures.lock().unwrap().pop_front() {
            self.note(format!("failed {}", turn.number));
            return Err(self.error("sync-turn", cause));
        }
        self.note(format!("storing {}", turn.number));
        let mut call = SyncGuard(self, turn.number, false);
        tokio::time::sleep(self.takes).await;
        call.2 = true;
        self.turns.lock().unwrap().push(turn.clone());
        Ok(())
    }
}

#[async_trait]
impl MemoryPrefetch for ScriptedMemory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn prefetch(&self, outlook: Outlook) -> Result<Vec<Recollection>, CallError> {
        if outlook.turn == 0 {
            *self.beginnings.lock().unwrap() += 1;
        } else {
            self.note(format!("ahead of {}", outlook.text));
        }
        Ok(Vec::new())
    }
}

#[async_trait]
impl MemoryRewind for ScriptedMemory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn turns_rewound(&self, _: String, first: MessageId) -> Result<(), CallError> {
        self.note(format!("taken back from {first}"));
        Err(self.error("rewound", Cause::Trap(Box::new("scripted".into()))))
    }
}

#[async_trait]
impl MemoryUpkeep for ScriptedMemory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn upkeep(&self) -> Result<Progress, CallError> {
        self.note("upkeep".to_owned());
        Err(self.error("upkeep", Cause::Trap(Box::new("scripted".into()))))
    }
}
