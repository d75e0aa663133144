//! Which messages stay in the view as they are: protected first ones, the user's newest words always, the newest groups as
//! far as the room goes.

use hermes_plugin::{MessageRange, Role};

use crate::ground::{Ground, Rows, Standing};
use crate::policy;

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

/// What stands behind the newest message that left the view, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// All of it.
    pub(crate) shown: u32,
    /// Without large results that are about to be worked with.
    pub(crate) ripe: u32,
}

/// Of a conversation.
pub(crate) fn backlog(rows: &Rows, folded: u64) -> Backlog {
    let mut backlog = Backlog::default();
    let mut replies = 0;
    let behind = rows.span(MessageRange::new(folded.saturating_add(1), u64::MAX));
    for row in rows.slice(behind).iter().rev() {
        backlog.shown = backlog.shown.saturating_add(row.tokens);
        if row.role != Role::Tool || row.tokens <= policy::LARGE || replies >= policy::YOUNG {
            backlog.ripe = backlog.ripe.saturating_add(row.tokens);
        }
        replies += u32::from(row.role == Role::Assistant);
    }
    if backlog.shown > policy::PATIENCE {
        backlog.ripe = backlog.shown;
    }
    backlog
}

#[cfg(test)]
mod tests {
    use hermes_plugin::Header;

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
    fn a_large_result_counts_once_it_was_worked_with() {
        let row = |id, role, tokens| Header { role, tokens, ..headers(&[(id, 1)]).remove(0) };
        let mut all = vec![row(1, Role::User, 100), row(2, Role::Assistant, 50), row(3, Role::Tool, 9_000)];
        let of = |all: &[Header]| {
            let mut rows = Rows::default();
            rows.observe(all);
            (backlog(&rows, 0), backlog(&rows, 2).shown)
        };
        assert_eq!(of(&all), (Backlog { shown: 9_150, ripe: 150 }, 9_000));
        all.extend((4..12).map(|id| row(id, Role::Assistant, 50)));
        assert_eq!(of(&all).0, Backlog { shown: 9_550, ripe: 9_550 });
        all.push(row(12, Role::Tool, 40_000));
        assert_eq!(of(&all).0, Backlog { shown: 49_550, ripe: 49_550 });
    }
}
