//! The state of a session that a front end needs when it cannot have every event: what runs, what is asked, what is shown.

use hermes_conversation::{MessageId, Model};
use serde::{Deserialize, Serialize};

use crate::id::{CallId, QuestionId, TurnNumber};
use crate::query::Query;

/// Everything that the events so far leave behind. The messages themselves are in the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The model that answers, once the session is open.
    pub model: Option<Model>,
    /// The context engine, once the session is open.
    pub engine: Option<String>,
    /// The turn that runs.
    pub turn: Option<TurnNumber>,
    /// The newest stored message that an event named.
    pub last_message: Option<MessageId>,
    /// The reply that streams, as far as it has arrived.
    pub text: String,
    /// The reasoning that streams, as far as it has arrived.
    pub reasoning: String,
    /// Tool calls that run, in the order in which they started.
    pub running: Vec<RunningCall>,
    /// Questions that wait for an answer, oldest first.
    pub questions: Vec<OpenQuestion>,
    /// The session was closed.
    pub ended: bool,
}

/// A tool call that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// Its arguments, a JSON object.
    pub arguments: String,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Names the question in a command.
    pub question: QuestionId,
    /// What is asked.
    pub query: Query,
}
