//! What compaction works on: a conversation with its view, wherever it is kept.

use std::collections::HashMap;
use std::sync::RwLockReadGuard;

use async_trait::async_trait;
use hermes_conversation::{Conversation, Summary, View};
use hermes_plugin_host::CacheState;

use crate::error::AgentError;

/// A conversation that can be shown and whose view can be replaced.
#[async_trait]
pub trait CompactionTarget: Send + Sync {
    /// The log.
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation>;
    /// The view in force.
    fn view(&self) -> &View;
    /// Every summary that is or was in a view of the conversation, by its key.
    fn summaries(&self) -> &HashMap<String, Summary>;
    /// Makes a verified view the one in force, for good; `engine` is who made it.
    async fn adopt(&mut self, view: View, reason: &str, engine: &str) -> Result<(), AgentError>;
    /// Estimate for system prompt and tools.
    fn fixed_tokens(&self) -> u32;
    /// What the provider is believed to hold, and its prices.
    fn cache(&self) -> CacheState;
    /// How often the engine failed in a row, in this process or an earlier one.
    fn faults(&self) -> u32;
    /// Keeps that for the next process, with the last cause.
    async fn keep_faults(&mut self, in_a_row: u32, cause: &str) -> Result<(), AgentError>;
}
