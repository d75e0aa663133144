//! What imports need of the rest of the house: named here, filled in by whoever starts a session.

mod nobody;

use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Model, Role, Usage};

use hermes_capabilities::Fault;
use hermes_capabilities::documents::Documents;
use hermes_capabilities::files::Roots;
use hermes_capabilities::http::Http;
use hermes_capabilities::process::Programs;
use hermes_capabilities::sql::Database;

pub use hermes_capabilities::process::{Approval, Refusal};
pub use nobody::Nobody;

/// How serious a line of a plugin's log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// The name in log files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// Takes what a plugin says about itself.
pub trait Reporter: Send + Sync {
    /// A line for the plugin's log.
    fn log(&self, level: Level, text: &str);
    /// A line for the user while a call takes long.
    fn progress(&self, text: &str);
}

/// What time it is, for the import `clock`.
pub trait Clock: Send + Sync {
    /// Unix time in milliseconds.
    fn now(&self) -> u64;
    /// Of the user's time zone, in minutes east of UTC.
    fn utc_offset(&self) -> i32;
}

/// A request that a plugin makes to the user's models.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// What it is for: `compression`, `memory`, …
    pub task: String,
    /// Roles and texts; never `Role::Tool`.
    pub messages: Vec<(Role, String)>,
    /// Most tokens of the reply.
    pub max_tokens: Option<u32>,
    /// As the provider takes it.
    pub temperature: Option<f32>,
    /// A JSON Schema that the reply must follow.
    pub schema: Option<String>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It was done.
    Stop,
    /// It ran into the limit of tokens.
    Length,
    /// It or its provider refused.
    Refused,
}

/// A model's answer to a plugin.
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// What it said.
    pub text: String,
    /// Why it stopped.
    pub finish: Finish,
    /// The model that answered.
    pub model: String,
    /// What it took.
    pub usage: Usage,
}

/// The user's models, for the import `llm`.
#[async_trait]
pub trait Models: Send + Sync {
    /// Which model serves a task; code `no-model` when there is none.
    fn resolve(&self, task: &str) -> Result<Model, Fault>;
    /// One call; dropped when the plugin's time is up.
    async fn complete(&self, request: ModelRequest) -> Result<ModelReply, Fault>;
    /// An estimate for the session's model.
    fn count_tokens(&self, text: &str) -> u32;
}

/// The session's conversation, for the import `history` and to keep context engines up to date.
#[async_trait]
pub trait History: Send + Sync {
    /// From the first message to the last.
    fn whole(&self) -> Option<MessageRange>;
    /// Headers of the messages after one; all when none is given.
    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header>;
    /// Headers of a range.
    fn headers(&self, range: MessageRange) -> Vec<Header>;
    /// Messages of a range with their tokens, up to about `bytes` of text but at least one; then where the rest begins.
    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>);
    /// A summary's text by its key.
    async fn summary(&self, key: &str) -> Result<Option<String>, Fault>;
    /// What fits best, of this session and those that it continues.
    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault>;
}

/// How the words of a search must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// Some of them.
    Any,
    /// All of them.
    All,
    /// In a row.
    Phrase,
}

/// What is looked for in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Words; none of them is an operator.
    pub text: String,
    /// How they must be there.
    pub matching: Matching,
    /// Who said it; empty for all.
    pub roles: Vec<Role>,
    /// The tool that answered or was called; empty for all.
    pub tools: Vec<String>,
    /// Only these messages.
    pub within: Option<MessageRange>,
    /// Hits that are passed over.
    pub offset: usize,
    /// Hits that are wanted.
    pub limit: usize,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryHit {
    /// The message.
    pub id: MessageId,
    /// Its session.
    pub session: String,
    /// What of it fits.
    pub excerpt: String,
    /// Higher is better; of one search only.
    pub score: f64,
}

/// Everything that the instances of one plugin may reach in one session.
#[derive(Clone)]
pub struct Services {
    /// Always there.
    pub reporter: Arc<dyn Reporter>,
    /// Always there.
    pub clock: Arc<dyn Clock>,
    /// For `llm.count-tokens`, which needs no right, and, with [`Services::may_ask`], for the rest of `llm`.
    pub models: Arc<dyn Models>,
    /// Whether the plugin may ask a model.
    pub may_ask: bool,
    /// The conversation; engines are told of it in any case.
    pub history: Arc<dyn History>,
    /// Whether the plugin may read the conversation.
    pub may_read: bool,
    /// The documents it may use: a name belongs to the first set that admits it.
    pub documents: Vec<Arc<Documents>>,
    /// The folders it may use.
    pub files: Arc<Roots>,
    /// Its database; none where it has no right to one.
    pub database: Option<Arc<Database>>,
    /// The web, as far as it may go there.
    pub http: Arc<Http>,
    /// The programs it may run; none where it has no right to any.
    pub programs: Option<Programs>,
}
