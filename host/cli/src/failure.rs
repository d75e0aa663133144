//! What a person is told when something fails: what, why, what to do; and what a script is told: an exit code.

use std::fmt;
use std::process::ExitCode;

use hermes_agent::{AgentError, CommandError, Problem, ProblemCode};
use hermes_app::AppError;
use hermes_diagnostic::{Category, Diagnose as _, Diagnostic};
use hermes_models::{ModelError, ResolveError};
use hermes_plugin_host::PluginsError;
use hermes_store::{PortError, SessionError, StoreError};

/// Exit codes by kind of failure; `docs/exit-codes.md` has the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whoever read standard output has stopped: nothing is wrong, and nobody is left to be told.
    ReaderGone = 0,
    /// What was asked for is not there, or a reason without a kind of its own.
    General = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// `config.yaml`, `.env` or the home folder.
    Configuration = 3,
    /// The model's endpoint is down, refuses, or answers nonsense.
    Model = 4,
    /// A plugin that must be there is not.
    Plugin = 5,
    /// The database.
    Store = 6,
    /// Another process is at work on the session.
    InUse = 7,
    /// The turn ended without an answer: its budget is used up.
    Budget = 8,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        // The discriminants are the codes, and all fit.
        Self::from(kind as u8)
    }
}

/// A report of three lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// What failed.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What to do.
    pub(crate) fix: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { kind, what: what.into(), why: why.into(), fix: fix.into() }
    }

    /// From a sentence that ends in `; what to do`, as the errors of the libraries do where there is something to do.
    pub(crate) fn from_sentence(kind: Kind, what: &str, sentence: &str, otherwise: &str) -> Self {
        let (why, fix) = sentence.rsplit_once("; ").unwrap_or((sentence, otherwise));
        Self::new(kind, what, why, fix)
    }

    /// The three lines, without colour; each on one line, whatever the cause wrote into it.
    pub(crate) fn lines(&self) -> [(&'static str, String); 3] {
        [("error", one_line(&self.what)), ("why", one_line(&self.why)), ("fix", one_line(&self.fix))]
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, why, fix] = self.lines().map(|(_, text)| text);
        write!(f, "{what}: {why}; {fix}")
    }
}

impl std::error::Error for Failure {}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl From<Category> for Kind {
    fn from(category: Category) -> Self {
        match category {
            Category::ReaderGone => Self::ReaderGone,
            Category::General => Self::General,
            Category::Usage => Self::Usage,
            Category::Configuration => Self::Configuration,
            Category::Model => Self::Model,
            Category::Plugin => Self::Plugin,
            Category::Store => Self::Store,
            Category::InUse => Self::InUse,
            Category::Budget => Self::Budget,
            Category::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        let Diagnostic { code, what, why, fix } = diagnostic;
        Self::new(code.category().into(), what, why, fix.to_string())
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        let configuration = |what: String, fix: &str| Self::new(Kind::Configuration, what, error.to_string(), fix);
        let unusable = |file: &std::path::Path| format!("{} cannot be used", file.display());
        match error {
            AppError::Config(diagnostic) => diagnostic.into(),
            AppError::Store(error) => error.into(),
            AppError::Resolve(error) => error.into(),
            AppError::Model(error) => error.into(),
            AppError::Plugins(error) => error.into(),
            AppError::Install(error) => error.into(),
            AppError::Agent(error) => error.into(),
            AppError::NoHome => configuration(
                "the home folder cannot be used".to_owned(),
                "set HERMES_HOME to a folder for conversations and settings",
            ),
            AppError::HomePath { .. } => configuration(
                "the home folder cannot be used".to_owned(),
                "set HERMES_HOME to a folder by its full path",
            ),
            AppError::Rule { ref file, .. } => {
                Self::from_sentence(Kind::Configuration, &unusable(file), &error.to_string(), "correct the entry")
            }
            AppError::CacheTtl { ref file, .. } => configuration(unusable(file), "correct `prompt_caching.cache_ttl`"),
            AppError::Clock { .. } => configuration(
                "the time cannot be told".to_owned(),
                "unset it, or give a moment such as 2026-11-22T10:00:00Z",
            ),
            AppError::Prefill { ref file, .. } => configuration(
                format!("{} cannot be used as prefill", file.display()),
                "write a JSON list of {\"role\": \"user\" or \"assistant\", \"content\": text}, the user's first, in \
                 turn, the assistant's last",
            ),
            AppError::NoSessionHere { .. } => Self::new(
                Kind::General,
                "no conversation can be continued",
                error.to_string(),
                "leave out --continue to begin one, or choose one of `hermes sessions list` with --resume",
            ),
        }
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        let otherwise = "correct the model's settings; `hermes doctor` shows what is in force";
        Self::from_sentence(Kind::Configuration, "no model can be chosen", &error.to_string(), otherwise)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let fix = error.fix();
        let fix =
            if fix.is_empty() { "try again, or choose another model with --model".into() } else { fix.to_string() };
        Self::new(Kind::Model, error.what(), error.why(), fix)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (kind, what) = match &error {
            StoreError::Session(SessionError::InUse { .. }) => (Kind::InUse, "the session cannot be opened"),
            StoreError::Session(SessionError::UnknownSession(_) | SessionError::AmbiguousSession { .. }) => {
                (Kind::General, "the session cannot be opened")
            }
            StoreError::Home { .. } => (Kind::Configuration, "the home folder cannot be used"),
            StoreError::Foreign { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::NotADatabase { .. }
            | StoreError::Orphan { .. }
            | StoreError::Corrupt { .. } => (Kind::Store, "the conversations cannot be opened"),
            _ => (Kind::Store, "the conversations cannot be stored"),
        };
        Self::from_sentence(kind, what, &error.to_string(), "run `hermes doctor` to see what is wrong")
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Session(error) => StoreError::from(error).into(),
            PortError::Unusable(error) | PortError::Failed(error) => match error.downcast::<StoreError>() {
                Ok(error) => (*error).into(),
                Err(other) => Self::new(
                    Kind::Store,
                    "the conversations cannot be stored",
                    other.to_string(),
                    "run `hermes doctor` to see what is wrong",
                ),
            },
        }
    }
}

impl From<PluginsError> for Failure {
    fn from(error: PluginsError) -> Self {
        let what = "the plugins of the session cannot be had";
        match &error {
            PluginsError::Missing { kind, name, found, folder } => {
                let why = format!("there is no {kind} `{name}`");
                Self::new(Kind::Plugin, what, why, choose(kind, found, folder))
            }
            PluginsError::OtherKind { kind, name, exports, found, folder } => {
                let why = format!("the plugin `{name}` is no {kind}: it exports {}", exports.join(", "));
                Self::new(Kind::Plugin, what, why, choose(kind, found, folder))
            }
            PluginsError::Ungranted { .. }
            | PluginsError::Claims { .. }
            | PluginsError::Configuration { .. }
            | PluginsError::Lock(_) => {
                let otherwise = "`hermes plugins verify` shows what is installed";
                Self::from_sentence(Kind::Plugin, what, &error.to_string(), otherwise)
            }
            _ => {
                let (why, fix) = error.why_and_fix();
                Self::new(Kind::Plugin, what, why, fix)
            }
        }
    }
}

fn choose(kind: &str, found: &[String], folder: &std::path::Path) -> String {
    let setting = if kind == "context engine" { "context.engine" } else { "memory.provider" };
    if found.is_empty() {
        return format!("there is none; install one into {}", folder.display());
    }
    format!("set {setting} to one of: {}; others go into {}", found.join(", "), folder.display())
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Store(error) => error.into(),
            AgentError::Model(error) => error.into(),
            AgentError::Plugins(error) => error.into(),
            other => Problem::from(&other).into(),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let kind = match problem.code {
            ProblemCode::SessionInUse => Kind::InUse,
            ProblemCode::StoreUnusable | ProblemCode::StoreFailed => Kind::Store,
            ProblemCode::HomeUnusable | ProblemCode::Configuration => Kind::Configuration,
            ProblemCode::ModelFailed | ProblemCode::ModelSilent | ProblemCode::WindowFull => Kind::Model,
            ProblemCode::PluginUnusable | ProblemCode::PluginHalted => Kind::Plugin,
            ProblemCode::SessionUnknown
            | ProblemCode::WorkspaceGone
            | ProblemCode::MessageEmpty
            | ProblemCode::ImagesNotRead
            | ProblemCode::MessageTooLong
            | ProblemCode::Other => Kind::General,
        };
        let Problem { code, what, why, fix, plugin } = problem;
        if let Some(fix) = fix {
            return Self::new(kind, what, why, fix);
        }
        match (code, plugin) {
            (ProblemCode::PluginHalted, Some(plugin)) => {
                let fix = format!(
                    "correct what `hermes plugins info {plugin}` tells, or set `plugins.settings.{plugin}.on_failure` to \
                     `fallback`"
                );
                Self::new(kind, what, why, fix)
            }
            (ProblemCode::WorkspaceGone, _) => {
                Self::new(kind, what, why, "make it again, or go on elsewhere with --branch")
            }
            (ProblemCode::ModelFailed, _) => {
                Self::from_sentence(kind, &what, &why, "try again, or choose another model with --model")
            }
            _ => Self::from_sentence(kind, &what, &why, "run `hermes doctor` to see what is wrong"),
        }
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Failed { problem } => problem.into(),
            error => Self::new(
                Kind::General,
                "the session refused a command",
                error.to_string(),
                "try again when the session is ready",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use hermes_conversation::SessionId;

    use super::*;

    #[test]
    fn a_report_says_what_failed_why_and_what_to_do() {
        let model: Failure =
            ModelError::Unreachable { url: "http://127.0.0.1:1/v1".into(), why: "connection refused".into() }.into();
        let [what, why, fix] = model.lines().map(|(_, text)| text);
        assert_eq!(what, "the model did not answer");
        assert_eq!(why, "no connection to http://127.0.0.1:1/v1: connection refused");
        assert_eq!(fix, "check that it is running and that model.base_url is right");
    }

    #[test]
    fn what_a_cause_writes_stays_on_its_line() {
        let failure = Failure::new(Kind::General, "a\nb", "c\r\n d", "e");
        assert_eq!(failure.lines().map(|(_, text)| text), ["a b", "c d", "e"]);
    }

    #[test]
    fn a_session_in_use_has_a_code_of_its_own_and_names_the_way_out() {
        let failure: Failure =
            StoreError::from(SessionError::InUse { session: SessionId("s".into()), pid: Some(7) }).into();
        assert_eq!(failure.kind, Kind::InUse);
        assert!(failure.fix.contains("--branch") && failure.why.contains("process 7"), "{failure}");
    }

    #[test]
    fn an_engine_that_is_not_there_lists_those_that_are() {
        let failure: Failure = PluginsError::Missing {
            kind: "context engine",
            name: "nope".into(),
            found: vec!["compressor (bundled)".into()],
            folder: "/h/plugins".into(),
        }
        .into();
        assert_eq!(failure.why, "there is no context engine `nope`");
        assert_eq!(failure.fix, "set context.engine to one of: compressor (bundled); others go into /h/plugins");
        assert_eq!(failure.kind as u8, 5);
    }
}
