//! What an instance may use, and how it is held to it.

use std::time::Duration;

use wasmtime::ResourceLimiter;

/// How long a call may take; afterwards the instance is ended.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Making an instance: instantiation, `configure`, `session-start`.
    pub start: Duration,
    /// What a turn waits for: `observe`, `assess`, `propose`, `settled`, `catalog`, `index`, `view`, hooks.
    pub turn: Duration,
    /// `recall`, which a turn can do without.
    pub recall: Duration,
    /// `tools.call`.
    pub tool: Duration,
    /// Background work: `prepare`, `sync-turn`.
    pub background: Duration,
}

/// What one instance may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes over all its linear memories and tables.
    pub memory: usize,
    /// Core instances, memories and tables.
    pub parts: usize,
    /// Open resources, such as streams.
    pub handles: usize,
    /// Bytes that one call of an import may carry over from the guest.
    pub import_bytes: usize,
    /// Time.
    pub deadlines: Deadlines,
}

impl Limits {
    /// What every plugin gets: 256 MiB, 2 s on the turn's path, 30 s for a tool, 180 s in the background.
    pub fn standard() -> Self {
        Self {
            memory: 256 << 20,
            parts: 64,
            handles: 1_000,
            import_bytes: 64 << 20,
            deadlines: Deadlines {
                start: Duration::from_secs(5),
                turn: Duration::from_secs(2),
                recall: Duration::from_secs(2),
                tool: Duration::from_secs(30),
                background: Duration::from_secs(180),
            },
        }
    }
}

/// Bytes of a table's entry, for the sum.
const TABLE_ENTRY: usize = 16;

/// Counts what an instance holds.
pub(crate) struct Meter {
    limits: Limits,
    used: usize,
    /// Set when growth was refused: it tells a crash for want of memory from any other.
    pub(crate) refused: bool,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, used: 0, refused: false }
    }

    fn grow(&mut self, from: usize, to: usize) -> wasmtime::Result<bool> {
        let wanted = self.used.saturating_add(to.saturating_sub(from));
        if wanted > self.limits.memory {
            self.refused = true;
            // A refusal that the guest sees would only make its allocator abort without a reason.
            return Err(wasmtime::Error::msg("memory limit"));
        }
        self.used = wanted;
        Ok(true)
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current, desired)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current.saturating_mul(TABLE_ENTRY), desired.saturating_mul(TABLE_ENTRY))
    }

    fn instances(&self) -> usize {
        self.limits.parts
    }

    fn tables(&self) -> usize {
        self.limits.parts
    }

    fn memories(&self) -> usize {
        self.limits.parts
    }
}
