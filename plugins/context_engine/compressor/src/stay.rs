//! Which messages stay in the view: the first ones once, the user's newest words and what they answer, the newest groups
//! as far as the room goes.

use crate::budget::{Budget, share};
use crate::config::Config;
use crate::ground::Ground;
use crate::set::Set;
use hermes_plugin::Role;

/// The messages that stay, by position.
#[derive(Debug, Clone)]
pub(crate) struct Stay {
    pub(crate) kept: Set,
    /// Where the first messages end; nothing of them stays when it is 0.
    pub(crate) head: usize,
    /// Where the newest ones begin.
    pub(crate) tail: usize,
    /// From here on nothing is shortened to save room.
    pub(crate) safe: usize,
    /// The user's newest message.
    pub(crate) user: Option<usize>,
    /// What they take.
    pub(crate) tokens: u32,
}

impl Stay {
    /// `of` is what of its budget the tail gets; the newest group and the user's words stay in any case.
    pub(crate) fn choose(ground: &Ground<'_>, config: &Config, budget: &Budget, head: bool, of: f64) -> Self {
        let user = ground.ledger.last_user();
        let length = ground.len();
        let mut stay = Self { kept: Set::empty(length), head: 0, tail: length, safe: length, user, tokens: 0 };
        if let Some(user) = user {
            stay.kept.insert(user..user + 1);
            stay.tokens = ground.ledger.tokens(user..user + 1);
        }
        stay.choose_tail(ground, config, budget, of);
        if of > 0.0 {
            stay.choose_reply(ground, budget);
        }
        // What was protected once is old by the second compaction.
        if head && ground.summaries.is_empty() {
            stay.choose_head(ground, config, budget);
        }
        stay
    }

    fn choose_tail(&mut self, ground: &Ground<'_>, config: &Config, budget: &Budget, of: f64) {
        let [comfortable, most, least] =
            [budget.tail, budget.tail_most, budget.tail_least].map(|tokens| share(tokens, of));
        let mut spent = 0u32;
        while let Some(cost) = self.next_group(ground) {
            let count = ground.len() - self.tail;
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
            self.extend(ground);
        }
        self.safe = self.tail.min(ground.len().saturating_sub(config.protect_last_n));
    }

    /// "Yes, do that" means nothing without what it answers.
    fn choose_reply(&mut self, ground: &Ground<'_>, budget: &Budget) {
        let Some(at) = self.user.and_then(|user| user.checked_sub(1)).filter(|at| *at < self.tail) else { return };
        let cost = ground.cost(at);
        let is_reply = ground.ledger.role(at) == Role::Assistant && ground.ledger.group(at).len() == 1;
        if is_reply && ground.is_shown(at) && cost <= share(budget.goal, 0.1) && self.fits(cost, budget) {
            self.kept.insert(at..at + 1);
            self.tokens = self.tokens.saturating_add(cost);
        }
    }

    fn choose_head(&mut self, ground: &Ground<'_>, config: &Config, budget: &Budget) {
        let mut spent = 0u32;
        while self.head < config.protect_first_n.min(self.tail) {
            let group = ground.ledger.group(self.head);
            let cost = self.cost_of(ground, group.clone());
            spent = spent.saturating_add(cost);
            let is_whole = group.end <= self.tail && group.clone().all(|at| ground.is_shown(at));
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

    fn cost_of(&self, ground: &Ground<'_>, group: std::ops::Range<usize>) -> u32 {
        group.filter(|at| !self.kept.contains(*at)).map(|at| ground.cost(at)).fold(0, u32::saturating_add)
    }

    /// What it takes to keep the group before the tail; none when there is none or it is folded.
    pub(crate) fn next_group(&self, ground: &Ground<'_>) -> Option<u32> {
        let group = ground.ledger.group(self.tail.checked_sub(1)?);
        if group.clone().any(|at| !ground.is_shown(at) && Some(at) != self.user) {
            return None;
        }
        Some(self.cost_of(ground, group))
    }

    /// Keeps the group before the tail.
    pub(crate) fn extend(&mut self, ground: &Ground<'_>) {
        let Some(cost) = self.next_group(ground) else { return };
        let group = ground.ledger.group(self.tail - 1);
        self.tail = group.start;
        self.kept.insert(group);
        self.tokens = self.tokens.saturating_add(cost);
    }

    /// Whether the message has to be put back as it was said.
    pub(crate) fn is_restored(&self, ground: &Ground<'_>, at: usize) -> bool {
        Some(at) == self.user && (!ground.is_shown(at) || ground.is_shorter(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ledger, pressure};

    fn budget(tail: u32, tail_most: u32, tail_least: u32, head: u32) -> Budget {
        let budget = Budget::from_tokens(&Config::default(), &pressure(10_000, 0, 0), 8_000, 8_000);
        Budget { tail, tail_most, tail_least, head, ..budget }
    }

    #[test]
    fn head_and_tail_stay_within_their_budgets() {
        // 20 messages of 100 tokens.
        let all = ledger(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>());
        let ground = Ground::new(&all, &[]);
        let config = Config { protect_last_n: 6, ..Config::default() };
        let table = [
            (400, 400, 400, 300, 3, 15),
            (400, 400, 400, 299, 2, 15),
            // Fewer than are protected: half as much again.
            (200, 300, 300, 0, 0, 16),
            (200, 500, 500, 0, 0, 14),
            (200, 5_000, 5_000, 0, 0, 14),
            // The very newest are kept beyond the budget.
            (100, 100, 5_000, 0, 0, 14),
            (0, 0, 0, 0, 0, 19),
        ];
        for (tail, most, least, head, first, last) in table {
            let stay = Stay::choose(&ground, &config, &budget(tail, most, least, head), true, 1.0);
            // The user's newest message, at 18, costs the tail nothing.
            assert_eq!((stay.head, stay.tail), (first, last), "{tail} {most} {least} {head}");
            assert_eq!(stay.tokens, 100 * u32::try_from(stay.kept.count()).unwrap_or(0));
            assert!(stay.kept.contains(18) && stay.safe == last.min(14), "{}", stay.safe);
        }
    }

    #[test]
    fn the_reply_that_the_user_answers_stays_with_the_answer() {
        let mut all = crate::testing::headers(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>());
        for header in &mut all[5..] {
            header.role = Role::Assistant;
        }
        let mut ledger = crate::ledger::Ledger::new();
        ledger.observe(&all);
        let ground = Ground::new(&ledger, &[]);
        let stay = Stay::choose(&ground, &Config::default(), &budget(300, 300, 300, 0), true, 1.0);
        assert_eq!(stay.kept.iter().collect::<Vec<_>>(), [3, 4, 17, 18, 19]);
    }
}
