//! The end of an output that nobody has read yet.

use std::collections::VecDeque;

use super::MAX_OUTPUT;

/// Keeps the last bytes, and counts those that were lost.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    lost: u64,
}

impl Ring {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // The ring keeps at most `MAX_OUTPUT` bytes, so only the end of a longer piece counts.
        let kept = &bytes[bytes.len().saturating_sub(MAX_OUTPUT)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(MAX_OUTPUT);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        self.lost += (excess + bytes.len() - kept.len()) as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes, and how many were lost before them.
    pub(super) fn take(&mut self) -> (Vec<u8>, u64) {
        (std::mem::take(&mut self.bytes).into(), std::mem::take(&mut self.lost))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_end_is_kept_and_the_rest_is_counted(
            pieces in prop::collection::vec((0_u8..255, 0_usize..800_000), 0..8)
        ) {
            let mut ring = Ring::default();
            let whole: Vec<u8> = pieces.iter().flat_map(|&(byte, count)| vec![byte; count]).collect();
            for (byte, count) in pieces {
                ring.push(&vec![byte; count]);
            }
            let (kept, lost) = ring.take();
            let from = whole.len().saturating_sub(MAX_OUTPUT);
            prop_assert_eq!(lost, from as u64);
            prop_assert_eq!(&kept, &whole[from..]);
            prop_assert_eq!(ring.take(), (Vec::new(), 0));
        }
    }
}
