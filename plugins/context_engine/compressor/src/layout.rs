//! Chooses the messages that stay in the view: the first ones (once), the user's newest message with the reply before it,
//! and the newest groups as far as room allows.

use crate::budget::{Budget, share};
use crate::config::Config;
use crate::current_view::CurrentView;
use crate::set::Set;

/// The messages that stay, by position.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) kept: Set,
    /// End of the first messages that stay; 0 if none do.
    pub(crate) head: usize,
    /// Start of the newest messages.
    pub(crate) tail: usize,
    /// From this position on nothing is shortened to save room.
    pub(crate) safe: usize,
    /// Position of the user's newest message.
    pub(crate) user: Option<usize>,
    /// Tokens of the messages that stay.
    pub(crate) tokens: u32,
}

impl Layout {
    /// `of` scales the tail budget. The newest group and the user's newest message always stay.
    pub(crate) fn choose(current: &CurrentView<'_>, config: &Config, budget: &Budget, head: bool, of: f64) -> Self {
        let user = current.index.last_user();
        let length = current.len();
        let mut layout = Self { kept: Set::empty(length), head: 0, tail: length, safe: length, user, tokens: 0 };
        if let Some(user) = user {
            layout.kept.insert(user..user + 1);
            layout.tokens = current.index.tokens(user..user + 1);
        }
        layout.choose_tail(current, config, budget, of);
        if of > 0.0 {
            layout.choose_reply(current, budget);
        }
        // The head is protected only in the first compaction.
        if head && current.summaries.is_empty() {
            layout.choose_head(current, config, budget);
        }
        layout
    }

    fn choose_tail(&mut self, current: &CurrentView<'_>, config: &Config, budget: &Budget, of: f64) {
        let [comfortable, most, least] =
            [budget.tail, budget.tail_most, budget.tail_least].map(|tokens| share(tokens, of));
        let mut spent = 0u32;
        while let Some(cost) = self.next_group(current) {
            let count = current.len() - self.tail;
            let sum = spent.saturating_add(cost);
            let room = match count {
                0 => u32::MAX,
                _ if count < config.least_tail() => least,
                _ if count < config.protect_last_n => most,
                _ => comfortable,
            };
            if sum > room || count > 0 && !self.fits(cost, budget) {
                break;
            }
            spent = sum;
            self.extend(current);
        }
        self.safe = self.tail.min(current.len().saturating_sub(config.protect_last_n));
    }

    /// Keeps the assistant's reply before the user's newest message: "Yes, do that" needs it.
    fn choose_reply(&mut self, current: &CurrentView<'_>, budget: &Budget) {
        let Some(at) = self.user.and_then(|user| user.checked_sub(1)).filter(|at| *at < self.tail) else { return };
        let cost = current.cost(at);
        let is_reply = current.index.is_by_model(at) && current.index.group(at).len() == 1;
        if is_reply && current.is_shown(at) && cost <= share(budget.goal, 0.1) && self.fits(cost, budget) {
            self.kept.insert(at..at + 1);
            self.tokens = self.tokens.saturating_add(cost);
        }
    }

    fn choose_head(&mut self, current: &CurrentView<'_>, config: &Config, budget: &Budget) {
        let mut spent = 0u32;
        while self.head < config.protect_first_n.min(self.tail) {
            let group = current.index.group(self.head);
            let cost = self.cost_of(current, group.clone());
            spent = spent.saturating_add(cost);
            let is_whole = group.end <= self.tail && group.clone().all(|at| current.is_shown(at));
            if !self.fits(cost, budget) || spent > budget.head || !is_whole {
                return;
            }
            self.kept.insert(group.clone());
            self.tokens = self.tokens.saturating_add(cost);
            self.head = group.end;
        }
    }

    fn fits(&self, cost: u32, budget: &Budget) -> bool {
        self.tokens.saturating_add(cost) <= budget.goal.saturating_sub(budget.text)
    }

    fn cost_of(&self, current: &CurrentView<'_>, group: std::ops::Range<usize>) -> u32 {
        group.filter(|at| !self.kept.contains(*at)).map(|at| current.cost(at)).fold(0, u32::saturating_add)
    }

    /// Tokens needed to keep the group before the tail. `None` if there is no such group or it is folded.
    pub(crate) fn next_group(&self, current: &CurrentView<'_>) -> Option<u32> {
        let group = current.index.group(self.tail.checked_sub(1)?);
        if group.clone().any(|at| !current.is_shown(at) && Some(at) != self.user) {
            return None;
        }
        Some(self.cost_of(current, group))
    }

    /// Extends the tail by one group.
    pub(crate) fn extend(&mut self, current: &CurrentView<'_>) {
        let Some(cost) = self.next_group(current) else { return };
        let group = current.index.group(self.tail - 1);
        self.tail = group.start;
        self.kept.insert(group);
        self.tokens = self.tokens.saturating_add(cost);
    }

    /// Whether an excerpt or folded message has to be restored to its full text.
    pub(crate) fn is_restored(&self, current: &CurrentView<'_>, at: usize) -> bool {
        Some(at) == self.user && (!current.is_shown(at) || current.is_shorter(at))
    }
}

#[cfg(test)]
mod tests {
    use hermes_plugin::Role;

    use super::*;
    use crate::testing::{index, pressure};

    fn budget(tail: u32, tail_most: u32, tail_least: u32, head: u32) -> Budget {
        let budget = Budget::from_tokens(&Config::default(), &pressure(10_000, 0, 0), 8_000, 8_000);
        Budget { tail, tail_most, tail_least, head, ..budget }
    }

    #[test]
    fn head_and_tail_stay_within_their_budgets() {
        // 20 messages of 100 tokens.
        let all = index(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>());
        let current = CurrentView::new(&all, &[]);
        let config = Config { protect_last_n: 6, ..Config::default() };
        let table = [
            (400, 400, 400, 300, 3, 15),
            (400, 400, 400, 299, 2, 15),
            // The tail has fewer messages than protected, so it may take half as much again.
            (200, 300, 300, 0, 0, 16),
            (200, 500, 500, 0, 0, 14),
            (200, 5_000, 5_000, 0, 0, 14),
            // The very newest messages may exceed the budget.
            (100, 100, 5_000, 0, 0, 14),
            (0, 0, 0, 0, 0, 19),
        ];
        for (tail, most, least, head, first, last) in table {
            let layout = Layout::choose(&current, &config, &budget(tail, most, least, head), true, 1.0);
            // The user's newest message, at 18, is free for the tail.
            assert_eq!((layout.head, layout.tail), (first, last), "{tail} {most} {least} {head}");
            assert_eq!(layout.tokens, 100 * u32::try_from(layout.kept.count()).unwrap_or(0));
            assert!(layout.kept.contains(18) && layout.safe == last.min(14), "{}", layout.safe);
        }
    }

    #[test]
    fn the_reply_that_the_user_answers_stays() {
        let mut all = crate::testing::headers(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>());
        for header in &mut all[5..] {
            header.role = Role::Assistant;
        }
        let mut index = crate::message_index::MessageIndex::new();
        index.observe(&all);
        let current = CurrentView::new(&index, &[]);
        let layout = Layout::choose(&current, &Config::default(), &budget(300, 300, 300, 0), true, 1.0);
        assert_eq!(layout.kept.iter().collect::<Vec<_>>(), [3, 4, 17, 18, 19]);
    }
}
