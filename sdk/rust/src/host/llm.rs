//! Access to the user's models. Plugins never see a key. Needs the permission `llm`.
//!
//! ```no_run
//! use hermes_plugin::llm::{self, Request};
//! use hermes_plugin::{Error, Role};
//!
//! fn name_of(picture: Vec<u8>) -> Result<String, Error> {
//!     let request = Request::new("vision").message(Role::User, "Name this.").image("image/png", picture);
//!     Ok(llm::complete(&request)?.text)
//! }
//! ```

use crate::imports::{llm as wit, llm_stream as stream_wit};
use crate::{Blob, Error, Extra, Model, Role};

pub use stream_wit::Delta;
pub use wit::{Content, Finish, Image, ImageSource, PromptMessage, Reply, Request};

/// The model that serves a task; error code `no-model` if there is none.
pub fn resolve(task: &str) -> Result<Model, Error> {
    wit::resolve(task)
}

/// Sends the request to the model of its task and waits for the whole reply.
pub fn complete(request: &Request) -> Result<Reply, Error> {
    wit::complete(request)
}

/// Prepares the request; its reply arrives piece by piece.
pub fn stream(request: &Request) -> Result<Generation, Error> {
    stream_wit::start(request).map(Generation)
}

/// Counts or estimates tokens for the session's model. Needs no permission.
pub fn count_tokens(text: &str) -> u32 {
    wit::count_tokens(text)
}

/// A reply that arrives. As an iterator it ends after [`Delta::Done`] or the first error. Dropping it ends the request; it also ends
/// with the call of the plugin that started it.
#[derive(Debug)]
pub struct Generation(stream_wit::Generation);

impl Iterator for Generation {
    type Item = Result<Delta, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().transpose()
    }
}

impl Generation {
    /// Waits for the whole reply. `on_text` gets its text piece by piece.
    pub fn finish(self, mut on_text: impl FnMut(&str)) -> Result<Reply, Error> {
        for delta in self {
            match delta? {
                Delta::Text(text) => on_text(&text),
                Delta::Done(reply) => return Ok(reply),
                Delta::Reasoning(_) | Delta::Other(_) => {}
            }
        }
        Err(Error::failed("the generation ended without a reply"))
    }
}

impl Request {
    /// An empty request for a task such as `compression`; the user's `auxiliary.<task>` selects the model.
    pub fn new(task: impl Into<String>) -> Self {
        Self {
            task: task.into(),
            messages: Vec::new(),
            max_tokens: None,
            temperature: None,
            schema: None,
            extra: Extra::new(),
        }
    }

    /// Appends a message of text.
    #[must_use]
    pub fn message(mut self, role: Role, text: impl Into<String>) -> Self {
        self.messages.push(PromptMessage::text(role, text));
        self
    }

    /// Appends a picture to the last message, which must be the user's; without one, begins a message.
    #[must_use]
    pub fn image(self, media_type: &str, bytes: Vec<u8>) -> Self {
        self.part(Content::Image(Image::new(media_type, ImageSource::Bytes(bytes))))
    }

    /// Appends a picture of this conversation, as [`history::parts`](crate::history::parts) describes it.
    #[must_use]
    pub fn image_of(self, media_type: &str, blob: Blob) -> Self {
        self.part(Content::Image(Image::new(media_type, ImageSource::Blob(blob))))
    }

    fn part(mut self, part: Content) -> Self {
        match self.messages.last_mut() {
            Some(last) => last.content.push(part),
            None => {
                let message = PromptMessage { role: Role::User, content: vec![part], extra: Extra::new() };
                self.messages.push(message);
            }
        }
        self
    }

    /// Limits the tokens of the reply.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets a JSON Schema for the reply.
    #[must_use]
    pub fn schema(mut self, schema: impl std::fmt::Display) -> Self {
        self.schema = Some(schema.to_string());
        self
    }
}

impl PromptMessage {
    /// A message of text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![Content::Text(text.into())], extra: Extra::new() }
    }

    /// The texts of the message, joined.
    pub fn texts(&self) -> String {
        let text = |part: &Content| if let Content::Text(text) = part { Some(text.clone()) } else { None };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

impl Image {
    /// A picture of a type such as `image/png`.
    pub fn new(media_type: &str, source: ImageSource) -> Self {
        Self { source, media_type: media_type.to_owned(), extra: Extra::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_joins_the_last_message() {
        let request = Request::new("vision").message(Role::User, "Name this.").image("image/png", vec![1]);
        assert_eq!(request.messages.len(), 1);
        assert!(
            matches!(&request.messages[0].content[..], [Content::Text(text), Content::Image(_)] if text == "Name this.")
        );
        let alone = Request::new("vision").image("image/png", vec![1]);
        assert!(alone.messages[0].role == Role::User && alone.messages[0].content.len() == 1);
    }
}
