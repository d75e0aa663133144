//! The code and the remedy of each failure of a session.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::AgentError;
use crate::approval::{KeptError, RuleError};

hermes_diagnostic::codes! {
    /// The codes of sessions.
    pub mod codes {
        WORKSPACE = "session.workspace", Category::General, "the session's folder is gone";
        NO_VISION = "session.no-vision", Category::General, "the model reads no images";
        EMPTY_MESSAGE = "session.empty-message", Category::General, "the message is empty";
        MESSAGE_TOO_LONG = "session.message-too-long", Category::General, "the message does not fit the model's window";
        WINDOW_FULL = "session.window-full", Category::Model, "the conversation does not fit the model's window";
        HALTED = "session.halted", Category::Plugin, "a plugin failed and its policy ends the turn";
        EMPTY_REPLY = "session.empty-reply", Category::Model, "the model answered with nothing";
        APPROVALS = "session.approvals", Category::General, "the stored approvals cannot be used";
        RULE = "session.rule", Category::Configuration, "an entry below `approvals` is not a rule";
        OTHER = "session.other", Category::General, "a failure of a session without a code of its own";
    }
}

impl Diagnose for AgentError {
    fn parts(&self) -> Parts {
        const SENT: &str = "the message was not sent";
        const ANSWER: &str = "the turn has no answer";
        let (code, what, fix) = match self {
            Self::Store(error) => return error.parts(),
            Self::Model(error) => return error.parts(),
            Self::Plugins(error) => return error.parts(),
            Self::Workspace { .. } => (
                codes::WORKSPACE,
                "the session cannot go on",
                Fix::words("create the folder again").or(Action::BranchSession),
            ),
            Self::NoVision { .. } => {
                (codes::NO_VISION, SENT, Fix::words("choose a model that reads images").or("leave the image out"))
            }
            Self::EmptyMessage => (codes::EMPTY_MESSAGE, SENT, Fix::words("type what you want")),
            Self::MessageTooLong { .. } => (
                codes::MESSAGE_TOO_LONG,
                SENT,
                Fix::words("shorten it, put it into a file").or("choose a model with a larger window"),
            ),
            Self::WindowFull { .. } => (
                codes::WINDOW_FULL,
                ANSWER,
                Fix::words("choose a model with a larger window").or("begin a new session"),
            ),
            Self::Halted { plugin, .. } => (
                codes::HALTED,
                "the turn was ended",
                Fix::from(Action::ShowPlugin { plugin: plugin.clone() })
                    .or(format!("set `plugins.settings.{plugin}.on_failure` to `fallback`")),
            ),
            Self::EmptyReply { .. } => (codes::EMPTY_REPLY, ANSWER, Fix::words("try again").or(Action::ChooseModel)),
        };
        (code, what.into(), fix)
    }
}

impl Diagnose for KeptError {
    fn parts(&self) -> Parts {
        let fix = match self {
            Self::Read { .. } => Fix::words("check its permissions"),
            Self::Damaged { .. } => Fix::words("repair it").or("delete it to be asked again"),
            Self::Write { .. } => Fix::words("check the permissions of its folder"),
        };
        (codes::APPROVALS, "the approvals cannot be used".into(), fix)
    }
}

impl Diagnose for RuleError {
    fn parts(&self) -> Parts {
        let fix = "write `PLUGIN` for all that a plugin does, `PLUGIN/TOOL` or `PLUGIN/process:PROGRAM`";
        (codes::RULE, "the rules for approvals cannot be used".into(), Fix::words(fix))
    }
}
