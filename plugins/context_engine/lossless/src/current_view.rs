//! Message metadata, and how the current view shows each message. Messages are addressed by position.
//!
//! Frequent queries cost time proportional to the view, not to the conversation.

use std::ops::Range;

use hermes_guest_engine::fnv;
use hermes_guest_engine::speaker::Speaker;
use hermes_plugin::context_engine::{Item, ShownSummary};
use hermes_plugin::{Header, MessageId, MessageRange};

/// Tokens of an excerpt besides its text: role, separators, tool linkage.
const EXCERPT_FRAME: u32 = 40;

/// Metadata of one message, taken from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: MessageId,
    pub(crate) group: u64,
    pub(crate) speaker: Speaker,
    pub(crate) tokens: u32,
    pub(crate) bytes: u32,
    pub(crate) created_at: u64,
}

/// Metadata of the whole conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    /// Adds new headers. They replace any known headers from the first new id on.
    pub(crate) fn observe(&mut self, headers: &[Header]) {
        if let Some(first) = headers.first() {
            self.rewind(first.id);
        }
        self.0.extend(headers.iter().map(|header| Row {
            id: header.id,
            group: header.group,
            speaker: Speaker::from(&header.role),
            tokens: header.tokens,
            bytes: header.bytes,
            created_at: header.created_at,
        }));
    }

    /// Removes this message and all later ones.
    pub(crate) fn rewind(&mut self, first: MessageId) {
        self.0.truncate(self.0.partition_point(|row| row.id < first));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, at: usize) -> Row {
        self.0[at]
    }

    pub(crate) fn slice(&self, span: Range<usize>) -> &[Row] {
        &self.0[span]
    }

    pub(crate) fn last(&self) -> Option<Row> {
        self.0.last().copied()
    }

    /// The position of a message, or `None` if it is not part of this conversation.
    pub(crate) fn position(&self, id: MessageId) -> Option<usize> {
        self.0.binary_search_by_key(&id, |row| row.id).ok()
    }

    /// Positions of the messages in a range of ids.
    pub(crate) fn span(&self, range: MessageRange) -> Range<usize> {
        let start = self.0.partition_point(|row| row.id < range.first);
        let end = self.0.partition_point(|row| row.id <= range.last);
        start..end.max(start)
    }

    pub(crate) fn last_user(&self) -> Option<usize> {
        self.0.iter().rposition(|row| row.speaker == Speaker::User)
    }

    /// The group that contains the message at this position.
    pub(crate) fn group(&self, at: usize) -> Range<usize> {
        let group = self.0[at].group;
        let start = self.0[..at].iter().rposition(|row| row.group != group).map_or(0, |before| before + 1);
        let end = self.0[at..].iter().position(|row| row.group != group).map_or(self.len(), |n| at + n);
        start..end
    }

    /// The groups of a span, in order.
    pub(crate) fn groups(&self, span: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = span.start;
        std::iter::from_fn(move || {
            (at < span.end).then(|| {
                let group = self.group(at);
                at = group.end;
                group
            })
        })
    }

    /// A hash of these messages' ids, sizes and times. It distinguishes them from messages with the same ids in another log.
    pub(crate) fn mark(&self, span: Range<usize>) -> u64 {
        let numbers = self.0[span].iter().flat_map(|row| [row.id, u64::from(row.bytes), row.created_at]);
        fnv(numbers.flat_map(u64::to_le_bytes))
    }

    /// The positions where `holds` is true, as ranges of ids.
    pub(crate) fn ranges(&self, span: Range<usize>, holds: impl Fn(usize) -> bool) -> Vec<MessageRange> {
        let mut ranges: Vec<MessageRange> = Vec::new();
        let mut open = false;
        for at in span {
            let holds = holds(at);
            match ranges.last_mut() {
                _ if !holds => {}
                Some(last) if open => last.last = self.0[at].id,
                _ => ranges.push(MessageRange::one(self.0[at].id)),
            }
            open = holds;
        }
        ranges
    }
}

/// How the view shows a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Not shown: a summary covers it.
    Folded,
    /// Shown in full.
    Verbatim,
    /// Shown as an excerpt.
    Shortened,
}

/// The conversation and its current view.
pub(crate) struct CurrentView<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) visibility: Vec<Visibility>,
    pub(crate) summaries: Vec<&'a ShownSummary>,
    /// Positions of messages shown as excerpts, with their tokens.
    shorter: Vec<(usize, u32)>,
    /// Position of the first message that is shown.
    pub(crate) first_shown: usize,
}

impl<'a> CurrentView<'a> {
    pub(crate) fn new(rows: &'a Rows, view: &'a [Item]) -> Self {
        let mut current = Self {
            rows,
            visibility: vec![Visibility::Folded; rows.len()],
            summaries: Vec::new(),
            shorter: Vec::new(),
            first_shown: 0,
        };
        let mut accounted = vec![false; rows.len()];
        for item in view {
            match item {
                Item::Messages(range) => {
                    let span = rows.span(*range);
                    accounted[span.clone()].fill(true);
                    current.visibility[span].fill(Visibility::Verbatim);
                }
                Item::Excerpt(excerpt) => {
                    if let Some(at) = rows.position(excerpt.id) {
                        accounted[at] = true;
                        current.visibility[at] = Visibility::Shortened;
                        current.shorter.push((at, excerpt.tokens.saturating_add(EXCERPT_FRAME)));
                    }
                }
                Item::Summary(summary) => {
                    for range in &summary.covers {
                        accounted[rows.span(*range)].fill(true);
                    }
                    current.summaries.push(summary);
                }
                // It counts as shown in full: a plan can keep its messages.
                Item::Other(_) => {}
            }
        }
        current.shorter.sort_unstable();
        // A view accounts for all messages that existed when it was made; later messages follow it in full.
        for (visibility, accounted) in current.visibility.iter_mut().zip(accounted) {
            if !accounted {
                *visibility = Visibility::Verbatim;
            }
        }
        current.first_shown = current.visibility.iter().position(|s| *s != Visibility::Folded).unwrap_or(rows.len());
        current
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_shown(&self, at: usize) -> bool {
        self.visibility[at] != Visibility::Folded
    }

    /// Tokens of a message as the view shows it.
    pub(crate) fn cost(&self, at: usize) -> u32 {
        let whole = self.rows.get(at).tokens;
        match self.shorter.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => self.shorter[found].1.min(whole),
            Err(_) => whole,
        }
    }

    /// Tokens of the view.
    pub(crate) fn before(&self) -> u32 {
        let messages = (self.first_shown..self.len()).filter(|at| self.is_shown(*at)).map(|at| self.cost(at));
        messages.chain(self.summaries.iter().map(|summary| summary.tokens)).fold(0, u32::saturating_add)
    }

    /// Tokens of the view, not counting the frames around excerpts.
    pub(crate) fn least(&self) -> u32 {
        let shorter = u32::try_from(self.shorter.len()).unwrap_or(u32::MAX);
        self.before().saturating_sub(EXCERPT_FRAME.saturating_mul(shorter))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::context_engine::ShownExcerpt;

    use hermes_plugin::Role;

    use super::*;

    fn rows() -> Rows {
        let header = |(id, group, role): (u64, u64, Role)| Header {
            id,
            role,
            turn: 1,
            group,
            tool_name: None,
            tokens: 100,
            bytes: 400,
            images: 0,
            created_at: 0,
            extra: Vec::new(),
        };
        let mut rows = Rows::default();
        let all = [
            (2, 2, Role::User),
            (5, 5, Role::Assistant),
            (6, 5, Role::Tool),
            (7, 5, Role::Tool),
            (11, 11, Role::Assistant),
            (12, 12, Role::User),
        ];
        rows.observe(&all.map(header));
        rows
    }

    #[test]
    fn messages_that_the_view_does_not_mention_are_shown_in_full() {
        let rows = rows();
        let covers = vec![MessageRange::new(1, 4)];
        let view = [
            Item::Summary(ShownSummary { key: "a".into(), tokens: 30, covers }),
            Item::Messages(MessageRange::new(5, 6)),
            Item::Excerpt(ShownExcerpt { id: 7, tokens: 10 }),
        ];
        let current = CurrentView::new(&rows, &view);
        use Visibility::{Folded, Shortened, Verbatim};
        assert_eq!(current.visibility, [Folded, Verbatim, Verbatim, Shortened, Verbatim, Verbatim]);
        assert_eq!((current.before(), current.least()), (30 + 2 * 100 + 50 + 2 * 100, 30 + 2 * 100 + 10 + 2 * 100));
        assert_eq!(current.first_shown, 1);
    }

    #[test]
    fn groups_and_ranges_follow_the_order_of_the_conversation() {
        let rows = rows();
        for at in 1..=3 {
            assert_eq!(rows.group(at), 1..4);
        }
        assert_eq!(rows.groups(0..6).collect::<Vec<_>>(), [0..1, 1..4, 4..5, 5..6]);
        assert_eq!(rows.ranges(0..6, |at| at != 2), [MessageRange::new(2, 5), MessageRange::new(7, 12)]);
        assert_eq!((rows.last_user(), rows.position(7), rows.position(8)), (Some(5), Some(3), None));
    }

    #[test]
    fn a_rewind_removes_messages_and_changes_the_mark() {
        let mut rows = rows();
        rows.rewind(11);
        assert_eq!(rows.last().unwrap().id, 7);
        let whole = rows.mark(0..4);
        rows.rewind(6);
        assert_ne!(rows.mark(0..2), whole);
        assert_eq!(rows.len(), 2);
    }
}
