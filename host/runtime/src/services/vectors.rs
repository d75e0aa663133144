//! Vectors of texts for plugins, and what the contract promises of them.

use std::sync::Arc;

use async_trait::async_trait;
use hermes_capabilities::{Fault, FaultKind};
use hermes_conversation::Usage;

/// The most texts of one request.
pub const MOST_TEXTS: usize = 256;
/// The most bytes of one text.
pub const MOST_TEXT_BYTES: usize = 64 << 10;
/// The most bytes of all texts of a request.
pub const MOST_REQUEST_BYTES: usize = 1 << 20;
/// The most numbers of a vector.
pub const MOST_DIMENSIONS: u32 = 4096;

/// What vectors are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Texts to be found.
    Document,
    /// Texts that search.
    Query,
}

/// Texts that a plugin wants as vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingRequest {
    /// The texts.
    pub texts: Vec<String>,
    /// What the vectors are for.
    pub purpose: Purpose,
}

/// The model that computes vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// Its provider; `plugin` for a plugin.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// The length of its vectors, if it is known.
    pub dimensions: Option<u32>,
}

/// Vectors, one for each text.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    /// The vectors, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// The name of the model that answered.
    pub model: String,
    /// The tokens that the request used.
    pub usage: Usage,
}

/// The user's embedding model, for the import `embeddings`.
#[async_trait]
pub trait Embeddings: Send + Sync {
    /// The selected model; an error with code `no-model` if there is none.
    async fn resolve(&self) -> Result<EmbeddingModel, Fault>;
    /// The vectors of texts that keep the limits. The future is dropped when the plugin's time is up.
    async fn embed(&self, request: EmbeddingRequest) -> Result<Vectors, Fault>;
    /// The same model for one plugin, if it matters who asks.
    fn of_plugin(&self, _plugin: &str) -> Option<Arc<dyn Embeddings>> {
        None
    }
}

impl EmbeddingRequest {
    /// Checks the limits of a request.
    ///
    /// # Errors
    ///
    /// A fault of the kind `invalid-input` that names the limit.
    pub fn check(&self) -> Result<(), Fault> {
        let refused = |code: &str, why: String| Err(Fault::new(FaultKind::InvalidInput, code, why));
        if self.texts.is_empty() {
            return refused("empty", "a request for vectors needs a text".to_owned());
        }
        if self.texts.len() > MOST_TEXTS {
            let why = format!("{} texts at once are too many: send at most {MOST_TEXTS}", self.texts.len());
            return refused("too-many", why);
        }
        if let Some(at) = self.texts.iter().position(|text| text.len() > MOST_TEXT_BYTES) {
            let why = format!("text {at} has more than {} KiB: send a part of it", MOST_TEXT_BYTES >> 10);
            return refused("too-long", why);
        }
        if self.texts.iter().map(String::len).sum::<usize>() > MOST_REQUEST_BYTES {
            let why = format!("the texts have more than {} MiB together: send fewer at once", MOST_REQUEST_BYTES >> 20);
            return refused("too-long", why);
        }
        Ok(())
    }
}

impl Vectors {
    /// The length of the vectors, if they are what the contract promises: one for each text, all of one length, with finite
    /// numbers. `source` names their origin in errors; `expected` is the length that it announced.
    ///
    /// # Errors
    ///
    /// A fault with the code `malformed`.
    pub fn check(&self, texts: usize, expected: Option<u32>, source: &str) -> Result<u32, Fault> {
        let malformed = |why: String| Err(Fault::new(FaultKind::Failed, "malformed", format!("{source} {why}")));
        if self.vectors.len() != texts {
            return malformed(format!("returned {} vectors for {texts} texts", self.vectors.len()));
        }
        let length = |vector: &Vec<f32>| u32::try_from(vector.len()).unwrap_or(u32::MAX);
        let dimensions = expected.or_else(|| self.vectors.first().map(length)).unwrap_or_default();
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return malformed(format!(
                "has vectors of {dimensions} numbers; between 1 and {MOST_DIMENSIONS} are possible"
            ));
        }
        for (at, vector) in self.vectors.iter().enumerate() {
            if length(vector) != dimensions {
                return malformed(format!("returned {} numbers for text {at}, not {dimensions}", vector.len()));
            }
            if vector.iter().any(|number| !number.is_finite()) {
                return malformed(format!("returned a number for text {at} that is not finite"));
            }
        }
        Ok(dimensions)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_request_beyond_a_limit_is_refused_with_the_limit() {
        let check = |texts: Vec<String>| EmbeddingRequest { texts, purpose: Purpose::Document }.check();
        assert!(check(vec![String::new()]).is_ok());
        assert!(check(vec!["a".repeat(4096); MOST_TEXTS]).is_ok());
        for (texts, code, part) in [
            (vec![], "empty", "needs a text"),
            (vec![String::new(); MOST_TEXTS + 1], "too-many", "at most 256"),
            (vec!["a".repeat(MOST_TEXT_BYTES + 1)], "too-long", "text 0 has more than 64 KiB"),
            (vec!["a".repeat(MOST_TEXT_BYTES); 17], "too-long", "more than 1 MiB together"),
        ] {
            let fault = check(texts).unwrap_err();
            assert_eq!((fault.kind, fault.code.as_str()), (FaultKind::InvalidInput, code));
            assert!(fault.message.contains(part), "{fault:?}");
        }
    }

    #[test]
    fn vectors_that_break_the_promise_are_refused() {
        let check = |vectors: Vec<Vec<f32>>, expected| {
            Vectors { vectors, model: "m".to_owned(), usage: Usage::default() }.check(2, expected, "the model m")
        };
        assert_eq!(check(vec![vec![0.0, 1.0]; 2], None).unwrap(), 2);
        assert_eq!(check(vec![vec![0.0, 1.0]; 2], Some(2)).unwrap(), 2);
        for (vectors, expected, part) in [
            (vec![vec![0.0]], None, "1 vectors for 2 texts"),
            (vec![vec![0.0], vec![0.0, 1.0]], None, "2 numbers for text 1, not 1"),
            (vec![vec![0.0]; 2], Some(3), "1 numbers for text 0, not 3"),
            (vec![vec![], vec![]], None, "vectors of 0 numbers"),
            (vec![vec![0.0; 4097]; 2], None, "vectors of 4097 numbers"),
            (vec![vec![f32::NAN]; 2], None, "not finite"),
            (vec![vec![1.0], vec![f32::INFINITY]], None, "for text 1"),
        ] {
            let fault = check(vectors, expected).unwrap_err();
            assert!(fault.code == "malformed" && fault.message.contains(part), "{fault:?}");
        }
    }
}
