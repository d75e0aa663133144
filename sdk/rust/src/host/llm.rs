//! Access to the user's models. Plugins never see a key. Needs the permission `llm`.

use crate::imports::llm as wit;
use crate::{Error, Extra, Model, Role};

pub use wit::{Finish, PromptMessage, Reply, Request};

/// The model that serves a task; error code `no-model` if there is none.
pub fn resolve(task: &str) -> Result<Model, Error> {
    wit::resolve(task)
}

/// Sends the request to the model of its task and waits for the whole reply.
pub fn complete(request: &Request) -> Result<Reply, Error> {
    wit::complete(request)
}

/// Counts or estimates tokens for the session's model. Needs no permission.
pub fn count_tokens(text: &str) -> u32 {
    wit::count_tokens(text)
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

    /// Appends a message.
    #[must_use]
    pub fn message(mut self, role: Role, content: impl Into<String>) -> Self {
        self.messages.push(PromptMessage { role, content: content.into(), extra: Extra::new() });
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
