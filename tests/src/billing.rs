//! Prompt caches that behave like those of providers. A test reads from the bill how well the host preserved its prefix.
//!
//! Tokens are a quarter of the bytes of each piece, so comparing two bills compares what was sent and not the tokenisation.

mod breakpoints;
mod implicit;

use std::time::Duration;

use serde_json::{Value, json};

use crate::request::Request;

pub use breakpoints::BreakpointCache;
pub use implicit::{ImplicitCache, Overlap};

/// The cost of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bill {
    /// Tokens of the whole prompt.
    pub prompt: u64,
    /// Of these, tokens read from the cache.
    pub read: u64,
    /// Of these, tokens written into the cache.
    pub written: u64,
    /// Of the written tokens, those kept for an hour.
    pub written_for_an_hour: u64,
    /// Tokens of the last block, or of the last message where whole messages are counted.
    pub last: u64,
    /// Overlap with an earlier request, where bytes are compared.
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

    /// Advances the cache's clock. An implicit cache never expires.
    pub(crate) fn advance(&mut self, time: Duration) {
        if let Self::Breakpoints(cache) = self {
            cache.advance(time);
        }
    }

    /// Whether replies report cache reads.
    pub(crate) fn reports(&self) -> bool {
        match self {
            Self::Implicit(cache) => cache.is_reported(),
            Self::Breakpoints(_) => true,
        }
    }
}

impl Bill {
    /// The usage in the form of chat completions.
    pub(crate) fn chat_usage(&self, reply: u64, reported: bool) -> Value {
        let mut usage = json!({
            "prompt_tokens": self.prompt, "completion_tokens": reply, "total_tokens": self.prompt + reply,
        });
        if reported {
            usage["prompt_tokens_details"] = json!({"cached_tokens": self.read, "cache_write_tokens": self.written});
        }
        usage
    }

    /// The usage in the form of the Responses API.
    pub(crate) fn responses_usage(&self, reply: u64, reported: bool) -> Value {
        let mut usage = json!({
            "input_tokens": self.prompt, "output_tokens": reply, "total_tokens": self.prompt + reply,
            "output_tokens_details": {"reasoning_tokens": 0},
        });
        if reported {
            usage["input_tokens_details"] = json!({"cached_tokens": self.read, "cache_write_tokens": self.written});
        }
        usage
    }

    /// The usage in Anthropic's form, where the three counts of the prompt add up.
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

/// Tokens of so many bytes; at least one, so that nothing is free.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
