//! A plugin's first start, before it is installed: with nobody's conversation, without models, files or network, and
//! with storage that is forgotten. What does not come through this would fail in a session.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Model};
use hermes_runtime::documents::Documents;
use hermes_runtime::files::Roots;
use hermes_runtime::http::Http;
use hermes_runtime::services::{
    Clock, History, HistoryHit, HistoryQuery, Level, ModelReply, ModelRequest, Models, Reporter,
};
use hermes_runtime::sql::Database;
use hermes_runtime::{
    CallError, Cause, Exports, Fault, FaultKind, Instance, Lanes, Limits, Loaded, Recipe, Services, SessionInfo, Start,
};

/// What a plugin turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What it exports, by the contract's names.
    pub exports: Vec<&'static str>,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Names of its skills.
    pub skills: Vec<String>,
    /// Events that it watches.
    pub events: Vec<String>,
    /// Why it does not start as it is configured now; none where it does.
    pub complaint: Option<String>,
}

/// Starts it once. What it answers as an error is its right, and is handed on; what ends it is an error here.
pub(crate) async fn rehearse(
    name: &str,
    version: &str,
    loaded: Arc<Loaded>,
    config: String,
) -> Result<Shown, CallError> {
    let exports = loaded.exports();
    let limits = Limits::standard();
    let recipe = Recipe {
        plugin: name.to_owned(),
        version: version.to_owned(),
        loaded,
        config,
        session: SessionInfo {
            id: "rehearsal".to_owned(),
            parent: None,
            platform: "install".to_owned(),
            purpose: "primary".to_owned(),
            profile: "default".to_owned(),
            workspace: None,
            model: Nothing.model(),
        },
        start: Start::Fresh,
        services: Services {
            reporter: Arc::new(Nothing),
            clock: Arc::new(Nothing),
            models: Arc::new(Nothing),
            may_ask: false,
            history: Arc::new(Nothing),
            may_read: false,
            documents: vec![Arc::new(Documents::in_memory())],
            files: Arc::new(Roots::new(Vec::new())),
            database: Some(Arc::new(Database::in_memory())),
            http: Arc::new(Http::closed()),
            programs: None,
        },
        tally: Arc::default(),
        lanes: Lanes::new(&limits),
        limits,
    };
    let instance = Instance::new(Arc::new(recipe));
    let mut shown = Shown { exports: exports.names(), tools: vec![], skills: vec![], events: vec![], complaint: None };
    match ask(&instance, exports, &mut shown).await {
        Ok(()) => Ok(shown),
        Err(CallError { cause: Cause::Fault(fault), call, .. }) => {
            shown.complaint = Some(format!("`{call}` answers: {}", fault.message));
            Ok(shown)
        }
        Err(error) => Err(error),
    }
}

/// Every kind has something that it is asked for first; the first question also starts it.
async fn ask(instance: &Instance, exports: Exports, shown: &mut Shown) -> Result<(), CallError> {
    if exports.tools {
        shown.tools = instance.catalog().await?.into_iter().map(|tool| tool.schema.name).collect();
    }
    if exports.skills {
        shown.skills = instance.skills().await?.into_iter().map(|skill| skill.name).collect();
    }
    if exports.hooks {
        shown.events = instance.interests().await?;
    }
    if exports.memory_provider {
        instance.system_prompt().await?;
    }
    if exports.context_engine {
        instance.status().await?;
    }
    Ok(())
}

/// Stands for all that a rehearsal does not have.
struct Nothing;

fn denied<T>() -> Result<T, Fault> {
    Err(Fault::new(FaultKind::Denied, "", "nothing is granted while a plugin is being installed"))
}

impl Nothing {
    fn model(&self) -> Model {
        Model { provider: "none".to_owned(), name: "none".to_owned(), context_length: 128_000 }
    }
}

impl Reporter for Nothing {
    fn log(&self, _: Level, _: &str) {}
    fn progress(&self, _: &str) {}
}

impl Clock for Nothing {
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn utc_offset(&self) -> i32 {
        0
    }
}

#[async_trait]
impl Models for Nothing {
    fn resolve(&self, _: &str) -> Result<Model, Fault> {
        denied()
    }

    async fn complete(&self, _: ModelRequest) -> Result<ModelReply, Fault> {
        denied()
    }

    fn count_tokens(&self, text: &str) -> u32 {
        u32::try_from(text.len() / 4).unwrap_or(u32::MAX)
    }
}

impl History for Nothing {
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
        denied()
    }

    fn search(&self, _: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        denied()
    }
}
