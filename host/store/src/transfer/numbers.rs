//! Maps message ids of a file to the ids that the store assigned, for one conversation.

/// A message's id in the file, and in the store.
pub(super) type Pair = (u64, u64);

/// The part of a conversation that comes from one session, oldest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<'a> {
    /// Ordered by either id.
    pub(super) pairs: &'a [Pair],
    /// The last id of the file that belongs to the conversation.
    pub(super) through: u64,
}

impl<'a> Stretch<'a> {
    fn within(&self) -> &'a [Pair] {
        &self.pairs[..self.pairs.partition_point(|(number, _)| *number <= self.through)]
    }
}

/// All stretches of a conversation, that of its oldest session first.
#[derive(Debug, Clone)]
pub(super) struct Numbers<'a>(pub(super) Vec<Stretch<'a>>);

impl Numbers<'_> {
    /// The store's id of a message.
    pub(super) fn of(&self, number: u64) -> Option<u64> {
        self.0.iter().rev().find_map(|stretch| {
            let pairs = stretch.within();
            pairs.binary_search_by_key(&number, |pair| pair.0).ok().map(|at| pairs[at].1)
        })
    }

    /// The store's ids for a range: the first and the last message of the conversation in it.
    pub(super) fn of_range(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let from = self.0.iter().find_map(|stretch| {
            let pairs = stretch.within();
            pairs.get(pairs.partition_point(|pair| pair.0 < first))
        })?;
        let to = self.0.iter().rev().find_map(|stretch| {
            let pairs = stretch.within();
            pairs[..pairs.partition_point(|pair| pair.0 <= last)].last()
        })?;
        (from.0 <= to.0).then_some((from.1, to.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_mapped_within_their_stretch() {
        let parent = [(3, 101), (5, 102), (9, 103)];
        let own = [(7, 104), (8, 105)];
        let numbers = Numbers(vec![Stretch { pairs: &parent, through: 5 }, Stretch { pairs: &own, through: u64::MAX }]);
        assert_eq!([3, 5, 7, 8].map(|number| numbers.of(number)), [101, 102, 104, 105].map(Some));
        assert_eq!([0, 4, 6, 9, u64::MAX].map(|number| numbers.of(number)), [None; 5]);
        for ((first, last), found) in [
            ((3, 8), Some((101, 105))),
            ((0, u64::MAX), Some((101, 105))),
            ((4, 7), Some((102, 104))),
            ((6, 6), None),
            ((9, 20), None),
            ((8, 3), None),
        ] {
            assert_eq!(numbers.of_range(first, last), found, "{first}-{last}");
        }
        assert_eq!(Numbers(Vec::new()).of_range(0, 9), None);
    }
}
