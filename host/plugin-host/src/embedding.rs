//! Vectors of texts in a session: from the plugin that the user selected as embedder, else from the user's model.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use hermes_conversation::Usage;
use hermes_runtime::services::{EmbeddingModel, EmbeddingRequest, Embeddings, Vectors};
use hermes_runtime::{CallError, Cause, Fault, FaultKind};

use crate::kinds::Embedder;

/// The embedder of a session.
#[derive(Clone, Default)]
pub(crate) struct SelectedEmbedder {
    /// Its name; none if the user's model computes vectors.
    pub(crate) name: Option<String>,
    /// The plugin, once it is started.
    pub(crate) plugin: Arc<OnceLock<Arc<dyn Embedder>>>,
}

impl SelectedEmbedder {
    /// The embeddings that a plugin of the session gets.
    pub(crate) fn for_plugin(&self, plugin: &str, outside: &Arc<dyn Embeddings>) -> Arc<dyn Embeddings> {
        match &self.name {
            None => outside.of_plugin(plugin).unwrap_or_else(|| Arc::clone(outside)),
            Some(name) if name == plugin => Arc::new(OfTheEmbedder),
            Some(name) => Arc::new(ByPlugin { name: name.clone(), plugin: Arc::clone(&self.plugin) }),
        }
    }
}

/// The model for the embedder itself, which refuses every call: the call would come back to the embedder.
struct OfTheEmbedder;

impl OfTheEmbedder {
    fn denied<T>() -> Result<T, Fault> {
        let why = "denied: this plugin is the embedder below `auxiliary.embeddings.plugin`, and cannot ask itself for vectors";
        Err(Fault::new(FaultKind::Denied, "recursion", why))
    }
}

#[async_trait]
impl Embeddings for OfTheEmbedder {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        Self::denied()
    }

    async fn embed(&self, _: EmbeddingRequest) -> Result<Vectors, Fault> {
        Self::denied()
    }
}

/// Asks the plugin that the user selected.
struct ByPlugin {
    name: String,
    plugin: Arc<OnceLock<Arc<dyn Embedder>>>,
}

impl ByPlugin {
    fn plugin(&self) -> Result<&dyn Embedder, Fault> {
        self.plugin.get().map(AsRef::as_ref).ok_or_else(|| {
            let why = format!(
                "the plugin `{}` below `auxiliary.embeddings.plugin` is not running: see the notice at the start of the session",
                self.name
            );
            Fault::new(FaultKind::Unavailable, "no-model", why)
        })
    }
}

#[async_trait]
impl Embeddings for ByPlugin {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        let described = self.plugin()?.describe().await.map_err(fault)?;
        Ok(EmbeddingModel {
            provider: "plugin".to_owned(),
            // Two plugins may call their models by the same name.
            name: format!("{}/{}", self.name, described.name),
            dimensions: described.dimensions,
        })
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Vectors, Fault> {
        let model = self.resolve().await?;
        let texts = request.texts.len();
        let vectors = self.plugin()?.embed(request).await.map_err(fault)?;
        let found = Vectors { vectors, model: model.name, usage: Usage::default() };
        found.check(texts, model.dimensions, &format!("the embedder `{}`", self.name))?;
        Ok(found)
    }
}

/// The error that the asking plugin gets when the embedder fails.
fn fault(error: CallError) -> Fault {
    let kind = match &error.cause {
        Cause::Fault(fault) => {
            return Fault {
                message: format!("the embedder `{}`: {}", error.plugin, fault.message),
                ..(**fault).clone()
            };
        }
        Cause::Deadline { .. } => FaultKind::Timeout,
        Cause::Cancelled => FaultKind::Cancelled,
        Cause::Suspended { .. } | Cause::Revoked | Cause::NotExported(_) => FaultKind::Unavailable,
        _ => FaultKind::Failed,
    };
    Fault::new(kind, "embedder", error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use hermes_runtime::services::Purpose;

    use super::*;

    /// Computes vectors of two numbers.
    #[derive(Default)]
    struct Scripted(Mutex<Vec<&'static str>>);

    #[async_trait]
    impl Embedder for Scripted {
        fn name(&self) -> &str {
            "mapper"
        }

        async fn describe(&self) -> Result<EmbeddingModel, CallError> {
            self.0.lock().unwrap().push("describe");
            Ok(EmbeddingModel { provider: "mapper".to_owned(), name: "words".to_owned(), dimensions: Some(2) })
        }

        async fn embed(&self, request: EmbeddingRequest) -> Result<Vec<Vec<f32>>, CallError> {
            self.0.lock().unwrap().push("embed");
            Ok(vec![vec![0.0, 1.0]; request.texts.len()])
        }
    }

    #[tokio::test]
    async fn an_embedder_is_described_before_it_computes() {
        let plugin = Arc::new(Scripted::default());
        let selected = SelectedEmbedder { name: Some("mapper".to_owned()), plugin: Arc::default() };
        assert!(selected.plugin.set(plugin.clone()).is_ok());
        let outside: Arc<dyn Embeddings> = Arc::new(OfTheEmbedder);
        let embeddings = selected.for_plugin("mine", &outside);
        let request = || EmbeddingRequest { texts: vec!["a".to_owned(), String::new()], purpose: Purpose::Document };
        let vectors = embeddings.embed(request()).await.unwrap();
        assert_eq!((vectors.model.as_str(), vectors.vectors.len()), ("mapper/words", 2));
        assert_eq!(*plugin.0.lock().unwrap(), ["describe", "embed"]);
        // Its calls would come back to it.
        let own = selected.for_plugin("mapper", &outside).embed(request()).await.unwrap_err();
        assert_eq!(own.kind, FaultKind::Denied);
    }
}
