//! Prompt caches as providers keep them, so that a test can read from the bill what a host did to its prefix.
//!
//! Tokens are counted by a fixed ruler, a quarter of the bytes of each piece: whoever compares two bills compares what
//! was sent and not how it is cut into tokens.

mod breakpoints;
mod implicit;

use std::time::Duration;

use serde_json::{Value, json};

use crate::request::Request;

pub use breakpoints::BreakpointCache;
pub use implicit::{ImplicitCache, Overlap};

/// What one request cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bill {
    /// Tokens of the whole prompt.
    pub prompt: u64,
    /// Of these, read from the cache.
    pub read: u64,
    /// Of these, written into it.
    pub written: u64,
    /// Of those written, the tokens that are kept for an hour.
    pub written_for_an_hour: u64,
    /// Tokens of the last block; where whole messages are counted, of the last message.
    pub last: u64,
    /// What it has in common with an earlier request, where bytes are compared.
    pub overlap: Option<Overlap>,
}

/// The cache of a scripted provider.
#[derive(Debug)]
pub enum Cache {
    /// See [`ImplicitCache`].
    Implicit(ImplicitCache),
    /// See [`BreakpointCache`].
    Breakpoints(BreakpointCache),
}

impl From<ImplicitCache> for Cache {
    fn from(cache: ImplicitCache) -> Self {
        Self::Implicit(cache)
    }
}

impl From<BreakpointCache> for Cache {
    fn from(cache: BreakpointCache) -> Self {
        Self::Breakpoints(cache)
    }
}

impl Cache {
    pub(crate) fn bill(&mut self, request: &Request) -> Bill {
        match self {
            Self::Implicit(cache) => cache.bill(&request.raw),
            Self::Breakpoints(cache) => cache.bill(&request.body),
        }
    }

    /// An implicit cache here forgets nothing.
    pub(crate) fn advance(&mut self, time: Duration) {
        if let Self::Breakpoints(cache) = self {
            cache.advance(time);
        }
    }

    /// Whether replies tell what was read.
    pub(crate) fn reports(&self) -> bool {
        match self {
            Self::Implicit(cache) => cache.is_reported(),
            Self::Breakpoints(_) => true,
        }
    }
}

impl Bill {
    /// As a chat completion tells it.
    pub(crate) fn chat_usage(&self, reply: u64, reported: bool) -> Value {
        let mut usage = json!({
            "prompt_tokens": self.prompt, "completion_tokens": reply, "total_tokens": self.prompt + reply,
        });
        if reported {
            usage["prompt_tokens_details"] = json!({"cached_tokens": self.read, "cache_write_tokens": self.written});
        }
        usage
    }

    /// As Anthropic tells it: the three counts of the prompt add up.
    pub(crate) fn anthropic_usage(&self, reply: u64, reported: bool) -> Value {
        if !reported {
            return json!({"input_tokens": self.prompt, "output_tokens": reply});
        }
        json!({
            "input_tokens": self.prompt - self.read - self.written,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.written - self.written_for_an_hour,
                "ephemeral_1h_input_tokens": self.written_for_an_hour,
            },
            "output_tokens": reply,
        })
    }
}

/// Tokens by the fixed ruler: never none, so that nothing that is sent is free.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
