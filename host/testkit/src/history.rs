//! A conversation in memory, as plugins read it.

mod words;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use hermes_conversation::{Conversation, Draft, Header, Message, MessageId, MessageRange, View};
use hermes_runtime::Fault;
use hermes_runtime::services::{History, HistoryHit, HistoryQuery};

pub use words::WordSearch;

/// A conversation that several tasks use.
pub type SharedConversation = Arc<RwLock<Conversation>>;

/// Searches a [`MemoryHistory`].
#[async_trait]
pub trait Search: Send + Sync {
    /// The best matches in the conversation.
    async fn search(&self, conversation: &SharedConversation, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault>;
}

/// The messages of a conversation, and the summaries that replaced some of them.
pub struct MemoryHistory<S> {
    conversation: SharedConversation,
    /// The summaries of every view so far, by key.
    summaries: RwLock<HashMap<String, String>>,
    search: S,
}

impl<S> MemoryHistory<S> {
    /// A history of this conversation.
    pub fn new(conversation: Conversation, search: S) -> Self {
        Self { conversation: Arc::new(RwLock::new(conversation)), summaries: RwLock::default(), search }
    }

    /// The conversation, locked for reading.
    pub fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.conversation.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The conversation, locked for changes.
    pub fn change(&self) -> RwLockWriteGuard<'_, Conversation> {
        self.conversation.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the conversation.
    pub fn copy(&self) -> Conversation {
        self.conversation().clone()
    }

    /// Appends a message under the next id.
    pub fn push(&self, draft: Draft) {
        let mut conversation = self.change();
        let next = conversation.messages().last().map_or(1, |last| last.id.0 + 1);
        conversation.push(draft.numbered(MessageId(next)));
    }

    /// Keeps the summaries of a view.
    pub fn keep_summaries(&self, view: &View) {
        let mut summaries = self.summaries.write().unwrap_or_else(PoisonError::into_inner);
        for summary in view.summaries() {
            summaries.entry(summary.key.clone()).or_insert_with(|| summary.content.clone());
        }
    }
}

#[async_trait]
impl<S: Search> History for MemoryHistory<S> {
    fn whole(&self) -> Option<MessageRange> {
        self.conversation().whole()
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        self.conversation().headers_after(after).to_vec()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        self.conversation().headers_in(range).to_vec()
    }

    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        self.conversation().read(range, bytes)
    }

    async fn summary(&self, key: &str) -> Result<Option<String>, Fault> {
        Ok(self.summaries.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        self.search.search(&self.conversation, query).await
    }

    async fn picture(&self, _: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(None)
    }
}
