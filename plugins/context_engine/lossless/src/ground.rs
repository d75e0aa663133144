//! The conversation by its headers, and what the view in force shows of it. Messages go by their position.
//!
//! What is asked often costs as much as the view is long, not as the conversation is.

use std::ops::Range;

use hermes_plugin::context_engine::{Item, ShownSummary};
use hermes_plugin::{Header, MessageId, MessageRange, Role};

/// What an excerpt costs beside its text: role, separators, tool linkage.
const EXCERPT_FRAME: u32 = 40;

/// What is kept of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: MessageId,
    pub(crate) group: u64,
    pub(crate) role: Role,
    pub(crate) tokens: u32,
    pub(crate) bytes: u32,
    pub(crate) created_at: u64,
}

/// The conversation, without texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    /// Takes what is new; what it already knew of the same ids gives way.
    pub(crate) fn observe(&mut self, headers: &[Header]) {
        if let Some(first) = headers.first() {
            self.rewind(first.id);
        }
        self.0.extend(headers.iter().map(|header| Row {
            id: header.id,
            group: header.group,
            role: header.role,
            tokens: header.tokens,
            bytes: header.bytes,
            created_at: header.created_at,
        }));
    }

    /// Forgets this message and all that followed.
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

    /// Where a message stands; none when it is not of this conversation.
    pub(crate) fn position(&self, id: MessageId) -> Option<usize> {
        self.0.binary_search_by_key(&id, |row| row.id).ok()
    }

    /// Positions of the messages that a range names.
    pub(crate) fn span(&self, range: MessageRange) -> Range<usize> {
        let start = self.0.partition_point(|row| row.id < range.first);
        let end = self.0.partition_point(|row| row.id <= range.last);
        start..end.max(start)
    }

    pub(crate) fn last_user(&self) -> Option<usize> {
        self.0.iter().rposition(|row| row.role == Role::User)
    }

    /// The group that a message belongs to.
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

    /// What tells these messages from others that may have had the same numbers in another log.
    pub(crate) fn mark(&self, span: Range<usize>) -> u64 {
        let numbers = self.0[span].iter().flat_map(|row| [row.id, u64::from(row.bytes), row.created_at]);
        fnv(numbers.flat_map(u64::to_le_bytes))
    }

    /// The positions that a test holds for, as ranges of ids that name them and no others.
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
pub(crate) enum Standing {
    /// Not at all: a summary stands for it.
    Folded,
    /// As it was said.
    AsSaid,
    /// Shorter.
    Shorter,
}

/// The conversation and its view.
pub(crate) struct Ground<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) standings: Vec<Standing>,
    pub(crate) summaries: Vec<&'a ShownSummary>,
    /// Positions of messages shown shorter, with their tokens.
    shorter: Vec<(usize, u32)>,
    /// Where the first message stands that is shown.
    pub(crate) first_shown: usize,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(rows: &'a Rows, view: &'a [Item]) -> Self {
        let mut ground = Self {
            rows,
            standings: vec![Standing::Folded; rows.len()],
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
                    ground.standings[span].fill(Standing::AsSaid);
                }
                Item::Excerpt(excerpt) => {
                    if let Some(at) = rows.position(excerpt.id) {
                        accounted[at] = true;
                        ground.standings[at] = Standing::Shorter;
                        ground.shorter.push((at, excerpt.tokens.saturating_add(EXCERPT_FRAME)));
                    }
                }
                Item::Summary(summary) => {
                    for range in &summary.covers {
                        accounted[rows.span(*range)].fill(true);
                    }
                    ground.summaries.push(summary);
                }
            }
        }
        ground.shorter.sort_unstable();
        // A view stands for every message up to its making; what came after follows it as it is.
        for (standing, accounted) in ground.standings.iter_mut().zip(accounted) {
            if !accounted {
                *standing = Standing::AsSaid;
            }
        }
        ground.first_shown = ground.standings.iter().position(|s| *s != Standing::Folded).unwrap_or(rows.len());
        ground
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_shown(&self, at: usize) -> bool {
        self.standings[at] != Standing::Folded
    }

    /// Tokens of a message as it would be kept.
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

    /// Tokens of the view where what is shown shorter costs nothing beside its text.
    pub(crate) fn least(&self) -> u32 {
        let shorter = u32::try_from(self.shorter.len()).unwrap_or(u32::MAX);
        self.before().saturating_sub(EXCERPT_FRAME.saturating_mul(shorter))
    }
}

/// FNV-1a: for names and comparisons, not against malice.
pub(crate) fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::context_engine::ShownExcerpt;

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
    fn what_no_item_names_follows_the_view() {
        let rows = rows();
        let covers = vec![MessageRange::new(1, 4)];
        let view = [
            Item::Summary(ShownSummary { key: "a".into(), tokens: 30, covers }),
            Item::Messages(MessageRange::new(5, 6)),
            Item::Excerpt(ShownExcerpt { id: 7, tokens: 10 }),
        ];
        let ground = Ground::new(&rows, &view);
        use Standing::{AsSaid, Folded, Shorter};
        assert_eq!(ground.standings, [Folded, AsSaid, AsSaid, Shorter, AsSaid, AsSaid]);
        assert_eq!((ground.before(), ground.least()), (30 + 2 * 100 + 50 + 2 * 100, 30 + 2 * 100 + 10 + 2 * 100));
        assert_eq!(ground.first_shown, 1);
    }

    #[test]
    fn groups_and_ranges_go_by_the_conversations_own_order() {
        let rows = rows();
        for at in 1..=3 {
            assert_eq!(rows.group(at), 1..4);
        }
        assert_eq!(rows.groups(0..6).collect::<Vec<_>>(), [0..1, 1..4, 4..5, 5..6]);
        assert_eq!(rows.ranges(0..6, |at| at != 2), [MessageRange::new(2, 5), MessageRange::new(7, 12)]);
        assert_eq!((rows.last_user(), rows.position(7), rows.position(8)), (Some(5), Some(3), None));
    }

    #[test]
    fn a_rewind_forgets_and_what_is_told_again_replaces() {
        let mut rows = rows();
        rows.rewind(11);
        assert_eq!(rows.last().unwrap().id, 7);
        let whole = rows.mark(0..4);
        rows.rewind(6);
        assert_ne!(rows.mark(0..2), whole);
        assert_eq!(rows.len(), 2);
    }
}
