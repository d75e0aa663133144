//! What a plugin used, summed over all instances that share a recipe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Counters that instances and imports update.
#[derive(Debug, Default)]
pub struct Tally {
    calls: AtomicU64,
    micros: AtomicU64,
    memory_peak: AtomicU64,
    host_calls: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
    bytes_out: AtomicU64,
}

/// The values of the counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Calls of the plugin's functions, failed calls included.
    pub calls: u64,
    /// Their total duration in microseconds, waiting included.
    pub micros: u64,
    /// The largest linear memory of an instance, in bytes.
    pub memory_peak: u64,
    /// Calls of imports.
    pub host_calls: u64,
    /// Tokens that models read for the plugin.
    pub tokens_in: u64,
    /// Tokens that models wrote for the plugin.
    pub tokens_out: u64,
    /// Bytes that the plugin sent through `http`.
    pub bytes_out: u64,
}

impl Tally {
    /// The current values.
    pub fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            calls: read(&self.calls),
            micros: read(&self.micros),
            memory_peak: read(&self.memory_peak),
            host_calls: read(&self.host_calls),
            tokens_in: read(&self.tokens_in),
            tokens_out: read(&self.tokens_out),
            bytes_out: read(&self.bytes_out),
        }
    }

    /// Counts a finished call, successful or not.
    pub(crate) fn called(&self, took: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Adds the import calls of a call, and updates the peak of the memory in bytes.
    pub(crate) fn used(&self, host_calls: u64, memory: u64) {
        self.host_calls.fetch_add(host_calls, Ordering::Relaxed);
        self.memory_peak.fetch_max(memory, Ordering::Relaxed);
    }

    /// Adds the tokens of a model request.
    pub(crate) fn model_called(&self, tokens_in: u64, tokens_out: u64) {
        self.tokens_in.fetch_add(tokens_in, Ordering::Relaxed);
        self.tokens_out.fetch_add(tokens_out, Ordering::Relaxed);
    }

    /// Updates the total number of bytes sent.
    pub fn sent(&self, so_far: u64) {
        self.bytes_out.fetch_max(so_far, Ordering::Relaxed);
    }
}

impl Figures {
    /// The difference to earlier values; the peak is kept.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            micros: self.micros.saturating_sub(earlier.micros),
            memory_peak: self.memory_peak,
            host_calls: self.host_calls.saturating_sub(earlier.host_calls),
            tokens_in: self.tokens_in.saturating_sub(earlier.tokens_in),
            tokens_out: self.tokens_out.saturating_sub(earlier.tokens_out),
            bytes_out: self.bytes_out.saturating_sub(earlier.bytes_out),
        }
    }

    /// The sum of both; the higher of the peaks.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(more.calls),
            micros: self.micros.saturating_add(more.micros),
            memory_peak: self.memory_peak.max(more.memory_peak),
            host_calls: self.host_calls.saturating_add(more.host_calls),
            tokens_in: self.tokens_in.saturating_add(more.tokens_in),
            tokens_out: self.tokens_out.saturating_add(more.tokens_out),
            bytes_out: self.bytes_out.saturating_add(more.bytes_out),
        }
    }
}
