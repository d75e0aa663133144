//! The services that imports need from the rest of the host, as traits that the caller implements.

mod no_session;
mod prompt;
pub mod vectors;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hermes_conversation::{Header, Message, MessageId, MessageRange, Role};

use hermes_capabilities::Fault;
use hermes_capabilities::approval::ChangeApproval;
use hermes_capabilities::documents::Documents;
use hermes_capabilities::files::Roots;
use hermes_capabilities::http::Http;
use hermes_capabilities::process::Programs;
use hermes_capabilities::sql::Database;

pub use hermes_capabilities::approval::{Approval, Refusal};
pub use hermes_capabilities::files::Guard as FileGuard;
pub use hermes_capabilities::process::SandboxRules;
pub use no_session::NoSession;
pub use prompt::{Finish, ModelReply, ModelRequest, Models, Piece, Pieces, PromptMessage, PromptPart};
pub use vectors::{EmbeddingModel, EmbeddingRequest, Embeddings, Purpose, Vectors};

/// The severity of a line in a plugin's log.
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
    /// Its name in log files.
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

/// Receives a plugin's log and progress messages.
pub trait Reporter: Send + Sync {
    /// Adds a line to the plugin's log.
    fn log(&self, level: Level, text: &str);
    /// Shows the user a line during a long call.
    fn progress(&self, text: &str);
    /// Tells the user something of the host that stays on the screen.
    fn notice(&self, text: &str) {
        self.progress(text);
    }
}

/// The clock of the import `clock` and of WASI.
pub trait Clock: Send + Sync {
    /// Unix time in milliseconds.
    fn now(&self) -> u64;
    /// The offset of the user's time zone, in minutes east of UTC.
    fn utc_offset(&self) -> i32;
    /// The time since some moment in the past, to measure durations with. By default the system measures it.
    fn elapsed(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// The random numbers of the import `random` and of WASI.
pub trait Random: Send + Sync {
    /// Overwrites all bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// The system's random numbers, fit for keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Without the system's randomness, the process could not have created its hash tables either.
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

/// The same numbers in every run, for measurements that must be repeatable.
#[derive(Debug, Default)]
pub struct RepeatableRandom {
    /// How many bytes were handed out.
    position: AtomicU64,
}

impl Random for RepeatableRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut stream = blake3::Hasher::new().finalize_xof();
        stream.set_position(self.position.fetch_add(bytes.len() as u64, Ordering::Relaxed));
        stream.fill(bytes);
    }
}

/// The session's conversation, for the import `history` and for the headers that context engines get.
#[async_trait]
pub trait History: Send + Sync {
    /// The range from the first message to the last; `None` if there is no message.
    fn whole(&self) -> Option<MessageRange>;
    /// The headers of the messages after the given one, or of all messages.
    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header>;
    /// The headers of a range.
    fn headers(&self, range: MessageRange) -> Vec<Header>;
    /// Reads messages of a range with their token counts: about `bytes` bytes of text, but at least one message. The
    /// second value is the first message that was left out.
    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>);
    /// The text of a summary by its key.
    async fn summary(&self, key: &str) -> Result<Option<String>, Fault>;
    /// The best matches in this session and in the sessions that it continues.
    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault>;
    /// The bytes of a picture in a message of this conversation, by the hash of its blob; `None` if no message has it.
    async fn picture(&self, hash: &str) -> Result<Option<Vec<u8>>, Fault>;
}

/// How the words of a search must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// At least one of them.
    Any,
    /// All of them.
    All,
    /// All of them, as a phrase.
    Phrase,
}

/// A search in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Words; there are no operators.
    pub text: String,
    /// How they must match.
    pub matching: Matching,
    /// Only messages with these roles; empty for all.
    pub roles: Vec<Role>,
    /// Only messages of these tools, calls and results; empty for all.
    pub tools: Vec<String>,
    /// Only messages of this range.
    pub within: Option<MessageRange>,
    /// How many hits to skip.
    pub offset: usize,
    /// How many hits to return.
    pub limit: usize,
}

/// A message that matches a search.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryHit {
    /// The message.
    pub id: MessageId,
    /// The id of its session.
    pub session: String,
    /// The matching part of its text.
    pub excerpt: String,
    /// Higher is better; comparable only within one search.
    pub score: f64,
}

/// Everything that the instances of one plugin may reach in one session.
#[derive(Clone)]
pub struct Services {
    /// The log and progress messages; needs no right.
    pub reporter: Arc<dyn Reporter>,
    /// The clock; needs no right.
    pub clock: Arc<dyn Clock>,
    /// The random numbers; need no right.
    pub random: Arc<dyn Random>,
    /// The user's models. `llm.count-tokens` needs no right; the rest of `llm` needs [`Services::may_ask`].
    pub models: Arc<dyn Models>,
    /// Whether the plugin may call a model.
    pub may_ask: bool,
    /// The user's embedding model; needs [`Services::may_embed`].
    pub embeddings: Arc<dyn Embeddings>,
    /// Whether the plugin may ask for vectors.
    pub may_embed: bool,
    /// The conversation. Context engines get its headers even without [`Services::may_read`].
    pub history: Arc<dyn History>,
    /// Whether the plugin may read the conversation.
    pub may_read: bool,
    /// Whether its hooks may watch the session.
    pub may_hook: bool,
    /// The documents that it may use. A name belongs to the first set that admits it.
    pub documents: Vec<Arc<Documents>>,
    /// The folders that it may use.
    pub files: Arc<Roots>,
    /// The approval of changes there.
    pub changes: ChangeApproval,
    /// Its database, if it has the right to one.
    pub database: Option<Arc<Database>>,
    /// The web, within its grants.
    pub http: Arc<Http>,
    /// The programs that it may run, if it has the right to any.
    pub programs: Option<Programs>,
}

impl Services {
    /// Whether the plugin may use an import, named as `hermes:http/http`.
    pub(crate) fn grant(&self, import: &str) -> bool {
        match import {
            "hermes:llm/llm" | "hermes:llm/llm-stream" => self.may_ask,
            "hermes:embeddings/embeddings" => self.may_embed,
            "hermes:history/history" => self.may_read,
            "hermes:storage/sql" => self.database.is_some(),
            "hermes:files/files" => !self.files.roots().is_empty(),
            "hermes:http/http" => self.http.is_granted(),
            "hermes:process/process" => self.programs.is_some(),
            _ => true,
        }
    }
}
