//! Counts the memory and table elements of an instance, and refuses growth beyond its limits.

use wasmtime::ResourceLimiter;

use super::{Limit, Limits};

/// What an instance uses now, and the limit that it exceeded.
pub(crate) struct Meter {
    limits: Limits,
    memory: usize,
    elements: usize,
    /// The size of the last allowed growth, until it is known to have succeeded.
    growing: usize,
    /// The limit that it exceeded. It distinguishes a crash for lack of memory from other crashes.
    pub(crate) refused: Option<Limit>,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, memory: 0, elements: 0, growing: 0, refused: None }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of linear memory. Memories never shrink, so this is also the peak.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// The value of `held` after the growth, or an error if that exceeds the limit.
    fn grown(&mut self, limit: Limit, held: usize, from: usize, to: usize) -> wasmtime::Result<usize> {
        let growing = to.saturating_sub(from);
        let wanted = held.saturating_add(growing);
        if wanted > self.limits.size(limit) {
            self.refused = Some(limit);
            // If the guest saw the refusal, its allocator would abort without a reason.
            return Err(wasmtime::Error::msg(format!("the limit `{}`", limit.name())));
        }
        self.growing = growing;
        Ok(wanted)
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        if most.is_some_and(|most| desired > most) {
            // The memory's own maximum, which the guest declared.
            self.growing = 0;
            return Ok(false);
        }
        self.memory = self.grown(Limit::Memory, self.memory, current, desired)?;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory = self.memory.saturating_sub(std::mem::take(&mut self.growing));
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        if most.is_some_and(|most| desired > most) {
            self.growing = 0;
            return Ok(false);
        }
        self.elements = self.grown(Limit::TableElements, self.elements, current, desired)?;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.elements = self.elements.saturating_sub(std::mem::take(&mut self.growing));
        Ok(())
    }

    fn instances(&self) -> usize {
        self.limits.size(Limit::Instances)
    }

    fn tables(&self) -> usize {
        self.limits.size(Limit::Tables)
    }

    fn memories(&self) -> usize {
        self.limits.size(Limit::Memories)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Tier;
    use super::*;

    const PAGE: usize = 64 << 10;

    #[test]
    fn failed_growth_is_not_counted() {
        let mut meter = Meter::new(Limits::of(Tier::Tools));
        assert!(meter.memory_growing(0, 4 * PAGE, None).unwrap());
        assert!(meter.memory_growing(4 * PAGE, 9 * PAGE, None).unwrap());
        meter.memory_grow_failed(wasmtime::Error::msg("no room")).unwrap();
        assert_eq!(meter.memory(), 4 * PAGE);
        assert!(!meter.memory_growing(4 * PAGE, 9 * PAGE, Some(8 * PAGE)).unwrap());
        meter.memory_grow_failed(wasmtime::Error::msg("its own maximum")).unwrap();
        assert_eq!((meter.memory(), meter.refused), (4 * PAGE, None));
    }

    #[test]
    fn memories_are_summed_and_tables_are_counted_separately() {
        let mut meter = Meter::new(Limits::of(Tier::Tools));
        assert!(meter.memory_growing(0, 40 << 20, None).unwrap());
        assert!(meter.table_growing(0, 20_000, None).unwrap());
        assert_eq!(meter.refused, None);
        assert!(meter.memory_growing(0, 40 << 20, None).is_err());
        assert_eq!(meter.refused, Some(Limit::Memory));
        assert!(meter.table_growing(0, 1, None).is_err());
        assert_eq!(meter.refused, Some(Limit::TableElements));
        assert_eq!(meter.memory(), 40 << 20);
    }
}
