//! Vectors of texts, from the model or plugin that the user selected. Needs the permission `embeddings`.

use crate::imports::embeddings as wit;
use crate::{Error, Extra};

pub use wit::{EmbeddingModel, Purpose, Reply, Request};

/// The selected model; error code `no-model` if there is none.
pub fn resolve() -> Result<EmbeddingModel, Error> {
    wit::resolve()
}

/// Vectors of at most 256 texts, each at most 64 KiB, together at most 1 MiB.
pub fn embed(request: &Request) -> Result<Reply, Error> {
    wit::embed(request)
}

/// Vectors of texts that will be searched.
pub fn documents<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Result<Reply, Error> {
    embed(&Request::new(Purpose::Document, texts))
}

/// The vector of a text that searches.
pub fn query(text: impl Into<String>) -> Result<Vec<f32>, Error> {
    let reply = embed(&Request::new(Purpose::Query, [text]))?;
    reply.vectors.into_iter().next().ok_or_else(|| Error::failed("the host returned no vector"))
}

impl Request {
    /// A request for the vectors of these texts.
    pub fn new<T: Into<String>>(purpose: Purpose, texts: impl IntoIterator<Item = T>) -> Self {
        Self { texts: texts.into_iter().map(Into::into).collect(), purpose, extra: Extra::new() }
    }
}
