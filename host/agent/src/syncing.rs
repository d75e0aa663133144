//! Sends finished turns to the memory providers, in order and in the background.

use std::sync::Arc;
use std::time::Duration;

use hermes_plugin_host::{MemoryProvider, TurnRecord};
use tokio_util::sync::CancellationToken;

use crate::report::NoticeSender;

/// The turns that memory providers are storing. Dropping it does not cancel them.
#[derive(Default)]
pub(crate) struct Syncing(Vec<Sync>);

/// A turn that is being stored or waits for the previous one.
struct Sync {
    record: TurnRecord,
    cancel: CancellationToken,
    /// Cancelled when all providers have finished with the turn.
    done: CancellationToken,
}

impl Syncing {
    /// Sends a turn to all providers, after the previous turns.
    pub(crate) fn start(&mut self, record: TurnRecord, memories: Vec<Arc<dyn MemoryProvider>>, notices: NoticeSender) {
        self.0.retain(|sync| !sync.done.is_cancelled());
        let before = self.0.last().map(|sync| sync.done.clone());
        let (cancel, done) = (CancellationToken::new(), CancellationToken::new());
        let sync = Sync { record: record.clone(), cancel: cancel.clone(), done: done.clone() };
        tokio::spawn(async move {
            // Set even if a provider panics.
            let _done = done.drop_guard();
            let stored = async {
                if let Some(before) = before {
                    before.cancelled().await;
                }
                for memory in memories {
                    if let Err(error) = memory.sync_turn(&record).await {
                        notices.notice(format!("{error}; the turn is stored in the log, but not in that memory"));
                    }
                }
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = stored => {}
            }
        });
        self.0.push(sync);
    }

    /// Whether a turn is being stored.
    pub(crate) fn is_working(&self) -> bool {
        self.0.iter().any(|sync| !sync.done.is_cancelled())
    }

    /// Waits until all turns are stored, at most `patience`.
    pub(crate) async fn settle(&self, patience: Duration) {
        let settled = async {
            for sync in &self.0 {
                sync.done.cancelled().await;
            }
        };
        // Turns that are not stored by then are still stored later.
        let _ = tokio::time::timeout(patience, settled).await;
    }

    /// Waits like [`Syncing::settle`] and then cancels the rest. Returns the turns that were not stored, in order.
    pub(crate) async fn interrupt(&mut self, patience: Duration) -> Vec<TurnRecord> {
        self.settle(patience).await;
        let unstored: Vec<Sync> =
            std::mem::take(&mut self.0).into_iter().filter(|sync| !sync.done.is_cancelled()).collect();
        unstored.iter().for_each(|sync| sync.cancel.cancel());
        for sync in &unstored {
            // A cancelled task ends at once: dropping the call cancels it in the plugin.
            sync.done.cancelled().await;
        }
        unstored.into_iter().map(|sync| sync.record).collect()
    }
}
