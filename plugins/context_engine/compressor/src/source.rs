//! Access to texts and token counts: the host's imports, or in tests a conversation in memory.

use hermes_guest_engine::parts;
use hermes_plugin::{Error, Message, MessageRange, history, llm};

/// Lookups that planning needs.
pub(crate) trait Source {
    /// All messages of a range, with descriptions of their parts.
    fn messages(&self, range: MessageRange) -> Result<Vec<Message>, Error>;
    /// The text of a summary in the view.
    fn summary(&self, key: &str) -> Result<String, Error>;
    /// Tokens of a text, by the same estimate as the headers.
    fn count(&self, text: &str) -> u32;
}

/// The host's imports.
pub(crate) struct Host;

impl Source for Host {
    fn messages(&self, range: MessageRange) -> Result<Vec<Message>, Error> {
        history::read_all(range).and_then(parts::described).map_err(|error| error.context("reading the conversation"))
    }

    fn summary(&self, key: &str) -> Result<String, Error> {
        history::summary(key).map_err(|error| error.context(format!("reading the summary `{key}`")))
    }

    fn count(&self, text: &str) -> u32 {
        llm::count_tokens(text)
    }
}
