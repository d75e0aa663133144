//! The interface between compaction and the owner of a conversation.

use std::collections::HashMap;
use std::sync::RwLockReadGuard;

use async_trait::async_trait;
use hermes_conversation::{Conversation, Summary, View};
use hermes_plugin_host::CacheState;

use crate::error::AgentError;

/// A conversation whose view can be replaced.
#[async_trait]
pub trait CompactionTarget: Send + Sync {
    /// All messages of the conversation.
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation>;
    /// The current view.
    fn view(&self) -> &View;
    /// Every summary of the current and earlier views, by key.
    fn summaries(&self) -> &HashMap<String, Summary>;
    /// Stores a verified view and makes it the current one. `engine` names its author.
    async fn adopt(&mut self, view: View, reason: &str, engine: &str) -> Result<(), AgentError>;
    /// The estimated tokens of the system prompt and the tools.
    fn fixed_tokens(&self) -> u32;
    /// The expected state of the provider's cache, and its prices.
    fn cache(&self) -> CacheState;
    /// Failures of the engine in a row, including those in earlier processes.
    fn faults(&self) -> u32;
    /// Stores the failure count and the last cause for the next process.
    async fn keep_faults(&mut self, in_a_row: u32, cause: &str) -> Result<(), AgentError>;
}
