//! Which messages stay in the view as they are: the first ones once, the user's newest words always, the newest groups
//! as far as the room goes.

use crate::budget::Budget;
use crate::config::Config;
use crate::ground::{Ground, Standing};

/// The messages that stay, by position.
#[derive(Debug, Clone)]
pub(crate) struct Stay {
    pub(crate) kept: Vec<bool>,
    /// Where the first messages end; nothing of them stays when it is 0.
    pub(crate) head: usize,
    /// Where the newest ones begin.
    pub(crate) tail: usize,
    /// The user's newest message.
    pub(crate) user: Option<usize>,
    /// What they take.
    pub(crate) tokens: u32,
}

impl Stay {
    /// `share` is what of its budget the tail gets; the newest group and the user's words stay in any case.
    pub(crate) fn choose(ground: &Ground<'_>, config: &Config, budget: &Budget, head: bool, share: f64) -> Self {
        let user = ground.last_user();
        let mut stay = Self { kept: vec![false; ground.len()], head: 0, tail: ground.len(), user, tokens: 0 };
        if let Some(user) = user {
            stay.kept[user] = true;
            stay.tokens = ground.headers[user].tokens;
        }
        stay.choose_tail(ground, config, budget, share);
        // What was protected once is old by the second compaction.
        if head && ground.summaries.is_empty() {
            stay.choose_head(ground, config, budget);
        }
        stay
    }

    fn choose_tail(&mut self, ground: &Ground<'_>, config: &Config, budget: &Budget, share: f64) {
        let (comfortable, most) =
            (crate::budget::share(budget.tail, share), crate::budget::share(budget.tail_most, share));
        let mut spent = 0u32;
        while let Some(cost) = self.next_group(ground) {
            let newest = self.tail == ground.len();
            let few = ground.len() - self.tail < config.protect_last_n;
            let sum = spent.saturating_add(cost);
            let fits = self.tokens.saturating_add(cost) <= budget.goal.saturating_sub(budget.text);
            if !(newest || fits && (sum <= comfortable || few && sum <= most)) {
                break;
            }
            spent = sum;
            self.extend(ground);
        }
    }

    fn choose_head(&mut self, ground: &Ground<'_>, config: &Config, budget: &Budget) {
        let mut spent = 0u32;
        while self.head < config.protect_first_n.min(self.tail) {
            let group = ground.group(self.head);
            let cost =
                group.clone().filter(|at| !self.kept[*at]).map(|at| ground.cost(at)).fold(0, u32::saturating_add);
            spent = spent.saturating_add(cost);
            let fits = self.tokens.saturating_add(cost) <= budget.goal.saturating_sub(budget.text);
            if !fits || spent > budget.head || group.end > self.tail || group.clone().any(|at| !ground.is_shown(at)) {
                return;
            }
            self.kept[group.clone()].fill(true);
            self.tokens = self.tokens.saturating_add(cost);
            self.head = group.end;
        }
    }

    /// What it takes to keep the group before the tail; none when there is none or it is folded.
    pub(crate) fn next_group(&self, ground: &Ground<'_>) -> Option<u32> {
        let group = ground.group(self.tail.checked_sub(1)?);
        if group.clone().any(|at| !ground.is_shown(at) && Some(at) != self.user) {
            return None;
        }
        Some(group.filter(|at| !self.kept[*at]).map(|at| ground.cost(at)).fold(0, u32::saturating_add))
    }

    /// Keeps the group before the tail.
    pub(crate) fn extend(&mut self, ground: &Ground<'_>) {
        let Some(cost) = self.next_group(ground) else { return };
        let group = ground.group(self.tail - 1);
        self.tail = group.start;
        self.kept[group].fill(true);
        self.tokens = self.tokens.saturating_add(cost);
    }

    /// Whether the message has to be put back as it was said.
    pub(crate) fn is_restored(&self, ground: &Ground<'_>, at: usize) -> bool {
        Some(at) == self.user && ground.standings[at] != Standing::AsSaid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{headers, pressure};

    fn budget(tail: u32, tail_most: u32, head: u32) -> Budget {
        let budget = Budget::from_tokens(&Config::default(), &pressure(10_000, 0, 0), 8_000, 8_000);
        Budget { tail, tail_most, head, ..budget }
    }

    /// 20 messages of 100 tokens.
    fn talk() -> Vec<hermes_plugin::Header> {
        headers(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>())
    }

    #[test]
    fn head_and_tail_stay_within_their_budgets() {
        let all = talk();
        let ground = Ground::new(&all, &[]);
        let table = [
            (400, 400, 300, 3, 15),
            (400, 400, 299, 2, 15),
            (200, 500, 0, 0, 14),
            (200, 5_000, 0, 0, 12),
            (0, 0, 0, 0, 19),
        ];
        for (tail, most, head, first, last) in table {
            let stay = Stay::choose(&ground, &Config::default(), &budget(tail, most, head), true, 1.0);
            // The user's newest message, at 18, costs the tail nothing.
            assert_eq!((stay.head, stay.tail), (first, last), "{tail} {most} {head}");
            let kept = stay.kept.iter().filter(|kept| **kept).count();
            assert_eq!(stay.tokens, 100 * u32::try_from(kept).unwrap_or(0));
            assert!(stay.kept[18]);
        }
    }
}
