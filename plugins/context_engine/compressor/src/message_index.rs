//! Message metadata in a layout that answers queries without a pass over the conversation.

use std::ops::Range;

use hermes_guest_engine::speaker::Speaker;
use hermes_plugin::{Header, MessageId, MessageRange};

use crate::set::Set;

/// Messages are addressed by position.
#[derive(Debug, Clone)]
pub(crate) struct MessageIndex {
    ids: Vec<MessageId>,
    groups: Vec<u64>,
    speakers: Vec<Speaker>,
    images: Vec<u32>,
    /// Prefix sums: tokens of all messages before a position. One element longer than the other vectors.
    sums: Vec<u64>,
}

impl MessageIndex {
    pub(crate) fn new() -> Self {
        Self { ids: Vec::new(), groups: Vec::new(), speakers: Vec::new(), images: Vec::new(), sums: vec![0] }
    }

    /// Adds new headers. They replace any known headers from the first new id on.
    pub(crate) fn observe(&mut self, headers: &[Header]) {
        if let Some(first) = headers.first() {
            self.rewind(first.id);
        }
        for header in headers {
            self.ids.push(header.id);
            self.groups.push(header.group);
            self.speakers.push(Speaker::from(&header.role));
            self.images.push(header.images);
            self.sums.push(self.sums[self.sums.len() - 1].saturating_add(u64::from(header.tokens)));
        }
    }

    /// Removes this message and all later ones.
    pub(crate) fn rewind(&mut self, first: MessageId) {
        let length = self.before(first);
        self.ids.truncate(length);
        self.groups.truncate(length);
        self.speakers.truncate(length);
        self.images.truncate(length);
        self.sums.truncate(length + 1);
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, at: usize) -> MessageId {
        self.ids[at]
    }

    pub(crate) fn is_by_model(&self, at: usize) -> bool {
        self.speakers[at] == Speaker::Model
    }

    pub(crate) fn images(&self, at: usize) -> u32 {
        self.images[at]
    }

    pub(crate) fn last(&self) -> Option<MessageId> {
        self.ids.last().copied()
    }

    /// Number of messages before this id.
    pub(crate) fn before(&self, id: MessageId) -> usize {
        self.ids.partition_point(|known| *known < id)
    }

    pub(crate) fn position(&self, id: MessageId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// Tokens of the full messages.
    pub(crate) fn tokens(&self, range: Range<usize>) -> u32 {
        let sum = self.sums[range.end.max(range.start)] - self.sums[range.start];
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// Tokens of the messages after this id.
    pub(crate) fn tokens_after(&self, id: MessageId) -> u32 {
        self.tokens(self.before(id.saturating_add(1))..self.len())
    }

    pub(crate) fn last_user(&self) -> Option<usize> {
        self.speakers.iter().rposition(|speaker| *speaker == Speaker::User)
    }

    /// The group that contains the message at this position.
    pub(crate) fn group(&self, at: usize) -> Range<usize> {
        let group = self.groups[at];
        let start = self.groups[..at].iter().rposition(|other| *other != group).map_or(0, |before| before + 1);
        let end = self.groups[at..].iter().position(|other| *other != group).map_or(self.len(), |n| at + n);
        start..end
    }

    /// Positions of the messages in a range of ids.
    pub(crate) fn span(&self, range: MessageRange) -> Range<usize> {
        let start = self.before(range.first);
        start..self.before(range.last.saturating_add(1)).max(start)
    }

    /// These positions as ranges of ids.
    pub(crate) fn ranges(&self, set: &Set) -> Vec<MessageRange> {
        set.runs().map(|run| MessageRange::new(self.ids[run.start], self.ids[run.end - 1])).collect()
    }

    /// The positions in these ranges.
    pub(crate) fn named(&self, ranges: &[MessageRange]) -> Set {
        let mut set = Set::empty(self.len());
        for range in ranges {
            set.insert(self.span(*range));
        }
        set
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{grouped, headers};

    #[test]
    fn groups_and_ranges_follow_the_order_of_the_conversation() {
        let index = grouped();
        for at in 1..=3 {
            assert_eq!(index.group(at), 1..4);
        }
        assert_eq!((index.group(0), index.group(5)), (0..1, 5..6));
        let mut all_but_one = Set::empty(6);
        all_but_one.insert(0..2);
        all_but_one.insert(3..6);
        let ranges = [MessageRange::new(2, 5), MessageRange::new(7, 12)];
        assert_eq!(index.ranges(&all_but_one), ranges);
        assert_eq!(index.named(&ranges), all_but_one);
        assert_eq!(index.last_user(), Some(5));
        assert_eq!((index.tokens(1..4), index.tokens_after(7), index.tokens_after(99)), (300, 200, 0));
    }

    #[test]
    fn repeated_headers_replace_and_rewound_headers_disappear() {
        let mut index = MessageIndex::new();
        index.observe(&headers(&[(1, 10), (2, 20), (5, 30)]));
        index.observe(&headers(&[(5, 30), (6, 40)]));
        assert_eq!((index.len(), index.tokens(0..4), index.last()), (4, 100, Some(6)));
        index.rewind(4);
        assert_eq!((index.len(), index.tokens(0..2), index.position(5)), (2, 30, None));
        index.observe(&headers(&[(7, 1)]));
        assert_eq!((index.last(), index.tokens_after(2)), (Some(7), 1));
    }
}
