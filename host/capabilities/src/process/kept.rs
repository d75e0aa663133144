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
        // The tail keeps at most `HALF` bytes, so only the end of a longer piece counts.
        let rest = &rest[rest.len().saturating_sub(HALF)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(HALF);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// The last line with something in it; lines end at a line feed or a carriage return.
    pub(super) fn last_line(&self) -> Option<String> {
        /// Enough for every terminal.
        const LONGEST: usize = 1_000;
        let bytes = self.tail.iter().rev().chain(self.head.iter().rev()).copied();
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut line: Vec<u8> =
            bytes.take(LONGEST).skip_while(u8::is_ascii_whitespace).take_while(|byte| !is_end(byte)).collect();
        line.reverse();
        (!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
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

    #[test]
    fn the_last_line_is_the_last_one_with_something_in_it() {
        let mut kept = Captured::default();
        assert_eq!(kept.last_line(), None);
        for (bytes, line) in [
            (" \n", None),
            ("one\ntwo", Some("two")),
            ("\r3 of 4 \r\n\n", Some("3 of 4")),
            ("\n\u{e9}", Some("\u{e9}")),
        ] {
            kept.take_in(bytes.as_bytes());
            assert_eq!(kept.last_line().as_deref(), line, "{bytes:?}");
        }
        kept.take_in(&vec![b'x'; 2 * MAX_OUTPUT]);
        kept.take_in(b"\nend\n");
        assert_eq!(kept.last_line().as_deref(), Some("end"));
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
