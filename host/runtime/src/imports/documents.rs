//! `documents`: named texts that people edit too.

use std::sync::Arc;

use hermes_bindings::hermes::plugin as imported;
use imported::documents as wit;
use imported::types::Error;

use super::kind;
use crate::context::Context;
use crate::convert::fault;
use crate::documents::{Document, Documents, DocumentsError, Written};
use crate::error::{Fault, FaultKind};

impl Context {
    /// Runs work on the set of documents that a name belongs to.
    async fn on_documents<T, F>(&mut self, name: String, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Documents, &str) -> Result<T, DocumentsError> + Send + 'static,
    {
        let sets = &self.services.documents;
        let Some(set) = sets.iter().find(|set| set.admits(&name)).or(sets.last()).map(Arc::clone) else {
            return Err(fault(Fault::denied("documents")));
        };
        let told = |error: DocumentsError| fault(Fault::new(kind(error.kind()), error.code(), error.to_string()));
        if !set.may_wait() {
            return work(&set, &name).map_err(told);
        }
        // A lock may have to be waited for.
        let work = tokio::task::spawn_blocking(move || work(&set, &name));
        self.call
            .bounded(async {
                let done = work.await.map_err(|error| Fault::new(FaultKind::Failed, "io", error.to_string()))?;
                done.map_err(|error| Fault::new(kind(error.kind()), error.code(), error.to_string()))
            })
            .await
            .map_err(fault)
    }
}

fn document(document: Document) -> wit::Document {
    wit::Document { content: document.content, version: document.version }
}

impl wit::Host for Context {
    async fn read(&mut self, name: String) -> Result<Option<wit::Document>, Error> {
        Ok(self.on_documents(name, |set, name| set.read(name)).await?.map(document))
    }

    async fn write(
        &mut self,
        name: String,
        content: String,
        version: Option<String>,
    ) -> Result<wit::WriteOutcome, Error> {
        let written = self.on_documents(name, move |set, name| set.write(name, &content, version.as_deref())).await?;
        Ok(match written {
            Written::At(version) => wit::WriteOutcome::Written(version),
            Written::Conflict(current) => wit::WriteOutcome::Conflict(document(current)),
        })
    }
}
