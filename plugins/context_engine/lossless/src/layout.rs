//! Which messages stay in the view as they are: protected first ones, the user's newest words always, the newest groups as
//! far as the room goes.

use crate::ground::{Ground, Rows, Standing};

/// The messages that stay, by position.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
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

/// How much may stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Tokens of the newest messages; as many groups stay in any case.
    pub(crate) tail: u32,
    pub(crate) groups: usize,
    /// Messages that stay beyond that, up to twice the tokens.
    pub(crate) last: usize,
    /// The same for the first ones.
    pub(crate) head: u32,
    pub(crate) first: usize,
}

impl Layout {
    pub(crate) fn choose(ground: &Ground<'_>, wish: Wish) -> Self {
        let rows = ground.rows;
        let user = rows.last_user();
        let mut layout = Self { kept: vec![false; ground.len()], head: 0, tail: ground.len(), user, tokens: 0 };
        if let Some(user) = user {
            layout.keep(ground, user);
        }
        let mut spent = 0_u32;
        let mut groups = 0;
        while layout.tail > 0 {
            let group = rows.group(layout.tail - 1);
            if group.clone().any(|at| !ground.is_shown(at) && Some(at) != user) {
                break;
            }
            let cost = cost(ground, &layout, group.clone());
            let sum = spent.saturating_add(cost);
            let newest = groups < wish.groups;
            let few = ground.len() - group.start <= wish.last && sum <= wish.tail.saturating_mul(2);
            if !(newest || sum <= wish.tail || few) {
                break;
            }
            spent = sum;
            groups += 1;
            layout.tail = group.start;
            group.for_each(|at| layout.keep(ground, at));
        }
        let mut spent = 0_u32;
        while layout.head < wish.first.min(layout.tail) {
            let group = rows.group(layout.head);
            spent = spent.saturating_add(cost(ground, &layout, group.clone()));
            if spent > wish.head || group.end > layout.tail || group.clone().any(|at| !ground.is_shown(at)) {
                break;
            }
            layout.head = group.end;
            group.for_each(|at| layout.keep(ground, at));
        }
        layout
    }

    fn keep(&mut self, ground: &Ground<'_>, at: usize) {
        if !self.kept[at] {
            self.kept[at] = true;
            self.tokens = self.tokens.saturating_add(self.cost(ground, at));
        }
    }

    /// What a message takes that stays.
    pub(crate) fn cost(&self, ground: &Ground<'_>, at: usize) -> u32 {
        // The user's newest words stand as they were said, however they stood before.
        if Some(at) == self.user { ground.rows.get(at).tokens } else { ground.cost(at) }
    }

    /// Whether the message has to be put back as it was said.
    pub(crate) fn is_restored(&self, ground: &Ground<'_>, at: usize) -> bool {
        Some(at) == self.user && ground.standings[at] != Standing::AsSaid
    }

    /// Tokens of what is shown and does not stay.
    pub(crate) fn leaving(&self, ground: &Ground<'_>) -> u32 {
        let leaving = (ground.first_shown..ground.len()).filter(|at| ground.is_shown(*at) && !self.kept[*at]);
        leaving.map(|at| ground.cost(at)).fold(0, u32::saturating_add)
    }
}

fn cost(ground: &Ground<'_>, layout: &Layout, group: std::ops::Range<usize>) -> u32 {
    group.filter(|at| !layout.kept[*at]).map(|at| ground.cost(at)).fold(0, u32::saturating_add)
}

/// Tokens of the messages behind `folded`, and of them those that a tail of so many tokens has no room for.
pub(crate) fn backlog(rows: &Rows, folded: u64, tail: u32) -> (u32, u32) {
    let mut all = 0_u32;
    let mut staying = 0_u32;
    let mut open = true;
    let mut end = rows.len();
    while end > 0 && rows.get(end - 1).id > folded {
        let group = rows.group(end - 1);
        let cost = rows.slice(group.clone()).iter().map(|row| row.tokens).fold(0, u32::saturating_add);
        all = all.saturating_add(cost);
        open &= staying == 0 || staying.saturating_add(cost) <= tail;
        if open {
            staying = staying.saturating_add(cost);
        }
        end = group.start;
    }
    (all, all - staying)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    /// 20 messages of 100 tokens, the odd ones the user's.
    fn rows() -> Rows {
        let mut rows = Rows::default();
        rows.observe(&headers(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>()));
        rows
    }

    #[test]
    fn head_and_tail_stay_within_their_room() {
        let rows = rows();
        let ground = Ground::new(&rows, &[]);
        let table = [
            (400, 0, 300, 3, 3, 15),
            (400, 0, 299, 3, 2, 15),
            (200, 6, 0, 3, 0, 15),
            (200, 4, 900, 0, 0, 16),
            (0, 0, 0, 0, 0, 19),
        ];
        for (tail, last, head, first, ends, begins) in table {
            let layout = Layout::choose(&ground, Wish { tail, groups: 1, last, head, first });
            // The user's newest message, at 18, costs the tail nothing.
            assert_eq!((layout.head, layout.tail), (ends, begins), "{tail} {last} {head}");
            let kept = layout.kept.iter().filter(|kept| **kept).count();
            assert_eq!(layout.tokens, 100 * u32::try_from(kept).unwrap_or(0));
            assert_eq!(layout.leaving(&ground), 2_000 - layout.tokens);
            assert!(layout.kept[18]);
        }
    }

    #[test]
    fn a_backlog_is_what_the_tail_has_no_room_for() {
        let rows = rows();
        assert_eq!(backlog(&rows, 0, 450), (2_000, 1_600));
        assert_eq!(backlog(&rows, 15, 450), (500, 100));
        assert_eq!(backlog(&rows, 0, 0), (2_000, 1_900));
        assert_eq!(backlog(&rows, 20, 450), (0, 0));
    }
}
