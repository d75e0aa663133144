//! The import `embeddings`: vectors of texts.

use hermes_bindings::imported;
use imported::embeddings as wit;
use imported::types::Error;

use crate::context::Context;
use crate::convert::{fault, usage};
use crate::error::Fault;
use crate::services::{EmbeddingRequest, Purpose};

impl Context {
    fn may_embed(&self) -> Result<(), Error> {
        if self.services.may_embed { Ok(()) } else { Err(fault(Fault::denied("embeddings"))) }
    }
}

impl wit::Host for Context {
    async fn resolve(&mut self) -> Result<wit::EmbeddingModel, Error> {
        self.may_embed()?;
        let embeddings = self.services.embeddings.clone();
        let found = self.call.bounded(embeddings.resolve()).await.map_err(fault)?;
        Ok(wit::EmbeddingModel {
            provider: found.provider,
            name: found.name,
            dimensions: found.dimensions,
            extra: Vec::new(),
        })
    }

    async fn embed(&mut self, request: wit::Request) -> Result<wit::Reply, Error> {
        self.may_embed()?;
        let purpose = match request.purpose {
            wit::Purpose::Query => Purpose::Query,
            wit::Purpose::Document | wit::Purpose::Other(_) => Purpose::Document,
        };
        let request = EmbeddingRequest { texts: request.texts, purpose };
        request.check().map_err(fault)?;
        let texts = request.texts.len();
        let embeddings = self.services.embeddings.clone();
        let found = self.call.bounded(embeddings.embed(request)).await.map_err(fault)?;
        // The tokens were used even if the vectors are unusable.
        self.tally.model_called(found.usage.input.into(), found.usage.output.into());
        let dimensions = found.check(texts, None, &format!("the embedding model {}", found.model)).map_err(fault)?;
        Ok(wit::Reply {
            vectors: found.vectors,
            model: found.model,
            dimensions,
            usage: usage(found.usage),
            extra: Vec::new(),
        })
    }
}
