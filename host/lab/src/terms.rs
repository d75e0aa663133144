//! The settings that all columns of a comparison share. Every report prints them.

use serde::Serialize;

use crate::{LabError, Prices};

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

    /// The same with another window.
    ///
    /// # Errors
    ///
    /// [`LabError::Terms`] if system prompt and tools leave too little of the window.
    pub fn with_window(self, window: u32) -> Result<Self, LabError> {
        let least = self.fixed_tokens.saturating_mul(2);
        if window < least {
            return Err(LabError::Terms { window, fixed: self.fixed_tokens, least });
        }
        Ok(Self { window, ..self })
    }

    /// The tokens of this many bytes.
    pub fn tokens(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_token
    }
}
