//! Vectors of texts from endpoints like OpenAI's `/embeddings`.
//!
//! Connection, credentials and retries are those of replies. This file has only the body and what is read of the answer.

use std::sync::{Arc, Mutex, PoisonError};

use hermes_conversation::Usage;
use serde_json::{Value, json};

use crate::assembly::{Assemble, Broken, Progress, Unread};
use crate::endpoint::{Endpoint, Patience, TRIES};
use crate::failure::Stated;
use crate::{ApiMode, Finish, Logins, ModelError, OnDelta, Reply, Route};

/// An embedding model behind an endpoint.
pub struct EmbeddingEndpoint {
    endpoint: Endpoint,
    model: String,
    dimensions: Option<u32>,
}

/// Vectors as the endpoint sent them, in the order of the texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One for each text that was sent, unless the endpoint is wrong.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens, if the provider reports them.
    pub usage: Option<Usage>,
}

impl EmbeddingEndpoint {
    /// The endpoint of a route. Nothing is sent yet. `dimensions` asks the model for vectors of this length.
    ///
    /// # Errors
    ///
    /// [`ModelError::BadRequest`] if the route names no endpoint that has embeddings, or if its key has characters that a header
    /// cannot carry.
    pub fn new(route: &Route, logins: &Logins, dimensions: Option<u32>) -> Result<Self, ModelError> {
        if !has_embeddings(route) {
            let provider = &route.model.provider;
            return Err(ModelError::unsendable(format!("the API of {provider} has no embeddings")));
        }
        let endpoint = Endpoint::for_embeddings(route, logins, Patience::for_route(route))?;
        Ok(Self { endpoint, model: route.model.name.clone(), dimensions })
    }

    /// The vectors of texts. An empty text is sent as a space, because providers refuse empty ones.
    ///
    /// # Errors
    ///
    /// Every [`ModelError`].
    pub async fn embed(&self, texts: &[String]) -> Result<Embedded, ModelError> {
        let input: Vec<&str> = texts.iter().map(|text| if text.is_empty() { " " } else { text }).collect();
        let mut body = json!({ "model": self.model, "input": input });
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let answer: Arc<Mutex<Option<Embedded>>> = Arc::default();
        let assembly = || -> Box<dyn Assemble> { Box::new(Answer(Arc::clone(&answer))) };
        self.endpoint.complete(body.to_string().into_bytes(), &self.model, &assembly, &mut |_| {}, TRIES).await?;
        let embedded = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        embedded.ok_or_else(|| ModelError::unsendable("the answer has no vectors".to_owned()))
    }
}

/// Whether the API of a route may have embeddings.
pub(crate) fn has_embeddings(route: &Route) -> bool {
    !route.is_offline() && route.api_mode != ApiMode::AnthropicMessages
}

/// Reads an answer in one piece.
struct Answer(Arc<Mutex<Option<Embedded>>>);

impl Answer {
    fn keep(&self, embedded: Embedded) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(embedded);
    }
}

impl Assemble for Answer {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        // No endpoint streams vectors, but some send the one answer as an event.
        match self.take_whole(event, on_delta) {
            Err(Unread::Stated(stated)) => Err(stated),
            Ok(()) | Err(Unread::Lacks(_)) => Ok(()),
        }
    }

    fn take_whole(&mut self, reply: &Value, _: OnDelta<'_>) -> Result<(), Unread> {
        if reply.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Stated::from_value(200, reply).into());
        }
        self.keep(read(reply)?);
        Ok(())
    }

    fn done(&mut self) {}

    fn progress(&self) -> Progress {
        Progress::Open
    }

    fn calls(&self) -> usize {
        0
    }

    fn into_text(self: Box<Self>) -> String {
        String::new()
    }

    fn finish(self: Box<Self>, asked: &str, _: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Err(Broken::Cut { partial: String::new() });
        }
        Ok(Reply {
            text: String::new(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: None,
            model: asked.to_owned(),
            parts: Vec::new(),
        })
    }
}

fn read(reply: &Value) -> Result<Embedded, Unread> {
    let rows = reply["data"].as_array().ok_or(Unread::Lacks("data"))?;
    let mut vectors = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let numbers = row["embedding"].as_array().ok_or(Unread::Lacks("embedding"))?;
        // What is no number becomes one that the caller refuses.
        let vector: Vec<f32> = numbers.iter().map(|number| number.as_f64().map_or(f32::NAN, |n| n as f32)).collect();
        vectors.push((row["index"].as_u64().unwrap_or(at as u64), vector));
    }
    // The protocol allows any order.
    vectors.sort_by_key(|(index, _)| *index);
    let count = |key: &str| reply["usage"][key].as_u64().map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let input = count("prompt_tokens").or_else(|| count("total_tokens"));
    Ok(Embedded {
        vectors: vectors.into_iter().map(|(_, vector)| vector).collect(),
        usage: input.map(|input| Usage { input, ..Usage::default() }),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_put_in_the_order_of_the_texts() {
        let reply = json!({
            "data": [{ "index": 1, "embedding": [0.5, 1] }, { "index": 0, "embedding": [0.25, null] }],
            "usage": { "prompt_tokens": 7, "total_tokens": 7 },
        });
        let found = read(&reply).unwrap();
        assert_eq!(found.vectors[1], [0.5, 1.0]);
        assert!(found.vectors[0][0] == 0.25 && found.vectors[0][1].is_nan());
        assert_eq!(found.usage.unwrap().input, 7);
        assert_eq!(read(&json!({ "object": "list" })), Err(Unread::Lacks("data")));
    }
}
