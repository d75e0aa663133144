//! Models whose replies the test scripts, and vectors by a rule.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{Host, model};
use crate::bindings::imports::{embeddings as vectors_wit, llm as wit, llm_stream as stream_wit};
use crate::{Error, Model, Usage};

/// What a model says: a text, a whole [`Reply`](crate::llm::Reply), or an [`Error`].
#[derive(Clone, Debug)]
pub struct Says(Result<wit::Reply, Error>);

impl From<&str> for Says {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Says {
    fn from(text: String) -> Self {
        let usage =
            Usage { input: 0, output: estimate(&text), cache_read: 0, cache_write: 0, reasoning: 0, extra: Vec::new() };
        Self(Ok(wit::Reply { text, finish: wit::Finish::Stop, model: model().name, usage, extra: Vec::new() }))
    }
}

impl From<wit::Reply> for Says {
    fn from(reply: wit::Reply) -> Self {
        Self(Ok(reply))
    }
}

impl From<Error> for Says {
    fn from(error: Error) -> Self {
        Self(Err(error))
    }
}

#[derive(Default)]
pub(crate) struct Models {
    model: Option<Model>,
    script: VecDeque<Says>,
    asked: Vec<wit::Request>,
}

impl Models {
    pub(crate) fn resolve(&mut self, _task: &str) -> Result<Model, Error> {
        self.model.clone().ok_or_else(no_model)
    }

    pub(crate) fn complete(&mut self, request: &wit::Request) -> Result<wit::Reply, Error> {
        self.resolve(&request.task)?;
        self.asked.push(request.clone());
        let Some(says) = self.script.pop_front() else {
            panic!("the test has no reply for a request of the task `{}`: add `.says(…)` to its host", request.task)
        };
        says.0
    }

    /// Word by word, then the whole reply.
    pub(crate) fn stream(
        &mut self,
        request: &wit::Request,
    ) -> Result<VecDeque<Result<stream_wit::Delta, Error>>, Error> {
        Ok(match self.complete(request) {
            Ok(reply) => {
                let words = reply.text.split_inclusive(' ').map(|word| stream_wit::Delta::Text(word.to_owned()));
                let words: Vec<_> = words.collect();
                words.into_iter().chain([stream_wit::Delta::Done(reply)]).map(Ok).collect()
            }
            Err(error) => [Err(error)].into(),
        })
    }

    pub(crate) fn count_tokens(&mut self, text: &str) -> u32 {
        estimate(text)
    }
}

#[derive(Default)]
pub(crate) struct Vectors {
    dimensions: Option<u32>,
}

impl Vectors {
    pub(crate) fn resolve(&mut self) -> Result<vectors_wit::EmbeddingModel, Error> {
        let dimensions = Some(self.dimensions.ok_or_else(no_model)?);
        let (provider, name) = (model().provider, "test-embedding".to_owned());
        Ok(vectors_wit::EmbeddingModel { provider, name, dimensions, extra: Vec::new() })
    }

    pub(crate) fn embed(&mut self, request: &vectors_wit::Request) -> Result<vectors_wit::Reply, Error> {
        let dimensions = self.dimensions.ok_or_else(no_model)?;
        if request.texts.is_empty() || request.texts.len() > 256 {
            return Err(Error::invalid("a request has 1 to 256 texts"));
        }
        let usage = Usage {
            input: request.texts.iter().map(|text| estimate(text)).sum(),
            output: 0,
            cache_read: 0,
            cache_write: 0,
            reasoning: 0,
            extra: Vec::new(),
        };
        Ok(vectors_wit::Reply {
            vectors: request.texts.iter().map(|text| vector(text, dimensions)).collect(),
            model: "test-embedding".to_owned(),
            dimensions,
            usage,
            extra: Vec::new(),
        })
    }
}

/// A vector of length 1 that counts the words of a text, so that texts with the same words are near each other.
fn vector(text: &str, dimensions: u32) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimensions as usize];
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut hasher = DefaultHasher::new();
        word.to_lowercase().hash(&mut hasher);
        let at = hasher.finish() % u64::from(dimensions);
        vector[at as usize] += 1.0;
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    } else {
        vector[0] = 1.0;
    }
    vector
}

fn no_model() -> Error {
    Error::unavailable("no model is configured; in a test, `.says(…)` or `.embeddings(…)` sets one")
        .with_code("no-model")
}

/// A token for four bytes: the real host's estimate is finer.
pub(super) fn estimate(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}

impl Host {
    /// Answers one request to a model, also one that streams. Without any, there is no model: error code `no-model`.
    ///
    /// ```
    /// use hermes_plugin::llm::{self, Request};
    /// use hermes_plugin::{Error, Role, testing};
    ///
    /// let host = testing::Host::new().says("tea at four").says(Error::unavailable("the provider is busy"));
    /// let request = Request::new("memory").message(Role::User, "When is tea?");
    /// assert_eq!(llm::complete(&request)?.text, "tea at four");
    /// assert!(llm::complete(&request).is_err());
    /// assert_eq!(host.prompts()[0].messages[0].texts(), "When is tea?");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn says(self, says: impl Into<Says>) -> Self {
        let mut models = self.state.llm.borrow_mut();
        models.model.get_or_insert_with(model);
        models.script.push_back(says.into());
        drop(models);
        self
    }

    /// Sets the model that [`llm::resolve`](crate::llm::resolve) returns.
    pub fn model(self, model: Model) -> Self {
        self.state.llm.borrow_mut().model = Some(model);
        self
    }

    /// The requests to models.
    pub fn prompts(&self) -> Vec<wit::Request> {
        self.state.llm.borrow().asked.clone()
    }

    /// Has a model of embeddings, with vectors of this length. Texts that share words have similar vectors.
    ///
    /// # Panics
    ///
    /// If the length is 0.
    pub fn embeddings(self, dimensions: u32) -> Self {
        assert!(dimensions > 0, "vectors have 1 to 4096 numbers");
        self.state.embeddings.borrow_mut().dimensions = Some(dimensions);
        self
    }
}
