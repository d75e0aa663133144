//! What happens in a session, as its front ends see it.
//!
//! Events own their data and can be serialised, so that a front end may live in another process. Each has a sequence
//! number within an [`crate::Epoch`]; a front end that reconnects names the last [`Position`] it has seen.

use hermes_conversation::{MessageId, Model, SessionId};
use hermes_diagnostic::Fix;
use serde::{Deserialize, Serialize};

use crate::compaction::outcome::{Compression, Outlook};
use crate::id::{CallId, Position, QuestionId, TurnNumber};
use crate::problem::Problem;
use crate::query::{Query, QuestionEnd};
use crate::snapshot::Snapshot;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Which event it is.
    pub position: Position,
    /// The session; none until a new session has stored its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The turn that runs, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnNumber>,
    /// The stored message that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The tool call that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// Stands for every event up to its own sequence number: the front end is new, or was away for too long.
    Snapshot(Box<Snapshot>),
    /// A session was opened: stored for the first time, or resumed.
    Opened {
        /// The model that answers.
        model: Model,
        /// The context engine.
        engine: String,
        /// Messages in the conversation.
        messages: usize,
    },
    /// The user's message is stored, and a turn begins.
    TurnStarted,
    /// A piece of the answer.
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// A reply of the model is complete and stored; tool calls may follow.
    ReplyDone,
    /// A tool call begins.
    ToolStarted {
        /// The tool.
        name: String,
        /// Its arguments, a JSON object.
        arguments: String,
    },
    /// A tool call has a result, and the result is stored.
    ToolFinished {
        /// The tool.
        name: String,
        /// What the tool answered.
        content: String,
        /// Whether the call failed.
        failed: bool,
        /// Duration in milliseconds.
        elapsed_ms: u64,
    },
    /// The turn is over.
    TurnEnded {
        /// How it ended.
        end: TurnEnd,
        /// The session afterwards.
        status: Status,
    },
    /// The view was replaced.
    Compacted {
        /// The engine's line.
        reason: String,
        /// Who made the new view: the engine's name, or `host`.
        by: String,
        /// Estimated tokens of the messages before.
        before: u32,
        /// Estimated tokens of the messages after.
        after: u32,
    },
    /// A requested compaction is over.
    CompressionEnded {
        /// What it did.
        end: CompressionEnd,
        /// The session afterwards.
        status: Status,
    },
    /// What a requested compaction would do.
    CompressionPreviewed {
        /// The changes.
        outlook: Outlook,
    },
    /// The system prompt was built anew.
    PromptRebuilt {
        /// What changed; none if nothing did.
        changed: Option<String>,
    },
    /// Another model or another engine serves from here on.
    Switched {
        /// The model.
        model: Model,
        /// The context engine.
        engine: String,
    },
    /// The user's message in `message` was taken back, with everything behind it.
    Rewound {
        /// How many messages were taken back.
        messages: usize,
    },
    /// A new session continues from this one.
    Branched {
        /// The new session.
        child: SessionId,
    },
    /// The user is asked something; a command answers.
    Asked {
        /// Names the question in the command.
        question: QuestionId,
        /// What is asked.
        query: Query,
    },
    /// A question needs no answer any more.
    Closed {
        /// The question.
        question: QuestionId,
        /// Why.
        how: QuestionEnd,
    },
    /// What the user should know: a plugin that failed, a retry, a fallback.
    Notice {
        /// What happened, in one line.
        text: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Fix::is_empty")]
        fix: Fix,
    },
    /// A plugin reports its progress; the next event replaces the line.
    Progress {
        /// One line.
        text: String,
    },
    /// The session was closed. No event follows.
    Ended,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum TurnEnd {
    /// With an answer.
    Answered {
        /// The model's last words.
        text: String,
    },
    /// A command stopped it. The conversation is valid and can continue.
    Interrupted,
    /// It used every request that a turn may make.
    OutOfBudget {
        /// How many requests that is.
        steps: u32,
    },
    /// An error ended it. Everything said so far is stored.
    Failed {
        /// The error.
        problem: Problem,
    },
}

/// How a requested compaction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum CompressionEnd {
    /// It ran, or there was a reason not to.
    Done {
        /// What came of it.
        compression: Compression,
    },
    /// An error ended it.
    Failed {
        /// The error.
        problem: Problem,
    },
}

/// The numbers of a status line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// The engine's name.
    pub engine: String,
    /// Estimate for the next request in tokens.
    pub prompt_tokens: u32,
    /// The window in tokens.
    pub context_length: u32,
    /// Messages in the conversation.
    pub messages: usize,
}
