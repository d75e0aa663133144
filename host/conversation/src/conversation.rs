//! A conversation in memory: the messages of a session and of those that it continues.

use crate::{Header, Item, Message, MessageId, MessageRange, Role, View, tokens};

/// Messages in order, with a header each.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    headers: Vec<Header>,
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
        let arguments: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        self.headers.push(Header {
            id: message.id,
            role: message.role,
            turn,
            group,
            tool_name: message.tool_name.clone(),
            tokens: tokens::of_message(&message),
            bytes: u32::try_from(message.text_sent().len() + arguments).unwrap_or(u32::MAX),
            images: message.images(),
            created_at: message.created_at,
        });
        self.messages.push(message);
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
        self.priced(self.items(view))
    }

    /// Consecutive items, with the token estimate of each.
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
            Item::Messages(range) => {
                self.headers[self.span(*range)].iter().map(|header| header.tokens).fold(0, u32::saturating_add)
            }
            Item::Excerpt(excerpt) => self.get(excerpt.id).map_or(0, |message| tokens::of_excerpt(message, excerpt)),
            Item::Summary(summary) => tokens::of_summary(summary),
        }
    }
}
