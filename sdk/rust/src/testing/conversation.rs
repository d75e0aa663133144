//! A conversation that the test gives.

use std::collections::BTreeMap;

use super::Host;
use super::models::estimate;
use crate::bindings::imports::history as wit;
use crate::{Error, Header, Message, MessageId, MessageRange, Part, Role};

/// Bytes of text per page.
const PAGE: usize = 4 << 20;
/// Characters of an excerpt.
const EXCERPT: usize = 200;

#[derive(Default)]
pub(crate) struct Conversation {
    /// By id.
    messages: BTreeMap<MessageId, Message>,
    parts: BTreeMap<MessageId, Vec<Part>>,
    summaries: BTreeMap<String, String>,
}

impl Conversation {
    pub(crate) fn whole(&mut self) -> Result<Option<MessageRange>, Error> {
        let (first, last) = (self.messages.keys().next(), self.messages.keys().next_back());
        Ok(first.zip(last).map(|(first, last)| MessageRange::new(*first, *last)))
    }

    pub(crate) fn headers(&mut self, range: MessageRange) -> Result<Vec<Header>, Error> {
        let (mut turn, mut group) = (0, 0);
        let mut headers = Vec::new();
        for message in self.messages.values() {
            if message.role == Role::User || turn == 0 {
                turn += 1;
            }
            // A result belongs to the group of the message that called its tool.
            if message.role != Role::Tool {
                group = message.id;
            }
            if range.contains(message.id) {
                headers.push(header(message, turn, group));
            }
        }
        Ok(headers)
    }

    pub(crate) fn read(&mut self, range: MessageRange) -> Result<wit::Page, Error> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for message in self.within(range) {
            bytes += length(message);
            if bytes > PAGE && !page.is_empty() {
                return Ok(wit::Page { messages: page, next: Some(message.id) });
            }
            page.push(message.clone());
        }
        Ok(wit::Page { messages: page, next: None })
    }

    pub(crate) fn parts(&mut self, range: MessageRange) -> Result<wit::PartsPage, Error> {
        let parts = self.parts.iter().filter(|(id, _)| range.contains(**id));
        let messages = parts.map(|(id, parts)| wit::MessageParts { id: *id, parts: parts.clone() }).collect();
        Ok(wit::PartsPage { messages, next: None })
    }

    pub(crate) fn summary(&mut self, key: &str) -> Result<String, Error> {
        let found = self.summaries.get(key).cloned();
        found.ok_or_else(|| Error::invalid(format!("no view has or had the summary `{key}`")).with_code("not-found"))
    }

    /// Hits with more matching words first; the real host ranks better.
    pub(crate) fn search(&mut self, query: &wit::Query) -> Result<Vec<wit::Hit>, Error> {
        let range = query.within.unwrap_or(MessageRange::new(0, MessageId::MAX));
        let tools = |message: &Message| match &message.tool_name {
            _ if query.tools.is_empty() => true,
            Some(name) => query.tools.contains(name),
            None => false,
        };
        let mut hits: Vec<wit::Hit> = self
            .within(range)
            .filter(|message| (query.roles.is_empty() || query.roles.contains(&message.role)) && tools(message))
            .filter_map(|message| hit(message, query))
            .collect();
        hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(other.id.cmp(&one.id)));
        Ok(hits.into_iter().skip(query.offset as usize).take(query.limit.min(100) as usize).collect())
    }

    fn within(&self, range: MessageRange) -> impl Iterator<Item = &Message> {
        self.messages.values().filter(move |message| range.contains(message.id))
    }
}

fn hit(message: &Message, query: &wit::Query) -> Option<wit::Hit> {
    let arguments: String =
        message.tool_calls.iter().map(|call| format!(" {} {}", call.name, call.arguments)).collect();
    let text = (message.content.clone() + &arguments).to_lowercase();
    let wanted = query.text.to_lowercase();
    let words: Vec<&str> = wanted.split(|character: char| !character.is_alphanumeric()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let found = words.iter().filter(|word| text.contains(**word)).count();
    let fits = match query.matching {
        wit::Matching::Any => found > 0,
        wit::Matching::All => found > 0 && found == words.len(),
        wit::Matching::Phrase => text.contains(&wanted),
    };
    fits.then(|| wit::Hit {
        id: message.id,
        session_id: super::session().id,
        excerpt: message.content.chars().take(EXCERPT).collect(),
        score: found as f64,
        extra: Vec::new(),
    })
}

fn length(message: &Message) -> usize {
    message.content.len() + message.tool_calls.iter().map(|call| call.arguments.len()).sum::<usize>()
}

fn header(message: &Message, turn: u32, group: u64) -> Header {
    let tokens = if message.tokens > 0 { message.tokens } else { estimate(&message.content) };
    Header {
        id: message.id,
        role: message.role.clone(),
        turn,
        group,
        tool_name: message.tool_name.clone(),
        tokens,
        bytes: u32::try_from(length(message)).unwrap_or(u32::MAX),
        images: message.images,
        created_at: message.created_at,
        extra: Vec::new(),
    }
}

impl Host {
    /// Adds messages to the conversation that [`history`](crate::history) reads. Turns and groups follow from their roles.
    ///
    /// ```
    /// use hermes_plugin::{Error, Message, Role, history, testing};
    ///
    /// let messages = [Message::new(1, Role::User, "When is tea?"), Message::new(2, Role::Assistant, "At four.")];
    /// let host = testing::Host::new().messages(messages);
    /// assert_eq!(history::headers(history::whole()?.unwrap())?.len(), 2);
    /// assert_eq!(history::search(&history::Query::new("four"))?[0].id, 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn messages(self, messages: impl IntoIterator<Item = Message>) -> Self {
        let messages = messages.into_iter().map(|message| (message.id, message));
        self.state.history.borrow_mut().messages.extend(messages);
        self
    }

    /// Sets the parts of a message.
    pub fn parts(self, id: MessageId, parts: impl Into<Vec<Part>>) -> Self {
        self.state.history.borrow_mut().parts.insert(id, parts.into());
        self
    }

    /// Sets the text of a summary.
    pub fn summary(self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.state.history.borrow_mut().summaries.insert(key.into(), text.into());
        self
    }

    /// The headers of all messages, for [`observe`](crate::ContextEngine::observe).
    pub fn headers(&self) -> Vec<Header> {
        let all = MessageRange::new(0, MessageId::MAX);
        self.state.history.borrow_mut().headers(all).unwrap_or_default()
    }
}
