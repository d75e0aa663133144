//! The settings of the simulated surroundings, which all engines of a comparison share.

use serde::Serialize;

use crate::Prices;

/// The terms of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Terms {
    /// The model's window in tokens.
    pub window: u32,
    /// Tokens of system prompt and tools.
    pub fixed_tokens: u32,
    /// Bytes of text per token.
    pub bytes_per_token: f64,
    /// The prices of tokens.
    pub prices: Prices,
    /// How many blocks before a mark the provider looks for a cached prefix.
    pub look_back: usize,
    /// The tokens that the model is assumed to write again for a request that lacks text.
    pub fault_tokens: u32,
}

impl Terms {
    /// A window of 200,000 tokens, 15,000 of them fixed, 2.9 bytes a token.
    pub const STANDARD: Self = Self {
        window: 200_000,
        fixed_tokens: 15_000,
        bytes_per_token: 2.9,
        prices: Prices::STANDARD,
        look_back: 20,
        fault_tokens: 2_000,
    };

    /// The tokens of this many bytes.
    pub fn tokens(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_token
    }
}
