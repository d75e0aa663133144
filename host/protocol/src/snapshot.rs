//! The state of a session for a front end that missed events.

use hermes_conversation::{MessageId, Model, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, QuestionId, TurnNumber};
use crate::query::Query;
use crate::status::Status;
use crate::task::TaskStatus;

/// The state of a session after all events so far. The messages themselves are in the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The version of this protocol, such as `1.0`.
    #[serde(default)]
    pub protocol: String,
    /// The model that answers, once the session is open.
    pub model: Option<Model>,
    /// The context engine, once the session is open.
    pub engine: Option<String>,
    /// The running turn.
    pub turn: Option<TurnNumber>,
    /// The newest stored message that an event named.
    pub last_message: Option<MessageId>,
    /// The received part of the current reply.
    pub text: String,
    /// The received part of the current reasoning.
    pub reasoning: String,
    /// The running tool calls, in the order of their start.
    pub running: Vec<RunningCall>,
    /// The delegated tasks that wait or run, by number.
    #[serde(default)]
    pub tasks: Vec<TaskStatus>,
    /// The open questions, oldest first.
    pub questions: Vec<OpenQuestion>,
    /// The numbers of the status line, once an event contained them.
    #[serde(default)]
    pub status: Option<Status>,
    /// The newest reply whose tokens the provider has counted.
    #[serde(default)]
    pub counted: Option<CountedReply>,
    /// Whether the session was closed.
    pub ended: bool,
}

/// What the provider counted for a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedReply {
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The tokens.
    pub usage: Usage,
    /// The time from the request to the end of the reply in milliseconds.
    pub elapsed_ms: u64,
}

/// A running tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunningCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// Its arguments, a JSON object.
    pub arguments: String,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenQuestion {
    /// The question's id for the command.
    pub question: QuestionId,
    /// The content of the question.
    pub query: Query,
}
