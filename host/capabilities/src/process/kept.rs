//! The kept part of an output of any length: its beginning and its end.

use std::collections::VecDeque;

use super::MAX_OUTPUT;

const HALF: usize = MAX_OUTPUT / 2;

/// Adds the next bytes.
#[derive(Debug, Default)]
pub(super) struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Captured {
    pub(super) fn take_in(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a very long piece, only the end matters.
        let rest = &rest[rest.len().saturating_sub(HALF)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(HALF);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// The kept bytes, with a line in place of the omitted ones, and whether some were omitted.
    pub(super) fn finish(&mut self) -> (Vec<u8>, bool) {
        let Self { head, tail, total } = std::mem::take(self);
        let missing = total - (head.len() + tail.len()) as u64;
        let mut bytes = head;
        if missing > 0 {
            bytes.extend_from_slice(format!("\n[{missing} bytes are left out here]\n").as_bytes());
        }
        bytes.extend(tail);
        (bytes, missing > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(pieces: &[Vec<u8>]) -> (Vec<u8>, bool) {
        let mut kept = Captured::default();
        for piece in pieces {
            kept.take_in(piece);
            assert!(kept.head.len() <= HALF && kept.tail.len() <= HALF);
        }
        kept.finish()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn beginning_and_end_are_kept_however_the_output_is_split(
            pieces in prop::collection::vec((0_u8..255, 0_usize..400_000), 0..12)
        ) {
            let pieces: Vec<Vec<u8>> = pieces.into_iter().map(|(byte, count)| vec![byte; count]).collect();
            let whole = pieces.concat();
            let (bytes, truncated) = kept(&pieces);
            prop_assert_eq!(truncated, whole.len() > MAX_OUTPUT);
            if truncated {
                prop_assert_eq!(&bytes[..HALF], &whole[..HALF]);
                prop_assert_eq!(&bytes[bytes.len() - HALF..], &whole[whole.len() - HALF..]);
                let line = format!("\n[{} bytes are left out here]\n", whole.len() - MAX_OUTPUT);
                prop_assert_eq!(&bytes[HALF..bytes.len() - HALF], line.as_bytes());
            } else {
                prop_assert_eq!(bytes, whole);
            }
        }
    }
}
