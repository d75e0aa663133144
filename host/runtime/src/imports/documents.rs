//! The import `documents`: named texts that people edit too.

use std::sync::Arc;

use hermes_bindings::imported;
use imported::documents as wit;
use imported::types::Error;

use crate::context::Context;
use crate::convert::fault;
use crate::error::Fault;
use hermes_capabilities::documents::{Document, Documents, DocumentsError, Written};

impl Context {
    /// Runs `work` on the set of documents that the name belongs to.
    async fn on_documents<T, F>(&mut self, name: String, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Documents, &str) -> Result<T, DocumentsError> + Send + 'static,
    {
        let sets = &self.services.documents;
        let Some(set) = sets.iter().find(|set| set.admits(&name)).or(sets.last()).map(Arc::clone) else {
            return Err(fault(Fault::denied("documents")));
        };
        if !set.may_wait() {
            return work(&set, &name).map_err(|error| fault(error.into()));
        }
        self.off_thread(move || Ok(work(&set, &name)?)).await.map_err(fault)
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
