//! Chooses the messages that stay in the view in full: the protected first ones, the user's newest message, and the newest
//! groups as far as room allows.

use hermes_guest_engine::speaker::Speaker;
use hermes_plugin::MessageRange;

use crate::current_view::{CurrentView, Rows, Visibility};
use crate::policy;

/// The messages that stay, by position.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) kept: Vec<bool>,
    /// End of the first messages that stay; 0 if none do.
    pub(crate) head: usize,
    /// Start of the newest messages.
    pub(crate) tail: usize,
    /// Position of the user's newest message.
    pub(crate) user: Option<usize>,
    /// Tokens of the messages that stay.
    pub(crate) tokens: u32,
}

/// Limits for what stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayoutLimits {
    /// Tokens of the newest messages, and the number of groups that always stay.
    pub(crate) tail: u32,
    pub(crate) groups: usize,
    /// Further messages that stay, up to twice the tokens.
    pub(crate) last: usize,
    /// Tokens of the first messages that always stay.
    pub(crate) head: u32,
    pub(crate) first: usize,
}

impl Layout {
    pub(crate) fn choose(current: &CurrentView<'_>, limits: LayoutLimits) -> Self {
        let rows = current.rows;
        let user = rows.last_user();
        let mut layout = Self { kept: vec![false; current.len()], head: 0, tail: current.len(), user, tokens: 0 };
        if let Some(user) = user {
            layout.keep(current, user);
        }
        let mut spent = 0_u32;
        let mut groups = 0;
        while layout.tail > 0 {
            let group = rows.group(layout.tail - 1);
            if group.clone().any(|at| !current.is_shown(at) && Some(at) != user) {
                break;
            }
            let cost = cost(current, &layout, group.clone());
            let sum = spent.saturating_add(cost);
            let newest = groups < limits.groups;
            let few = current.len() - group.start <= limits.last && sum <= limits.tail.saturating_mul(2);
            if !(newest || sum <= limits.tail || few) {
                break;
            }
            spent = sum;
            groups += 1;
            layout.tail = group.start;
            group.for_each(|at| layout.keep(current, at));
        }
        let mut spent = 0_u32;
        while layout.head < limits.first.min(layout.tail) {
            let group = rows.group(layout.head);
            spent = spent.saturating_add(cost(current, &layout, group.clone()));
            if spent > limits.head || group.end > layout.tail || group.clone().any(|at| !current.is_shown(at)) {
                break;
            }
            layout.head = group.end;
            group.for_each(|at| layout.keep(current, at));
        }
        layout
    }

    fn keep(&mut self, current: &CurrentView<'_>, at: usize) {
        if !self.kept[at] {
            self.kept[at] = true;
            self.tokens = self.tokens.saturating_add(self.cost(current, at));
        }
    }

    /// Tokens of a message that stays.
    pub(crate) fn cost(&self, current: &CurrentView<'_>, at: usize) -> u32 {
        // The user's newest message is always shown in full.
        if Some(at) == self.user { current.rows.get(at).tokens } else { current.cost(at) }
    }

    /// Whether an excerpt or folded message has to be restored to its full text.
    pub(crate) fn is_restored(&self, current: &CurrentView<'_>, at: usize) -> bool {
        Some(at) == self.user && current.visibility[at] != Visibility::Verbatim
    }

    /// Tokens of messages that leave the view.
    pub(crate) fn leaving(&self, current: &CurrentView<'_>) -> u32 {
        let leaving = (current.first_shown..current.len()).filter(|at| current.is_shown(*at) && !self.kept[*at]);
        leaving.map(|at| current.cost(at)).fold(0, u32::saturating_add)
    }
}

fn cost(current: &CurrentView<'_>, layout: &Layout, group: std::ops::Range<usize>) -> u32 {
    group.filter(|at| !layout.kept[*at]).map(|at| current.cost(at)).fold(0, u32::saturating_add)
}

/// Tokens of messages after the newest folded one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// All of them.
    pub(crate) shown: u32,
    /// Without large recent results that the assistant is about to use.
    pub(crate) ripe: u32,
}

/// Measures the backlog of a conversation.
pub(crate) fn backlog(rows: &Rows, folded: u64) -> Backlog {
    let mut backlog = Backlog::default();
    let mut replies = 0;
    let behind = rows.span(MessageRange::new(folded.saturating_add(1), u64::MAX));
    for row in rows.slice(behind).iter().rev() {
        backlog.shown = backlog.shown.saturating_add(row.tokens);
        if row.speaker != Speaker::Tool || row.tokens <= policy::LARGE || replies >= policy::YOUNG {
            backlog.ripe = backlog.ripe.saturating_add(row.tokens);
        }
        replies += u32::from(row.speaker == Speaker::Model);
    }
    if backlog.shown > policy::PATIENCE {
        backlog.ripe = backlog.shown;
    }
    backlog
}

#[cfg(test)]
mod tests {
    use hermes_plugin::{Header, Role};

    use super::*;
    use crate::testing::headers;

    /// 20 messages of 100 tokens; odd ids are the user's.
    fn rows() -> Rows {
        let mut rows = Rows::default();
        rows.observe(&headers(&(1..=20).map(|id| (id, 100)).collect::<Vec<_>>()));
        rows
    }

    #[test]
    fn head_and_tail_stay_within_their_limits() {
        let rows = rows();
        let current = CurrentView::new(&rows, &[]);
        let table = [
            (400, 0, 300, 3, 3, 15),
            (400, 0, 299, 3, 2, 15),
            (200, 6, 0, 3, 0, 15),
            (200, 4, 900, 0, 0, 16),
            (0, 0, 0, 0, 0, 19),
        ];
        for (tail, last, head, first, ends, begins) in table {
            let layout = Layout::choose(&current, LayoutLimits { tail, groups: 1, last, head, first });
            // The user's newest message, at 18, is free for the tail.
            assert_eq!((layout.head, layout.tail), (ends, begins), "{tail} {last} {head}");
            let kept = layout.kept.iter().filter(|kept| **kept).count();
            assert_eq!(layout.tokens, 100 * u32::try_from(kept).unwrap_or(0));
            assert_eq!(layout.leaving(&current), 2_000 - layout.tokens);
            assert!(layout.kept[18]);
        }
    }

    #[test]
    fn a_large_result_counts_after_several_replies() {
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
