//! The commands to a session, and its refusals.

use hermes_conversation::{Author, Effort, MessageId, Part, SessionId};
use hermes_diagnostic::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::QuestionId;
use crate::mode::Mode;
use crate::problem::Problem;
use crate::question::Decision;
use crate::undo::{OnConflict, Turns, Undo};

hermes_diagnostic::codes! {
    /// The codes of refused commands.
    pub mod codes {
        BUSY = "session.busy", Category::General, "a turn or a compaction is running";
        NOTHING_RUNS = "session.nothing-runs", Category::General, "no turn or compaction is running";
        EMPTY_MESSAGE = "session.empty-message", Category::General, "the message is empty";
        NOTHING_SAID = "session.nothing-said", Category::General, "the session has no message yet";
        UNKNOWN_MESSAGE = "session.unknown-message", Category::General, "the conversation does not contain the message";
        NOT_FROM_USER = "session.not-from-user", Category::General, "only messages of the user can be rewound";
        UNKNOWN_QUESTION = "session.unknown-question", Category::General, "the session has no question with this number";
        UNKNOWN_TASK = "session.unknown-task", Category::General, "no delegated task with this number runs";
        ANSWERED = "session.answered", Category::General, "the question has already been answered";
        WITHDRAWN = "session.withdrawn", Category::General, "the call that needed the answer has ended";
        WRONG_ANSWER = "session.wrong-answer", Category::General, "the answer does not fit the question";
        CLOSED = "session.closed", Category::General, "the session was closed";
    }
}

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The text; empty only if there are attachments.
    pub text: String,
    /// Pictures and files, and texts that follow the user's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Part>,
    /// The person who wrote it, in a conversation with several people. The model and the memories get the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// The thread of the channel that it was written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The message of this conversation that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// A command to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Begins a turn with a message of the user.
    Say(UserMessage),
    /// Begins a turn with a skill that the user calls. The message has what the user typed; the model also gets the skill's text.
    UseSkill {
        /// Its name, perhaps with its plugin, as in `PLUGIN:NAME`.
        skill: String,
        /// What the user typed: a word for the skill, and the arguments behind it.
        text: String,
    },
    /// Adds a message of the user to the running turn: it goes into the next tool result. What no result takes is in the event
    /// that ends the turn.
    Steer {
        /// The text.
        text: String,
    },
    /// Stops the running turn or compaction.
    Stop,
    /// Stops one delegated task, also in the background. The turn goes on.
    StopTask {
        /// The task's number.
        task: u32,
    },
    /// Compacts the conversation now.
    Compress {
        /// What the summary should focus on; `None` leaves the choice to the engine.
        focus: Option<String>,
        /// Only report what the compaction would change.
        preview: bool,
    },
    /// Switches to another model from the next turn on.
    ChooseModel {
        /// The model, as the configuration or the command line names it.
        model: String,
        /// The model's provider; without it, that of the configuration or the command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
    },
    /// Switches to another context engine.
    ChooseEngine {
        /// The engine's name.
        engine: String,
    },
    /// Lets the model think more or less from the next request on. The prompt stays as it is.
    ChooseEffort {
        /// How much.
        effort: Effort,
    },
    /// Removes a message of the user and all messages after it.
    Rewind {
        /// The message.
        to: MessageId,
    },
    /// Restores the files that turns changed. The conversation stays as it is, and the model learns of it with the next message.
    Undo {
        /// Which turns.
        turns: Turns,
        /// What happens to files that changed since.
        #[serde(default)]
        on_conflict: OnConflict,
    },
    /// Creates a new session that continues from this one.
    Branch {
        /// The last message that the new session contains; `None` for the newest.
        through: Option<MessageId>,
    },
    /// Answers a question with text.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer.
        text: String,
    },
    /// Answers an approval question.
    Decide {
        /// The question.
        question: QuestionId,
        /// The answer.
        decision: Decision,
        /// With a refusal: what the model should do instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<String>,
    },
    /// Switches what the user is asked about, also during a turn. It holds from the next call on.
    ChooseMode {
        /// The mode.
        mode: Mode,
    },
    /// Rebuilds the system prompt from its current inputs.
    RebuildPrompt,
    /// Stops the running work and closes the session.
    Close,
}

impl Command {
    /// The command's name, as it is serialised.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Say(_) => "say",
            Self::UseSkill { .. } => "use-skill",
            Self::Steer { .. } => "steer",
            Self::Stop => "stop",
            Self::StopTask { .. } => "stop-task",
            Self::Compress { .. } => "compress",
            Self::ChooseModel { .. } => "choose-model",
            Self::ChooseEngine { .. } => "choose-engine",
            Self::ChooseEffort { .. } => "choose-effort",
            Self::Rewind { .. } => "rewind",
            Self::Undo { .. } => "undo",
            Self::Branch { .. } => "branch",
            Self::Answer { .. } => "answer",
            Self::Decide { .. } => "decide",
            Self::ChooseMode { .. } => "choose-mode",
            Self::RebuildPrompt => "rebuild-prompt",
            Self::Close => "close",
        }
    }
}

/// The reply to an accepted command. `say` and `compress` continue in the background; other commands are complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The session that `branch` created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
    /// What `undo` restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Box<Undo>>,
}

/// Why a session refuses a command. A refused command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum CommandError {
    /// A turn or a compaction is running.
    #[error("the session is busy with `{busy_with}`, so `{command}` cannot run now")]
    Busy {
        /// The refused command.
        command: String,
        /// The running command.
        busy_with: String,
    },
    /// No turn or compaction is running.
    #[error("there is nothing to stop or to steer")]
    NothingRuns,
    /// The message has neither text nor attachments.
    #[error("the message is empty")]
    EmptyMessage,
    /// The session has no message yet.
    #[error("the session has no message yet")]
    NothingSaid {
        /// The refused command.
        command: String,
    },
    /// The conversation does not contain the message.
    #[error("the conversation has no message {message}")]
    UnknownMessage {
        /// The message.
        message: MessageId,
    },
    /// Only messages of the user can be rewound.
    #[error("message {message} is not a message of the user")]
    NotTheUsers {
        /// The message.
        message: MessageId,
    },
    /// No question has this id in this epoch.
    #[error("there is no question {question}")]
    UnknownQuestion {
        /// The question.
        question: QuestionId,
    },
    /// No delegated task with this number runs.
    #[error("no task {task} runs")]
    UnknownTask {
        /// The task.
        task: u32,
    },
    /// Another command has answered the question.
    #[error("question {question} was answered already")]
    AlreadyAnswered {
        /// The question.
        question: QuestionId,
    },
    /// The call that needed the answer has ended.
    #[error("question {question} was withdrawn")]
    QuestionWithdrawn {
        /// The question.
        question: QuestionId,
    },
    /// The answer has the wrong kind, or is not one of the offered choices.
    #[error("this does not answer question {question}")]
    WrongAnswer {
        /// The question.
        question: QuestionId,
    },
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// The command ran and failed.
    #[error("{problem}")]
    Failed {
        /// The error.
        problem: Problem,
    },
}

impl CommandError {
    /// Converts the refusal into a problem with a code of `docs/use/errors.md`.
    pub fn problem(&self) -> Problem {
        let (code, fix) = match self {
            Self::Failed { problem } => return problem.clone(),
            Self::Busy { .. } => (codes::BUSY, "wait until it is done, or stop it"),
            Self::NothingRuns => (codes::NOTHING_RUNS, "send a message first"),
            Self::EmptyMessage => (codes::EMPTY_MESSAGE, "type a message"),
            Self::NothingSaid { .. } => (codes::NOTHING_SAID, "send a message first"),
            Self::UnknownMessage { .. } => (codes::UNKNOWN_MESSAGE, "choose a message of this conversation"),
            Self::NotTheUsers { .. } => (codes::NOT_FROM_USER, "choose a message of the user"),
            Self::UnknownQuestion { .. } => (codes::UNKNOWN_QUESTION, "answer an open question"),
            Self::UnknownTask { .. } => (codes::UNKNOWN_TASK, "choose a task that runs: `/tasks` lists them"),
            Self::AlreadyAnswered { .. } => (codes::ANSWERED, "continue; the first answer was used"),
            Self::QuestionWithdrawn { .. } => (codes::WITHDRAWN, "continue without an answer"),
            Self::WrongAnswer { .. } => (codes::WRONG_ANSWER, "give one of the offered answers"),
            Self::Closed => (codes::CLOSED, "open the session again"),
        };
        let what = match self {
            Self::NothingSaid { command } if command == "branch" => "the session was not branched",
            _ => "the session refused a command",
        };
        Diagnostic::new(code, what, self.to_string(), fix).into()
    }

    /// The refusal's name for programs, as in its serialised form.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::NothingRuns => "nothing-runs",
            Self::EmptyMessage => "empty-message",
            Self::NothingSaid { .. } => "nothing-said",
            Self::UnknownMessage { .. } => "unknown-message",
            Self::NotTheUsers { .. } => "not-the-users",
            Self::UnknownQuestion { .. } => "unknown-question",
            Self::UnknownTask { .. } => "unknown-task",
            Self::AlreadyAnswered { .. } => "already-answered",
            Self::QuestionWithdrawn { .. } => "question-withdrawn",
            Self::WrongAnswer { .. } => "wrong-answer",
            Self::Closed => "closed",
            Self::Failed { .. } => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_refusal_with_a_cause_and_a_remedy() {
        let question = QuestionId(1);
        let message = MessageId(1);
        let refusals = [
            CommandError::Busy { command: "say".into(), busy_with: "say".into() },
            CommandError::NothingRuns,
            CommandError::EmptyMessage,
            CommandError::NothingSaid { command: "branch".into() },
            CommandError::UnknownMessage { message },
            CommandError::NotTheUsers { message },
            CommandError::UnknownQuestion { question },
            CommandError::UnknownTask { task: 1 },
            CommandError::AlreadyAnswered { question },
            CommandError::QuestionWithdrawn { question },
            CommandError::WrongAnswer { question },
            CommandError::Closed,
        ];
        let mut diagnostics = Vec::new();
        for refusal in refusals {
            let problem = refusal.problem();
            let code =
                *codes::ALL.iter().find(|code| code.name() == problem.code).unwrap_or_else(|| panic!("{refusal:?}"));
            diagnostics.push(Diagnostic { code, what: problem.what, why: problem.why, fix: problem.fix });
        }
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
