//! The rows of the ledger: one for each request, with its prefix and the provider's report.

use hermes_conversation::{MessageId, SessionId, Usage, ViewId};
use serde::{Deserialize, Serialize};

use crate::PromptNumber;

/// A request that was sent. Its row is written before: a process that dies meanwhile leaves it without a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Counted from 1 in each session; assigned by the store.
    pub number: u64,
    /// Unix time in milliseconds.
    pub sent_at: u64,
    /// The provider's name.
    pub provider: String,
    /// The model that was asked.
    pub model: String,
    /// The model that answered, if the reply names another one: a router chose it, or the name is an alias. Its price counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The wire format.
    pub api_mode: String,
    /// The frozen prompt with which it began.
    pub prompt: PromptNumber,
    /// The view that it showed.
    pub view: ViewId,
    /// Its last message.
    pub through: Option<MessageId>,
    /// Bytes of tools, system prompt and messages, without cache marks.
    pub bytes: u64,
    /// Hash of those bytes.
    pub fingerprint: String,
    /// Length of the prefix that it shares with the previous request.
    pub prefix_bytes: u64,
    /// Why the shared prefix is shorter than the previous request.
    pub cause: Option<String>,
    /// What caused that: a plugin, a layer of the prompt, a setting.
    pub culprit: Option<String>,
    /// How long the provider keeps what it wrote to the cache, `5m` or `1h`; `None` if it had no cache marks, or if an earlier version
    /// recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<String>,
    /// Layers of this call alone, as JSON text.
    pub ephemeral: Option<String>,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// Cost in US dollars, if the price is known.
    pub cost: Option<f64>,
    /// US dollars saved by the cache.
    pub saved: Option<f64>,
    /// US dollars lost by the broken prefix.
    pub lost: Option<f64>,
    /// Payloads of the provider, such as signed reasoning, that it carried unchanged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub payloads_replayed: u32,
    /// Payloads that it left out: another model wrote them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub payloads_dropped: u32,
}

/// A past request, as far as the choice of a cache lifetime needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The session.
    pub session: SessionId,
    /// Unix time in milliseconds.
    pub sent_at: u64,
    /// Tokens of the whole prompt, as the provider reported; `None` if it reported nothing.
    pub input: Option<u32>,
    /// Bytes of the prompt, without cache marks.
    pub bytes: u64,
    /// How long the provider keeps what it wrote, as in [`RequestRecord::cache_ttl`].
    pub cache_ttl: Option<String>,
}

/// A request beside the conversation: of a plugin, or of one of the host's own tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuxiliaryRecord {
    /// Assigned by the store.
    pub number: u64,
    /// The plugin; `hermes` for the host.
    pub plugin: String,
    /// The task, such as `compression`.
    pub task: String,
    /// Unix time in milliseconds.
    pub sent_at: u64,
    /// The provider's name.
    pub provider: String,
    /// The model that was asked.
    pub model: String,
    /// The model that answered, if the reply names another one.
    pub answered_by: Option<String>,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// Cost in US dollars, if the price is known.
    pub cost: Option<f64>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
