//! A bit set of message positions: operations over a hundred thousand messages take microseconds.

use std::ops::Range;

const BITS: usize = u64::BITS as usize;

/// A set of positions below a fixed length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    words: Vec<u64>,
    length: usize,
}

impl Set {
    pub(crate) fn empty(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(BITS)], length }
    }

    pub(crate) fn insert(&mut self, range: Range<usize>) {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() {
            return;
        }
        let (first, last) = (range.start / BITS, (range.end - 1) / BITS);
        let from = u64::MAX << (range.start % BITS);
        let through = u64::MAX >> (BITS - 1 - (range.end - 1) % BITS);
        if first == last {
            self.words[first] |= from & through;
        } else {
            self.words[first] |= from;
            self.words[first + 1..last].fill(u64::MAX);
            self.words[last] |= through;
        }
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        at < self.length && self.words[at / BITS] >> (at % BITS) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether the set contains a position of the range.
    pub(crate) fn meets(&self, range: Range<usize>) -> bool {
        self.next(range.start, true) < range.end
    }

    pub(crate) fn meets_both(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    pub(crate) fn without(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & !b)
    }

    /// Positions that are in neither set.
    pub(crate) fn neither(&self, other: &Self) -> Self {
        let mut set = self.combine(other, |a, b| !(a | b));
        let over = set.words.len() * BITS - set.length;
        if let Some(last) = set.words.last_mut() {
            *last &= u64::MAX >> over;
        }
        set
    }

    fn combine(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        debug_assert_eq!(self.length, other.length);
        let words = self.words.iter().zip(&other.words).map(|(a, b)| of(*a, *b)).collect();
        Self { words, length: self.length }
    }

    /// Runs of consecutive positions, in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, true);
            if start >= self.length {
                return None;
            }
            at = self.next(start, false);
            Some(start..at)
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.runs().flatten()
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The first position from `from` on that is inside (or outside) the set; the length if there is none.
    fn next(&self, from: usize, inside: bool) -> usize {
        if from >= self.length {
            return self.length;
        }
        let look = |word: u64| if inside { word } else { !word };
        let mut at = from / BITS;
        let mut word = look(self.words[at]) & (u64::MAX << (from % BITS));
        while word == 0 {
            at += 1;
            match self.words.get(at) {
                Some(next) => word = look(*next),
                None => return self.length,
            }
        }
        (at * BITS + word.trailing_zeros() as usize).min(self.length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(length: usize, ranges: &[Range<usize>]) -> (Set, Vec<bool>) {
        let (mut set, mut plain) = (Set::empty(length), vec![false; length]);
        for range in ranges {
            set.insert(range.clone());
            plain[range.start.min(length)..range.end.min(length).max(range.start.min(length))].fill(true);
        }
        (set, plain)
    }

    fn ranges() -> impl Strategy<Value = Vec<Range<usize>>> {
        prop::collection::vec((0..300usize, 0..140usize).prop_map(|(start, length)| start..start + length), 0..6)
    }

    proptest! {
        #[test]
    fn a_set_behaves_like_a_list_of_flags(length in 0..300usize, a in ranges(), b in ranges()) {
            let ((a, plain_a), (b, plain_b)) = (made(length, &a), made(length, &b));
            let flags = |set: &Set| (0..length).map(|at| set.contains(at)).collect::<Vec<_>>();
            let both = |of: fn(bool, bool) -> bool| {
                plain_a.iter().zip(&plain_b).map(|(a, b)| of(*a, *b)).collect::<Vec<_>>()
            };
            prop_assert_eq!(flags(&a), plain_a.clone());
            prop_assert_eq!(flags(&a.and(&b)), both(|a, b| a && b));
            prop_assert_eq!(flags(&a.or(&b)), both(|a, b| a || b));
            prop_assert_eq!(flags(&a.without(&b)), both(|a, b| a && !b));
            prop_assert_eq!(flags(&a.neither(&b)), both(|a, b| !a && !b));
            prop_assert_eq!(a.neither(&b).count(), both(|a, b| !a && !b).iter().filter(|in_it| **in_it).count());
            prop_assert_eq!(a.iter().collect::<Vec<_>>(), (0..length).filter(|at| plain_a[*at]).collect::<Vec<_>>());
            prop_assert_eq!(a.meets_both(&b), both(|a, b| a && b).contains(&true));
            prop_assert_eq!(a.is_empty(), !plain_a.contains(&true));
            for range in [0..length, length / 3..length / 2] {
                prop_assert_eq!(a.meets(range.clone()), plain_a[range].contains(&true));
            }
        }
    }
}
