//! Vectors of texts for other plugins: a local embedding model.

use crate::export::Slot;
use crate::{Error, Plugin};

use crate::bindings::embedder::exports::hermes::embeddings::embedder as wit;
pub use wit::{Description, Purpose, Request};

impl Request {
    /// Texts to be found, for tests.
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts = texts.into_iter().map(Into::into).collect();
        Self { texts, purpose: Purpose::Document, extra: Vec::new() }
    }
}

/// A plugin that computes vectors. The user selects it with `auxiliary.embeddings.plugin`.
pub trait Embedder: Plugin {
    /// The name of the model and the length of its vectors.
    fn describe(&self) -> Result<Description, Error>;

    /// One vector for each text, in the same order. The same text and purpose give the same vector.
    fn embed(&mut self, request: &Request) -> Result<Vec<Vec<f32>>, Error>;
}

impl Description {
    /// A model with vectors of this length.
    pub fn new(model: impl Into<String>, dimensions: u32) -> Self {
        Self { model: model.into(), dimensions, extra: Vec::new() }
    }
}

impl<S: Slot<Plugin: Embedder>> wit::Guest for S {
    fn describe() -> Result<Description, Error> {
        S::call("describe", |embedder| embedder.describe())
    }

    fn embed(request: Request) -> Result<Vec<Vec<f32>>, Error> {
        S::call("embed", |embedder| embedder.embed(&request))
    }
}
