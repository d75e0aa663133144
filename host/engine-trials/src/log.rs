//! A conversation in memory that plugins read and compaction changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};

use async_trait::async_trait;
use hermes_agent::AgentError;
use hermes_agent::compaction::CompactionTarget;
use hermes_conversation::{Conversation, Summary, View};
use hermes_plugin_host::services::{HistoryHit, HistoryQuery};
use hermes_plugin_host::{CacheState, Fault, FaultKind};
use hermes_testkit::{MemoryHistory, Search, SharedConversation};

use crate::Prices;
use crate::finder::Finder;

/// The conversation that plugins and compaction share.
pub type Log = MemoryHistory<IndexedSearch>;

/// The host's search, over an index that is created at the first search.
pub struct IndexedSearch {
    finder: Arc<Mutex<Option<Finder>>>,
    home: PathBuf,
}

impl IndexedSearch {
    /// `home` is the folder for the index.
    pub fn new(home: PathBuf) -> Self {
        Self { finder: Arc::default(), home }
    }
}

#[async_trait]
impl Search for IndexedSearch {
    async fn search(&self, conversation: &SharedConversation, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        let (conversation, finder) = (Arc::clone(conversation), Arc::clone(&self.finder));
        let (home, query) = (self.home.clone(), query.clone());
        // The search blocks its thread.
        let found = tokio::task::spawn_blocking(move || {
            let mut finder = finder.lock().unwrap_or_else(PoisonError::into_inner);
            let finder = match &mut *finder {
                Some(finder) => finder,
                none => none.insert(Finder::open(&home)?),
            };
            finder.search(&conversation.read().unwrap_or_else(PoisonError::into_inner), &query)
        });
        let found = found.await.map_err(|error| error.to_string()).flatten();
        found.map_err(|why| Fault::new(FaultKind::Failed, "", why))
    }
}

/// A conversation whose view compaction can change.
pub struct LabTarget {
    pub(crate) log: Arc<Log>,
    /// The current view.
    pub view: View,
    /// Every view so far, oldest first.
    pub views: Vec<View>,
    pub(crate) summaries: HashMap<String, Summary>,
    pub(crate) fixed_tokens: u32,
    pub(crate) prices: Prices,
    /// The time of the last request and its tokens.
    pub(crate) sent: Option<(u64, u32)>,
    pub(crate) now_ms: u64,
    pub(crate) faults: u32,
}

impl LabTarget {
    /// Records a view, with its summaries.
    pub(crate) fn remember(&mut self, view: View) {
        self.log.keep_summaries(&view);
        for summary in view.summaries() {
            self.summaries.entry(summary.key.clone()).or_insert_with(|| summary.clone());
        }
        self.views.push(view);
    }
}

impl LabTarget {
    /// Replaces the current view.
    pub fn take_view(&mut self, view: View) {
        self.remember(view.clone());
        self.view = view;
    }
}

#[async_trait]
impl CompactionTarget for LabTarget {
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.log.conversation()
    }

    fn view(&self) -> &View {
        &self.view
    }

    fn summaries(&self) -> &HashMap<String, Summary> {
        &self.summaries
    }

    async fn adopt(&mut self, view: View, _: &str, _: &str) -> Result<(), AgentError> {
        self.take_view(view);
        Ok(())
    }

    fn fixed_tokens(&self) -> u32 {
        self.fixed_tokens
    }

    fn cache(&self) -> CacheState {
        let until = |sent: u64| sent + self.prices.ttl_seconds * 1_000;
        let warm = self.sent.filter(|(sent, _)| until(*sent) >= self.now_ms);
        CacheState {
            warm_tokens: warm.map_or(0, |(_, tokens)| tokens),
            warm_until: warm.map(|(sent, _)| until(sent)),
            read_price: self.prices.cache_read as f32,
            write_price: self.prices.cache_write as f32,
            breaking: false,
        }
    }

    fn faults(&self) -> u32 {
        self.faults
    }

    async fn keep_faults(&mut self, in_a_row: u32, _: &str) -> Result<(), AgentError> {
        self.faults = in_a_row;
        Ok(())
    }
}
