//! What is planned over: the conversation by its headers, and what the view in force shows of it.

use std::ops::Range;

use hermes_plugin::context_engine::{Item, ShownSummary};
use hermes_plugin::{Header, MessageRange, Role};

/// What an excerpt costs beside its text: role, separators, tool linkage.
const EXCERPT_FRAME: u32 = 40;

/// How the view shows a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// As it was said.
    AsSaid,
    /// Shorter, at so many tokens.
    Shorter(u32),
    /// Not at all: a summary stands for it.
    Folded,
}

/// The conversation and its view. Messages go by their position in it.
pub(crate) struct Ground<'a> {
    pub(crate) headers: &'a [Header],
    pub(crate) standings: Vec<Standing>,
    pub(crate) summaries: Vec<&'a ShownSummary>,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(headers: &'a [Header], view: &'a [Item]) -> Self {
        let mut ground = Self { headers, standings: vec![Standing::Folded; headers.len()], summaries: Vec::new() };
        let mut covered = vec![false; headers.len()];
        for item in view {
            match item {
                Item::Messages(range) => {
                    let span = ground.span(*range);
                    ground.standings[span].fill(Standing::AsSaid);
                }
                Item::Excerpt(excerpt) => {
                    let span = ground.span(MessageRange::one(excerpt.id));
                    ground.standings[span].fill(Standing::Shorter(excerpt.tokens.saturating_add(EXCERPT_FRAME)));
                }
                Item::Summary(summary) => {
                    for range in &summary.covers {
                        covered[ground.span(*range)].fill(true);
                    }
                    ground.summaries.push(summary);
                }
            }
        }
        // A view stands for every message up to its making; what came after follows it as it is.
        for (standing, covered) in ground.standings.iter_mut().zip(covered) {
            if *standing == Standing::Folded && !covered {
                *standing = Standing::AsSaid;
            }
        }
        ground
    }

    pub(crate) fn len(&self) -> usize {
        self.headers.len()
    }

    /// Positions of the messages that a range names.
    pub(crate) fn span(&self, range: MessageRange) -> Range<usize> {
        let start = self.headers.partition_point(|header| header.id < range.first);
        let end = self.headers.partition_point(|header| header.id <= range.last);
        start..end.max(start)
    }

    pub(crate) fn is_shown(&self, at: usize) -> bool {
        self.standings[at] != Standing::Folded
    }

    /// Tokens of a message as it would be kept.
    pub(crate) fn cost(&self, at: usize) -> u32 {
        match self.standings[at] {
            Standing::Shorter(tokens) => tokens.min(self.headers[at].tokens),
            _ => self.headers[at].tokens,
        }
    }

    /// Tokens of the view.
    pub(crate) fn before(&self) -> u32 {
        let messages = (0..self.len()).filter(|at| self.is_shown(*at)).map(|at| self.cost(at));
        messages.chain(self.summaries.iter().map(|summary| summary.tokens)).fold(0, u32::saturating_add)
    }

    /// Tokens of the view where what is shown shorter costs nothing beside its text.
    pub(crate) fn least(&self) -> u32 {
        let shorter = self.standings.iter().filter(|standing| matches!(standing, Standing::Shorter(_))).count();
        self.before().saturating_sub(EXCERPT_FRAME.saturating_mul(u32::try_from(shorter).unwrap_or(u32::MAX)))
    }

    pub(crate) fn last_user(&self) -> Option<usize> {
        self.headers.iter().rposition(|header| header.role == Role::User)
    }

    /// The group that a message belongs to.
    pub(crate) fn group(&self, at: usize) -> Range<usize> {
        let group = self.headers[at].group;
        let start = self.headers[..at].iter().rposition(|header| header.group != group).map_or(0, |before| before + 1);
        let end = self.headers[at..].iter().position(|header| header.group != group).map_or(self.len(), |n| at + n);
        start..end
    }

    /// The positions that a test holds for, as ranges of ids that name them and no others.
    pub(crate) fn ranges(&self, holds: impl Fn(usize) -> bool) -> Vec<MessageRange> {
        let mut ranges: Vec<MessageRange> = Vec::new();
        let mut open = false;
        for (at, header) in self.headers.iter().enumerate() {
            let holds = holds(at);
            match ranges.last_mut() {
                _ if !holds => {}
                Some(last) if open => last.last = header.id,
                _ => ranges.push(MessageRange::one(header.id)),
            }
            open = holds;
        }
        ranges
    }

    /// By position, whether one of the ranges names the message.
    pub(crate) fn named(&self, ranges: &[MessageRange]) -> Vec<bool> {
        let mut named = vec![false; self.len()];
        for range in ranges {
            named[self.span(*range)].fill(true);
        }
        named
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::context_engine::ShownExcerpt;

    use super::*;

    fn header(id: u64, group: u64, role: Role) -> Header {
        Header { id, role, turn: 1, group, tool_name: None, tokens: 100, bytes: 400, images: 0, created_at: 0 }
    }

    fn headers() -> Vec<Header> {
        vec![
            header(2, 2, Role::User),
            header(5, 5, Role::Assistant),
            header(6, 5, Role::Tool),
            header(7, 5, Role::Tool),
            header(11, 11, Role::Assistant),
            header(12, 12, Role::User),
        ]
    }

    #[test]
    fn what_no_item_names_follows_the_view() {
        let headers = headers();
        let covers = vec![MessageRange::new(1, 4)];
        let view = [
            Item::Summary(ShownSummary { key: "a".into(), tokens: 30, covers }),
            Item::Messages(MessageRange::new(5, 6)),
            Item::Excerpt(ShownExcerpt { id: 7, tokens: 10 }),
        ];
        let ground = Ground::new(&headers, &view);
        let expected = [
            Standing::Folded,
            Standing::AsSaid,
            Standing::AsSaid,
            Standing::Shorter(50),
            Standing::AsSaid,
            Standing::AsSaid,
        ];
        assert_eq!(ground.standings, expected);
        assert_eq!((ground.before(), ground.least()), (30 + 2 * 100 + 50 + 2 * 100, 30 + 2 * 100 + 10 + 2 * 100));
    }

    #[test]
    fn groups_and_ranges_go_by_the_conversations_own_order() {
        let headers = headers();
        let ground = Ground::new(&headers, &[]);
        for at in 1..=3 {
            assert_eq!(ground.group(at), 1..4);
        }
        assert_eq!((ground.group(0), ground.group(5)), (0..1, 5..6));
        assert_eq!(ground.ranges(|at| at != 2), [MessageRange::new(2, 5), MessageRange::new(7, 12)]);
        assert_eq!(ground.last_user(), Some(5));
    }
}
