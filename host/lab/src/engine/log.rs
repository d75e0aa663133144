//! A conversation in memory that plugins read and compaction changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use hermes_agent::AgentError;
use hermes_agent::compaction::CompactionTarget;
use hermes_conversation::{Conversation, Header, Message, MessageId, MessageRange, Summary, View};
use hermes_plugin_host::services::{History, HistoryHit, HistoryQuery};
use hermes_plugin_host::{CacheState, Fault, FaultKind};

use super::finder::Finder;
use crate::Prices;

/// The parts of a conversation that plugins and compaction share.
pub(crate) struct Log {
    conversation: Arc<RwLock<Conversation>>,
    /// The summaries of every view so far, by key.
    summaries: RwLock<HashMap<String, String>>,
    finder: Arc<Mutex<Option<Finder>>>,
    home: PathBuf,
}

impl Log {
    /// `home` is the folder for the search index, which is created at the first search.
    pub(super) fn new(home: PathBuf, conversation: Conversation) -> Self {
        Self {
            conversation: Arc::new(RwLock::new(conversation)),
            summaries: RwLock::default(),
            finder: Arc::default(),
            home,
        }
    }

    pub(crate) fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.conversation.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self) -> RwLockWriteGuard<'_, Conversation> {
        self.conversation.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, view: &View) {
        let mut summaries = self.summaries.write().unwrap_or_else(PoisonError::into_inner);
        for summary in view.summaries() {
            summaries.entry(summary.key.clone()).or_insert_with(|| summary.content.clone());
        }
    }
}

#[async_trait]
impl History for Log {
    fn whole(&self) -> Option<MessageRange> {
        self.conversation().whole()
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        let conversation = self.conversation();
        let start = after.map_or(0, |id| conversation.headers().partition_point(|header| header.id <= id));
        conversation.headers()[start..].to_vec()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        let conversation = self.conversation();
        conversation.headers()[conversation.span(range)].to_vec()
    }

    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        let conversation = self.conversation();
        let span = conversation.span(range);
        let mut read = Vec::new();
        let mut taken = 0;
        for (message, header) in conversation.messages()[span.clone()].iter().zip(&conversation.headers()[span]) {
            let reasoning = message.reasoning.as_ref().map_or(0, String::len);
            let calls: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
            taken += message.content.len() + reasoning + calls;
            if taken > bytes && !read.is_empty() {
                return (read, Some(message.id));
            }
            read.push((message.clone(), header.tokens));
        }
        (read, None)
    }

    async fn summary(&self, key: &str) -> Result<Option<String>, Fault> {
        Ok(self.summaries.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        let (conversation, finder) = (Arc::clone(&self.conversation), Arc::clone(&self.finder));
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
pub(crate) struct LabDesk {
    pub(super) log: Arc<Log>,
    pub(crate) view: View,
    /// Every view so far, oldest first.
    pub(crate) views: Vec<View>,
    pub(super) summaries: HashMap<String, Summary>,
    pub(super) fixed_tokens: u32,
    pub(super) prices: Prices,
    /// The time of the last request and its tokens.
    pub(super) sent: Option<(u64, u32)>,
    pub(super) now_ms: u64,
    pub(super) faults: u32,
}

impl LabDesk {
    /// Records a view, with its summaries.
    pub(super) fn remember(&mut self, view: View) {
        self.log.keep(&view);
        for summary in view.summaries() {
            self.summaries.entry(summary.key.clone()).or_insert_with(|| summary.clone());
        }
        self.views.push(view);
    }
}

impl LabDesk {
    /// Replaces the current view.
    pub(crate) fn take_view(&mut self, view: View) {
        self.remember(view.clone());
        self.view = view;
    }
}

#[async_trait]
impl CompactionTarget for LabDesk {
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
