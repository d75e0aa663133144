//! Whether a smaller view is worth rewriting the provider's cache.

use crate::{Conversation, Item, MessageRange, View};

/// Two views of a conversation, in tokens of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payoff {
    /// The common beginning, which stays in the cache.
    pub shared: u32,
    /// The rest of the old view.
    pub before: u32,
    /// The rest of the new view.
    pub after: u32,
}

impl Payoff {
    /// Compares the view in force with another one.
    pub fn of(conversation: &Conversation, old: &View, new: &View) -> Self {
        let (olds, news) = (conversation.items(old), conversation.items(new));
        let tokens =
            |items: &[Item]| items.iter().map(|item| conversation.item_tokens(item)).fold(0u32, u32::saturating_add);
        let same = olds.iter().zip(&news).take_while(|(old, new)| old == new).count();
        let mut shared = tokens(&olds[..same]);
        // The first differing items may be two lengths of one stretch.
        if let (Some(Item::Messages(old)), Some(Item::Messages(new))) = (olds.get(same), news.get(same))
            && old.first == new.first
        {
            let common = MessageRange::new(old.first, old.last.min(new.last));
            shared = shared.saturating_add(conversation.item_tokens(&Item::Messages(common)));
        }
        Self { shared, before: tokens(&olds).saturating_sub(shared), after: tokens(&news).saturating_sub(shared) }
    }

    /// Whether the coming requests save more than the first of them pays for the uncached view.
    ///
    /// `read` and `write` are the prices of a token that is read from or written to the cache, relative to a fresh one. With n
    /// requests to come, the old view costs `n * read * before`. The new view costs `write * after` once and `read * after` from
    /// then on.
    pub fn pays(&self, requests: u32, read: f64, write: f64) -> bool {
        self.saved(requests, read) > self.surcharge(read, write)
    }

    /// The saving of the coming requests through the smaller view, in fresh tokens. Negative if the view grows.
    pub fn saved(&self, requests: u32, read: f64) -> f64 {
        f64::from(requests) * read * (f64::from(self.before) - f64::from(self.after))
    }

    /// The extra cost of the first request, because the new view is not in the cache yet, in fresh tokens.
    pub fn surcharge(&self, read: f64, write: f64) -> f64 {
        (write - read).max(0.0) * f64::from(self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Message, MessageId, Summary};

    fn conversation() -> Conversation {
        Conversation::new((1..=40).map(|id| Message {
            id: MessageId(id),
            draft: Draft::user("one two three four five six seven eight nine ten", id),
        }))
    }

    fn summary(key: &str, last: u64) -> Item {
        Item::Summary(Summary {
            key: key.to_owned(),
            content: "short".to_owned(),
            covers: vec![MessageRange::new(MessageId(1), MessageId(last))],
        })
    }

    fn view(items: Vec<Item>, through: u64) -> View {
        View { items, through: Some(MessageId(through)) }
    }

    fn messages(first: u64, last: u64) -> Item {
        Item::Messages(MessageRange::new(MessageId(first), MessageId(last)))
    }

    #[test]
    fn what_both_begin_with_is_neither_saved_nor_paid_for() {
        let conversation = conversation();
        let each = conversation.headers()[0].tokens;
        let old = view(vec![summary("a", 10), messages(11, 30)], 30);
        let new = view(vec![summary("a", 10), summary("b", 35), messages(36, 40)], 40);
        let payoff = Payoff::of(&conversation, &old, &new);
        assert_eq!(payoff.shared, conversation.item_tokens(&summary("a", 10)));
        assert_eq!(payoff.before, 30 * each);
        assert_eq!(payoff.after, conversation.item_tokens(&summary("b", 35)) + 5 * each);
        let longer = view(vec![messages(1, 20), summary("b", 35), messages(36, 40)], 40);
        let whole = Payoff::of(&conversation, &View::default(), &longer);
        assert_eq!((whole.shared, whole.before), (20 * each, 20 * each));
    }

    #[test]
    fn a_rewrite_pays_after_as_many_requests_as_the_prices_say() {
        // A backlog of 24,000 beside a tail of 8,000, folded into 1,500: 1.15 * 9,500 / (0.1 * 22,500) = 4.9 requests.
        let payoff = Payoff { shared: 15_000, before: 32_000, after: 9_500 };
        assert!(!payoff.pays(4, 0.1, 1.25) && payoff.pays(5, 0.1, 1.25));
        // Where writing costs nothing extra, the first request pays it back soon; where reading is free, none does.
        assert!(payoff.pays(4, 0.1, 1.0) && !payoff.pays(1_000, 0.0, 1.0));
        let larger = Payoff { shared: 0, before: 10, after: 11 };
        assert!(!larger.pays(1_000, 0.1, 1.25));
    }
}
