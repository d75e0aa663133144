//! Failures on the terminal: what failed, why, what to do, the code, and the exit code for scripts.

use std::borrow::Cow;
use std::fmt;
use std::process::ExitCode;

use hermes_app::AppError;
use hermes_app::sessions::StoreError;
use hermes_conformance::ConformanceError;
use hermes_diagnostic::{Category, Code, Diagnose as _, Diagnostic, Fix};
use hermes_install::InstallError;
use hermes_lab::LabError;
use hermes_peer::PeerError;
use hermes_plugin_host::PluginsError;
use hermes_protocol::{CommandError, Problem, one_line};

use crate::wording;

/// Exit codes by kind of failure; `docs/use/exit-codes.md` has the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The reader of standard output closed it. This is not an error, and nothing is reported.
    ReaderGone = 0,
    /// Any other failure.
    General = 1,
    /// The command line is invalid.
    Usage = 2,
    /// `config.yaml`, `.env` or the home folder.
    Configuration = 3,
    /// The model's endpoint is down, refuses, or answers nonsense.
    Model = 4,
    /// A plugin is missing or does not work.
    Plugin = 5,
    /// The database.
    Store = 6,
    /// Another process is working on the session.
    InUse = 7,
    /// The turn ended without an answer: its budget is used up.
    Budget = 8,
    /// The answer is not whole: the reply reached the model's output limit.
    Cut = 9,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        // The discriminants are the codes, and all fit.
        Self::from(kind as u8)
    }
}

/// A failure, reported in three lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// Stable; `docs/use/errors.md` lists all.
    pub(crate) code: Cow<'static, str>,
    /// What failed.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
    /// What to do.
    pub(crate) fix: String,
}

impl Failure {
    /// A failure with the code of its kind.
    pub(crate) fn new(kind: Kind, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { kind, code: Code::from(kind).name().into(), what: what.into(), why: why.into(), fix: fix.into() }
    }

    /// A failure whose remedy names commands instead of actions.
    fn worded(category: Category, code: Cow<'static, str>, what: String, why: String, fix: &Fix) -> Self {
        let fix =
            if fix.is_empty() { "run `hermes doctor` to see what is wrong".to_owned() } else { wording::fix(fix) };
        Self { kind: category.into(), code, what, why, fix }
    }

    /// The three lines, without colour. Line breaks in a text become spaces.
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
            Category::Cut => Self::Cut,
            Category::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Kind> for Code {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::ReaderGone => codes::READER_GONE,
            Kind::General => codes::GENERAL,
            Kind::Usage => codes::USAGE,
            Kind::Configuration => codes::CONFIGURATION,
            Kind::Model => codes::MODEL,
            Kind::Plugin => codes::PLUGIN,
            Kind::Store => codes::STORE,
            Kind::InUse => codes::IN_USE,
            Kind::Budget => codes::BUDGET,
            Kind::Cut => codes::CUT,
            Kind::Interrupted => codes::INTERRUPTED,
        }
    }
}

hermes_diagnostic::codes! {
    /// The codes of failures of the command line itself.
    pub(crate) mod codes {
        READER_GONE = "cli.reader-gone", Category::ReaderGone, "the reader of standard output closed it";
        GENERAL = "cli.general", Category::General, "any other failure of a command";
        USAGE = "cli.usage", Category::Usage, "the command line is invalid";
        CONFIGURATION = "cli.configuration", Category::Configuration, "a setting or file of the user cannot be used";
        MODEL = "cli.model", Category::Model, "the model cannot be used";
        PLUGIN = "cli.plugin", Category::Plugin, "a command on a plugin failed";
        STORE = "cli.store", Category::Store, "a command on stored sessions failed";
        IN_USE = "cli.in-use", Category::InUse, "another process is working on the session";
        BUDGET = "cli.budget", Category::Budget, "the turn used up its requests to the model";
        CUT = "cli.cut", Category::Cut, "the reply reached the model's output limit, so the answer is not whole";
        INTERRUPTED = "cli.interrupted", Category::Interrupted, "the user pressed ctrl-c";
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        let Diagnostic { code, what, why, fix } = diagnostic;
        Self::worded(code.category(), code.name().into(), what, why, &fix)
    }
}

/// Converts errors of the libraries, which describe themselves completely.
macro_rules! diagnosed {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                error.diagnose().into()
            }
        })+
    };
}

diagnosed!(AppError, StoreError, PluginsError, InstallError, ConformanceError, LabError, PeerError);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let Problem { code, category, what, why, fix } = problem;
        Self::worded(category, code.into(), what, why, &fix)
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        error.problem().into()
    }
}

#[cfg(test)]
mod tests {
    use hermes_app::models::ModelError;
    use hermes_app::sessions::SessionError;
    use hermes_protocol::SessionId;

    use super::*;

    /// The codes of the crates beside the application.
    const BESIDE: &[&[Code]] =
        &[codes::ALL, hermes_conformance::codes::ALL, hermes_lab::codes::ALL, hermes_peer::codes::ALL];

    #[test]
    fn the_page_on_errors_has_one_row_for_each_code() {
        let page = include_str!("../../../docs/use/errors.md");
        let mut rows: Vec<String> = hermes_app::CODES
            .iter()
            .chain(BESIDE)
            .copied()
            .flatten()
            .map(|code| {
                let exit = Kind::from(code.category()) as u8;
                format!("| `{}` | {exit} | {} |", code.name(), code.meaning())
            })
            .collect();
        rows.sort();
        let known: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(known, rows, "docs/use/errors.md needs these rows:\n{}", rows.join("\n"));
        rows.dedup_by_key(|row| row.split('`').nth(1).map(str::to_owned));
        assert_eq!(rows.len(), known.len(), "two situations share a code");
    }

    #[test]
    fn a_report_says_what_failed_why_and_what_to_do() {
        let model: Failure = AppError::from(ModelError::Unreachable {
            url: "http://127.0.0.1:1/v1".into(),
            why: "connection refused".into(),
        })
        .into();
        let [what, why, fix] = model.lines().map(|(_, text)| text);
        assert_eq!(what, "the model did not answer");
        assert_eq!(why, "no connection to http://127.0.0.1:1/v1: connection refused");
        assert_eq!(fix, "check that the server is running and that model.base_url is right");
    }

    #[test]
    fn line_breaks_in_a_cause_become_spaces() {
        let failure = Failure::new(Kind::General, "a\nb", "c\r\n d", "e");
        assert_eq!(failure.lines().map(|(_, text)| text), ["a b", "c d", "e"]);
    }

    #[test]
    fn a_session_in_use_has_its_own_code_and_a_fix() {
        let failure: Failure =
            StoreError::from(SessionError::InUse { session: SessionId("s".into()), pid: Some(7) }).into();
        assert_eq!(failure.kind, Kind::InUse);
        assert!(failure.fix.contains("--branch") && failure.why.contains("process 7"), "{failure}");
    }

    #[test]
    fn the_error_for_a_missing_engine_lists_the_existing_ones() {
        let failure: Failure =
            PluginsError::Missing { kind: "context engine", name: "nope".into(), found: vec!["compressor".into()] }
                .into();
        assert_eq!(failure.why, "there is no context engine `nope`");
        assert_eq!(
            failure.fix,
            "choose compressor (context.engine), or install one with `hermes plugins install SOURCE`"
        );
        assert_eq!(failure.kind as u8, 5);
    }
}
