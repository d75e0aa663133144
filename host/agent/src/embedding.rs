//! The model that computes vectors of texts for plugins, where no plugin is selected for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hermes_conversation::{Model, tokens};
use hermes_diagnostic::Diagnose as _;
use hermes_models::{EmbeddingEndpoint, ModelError};
use hermes_plugin_host::services::{EmbeddingModel, EmbeddingRequest, Embeddings, Vectors};
use hermes_plugin_host::{Fault, FaultKind};

use crate::auxiliary::AuxiliaryLedger;

/// The task of the ledger's rows.
const TASK: &str = "embeddings";
/// The configuration key of the embedding model.
const SECTION: &str = "auxiliary.embeddings";

/// The embedding model of the configuration, or why there is none.
#[derive(Clone)]
pub struct EmbeddingSource(Arc<dyn Embeddings>);

impl EmbeddingSource {
    /// Without a model. Plugins get the reason, which says what to do.
    pub fn none(why: impl Into<String>) -> Self {
        Self(Arc::new(Nothing { why: why.into() }))
    }

    /// A model behind an endpoint. `timeout` limits one request.
    pub fn model(endpoint: EmbeddingEndpoint, model: Model, dimensions: Option<u32>, timeout: Duration) -> Self {
        let known = AtomicU32::new(dimensions.unwrap_or(0));
        Self(Arc::new(Remote { endpoint, model, known, timeout }))
    }

    /// The model as plugins get it.
    pub fn service(&self) -> Arc<dyn Embeddings> {
        Arc::clone(&self.0)
    }

    /// The model for the plugins of a session, with a row in the ledger for each request.
    pub(crate) fn recorded_in(&self, ledger: AuxiliaryLedger) -> Arc<dyn Embeddings> {
        Arc::new(Recorded { model: Arc::clone(&self.0), plugin: String::new(), ledger })
    }
}

impl fmt::Debug for EmbeddingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddingSource")
    }
}

/// A model whose requests are recorded.
struct Recorded {
    model: Arc<dyn Embeddings>,
    /// Who asks.
    plugin: String,
    ledger: AuxiliaryLedger,
}

#[async_trait]
impl Embeddings for Recorded {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        self.model.resolve().await
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Vectors, Fault> {
        let EmbeddingModel { provider, name, .. } = self.model.resolve().await?;
        let model = Model { provider, name, context_length: 0 };
        let row = self.ledger.begin(&self.plugin, TASK, &model).await;
        let answered = self.model.embed(request).await;
        match &answered {
            Ok(vectors) => self.ledger.complete(row, Some(vectors.usage), &vectors.model).await,
            Err(_) => self.ledger.withdraw(&row).await,
        }
        answered
    }

    fn of_plugin(&self, plugin: &str) -> Option<Arc<dyn Embeddings>> {
        let (model, plugin, ledger) = (Arc::clone(&self.model), plugin.to_owned(), self.ledger.clone());
        Some(Arc::new(Self { model, plugin, ledger }))
    }
}

struct Nothing {
    why: String,
}

impl Nothing {
    fn fault(&self) -> Fault {
        Fault::new(FaultKind::Unavailable, "no-model", self.why.clone())
    }
}

#[async_trait]
impl Embeddings for Nothing {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        Err(self.fault())
    }

    async fn embed(&self, _: EmbeddingRequest) -> Result<Vectors, Fault> {
        Err(self.fault())
    }
}

struct Remote {
    endpoint: EmbeddingEndpoint,
    model: Model,
    /// The length of the vectors: configured, or learned from the first answer; 0 if unknown.
    known: AtomicU32,
    timeout: Duration,
}

impl Remote {
    fn dimensions(&self) -> Option<u32> {
        Some(self.known.load(Ordering::Relaxed)).filter(|dimensions| *dimensions > 0)
    }
}

#[async_trait]
impl Embeddings for Remote {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        let Model { provider, name, .. } = self.model.clone();
        Ok(EmbeddingModel { provider, name, dimensions: self.dimensions() })
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Vectors, Fault> {
        let name = &self.model.name;
        let answer = tokio::time::timeout(self.timeout, self.endpoint.embed(&request.texts)).await;
        let answer = answer.map_err(|_| {
            let why = format!(
                "the embedding model {name} did not answer within {} s; check `{SECTION}` in config.yaml",
                self.timeout.as_secs()
            );
            Fault::new(FaultKind::Timeout, "", why)
        })?;
        let embedded = answer.map_err(fault)?;
        let estimate = || request.texts.iter().map(|text| tokens::of_text(text)).sum();
        let usage =
            embedded.usage.unwrap_or_else(|| hermes_conversation::Usage { input: estimate(), ..Default::default() });
        let found = Vectors { vectors: embedded.vectors, model: name.clone(), usage };
        let dimensions = found.check(request.texts.len(), self.dimensions(), &format!("the embedding model {name}"))?;
        self.known.store(dimensions, Ordering::Relaxed);
        Ok(found)
    }
}

fn fault(error: ModelError) -> Fault {
    let (kind, code) = match &error {
        ModelError::Auth { .. } | ModelError::Billing { .. } | ModelError::Login { .. } => {
            (FaultKind::Unavailable, "auth")
        }
        ModelError::NotFound { .. } => (FaultKind::Unavailable, "no-model"),
        ModelError::TooLong { .. } => (FaultKind::InvalidInput, "too-long"),
        ModelError::RateLimited { .. } => (FaultKind::Exhausted, "rate-limit"),
        ModelError::Refused { .. } => (FaultKind::Failed, "refused"),
        ModelError::BadRequest { .. } => (FaultKind::InvalidInput, "bad-request"),
        ModelError::Malformed { .. } => (FaultKind::Failed, "malformed"),
        _ => (FaultKind::Unavailable, ""),
    };
    Fault::new(kind, code, error.sentence())
}
