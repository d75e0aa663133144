//! The events of a session for its front ends.
//!
//! Events own their data and can be serialised, so that a front end may live in another process. Each has a sequence
//! number within an [`crate::Epoch`]; a front end that reconnects names the last [`Position`] it has seen.

use hermes_conversation::{MessageId, Model, SessionId, Usage};
use hermes_diagnostic::Fix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compression::{Compression, CompressionPreview};
use crate::id::{CallId, Position, QuestionId, TurnNumber};
use crate::mode::Mode;
use crate::problem::Problem;
use crate::query::{Query, QuestionEnd};
use crate::snapshot::Snapshot;
use crate::status::Status;
use crate::task::TaskStatus;

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The event's position in the feed.
    pub position: Position,
    /// The session; none until a new session has stored its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The running turn, if there is one.
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

/// Who did not let a call do what it was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedBy {
    /// The mode `plan`, which changes nothing.
    Mode,
    /// A rule of the configuration.
    Rule,
    /// A hook.
    Hook,
    /// The user.
    User,
    /// The user would have been asked, and the session has nobody to ask.
    Unattended,
}

/// What a call changed in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file: relative to the session's folder if it is below it.
    pub path: String,
    /// The number of lines that are new.
    pub added: u32,
    /// The number of lines that are gone.
    pub removed: u32,
    /// The changed lines with some around them, each behind `+`, `-` or a space. None for a file that is no text, is large, or holds secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The number of further lines, which are left out here.
    #[serde(default)]
    pub left_out: u32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// Replaces every event up to its own sequence number: the front end is new, or was away for too long.
    Snapshot(Box<Snapshot>),
    /// A session was opened: either stored for the first time, or resumed.
    Opened {
        /// The version of this protocol, such as `1.0`.
        #[serde(default)]
        protocol: String,
        /// The model that answers.
        model: Model,
        /// The context engine.
        engine: String,
        /// Messages in the conversation.
        messages: usize,
    },
    /// The user's message is stored, and a turn begins.
    TurnStarted,
    /// The turn needs a reply of the model: room is made for the request, which is then sent.
    StepStarted {
        /// The number of the request in this turn, from 1.
        step: u32,
        /// The most requests with tools of the turn. The one after them asks for a summary.
        limit: u32,
    },
    /// A request was sent, and nothing of the reply has arrived. Sent again after a reply that was empty or refused as too long.
    Thinking,
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
    /// The model writes a call; [`EventKind::ToolStarted`] has its arguments.
    CallForming {
        /// The tool.
        name: String,
    },
    /// A reply is complete, and the provider has counted its tokens.
    Used {
        /// The model that answered, as the provider names it.
        model: String,
        /// The tokens.
        usage: Usage,
        /// The time from the request to the end of the reply in milliseconds.
        elapsed_ms: u64,
    },
    /// The numbers of the status line have changed during a turn.
    StatusChanged {
        /// The session now.
        status: Status,
    },
    /// The reply broke off, and the request is sent again. The conversation does not keep what was shown of it.
    ReplyCut,
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
        /// Who did not let it do what it was to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<RefusedBy>,
        /// What it changed in files, in the order of its changes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<FileDiff>,
    },
    /// A delegated task has begun, made progress, or ended.
    TaskChanged {
        /// The task now.
        task: TaskStatus,
    },
    /// The result in [`Event::message`] contains messages that the user wrote during the turn.
    Steered {
        /// The messages, oldest first.
        texts: Vec<String>,
    },
    /// The turn is over.
    TurnEnded {
        /// How it ended.
        end: TurnEnd,
        /// The session afterwards.
        status: Status,
        /// Messages that `steer` added to the turn, and that no result took.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unsent: Vec<String>,
    },
    /// The view was replaced.
    Compacted {
        /// The engine's reason, one line.
        reason: String,
        /// The author of the new view: the engine's name, or `host`.
        by: String,
        /// Estimated tokens of the messages before.
        before: u32,
        /// Estimated tokens of the messages after.
        after: u32,
    },
    /// A requested compaction begins, which may take a while. One that is skipped has only an end.
    CompressionStarted,
    /// A requested compaction has ended.
    CompressionEnded {
        /// How it ended.
        end: CompressionEnd,
        /// The session afterwards.
        status: Status,
    },
    /// The preview of a compaction.
    CompressionPreviewed {
        /// The changes.
        outlook: CompressionPreview,
    },
    /// The system prompt was rebuilt.
    PromptRebuilt {
        /// What changed; `None` if nothing changed.
        changed: Option<String>,
    },
    /// The session switched to another model or engine.
    Switched {
        /// The model.
        model: Model,
        /// The context engine.
        engine: String,
    },
    /// The user switched what Hermes asks about.
    ModeChosen {
        /// The mode.
        mode: Mode,
    },
    /// The user's message in [`Event::message`] and all messages after it were removed.
    Rewound {
        /// The number of removed messages.
        messages: usize,
    },
    /// A new session continues from this one.
    Branched {
        /// The new session.
        child: SessionId,
    },
    /// An undo restored files of the workspace.
    FilesRestored {
        /// How many.
        files: usize,
    },
    /// A question to the user, which a command answers.
    Asked {
        /// The question's id for the command.
        question: QuestionId,
        /// The content of the question.
        query: Query,
    },
    /// A question no longer needs an answer.
    Closed {
        /// The question.
        question: QuestionId,
        /// The reason.
        how: QuestionEnd,
    },
    /// A notice for the user, such as a failed plugin, a retry or a fallback.
    Notice {
        /// What happened, in one line.
        text: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Fix::is_empty")]
        fix: Fix,
    },
    /// The progress of a plugin; the next event replaces the line.
    Progress {
        /// One line.
        text: String,
    },
    /// The session was closed. No event follows.
    Ended,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum TurnEnd {
    /// With an answer.
    Answered {
        /// The text of the last reply.
        text: String,
    },
    /// A command stopped it. The conversation is valid and can continue.
    Interrupted,
    /// The turn reached its limit of requests with tools.
    OutOfBudget {
        /// The limit.
        steps: u32,
        /// The setting of the limit.
        setting: String,
        /// What the model wrote in its last reply, for which it was asked to sum up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// The last reply reached the model's output limit, so it is not whole. The stored message ends with a mark that says so.
    Cut {
        /// The text of that reply, as far as it goes, without the mark.
        text: String,
        /// How many tool calls were in it. None of them ran: the last one may be cut within its arguments.
        #[serde(default, skip_serializing_if = "is_default")]
        calls: usize,
    },
    /// An error ended it. All messages so far are stored.
    Failed {
        /// The error.
        problem: Problem,
    },
}

/// How a requested compaction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum CompressionEnd {
    /// It ran, or it was skipped for a reason.
    Done {
        /// The outcome.
        compression: Compression,
    },
    /// An error ended it.
    Failed {
        /// The error.
        problem: Problem,
    },
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
