//! Whether a plugin could serve, before it has to: an instance that reads its configuration where nothing can be reached.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Model};
use hermes_runtime::documents::Documents;
use hermes_runtime::files::Roots;
use hermes_runtime::services::{
    Clock, History, HistoryHit, HistoryQuery, Level, ModelReply, ModelRequest, Models, Reporter,
};
use hermes_runtime::sql::Database;
use hermes_runtime::{CallError, Fault, Limits, Recipe, Services, SessionInfo, Start};

use crate::session::Selected;

/// Stands where a session's surroundings would.
struct Nobody;

impl Reporter for Nobody {
    fn log(&self, _: Level, _: &str) {}

    fn progress(&self, _: &str) {}
}

impl Clock for Nobody {
    fn now(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn utc_offset(&self) -> i32 {
        0
    }
}

#[async_trait]
impl Models for Nobody {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        Err(Fault::denied("llm"))
    }

    async fn complete(&self, _: ModelRequest) -> Result<ModelReply, Fault> {
        Err(Fault::denied("llm"))
    }

    fn count_tokens(&self, text: &str) -> u32 {
        hermes_conversation::tokens::of_text(text)
    }
}

impl History for Nobody {
    fn whole(&self) -> Option<MessageRange> {
        None
    }

    fn headers_after(&self, _: Option<MessageId>) -> Vec<Header> {
        Vec::new()
    }

    fn headers(&self, _: MessageRange) -> Vec<Header> {
        Vec::new()
    }

    fn read(&self, _: MessageRange, _: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        (Vec::new(), None)
    }

    fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        Ok(Vec::new())
    }
}

/// Instantiates and configures a plugin: with storage that is gone afterwards, and nothing else.
pub(crate) async fn rehearse(selected: &Selected, folder: &Path) -> Result<(), CallError> {
    let manifest = &selected.found.manifest;
    let nobody = Arc::new(Nobody);
    let recipe = Recipe {
        plugin: manifest.name.clone(),
        version: manifest.version.to_string(),
        loaded: Arc::clone(&selected.loaded),
        config: selected.config.clone(),
        session: SessionInfo {
            id: "rehearsal".to_owned(),
            parent: None,
            platform: "rehearsal".to_owned(),
            purpose: "rehearsal".to_owned(),
            profile: "default".to_owned(),
            workspace: Some(folder.display().to_string()),
            model: Model { provider: "none".to_owned(), name: "none".to_owned(), context_length: 32_000 },
        },
        start: Start::Fresh,
        services: Services {
            reporter: nobody.clone(),
            clock: nobody.clone(),
            models: nobody.clone(),
            may_ask: false,
            history: nobody,
            may_read: false,
            documents: vec![Arc::new(Documents::in_memory())],
            files: Arc::new(Roots::new(Vec::new())),
            database: manifest.permissions.sql.then(|| Arc::new(Database::in_memory())),
        },
        limits: Limits::standard(),
    };
    Arc::new(recipe).rehearse().await
}
