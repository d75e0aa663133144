//! What a front end may ask of a session, and how a session refuses.

use hermes_conversation::{MessageId, Part, SessionId};
use hermes_diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::approval::question::Decision;
use crate::codes;
use crate::id::QuestionId;
use crate::problem::Problem;

/// A command to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Begins a turn with what the user says.
    Say {
        /// The user's words; empty only beside attachments.
        text: String,
        /// Pictures and files beside the words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attached: Vec<Part>,
    },
    /// Stops the turn or the compaction that runs.
    Stop,
    /// Compacts the conversation now.
    Compress {
        /// What matters; none for the engine's own choice.
        focus: Option<String>,
        /// Only report what would be done.
        preview: bool,
    },
    /// Lets another model answer from the next turn on.
    ChooseModel {
        /// The model, as the configuration or the command line names it.
        model: String,
    },
    /// Lets another context engine work on the conversation.
    ChooseEngine {
        /// The engine's name.
        engine: String,
    },
    /// Takes back a message of the user, and everything behind it.
    Rewind {
        /// The message.
        to: MessageId,
    },
    /// Makes a new session that continues from this one.
    Branch {
        /// The last message that the new session takes over; none for the newest.
        through: Option<MessageId>,
    },
    /// Answers a question in words.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer.
        text: String,
    },
    /// Answers an approval.
    Decide {
        /// The question.
        question: QuestionId,
        /// The answer.
        decision: Decision,
    },
    /// Builds the system prompt anew, with everything that changed since.
    RebuildPrompt,
    /// Stops what runs and ends work on the session.
    Close,
}

impl Command {
    /// The command's name, as it is serialised.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Say { .. } => "say",
            Self::Stop => "stop",
            Self::Compress { .. } => "compress",
            Self::ChooseModel { .. } => "choose-model",
            Self::ChooseEngine { .. } => "choose-engine",
            Self::Rewind { .. } => "rewind",
            Self::Branch { .. } => "branch",
            Self::Answer { .. } => "answer",
            Self::Decide { .. } => "decide",
            Self::RebuildPrompt => "rebuild-prompt",
            Self::Close => "close",
        }
    }
}

/// That a command was accepted. `say` and `compress` go on in the background; every other command is carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The session that a branch made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
}

/// Why a session refuses a command. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum CommandError {
    /// A turn or a compaction runs.
    #[error("`{command}` has to wait: the session is busy with `{busy_with}`")]
    Busy {
        /// The refused command.
        command: String,
        /// What runs.
        busy_with: String,
    },
    /// Nothing runs that could be stopped.
    #[error("there is nothing to stop")]
    NothingRuns,
    /// The message has neither text nor attachments.
    #[error("the message is empty")]
    EmptyMessage,
    /// The session has no message yet.
    #[error("`{command}` needs a conversation, and this one has no message yet")]
    NothingSaid {
        /// The refused command.
        command: String,
    },
    /// There is no such message in the conversation.
    #[error("the conversation has no message {message}")]
    UnknownMessage {
        /// The message.
        message: MessageId,
    },
    /// Only messages of the user can be taken back.
    #[error("message {message} is not the user's")]
    NotTheUsers {
        /// The message.
        message: MessageId,
    },
    /// The question was never asked in this epoch.
    #[error("there is no question {question}")]
    UnknownQuestion {
        /// The question.
        question: QuestionId,
    },
    /// Another command has answered the question.
    #[error("question {question} was answered already")]
    AlreadyAnswered {
        /// The question.
        question: QuestionId,
    },
    /// The call that needed the answer is over.
    #[error("question {question} was withdrawn")]
    QuestionWithdrawn {
        /// The question.
        question: QuestionId,
    },
    /// A decision answers an approval, and a text any other question; a choice has to be one of those offered.
    #[error("this does not answer question {question}")]
    WrongAnswer {
        /// The question.
        question: QuestionId,
    },
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// The command was carried out and failed.
    #[error("{problem}")]
    Failed {
        /// The error.
        problem: Problem,
    },
}

impl CommandError {
    /// The refusal as a problem with a code of `docs/errors.md`.
    pub fn problem(&self) -> Problem {
        let (code, fix) = match self {
            Self::Failed { problem } => return problem.clone(),
            Self::Busy { .. } => (codes::BUSY, "wait until it is done, or stop it"),
            Self::NothingRuns => (codes::NOTHING_RUNS, "send a message first"),
            Self::EmptyMessage => (codes::EMPTY_MESSAGE, "type a message"),
            Self::NothingSaid { .. } => (codes::NOTHING_SAID, "send a message first"),
            Self::UnknownMessage { .. } => (codes::UNKNOWN_MESSAGE, "choose a message of the conversation"),
            Self::NotTheUsers { .. } => (codes::NOT_FROM_USER, "choose a message of the user"),
            Self::UnknownQuestion { .. } => (codes::UNKNOWN_QUESTION, "answer a question that is open"),
            Self::AlreadyAnswered { .. } => (codes::ANSWERED, "go on with the answer that was given"),
            Self::QuestionWithdrawn { .. } => (codes::WITHDRAWN, "go on without an answer"),
            Self::WrongAnswer { .. } => (codes::WRONG_ANSWER, "give one of the answers that are offered"),
            Self::Closed => (codes::CLOSED, "open the session again"),
        };
        Diagnostic::new(code, "the session refused a command", self.to_string(), fix).into()
    }

    /// Names the refusal for programs; the same as in its serialised form.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::NothingRuns => "nothing-runs",
            Self::EmptyMessage => "empty-message",
            Self::NothingSaid { .. } => "nothing-said",
            Self::UnknownMessage { .. } => "unknown-message",
            Self::NotTheUsers { .. } => "not-the-users",
            Self::UnknownQuestion { .. } => "unknown-question",
            Self::AlreadyAnswered { .. } => "already-answered",
            Self::QuestionWithdrawn { .. } => "question-withdrawn",
            Self::WrongAnswer { .. } => "wrong-answer",
            Self::Closed => "closed",
            Self::Failed { .. } => "failed",
        }
    }
}
