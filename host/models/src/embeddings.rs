//! Vectors of texts from endpoints like OpenAI's `/embeddings`.
//!
//! Connection, credentials and retries are those of replies. This file has only the body and what is read of the answer.

use hermes_conversation::Usage;
use serde_json::{Value, json};

use crate::assembly::Unread;
use crate::assembly::answer::Slot;
use crate::endpoint::{Endpoint, Patience, Persistence};
use crate::{ApiMode, Logins, ModelError, Route};

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
        let slot = Slot::new();
        let assembly = || slot.assembly(read);
        self.endpoint
            .complete(body.to_string().into_bytes().into(), &self.model, &assembly, &mut |_| {}, Persistence::Full)
            .await?;
        slot.take().ok_or_else(|| ModelError::unsendable("the answer has no vectors".to_owned()))
    }
}

/// Whether the API of a route may have embeddings.
pub(crate) fn has_embeddings(route: &Route) -> bool {
    !route.is_offline() && route.api_mode != ApiMode::AnthropicMessages
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
