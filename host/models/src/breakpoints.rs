//! The places of cache marks in a request.
//!
//! At a mark the provider stores everything before it, and looks up what it stored there or up to twenty blocks earlier.
//! Four are allowed. They are at the end of the stable tier, which new sessions share and which includes the tools; at the
//! end of the system prompt, or of the summaries right after it; at the end of the previous request, so that it is found
//! however much followed; and at the last message, for the next request.

use std::{str::FromStr, time::Duration};

/// How long a provider keeps what is marked, counted from its last use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Ttl {
    /// The providers' default.
    #[default]
    FiveMinutes,
    /// Costs more to write; for conversations with long pauses.
    OneHour,
}

impl Ttl {
    /// Its name in the configuration and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Ttl::FiveMinutes => "5m",
            Ttl::OneHour => "1h",
        }
    }

    /// The same as a span of time.
    pub fn duration(self) -> Duration {
        match self {
            Ttl::FiveMinutes => Duration::from_secs(300),
            Ttl::OneHour => Duration::from_secs(3600),
        }
    }

    /// The key that is inserted before the end of a part or block.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Ttl::FiveMinutes => r#","cache_control":{"type":"ephemeral"}"#,
            Ttl::OneHour => r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}

/// Which lifetime the user wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TtlChoice {
    /// Before each request, the one that pauses and prices of the past favour ([`crate::Lifetimes`]).
    #[default]
    Auto,
    /// Always this one.
    Always(Ttl),
}

impl FromStr for TtlChoice {
    type Err = UnknownTtl;

    fn from_str(text: &str) -> Result<Self, UnknownTtl> {
        if text.trim() == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Always) }
    }
}

/// A lifetime that no provider offers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cache lifetime of `{given}` is not offered")]
pub struct UnknownTtl {
    /// As written.
    pub given: String,
}

impl FromStr for Ttl {
    type Err = UnknownTtl;

    fn from_str(text: &str) -> Result<Self, UnknownTtl> {
        [Ttl::FiveMinutes, Ttl::OneHour]
            .into_iter()
            .find(|ttl| ttl.as_str() == text.trim())
            .ok_or_else(|| UnknownTtl { given: text.to_owned() })
    }
}

/// What decides the marks of a request, besides the prefix itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Breakpoints {
    /// How long to keep what is marked.
    pub ttl: Ttl,
    /// The index of the last one of the summaries with which the messages begin.
    pub summaries: Option<usize>,
    /// The index of the last message of the previous request.
    pub previous: Option<usize>,
}
