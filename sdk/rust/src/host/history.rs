//! The host's log of the conversation, which never changes. Needs the permission `history`.

use crate::imports::history as wit;
use crate::{Error, Extra, Header, Message, MessageId, MessageRange};

pub use wit::{Hit, Matching, MessageParts, Page, PartsPage, Query};

/// The range from the first message of the conversation to the last.
pub fn whole() -> Result<Option<MessageRange>, Error> {
    wit::whole()
}

/// Headers of a range, without texts.
pub fn headers(range: MessageRange) -> Result<Vec<Header>, Error> {
    wit::headers(range)
}

/// The first messages of a range: at most 4 MiB, but at least one message.
pub fn read(range: MessageRange) -> Result<Page, Error> {
    wit::read(range)
}

/// All messages of a range, page by page.
pub fn read_all(range: MessageRange) -> Result<Vec<Message>, Error> {
    collect(range, |range| read(range).map(|page| (page.messages, page.next)))
}

/// The parts of the messages in a range that have more than text, reasoning and calls: pictures, files, refusals.
pub fn parts(range: MessageRange) -> Result<PartsPage, Error> {
    wit::parts(range)
}

/// Like [`parts`], page by page.
pub fn all_parts(range: MessageRange) -> Result<Vec<MessageParts>, Error> {
    collect(range, |range| parts(range).map(|page| (page.messages, page.next)))
}

/// The text of a summary that is or was in a view, by key.
pub fn summary(key: &str) -> Result<String, Error> {
    wit::summary(key)
}

/// Searches this conversation, best hits first.
pub fn search(query: &Query) -> Result<Vec<Hit>, Error> {
    wit::search(query)
}

impl Query {
    /// A query for the ten best hits for these words, in any order and form.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            matching: Matching::Any,
            roles: Vec::new(),
            tools: Vec::new(),
            within: None,
            offset: 0,
            limit: 10,
            extra: Extra::new(),
        }
    }
}

fn collect<T>(
    range: MessageRange,
    read: impl Fn(MessageRange) -> Result<(Vec<T>, Option<MessageId>), Error>,
) -> Result<Vec<T>, Error> {
    let mut messages = Vec::new();
    let mut first = range.first;
    loop {
        let (page, next) = read(MessageRange { first, last: range.last })?;
        messages.extend(page);
        match next {
            // Stop on a page that does not advance, to avoid an endless loop.
            Some(next) if next <= first => {
                return Err(Error::failed(format!("the page at message {first} leads back to {next}")));
            }
            Some(next) => first = next,
            None => return Ok(messages),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Role;

    fn message(id: u64) -> Message {
        Message {
            id,
            role: Role::User,
            content: String::new(),
            images: 0,
            author: None,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            tokens: 1,
            created_at: 0,
            extra: Vec::new(),
        }
    }

    #[test]
    fn all_pages_are_read() {
        let ids = [3_u64, 7, 20];
        let messages = collect(MessageRange { first: 3, last: 20 }, |range| {
            let here = ids.iter().position(|id| *id >= range.first).unwrap();
            Ok((vec![message(ids[here])], ids.get(here + 1).copied()))
        });
        assert_eq!(messages.unwrap().iter().map(|message| message.id).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn a_page_that_does_not_advance_ends_the_reading() {
        let stuck = collect(MessageRange { first: 3, last: 9 }, |_| Ok((Vec::<Message>::new(), Some(3))));
        assert!(stuck.is_err());
    }
}
