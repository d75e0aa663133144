//! The model or plugin that computes vectors of texts.

use hermes_agent::EmbeddingSource;
use hermes_config::{Embeddings, codes};
use hermes_conversation::Model;
use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_models::{EmbeddingEndpoint, Logins, Route};

use crate::{AppError, ModelChoice, Setup};

/// What a caller asks for, where vectors are not a matter of course.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbeddingChoice {
    /// What `auxiliary.embeddings` names.
    Configured,
    /// A model behind an OpenAI-compatible API. It gets no key.
    At {
        /// The address of the API.
        base_url: String,
        /// The model.
        model: String,
    },
}

/// What computes vectors of texts.
#[derive(Debug, Clone)]
pub struct ChosenEmbeddings {
    /// The model for plugins.
    pub source: EmbeddingSource,
    /// The plugin that computes the vectors instead.
    pub plugin: Option<String>,
    /// The name of the model or plugin, for people.
    pub name: String,
}

impl Setup {
    /// What computes vectors of texts. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// When the choice names no usable model.
    pub fn embeddings(&self, choice: &EmbeddingChoice) -> Result<ChosenEmbeddings, AppError> {
        let embeddings = match choice {
            EmbeddingChoice::Configured => self.auxiliary(&self.route(&ModelChoice::default())?)?.embeddings,
            EmbeddingChoice::At { base_url, model } => Embeddings::at(base_url, model),
        };
        if let Some(plugin) = &embeddings.plugin {
            let source = EmbeddingSource::none("a plugin computes the vectors");
            return Ok(ChosenEmbeddings { source, plugin: Some(plugin.clone()), name: format!("the plugin {plugin}") });
        }
        match &embeddings.route {
            Ok(Route { model: Model { provider, name, .. }, .. }) => Ok(ChosenEmbeddings {
                source: source(&embeddings, &self.logins)?,
                plugin: None,
                name: format!("{name} of {provider}"),
            }),
            Err(lack) => {
                let what = "the embedding model cannot be used".to_owned();
                Err(AppError::Config(Diagnostic { code: codes::AUXILIARY, what, ..lack.diagnose() }))
            }
        }
    }
}

/// The embedding model, or why there is none. Nothing is sent yet.
pub(crate) fn source(embeddings: &Embeddings, logins: &Logins) -> Result<EmbeddingSource, AppError> {
    let Embeddings { route, dimensions, timeout, plugin: _ } = embeddings;
    Ok(match route {
        Ok(route) => {
            let endpoint = EmbeddingEndpoint::new(route, logins, *dimensions)?;
            EmbeddingSource::model(endpoint, route.model.clone(), *dimensions, *timeout)
        }
        Err(lack) => EmbeddingSource::none(lack.sentence()),
    })
}
