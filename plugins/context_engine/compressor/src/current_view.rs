//! The conversation, and how the current view shows each message.

use hermes_plugin::MessageRange;
use hermes_plugin::context_engine::{Item, ShownSummary};

use crate::message_index::MessageIndex;
use crate::set::Set;

/// Tokens of an excerpt besides its text: role, separators, tool linkage.
const EXCERPT_FRAME: u32 = 40;

/// The conversation and its view. Messages are addressed by position.
pub(crate) struct CurrentView<'a> {
    pub(crate) index: &'a MessageIndex,
    /// Messages shown in full or as excerpts; summaries cover the others.
    pub(crate) shown: Set,
    /// Positions and tokens of messages shown as excerpts, sorted.
    shorter: Vec<(usize, u32)>,
    pub(crate) summaries: Vec<&'a ShownSummary>,
}

impl<'a> CurrentView<'a> {
    pub(crate) fn new(index: &'a MessageIndex, view: &'a [Item]) -> Self {
        let (mut shown, mut covered) = (Set::empty(index.len()), Set::empty(index.len()));
        let (mut shorter, mut summaries) = (Vec::new(), Vec::new());
        for item in view {
            match item {
                Item::Messages(range) => shown.insert(index.span(*range)),
                Item::Excerpt(excerpt) => {
                    if let Some(at) = index.position(excerpt.id) {
                        shown.insert(at..at + 1);
                        shorter.push((at, excerpt.tokens.saturating_add(EXCERPT_FRAME)));
                    }
                }
                Item::Summary(summary) => {
                    for range in &summary.covers {
                        covered.insert(index.span(*range));
                    }
                    summaries.push(summary);
                }
                // It counts as shown in full: a plan can keep its messages.
                Item::Other(_) => {}
            }
        }
        shorter.sort_unstable();
        shorter.dedup_by_key(|(at, _)| *at);
        // A view accounts for all messages that existed when it was made; later messages follow it in full.
        let shown = shown.or(&shown.neither(&covered));
        Self { index, shown, shorter, summaries }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_shown(&self, at: usize) -> bool {
        self.shown.contains(at)
    }

    pub(crate) fn is_shorter(&self, at: usize) -> bool {
        self.shorter.binary_search_by_key(&at, |(at, _)| *at).is_ok()
    }

    /// Tokens of a message as the view shows it.
    pub(crate) fn cost(&self, at: usize) -> u32 {
        let said = self.index.tokens(at..at + 1);
        match self.shorter.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => self.shorter[found].1.min(said),
            Err(_) => said,
        }
    }

    /// A lower bound for `cost`, without the frame of an excerpt.
    pub(crate) fn least_cost(&self, at: usize) -> u32 {
        if self.is_shorter(at) { self.cost(at).saturating_sub(EXCERPT_FRAME) } else { self.cost(at) }
    }

    /// Tokens of messages as the view shows them.
    pub(crate) fn costs(&self, set: &Set) -> u32 {
        let said = set.runs().map(|run| u64::from(self.index.tokens(run))).sum::<u64>();
        let saved = self.shorter.iter().filter(|(at, _)| set.contains(*at));
        let saved = saved.map(|(at, _)| u64::from(self.index.tokens(*at..*at + 1) - self.cost(*at))).sum::<u64>();
        u32::try_from(said - saved).unwrap_or(u32::MAX)
    }

    /// Tokens of the full messages.
    pub(crate) fn said(&self, set: &Set) -> u32 {
        set.runs().map(|run| self.index.tokens(run)).fold(0, u32::saturating_add)
    }

    /// Tokens of the view.
    pub(crate) fn before(&self) -> u32 {
        self.summaries.iter().map(|summary| summary.tokens).fold(self.costs(&self.shown), u32::saturating_add)
    }

    /// Tokens of the view, not counting the frames around excerpts.
    pub(crate) fn least(&self) -> u32 {
        let shorter = u32::try_from(self.shorter.len()).unwrap_or(u32::MAX);
        self.before().saturating_sub(EXCERPT_FRAME.saturating_mul(shorter))
    }

    /// The positions that these summaries cover.
    pub(crate) fn covered_by(&self, summaries: &[&ShownSummary]) -> Set {
        let ranges: Vec<MessageRange> = summaries.iter().flat_map(|summary| summary.covers.iter().copied()).collect();
        self.index.named(&ranges)
    }

    /// Summaries of the view that are the only ones to represent some of these messages.
    pub(crate) fn earlier(&self, open: &Set) -> Vec<&'a ShownSummary> {
        let alone = open.without(&self.shown);
        let stands = |range: &MessageRange| alone.meets(self.index.span(*range));
        self.summaries.iter().copied().filter(|summary| summary.covers.iter().any(stands)).collect()
    }
}

#[cfg(test)]
mod tests {
    use hermes_plugin::context_engine::ShownExcerpt;

    use super::*;
    use crate::testing::grouped;

    #[test]
    fn messages_that_the_view_does_not_mention_are_shown_in_full() {
        let index = grouped();
        let covers = vec![MessageRange::new(1, 4)];
        let view = [
            Item::Summary(ShownSummary { key: "a".into(), tokens: 30, covers }),
            Item::Messages(MessageRange::new(5, 6)),
            Item::Excerpt(ShownExcerpt { id: 7, tokens: 10 }),
        ];
        let current = CurrentView::new(&index, &view);
        assert_eq!(current.shown.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!((0..6).map(|at| current.cost(at)).collect::<Vec<_>>(), [100, 100, 100, 50, 100, 100]);
        assert_eq!((0..6).filter(|at| current.is_shorter(*at)).collect::<Vec<_>>(), [3]);
        assert_eq!((current.before(), current.least()), (30 + 2 * 100 + 50 + 2 * 100, 30 + 2 * 100 + 10 + 2 * 100));
        let mut open = Set::empty(6);
        open.insert(0..3);
        assert_eq!((current.earlier(&open).len(), current.earlier(&open.and(&current.shown)).len()), (1, 0));
    }
}
