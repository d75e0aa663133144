//! Codes and remedies for the errors of a session.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::AgentError;
use crate::approval::{KeptError, RuleError, UnknownRule};
use crate::without_tool::Owned;

hermes_diagnostic::codes! {
    /// The codes of sessions.
    pub mod codes {
        WORKSPACE = "session.workspace", Category::General, "the session's folder is gone";
        NO_VISION = "session.no-vision", Category::General, "the model reads no images";
        SKILL = "session.skill", Category::General, "the skill cannot be used";
        MESSAGE_TOO_LONG = "session.message-too-long", Category::General, "the message does not fit the model's window";
        WINDOW_FULL = "session.window-full", Category::Model, "the conversation does not fit the model's window";
        HALTED = "session.halted", Category::Plugin, "a plugin failed and its policy ends the turn";
        EMPTY_REPLY = "session.empty-reply", Category::Model, "the model gave an empty reply";
        CUT = "session.cut", Category::Cut, "the reply reached the model's output limit before it had an answer";
        APPROVALS = "session.approvals", Category::General, "the stored approvals cannot be used";
        RULE = "session.rule", Category::Configuration, "an entry below `approvals` is not a rule";
        HOOK = "session.hook", Category::Configuration, "an entry below `hooks` cannot be used";
    }
}

impl Diagnose for AgentError {
    fn parts(&self) -> Parts {
        const SENT: &str = "the message was not sent";
        const ANSWER: &str = "the turn ended without an answer";
        let (code, what, fix) = match self {
            Self::Store(error) => return error.parts(),
            Self::Model(error) => return error.parts(),
            Self::Plugins(error) => return error.parts(),
            Self::ToolRefused { tool, owner, is_server, refused } => {
                let (code, what, _) = refused.parts();
                let owned = Owned { tool: tool.clone(), owner: owner.clone(), is_server: *is_server };
                return (code, what, owned.fix());
            }
            Self::DeferredRefused { session, refused } => {
                let (code, what, _) = refused.parts();
                let fix = Fix::words(format!(
                    "set `tool_search.deferred: false` in config.yaml, and rebuild the prompt with `hermes prompt --rebuild {session}`"
                ));
                return (code, what, fix);
            }
            Self::Rule(error) => return error.parts(),
            Self::Workspace { .. } => (
                codes::WORKSPACE,
                "the session cannot continue",
                Fix::words("create the folder again").or(Action::BranchSession),
            ),
            Self::NoVision { .. } => {
                (codes::NO_VISION, SENT, Fix::words("choose a model that reads images").or("leave the image out"))
            }
            Self::Skill { .. } => (
                codes::SKILL,
                SENT,
                Fix::words("`/help` lists the skills of this session").or("check it with `hermes doctor`"),
            ),
            Self::EmptyMessage => (hermes_protocol::codes::EMPTY_MESSAGE, SENT, Fix::words("type a message")),
            // Not the message is too long: the prompt fills the window.
            Self::MessageTooLong { room, window, .. } if *room < window / 16 => (
                codes::MESSAGE_TOO_LONG,
                SENT,
                Fix::words("choose a model with a larger window")
                    .or("shorten SOUL.md and the project's instructions")
                    .or("turn off plugins"),
            ),
            Self::MessageTooLong { .. } => (
                codes::MESSAGE_TOO_LONG,
                SENT,
                Fix::words("shorten it, save it as a file and ask the model to read that file")
                    .or("choose a model with a larger window"),
            ),
            Self::WindowFull { .. } => (
                codes::WINDOW_FULL,
                ANSWER,
                Fix::words("choose a model with a larger window").or("start a new session"),
            ),
            // The window is known now; only the prompt or one message is too large for it.
            Self::WindowSmaller { limit: Some(_), .. } => (
                codes::WINDOW_FULL,
                ANSWER,
                Fix::words("choose a model with a larger window").or("turn off plugins").or("start a new session"),
            ),
            Self::WindowSmaller { .. } => (
                codes::WINDOW_FULL,
                ANSWER,
                Fix::words("set model.context_length to the model's real window")
                    .or("choose a model with a larger window")
                    .or("start a new session"),
            ),
            Self::Halted { plugin, is_engine, .. } => {
                let fix = Fix::from(Action::ShowPlugin { plugin: plugin.clone() });
                // Only a context engine can be asked again: other plugins are disabled for the session.
                let fix = match is_engine {
                    true => fix.or(Action::Compress),
                    false => fix.or(Action::DisablePlugin { plugin: plugin.clone() }),
                };
                let fallback =
                    format!("set `plugins.settings.{plugin}.on_failure` to `fallback` to continue without it");
                (codes::HALTED, "the turn was ended", fix.or(fallback))
            }
            Self::CutBeforeText { thought: true, .. } => (
                codes::CUT,
                ANSWER,
                Fix::words("lower model.reasoning_effort")
                    .or("raise the limit of tokens to generate at the server")
                    .or(Action::ChooseAnotherModel),
            ),
            Self::CutBeforeText { thought: false, .. } => (
                codes::CUT,
                ANSWER,
                Fix::words("raise the limit of tokens to generate at the server").or(Action::ChooseAnotherModel),
            ),
            Self::EmptyReply { .. } => {
                (codes::EMPTY_REPLY, ANSWER, Fix::words("try again").or(Action::ChooseAnotherModel))
            }
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
        let fix = "write `PLUGIN` for everything that a plugin does, `PLUGIN/TOOL`, `PLUGIN/process:PROGRAM`, \
                   `PLUGIN/files:PATTERN`, or `PLUGIN(COMMAND)` for commands such as `terminal(git status*)`";
        (codes::RULE, "the rules for approvals cannot be used".into(), Fix::words(fix))
    }
}

impl Diagnose for UnknownRule {
    fn parts(&self) -> Parts {
        let fix = match &self.nearest {
            Some(nearest) => Fix::words(format!("correct it to `{nearest}`")),
            None => Fix::words("name a tool as `PLUGIN/TOOL`"),
        };
        (codes::RULE, "the session cannot start".into(), fix.or("remove the entry"))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use hermes_diagnostic::Diagnostic;

    use super::*;
    use crate::approval::{ApprovalRules, RuleLists};

    #[test]
    fn every_code_has_an_error_with_a_cause_and_a_remedy() {
        let cause = || io::Error::other("refused");
        let agent = [
            AgentError::Workspace { folder: "/w".into() },
            AgentError::ToolRefused {
                tool: "mcp_odd_greet".into(),
                owner: "odd".into(),
                is_server: true,
                refused: Box::new(hermes_models::ModelError::NotFound {
                    url: "u".into(),
                    model: "m".into(),
                    message: "no".into(),
                }),
            },
            AgentError::DeferredRefused {
                session: "s".into(),
                refused: Box::new(hermes_models::ModelError::NotFound {
                    url: "u".into(),
                    model: "m".into(),
                    message: "no".into(),
                }),
            },
            AgentError::NoVision { model: "m".into() },
            AgentError::EmptyMessage,
            AgentError::Skill { skill: "brew".into(), why: "there is no skill `brew`".into() },
            AgentError::MessageTooLong { tokens: 3, room: 2, window: 2 },
            AgentError::WindowFull { window: 2 },
            AgentError::Halted { plugin: "p".into(), why: "it failed".into(), is_engine: false },
            AgentError::WindowSmaller { window: 2, limit: None, message: "too long".into() },
            AgentError::WindowSmaller { window: 2, limit: Some(1), message: "at most 1".into() },
            AgentError::EmptyReply { model: "m".into() },
            AgentError::CutBeforeText { model: "m".into(), thought: true },
            AgentError::CutBeforeText { model: "m".into(), thought: false },
        ];
        let kept = [
            KeptError::Read { path: "/a".into(), source: cause() },
            KeptError::Damaged { path: "/a".into(), why: "no JSON".into() },
            KeptError::Write { path: "/a".into(), source: cause() },
        ];
        let mut diagnostics: Vec<Diagnostic> = agent.iter().map(Diagnose::diagnose).collect();
        diagnostics.extend(kept.iter().map(Diagnose::diagnose));
        diagnostics.extend(
            ApprovalRules::parse(RuleLists { allow: &["a/b/c".to_owned()], ..RuleLists::default() })
                .err()
                .map(|error| error.diagnose()),
        );
        let hook = crate::HookFlaw::NoCommand;
        diagnostics.push(crate::HookError { key: "hooks.before-tool[0]".into(), flaw: hook }.diagnose());
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
