//! What a plugin used, counted over all of its instances that share a recipe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Counters that instances and imports add to.
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

/// What the counters say at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Calls of its functions, failed ones included.
    pub calls: u64,
    /// Microseconds that they took, waiting included.
    pub micros: u64,
    /// The most bytes of linear memory that one instance had.
    pub memory_peak: u64,
    /// Uses of imports.
    pub host_calls: u64,
    /// Tokens that models read for it.
    pub tokens_in: u64,
    /// Tokens that models wrote for it.
    pub tokens_out: u64,
    /// Bytes that left the machine for it, through `http`.
    pub bytes_out: u64,
}

impl Tally {
    /// What was counted so far.
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

    /// A call came to its end, however it ended.
    pub(crate) fn called(&self, took: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// An instance used imports so often in a call, and has so many bytes of memory.
    pub(crate) fn used(&self, host_calls: u64, memory: u64) {
        self.host_calls.fetch_add(host_calls, Ordering::Relaxed);
        self.memory_peak.fetch_max(memory, Ordering::Relaxed);
    }

    /// A model answered it.
    pub(crate) fn asked_a_model(&self, tokens_in: u64, tokens_out: u64) {
        self.tokens_in.fetch_add(tokens_in, Ordering::Relaxed);
        self.tokens_out.fetch_add(tokens_out, Ordering::Relaxed);
    }

    /// So many bytes have left the machine for it by now.
    pub fn sent(&self, so_far: u64) {
        self.bytes_out.fetch_max(so_far, Ordering::Relaxed);
    }
}

impl Figures {
    /// What was counted since an earlier moment; a peak stays the peak.
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

    /// Both together; of peaks, the higher one.
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
