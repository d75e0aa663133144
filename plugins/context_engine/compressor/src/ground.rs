//! What is planned over: the conversation, and what the view in force shows of it.

use hermes_plugin::MessageRange;
use hermes_plugin::context_engine::{Item, ShownSummary};

use crate::ledger::Ledger;
use crate::set::Set;

/// What an excerpt costs beside its text: role, separators, tool linkage.
const EXCERPT_FRAME: u32 = 40;

/// The conversation and its view. Messages go by their position.
pub(crate) struct Ground<'a> {
    pub(crate) ledger: &'a Ledger,
    /// What the view shows, in whatever form; a summary stands for the rest.
    pub(crate) shown: Set,
    /// Of it, what is shown shorter, with its tokens, in order.
    shorter: Vec<(usize, u32)>,
    pub(crate) summaries: Vec<&'a ShownSummary>,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(ledger: &'a Ledger, view: &'a [Item]) -> Self {
        let (mut shown, mut covered) = (Set::empty(ledger.len()), Set::empty(ledger.len()));
        let (mut shorter, mut summaries) = (Vec::new(), Vec::new());
        for item in view {
            match item {
                Item::Messages(range) => shown.insert(ledger.span(*range)),
                Item::Excerpt(excerpt) => {
                    if let Some(at) = ledger.position(excerpt.id) {
                        shown.insert(at..at + 1);
                        shorter.push((at, excerpt.tokens.saturating_add(EXCERPT_FRAME)));
                    }
                }
                Item::Summary(summary) => {
                    for range in &summary.covers {
                        covered.insert(ledger.span(*range));
                    }
                    summaries.push(summary);
                }
            }
        }
        shorter.sort_unstable();
        shorter.dedup_by_key(|(at, _)| *at);
        // A view stands for every message up to its making; what came after follows it as it is.
        let shown = shown.or(&shown.neither(&covered));
        Self { ledger, shown, shorter, summaries }
    }

    pub(crate) fn len(&self) -> usize {
        self.ledger.len()
    }

    pub(crate) fn is_shown(&self, at: usize) -> bool {
        self.shown.contains(at)
    }

    pub(crate) fn is_shorter(&self, at: usize) -> bool {
        self.shorter.binary_search_by_key(&at, |(at, _)| *at).is_ok()
    }

    /// Tokens of a message as it would be kept.
    pub(crate) fn cost(&self, at: usize) -> u32 {
        let said = self.ledger.tokens(at..at + 1);
        match self.shorter.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => self.shorter[found].1.min(said),
            Err(_) => said,
        }
    }

    /// Tokens of a message as it would be kept, at least.
    pub(crate) fn least_cost(&self, at: usize) -> u32 {
        if self.is_shorter(at) { self.cost(at).saturating_sub(EXCERPT_FRAME) } else { self.cost(at) }
    }

    /// Tokens of messages as they would be kept.
    pub(crate) fn costs(&self, set: &Set) -> u32 {
        let said = set.runs().map(|run| u64::from(self.ledger.tokens(run))).sum::<u64>();
        let saved = self.shorter.iter().filter(|(at, _)| set.contains(*at));
        let saved = saved.map(|(at, _)| u64::from(self.ledger.tokens(*at..*at + 1) - self.cost(*at))).sum::<u64>();
        u32::try_from(said - saved).unwrap_or(u32::MAX)
    }

    /// Tokens of messages as they were said.
    pub(crate) fn said(&self, set: &Set) -> u32 {
        set.runs().map(|run| self.ledger.tokens(run)).fold(0, u32::saturating_add)
    }

    /// Tokens of the view.
    pub(crate) fn before(&self) -> u32 {
        self.summaries.iter().map(|summary| summary.tokens).fold(self.costs(&self.shown), u32::saturating_add)
    }

    /// Tokens of the view where what is shown shorter costs nothing beside its text.
    pub(crate) fn least(&self) -> u32 {
        let shorter = u32::try_from(self.shorter.len()).unwrap_or(u32::MAX);
        self.before().saturating_sub(EXCERPT_FRAME.saturating_mul(shorter))
    }

    /// The positions that these summaries stand for.
    pub(crate) fn covered_by(&self, summaries: &[&ShownSummary]) -> Set {
        let ranges: Vec<MessageRange> = summaries.iter().flat_map(|summary| summary.covers.iter().copied()).collect();
        self.ledger.named(&ranges)
    }

    /// Summaries of the view that alone stand for some of these messages.
    pub(crate) fn earlier(&self, open: &Set) -> Vec<&'a ShownSummary> {
        let alone = open.without(&self.shown);
        let stands = |range: &MessageRange| alone.meets(self.ledger.span(*range));
        self.summaries.iter().copied().filter(|summary| summary.covers.iter().any(stands)).collect()
    }
}

#[cfg(test)]
mod tests {
    use hermes_plugin::context_engine::ShownExcerpt;

    use super::*;
    use crate::testing::grouped;

    #[test]
    fn what_no_item_names_follows_the_view() {
        let ledger = grouped();
        let covers = vec![MessageRange::new(1, 4)];
        let view = [
            Item::Summary(ShownSummary { key: "a".into(), tokens: 30, covers }),
            Item::Messages(MessageRange::new(5, 6)),
            Item::Excerpt(ShownExcerpt { id: 7, tokens: 10 }),
        ];
        let ground = Ground::new(&ledger, &view);
        assert_eq!(ground.shown.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!((0..6).map(|at| ground.cost(at)).collect::<Vec<_>>(), [100, 100, 100, 50, 100, 100]);
        assert_eq!((0..6).filter(|at| ground.is_shorter(*at)).collect::<Vec<_>>(), [3]);
        assert_eq!((ground.before(), ground.least()), (30 + 2 * 100 + 50 + 2 * 100, 30 + 2 * 100 + 10 + 2 * 100));
        let mut open = Set::empty(6);
        open.insert(0..3);
        assert_eq!((ground.earlier(&open).len(), ground.earlier(&open.and(&ground.shown)).len()), (1, 0));
    }
}
