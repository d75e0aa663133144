//! A conversation in memory: the messages of a session and of those that it continues.

use crate::{Header, Item, Message, MessageId, MessageRange, Role, View, reminder, tokens};

/// Messages in order, with a header each.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    headers: Vec<Header>,
    /// For each message, the token estimates of all messages up to it: the size of a range is asked for several times in a
    /// turn.
    tokens_up_to: Vec<u64>,
    /// The positions of results that say what the model must be reminded of.
    reminding: Vec<usize>,
}

impl Conversation {
    /// From messages in the order of their ids.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut conversation = Self::default();
        for message in messages {
            conversation.push(message);
        }
        conversation
    }

    /// Appends messages that the store has just numbered.
    pub fn push(&mut self, message: Message) {
        debug_assert!(self.messages.last().is_none_or(|last| last.id < message.id), "ids grow");
        let last = self.headers.last();
        let turn = last.map_or(0, |header| header.turn) + u32::from(message.role == Role::User || last.is_none());
        let group = match (message.role, last) {
            (Role::Tool, Some(last)) => last.group,
            _ => message.id.0,
        };
        let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
        let tokens = tokens::of_message(&message);
        self.tokens_up_to.push(self.tokens_up_to.last().unwrap_or(&0) + u64::from(tokens));
        self.headers.push(Header {
            id: message.id,
            role: message.role,
            turn,
            group,
            tool_name: message.tool_name.clone(),
            tokens,
            bytes: u32::try_from(message.text_sent().len() + arguments).unwrap_or(u32::MAX),
            images: message.images(),
            created_at: message.created_at,
        });
        if reminder::of_message(&message).is_some() {
            self.reminding.push(self.messages.len());
        }
        self.messages.push(message);
    }

    /// The results that say what the model must be reminded of, newest first.
    pub(crate) fn reminding(&self) -> impl Iterator<Item = &Message> {
        self.reminding.iter().rev().map(|at| &self.messages[*at])
    }

    /// All messages, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// A header for each message, in the same order.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// The range from the first message to the last.
    pub fn whole(&self) -> Option<MessageRange> {
        Some(MessageRange::new(self.messages.first()?.id, self.messages.last()?.id))
    }

    /// The position of a message.
    pub fn position(&self, id: MessageId) -> Option<usize> {
        self.messages.binary_search_by_key(&id, |message| message.id).ok()
    }

    /// A message by its id.
    pub fn get(&self, id: MessageId) -> Option<&Message> {
        self.position(id).map(|at| &self.messages[at])
    }

    /// The positions of the messages in a range.
    pub fn span(&self, range: MessageRange) -> std::ops::Range<usize> {
        let start = self.messages.partition_point(|message| message.id < range.first);
        let end = self.messages.partition_point(|message| message.id <= range.last);
        start..end.max(start)
    }

    /// The headers of the messages after the given one, or of all messages.
    pub fn headers_after(&self, after: Option<MessageId>) -> &[Header] {
        let start = after.map_or(0, |after| self.headers.partition_point(|header| header.id <= after));
        &self.headers[start..]
    }

    /// The headers of a range.
    pub fn headers_in(&self, range: MessageRange) -> &[Header] {
        &self.headers[self.span(range)]
    }

    /// Copies messages of a range with their token counts: about `bytes` bytes of text, but at least one message. The
    /// second value is the first message that was left out.
    pub fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        let span = self.span(range);
        let mut left = bytes;
        let mut read = Vec::new();
        for (message, header) in self.messages[span.clone()].iter().zip(&self.headers[span]) {
            let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
            let size = message.content.len() + arguments + message.reasoning.as_ref().map_or(0, String::len);
            if size > left && !read.is_empty() {
                return (read, Some(message.id));
            }
            left = left.saturating_sub(size);
            read.push((message.clone(), header.tokens));
        }
        (read, None)
    }

    /// The messages that follow a view's items.
    pub fn after(&self, view: &View) -> std::ops::Range<usize> {
        let start = view.through.map_or(0, |id| self.messages.partition_point(|message| message.id <= id));
        start..self.messages.len()
    }

    /// The items of a view with the messages that follow it made explicit.
    pub fn items(&self, view: &View) -> Vec<Item> {
        let mut items = view.items.clone();
        let rest = &self.messages[self.after(view)];
        if let (Some(first), Some(last)) = (rest.first(), rest.last()) {
            items.push(Item::Messages(MessageRange::new(first.id, last.id)));
        }
        items
    }

    /// The newest message of the user.
    pub fn last_user(&self) -> Option<&Message> {
        self.messages.iter().rev().find(|message| message.role == Role::User)
    }

    /// Estimate of what a view costs in a request, without system prompt and tools.
    pub fn view_tokens(&self, view: &View) -> u32 {
        self.priced_items(view).iter().map(|(_, tokens)| *tokens).fold(0, u32::saturating_add)
    }

    /// The items of a view and the items that follow it, with the token estimate of each.
    pub fn priced_items(&self, view: &View) -> Vec<(Item, u32)> {
        let mut priced = self.priced(self.items(view));
        for (at, reminder) in reminder::of_view(self, view) {
            priced[at].1 = priced[at].1.saturating_add(reminder::tokens(&reminder));
        }
        priced
    }

    /// Consecutive items without reminders, with the token estimate of each.
    pub fn priced(&self, items: Vec<Item>) -> Vec<(Item, u32)> {
        let mut behind_summary = false;
        let priced = items.into_iter().map(|item| {
            let is_summary = matches!(item, Item::Summary(_));
            let frame = if is_summary && !behind_summary { tokens::FIRST_SUMMARY } else { 0 };
            behind_summary = is_summary;
            let tokens = self.item_tokens(&item).saturating_add(frame);
            (item, tokens)
        });
        priced.collect()
    }

    /// Estimate for one item.
    pub fn item_tokens(&self, item: &Item) -> u32 {
        match item {
            Item::Messages(range) => self.tokens_in(self.span(*range)),
            Item::Excerpt(excerpt) => self.get(excerpt.id).map_or(0, |message| tokens::of_excerpt(message, excerpt)),
            Item::Summary(summary) => tokens::of_summary(summary),
        }
    }

    /// Estimate for the messages at some positions.
    fn tokens_in(&self, span: std::ops::Range<usize>) -> u32 {
        let up_to = |position: usize| position.checked_sub(1).map_or(0, |last| self.tokens_up_to[last]);
        u32::try_from(up_to(span.end) - up_to(span.start)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, ToolCall};

    #[test]
    fn messages_are_read_until_the_bytes_are_used_up_but_at_least_one() {
        let texts = ["one", "two two", "three"];
        let messages = texts.iter().zip(2..).map(|(text, id)| Draft::user(*text, 1).numbered(MessageId(id)));
        let conversation = Conversation::new(messages);
        let read = |first, last, bytes| {
            let (read, left) = conversation.read(MessageRange::new(MessageId(first), MessageId(last)), bytes);
            (read.iter().map(|(message, _)| message.id.0).collect::<Vec<_>>(), left.map(|id| id.0))
        };
        assert_eq!(read(1, 9, 100), (vec![2, 3, 4], None));
        assert_eq!(read(2, 4, 10), (vec![2, 3], Some(4)));
        assert_eq!(read(3, 4, 0), (vec![3], Some(4)));
        assert_eq!(read(7, 9, 100), (vec![], None));
    }

    #[test]
    fn a_turn_begins_with_the_user_and_a_call_forms_a_group_with_its_results() {
        let call =
            |id: &str| ToolCall { id: id.to_owned(), name: "read".to_owned(), arguments: "{\"a\":1}".to_owned() };
        let drafts = [
            Draft::user("one", 1),
            Draft::assistant("", vec![call("a"), call("b")], 2),
            Draft::result(&call("a"), "first", 3),
            Draft::result(&call("b"), "second", 4),
            Draft::assistant("done", Vec::new(), 5),
            Draft::user("two", 6),
        ];
        // The ids of other conversations lie in between.
        let conversation = Conversation::new(
            drafts.into_iter().zip((3..).step_by(2)).map(|(draft, id)| draft.numbered(MessageId(id))),
        );
        let headers = conversation.headers();
        let seen: Vec<(u64, u32, u64)> =
            headers.iter().map(|header| (header.id.0, header.turn, header.group)).collect();
        assert_eq!(seen, [(3, 1, 3), (5, 1, 5), (7, 1, 5), (9, 1, 5), (11, 1, 11), (13, 2, 13)]);
        assert_eq!((headers[1].bytes, headers[2].bytes), (14, 5));
        assert_eq!(headers[2].tool_name.as_deref(), Some("read"));
    }

    #[test]
    fn a_range_costs_what_its_messages_cost() {
        let texts = ["a", "some more words", "", "the last of them"];
        let messages =
            texts.iter().zip((3..).step_by(2)).map(|(text, id)| Draft::user(*text, 1).numbered(MessageId(id)));
        let conversation = Conversation::new(messages);
        for (first, last) in (0..12).flat_map(|first| (first..12).map(move |last| (first, last))) {
            let range = MessageRange::new(MessageId(first), MessageId(last));
            let sum: u32 = conversation.headers_in(range).iter().map(|header| header.tokens).sum();
            assert_eq!(conversation.item_tokens(&Item::Messages(range)), sum, "{first} to {last}");
        }
    }

    #[test]
    fn headers_are_those_of_a_range_or_those_after_a_message() {
        let messages = (1..4).map(|id| Draft::user("x", 1).numbered(MessageId(id)));
        let conversation = Conversation::new(messages);
        let ids = |headers: &[Header]| headers.iter().map(|header| header.id.0).collect::<Vec<_>>();
        assert_eq!(ids(conversation.headers_after(None)), [1, 2, 3]);
        assert_eq!(ids(conversation.headers_after(Some(MessageId(2)))), [3]);
        assert_eq!(ids(conversation.headers_in(MessageRange::new(MessageId(2), MessageId(9)))), [2, 3]);
    }
}
