//! Services without a session: logs go nowhere, models and approvals are denied, the history is empty.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Model, tokens};

use super::{
    Approval, Clock, EmbeddingModel, EmbeddingRequest, Embeddings, History, HistoryHit, HistoryQuery, Level,
    ModelReply, ModelRequest, Models, Pieces, Refusal, Reporter, Services, SystemRandom, Vectors,
};
use crate::error::{Fault, FaultKind};
use crate::instance::{Lanes, Recipe};
use crate::limits::Limits;
use crate::loaded::Loaded;
use crate::slots::SessionCalls;
use crate::types::{SessionInfo, Start};
use hermes_capabilities::approval::ChangeApproval;
use hermes_capabilities::documents::Documents;
use hermes_capabilities::files::{Change, Guard, Roots};
use hermes_capabilities::http::Http;
use hermes_capabilities::process::Run;

/// Implements every service for a plugin outside of a session: for rehearsals, measurements and tests, which replace the
/// services that they examine. Only the clock and the random numbers are real.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSession;

impl NoSession {
    /// A placeholder model.
    fn model() -> Model {
        Model { provider: "none".to_owned(), name: "none".to_owned(), context_length: 128_000 }
    }
}

fn denied<T>() -> Result<T, Fault> {
    Err(Fault::new(FaultKind::Denied, "nobody", "there is no session that could answer this"))
}

impl Reporter for NoSession {
    fn log(&self, _: Level, _: &str) {}
    fn progress(&self, _: &str) {}
}

impl Clock for NoSession {
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn utc_offset(&self) -> i32 {
        0
    }
}

#[async_trait]
impl Models for NoSession {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        denied()
    }

    async fn stream(&self, _: ModelRequest, _: &Pieces) -> Result<ModelReply, Fault> {
        denied()
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

#[async_trait]
impl History for NoSession {
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

    async fn summary(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    async fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        Ok(Vec::new())
    }

    async fn picture(&self, _: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(None)
    }
}

#[async_trait]
impl Embeddings for NoSession {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        denied()
    }

    async fn embed(&self, _: EmbeddingRequest) -> Result<Vectors, Fault> {
        denied()
    }
}

#[async_trait]
impl Approval for NoSession {
    async fn process(&self, run: &Run, _: bool) -> Result<(), Fault> {
        let why = format!("{:?} was not run: without a session, no user can approve it", run.program);
        Err(Fault::new(FaultKind::Denied, Refusal::Unattended.code(), why))
    }

    async fn file(&self, change: &Change, _: bool) -> Result<(), Fault> {
        let why = format!("{:?} was not changed: without a session, no user can approve it", change.path);
        Err(Fault::new(FaultKind::Denied, Refusal::Unattended.code(), why))
    }
}

impl Recipe {
    /// A recipe for a plugin outside of a session: without configuration and without rights.
    pub fn alone(plugin: &str, loaded: Arc<Loaded>, limits: Limits) -> Self {
        Self {
            plugin: plugin.to_owned(),
            version: "0.1.0".to_owned(),
            loaded,
            config: "{}".to_owned(),
            session: SessionInfo {
                id: "none".to_owned(),
                parent: None,
                platform: "none".to_owned(),
                purpose: "primary".to_owned(),
                profile: "default".to_owned(),
                workspace: None,
                repository: None,
                model: NoSession::model(),
            },
            start: Start::Fresh,
            services: Services::nothing(),
            tally: Arc::default(),
            lanes: Lanes::new(&limits, &SessionCalls::new()),
            limits,
        }
    }
}

impl Services {
    /// Services without a session, and no right except to documents in memory.
    pub fn nothing() -> Self {
        Self {
            reporter: Arc::new(NoSession),
            clock: Arc::new(NoSession),
            random: Arc::new(SystemRandom),
            models: Arc::new(NoSession),
            may_ask: false,
            embeddings: Arc::new(NoSession),
            may_embed: false,
            history: Arc::new(NoSession),
            may_read: false,
            may_hook: false,
            documents: vec![Arc::new(Documents::in_memory())],
            files: Arc::new(Roots::new(Vec::new(), Guard::default())),
            changes: ChangeApproval::new(Arc::new(NoSession)),
            database: None,
            http: Arc::new(Http::closed()),
            programs: None,
        }
    }
}
