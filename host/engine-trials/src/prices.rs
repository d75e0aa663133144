//! The prices of tokens, relative to a fresh token.

use serde::{Deserialize, Serialize};

/// Prices per token. A file may use any unit, such as dollars per million tokens: the prices are divided by the price of
/// a fresh input token, which is the unit of all costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// An input token outside of the cache.
    pub input: f64,
    /// An input token written to the provider's cache.
    pub cache_write: f64,
    /// An input token read from the cache.
    pub cache_read: f64,
    /// An output token.
    pub output: f64,
    /// The price of the summariser's model, relative to these prices.
    #[serde(default = "Prices::standard_summariser")]
    pub summariser: f64,
    /// How long the provider keeps a cached prompt after its last use, in seconds.
    #[serde(default = "Prices::standard_ttl")]
    pub ttl_seconds: u64,
}

impl Prices {
    /// 1 / 1.25 / 0.1 and 5, a summariser at a fifth, 300 seconds.
    pub const STANDARD: Self =
        Self { input: 1.0, cache_write: 1.25, cache_read: 0.1, output: 5.0, summariser: 0.2, ttl_seconds: 300 };

    fn standard_summariser() -> f64 {
        Self::STANDARD.summariser
    }

    fn standard_ttl() -> u64 {
        Self::STANDARD.ttl_seconds
    }
}
