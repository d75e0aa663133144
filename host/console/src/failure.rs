//! Failures on the terminal: what failed, why, what to do, the code, and the exit code for scripts.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::process::ExitCode;

use hermes_app::AppError;
use hermes_app::sessions::StoreError;
use hermes_diagnostic::{Category, Code, Diagnose as _, Diagnostic, Fix};
use hermes_protocol::{CommandError, Problem, one_line};

use crate::wording;

/// Exit codes by kind of failure; `docs/use/exit-codes.md` has the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
pub struct Failure {
    /// The kind, which decides the exit code.
    pub kind: Kind,
    /// Stable; `docs/use/errors.md` lists all.
    pub code: Cow<'static, str>,
    /// What failed.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do.
    pub fix: String,
}

impl Failure {
    /// A failure with the code of its kind.
    pub fn new(kind: Kind, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        let code = Code::from(Category::from(kind)).name().into();
        Self { kind, code, what: what.into(), why: why.into(), fix: fix.into() }
    }

    /// A failure whose remedy names commands instead of actions.
    fn worded(category: Category, code: Cow<'static, str>, what: String, why: String, fix: &Fix) -> Self {
        let fix =
            if fix.is_empty() { "run `hermes doctor` to see what is wrong".to_owned() } else { wording::fix(fix) };
        Self { kind: category.into(), code, what, why, fix }
    }

    /// The three lines, without colour. Line breaks in a text become spaces.
    pub fn lines(&self) -> [(&'static str, String); 3] {
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

impl From<Kind> for Category {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::ReaderGone => Self::ReaderGone,
            Kind::General => Self::General,
            Kind::Usage => Self::Usage,
            Kind::Configuration => Self::Configuration,
            Kind::Model => Self::Model,
            Kind::Plugin => Self::Plugin,
            Kind::Store => Self::Store,
            Kind::InUse => Self::InUse,
            Kind::Budget => Self::Budget,
            Kind::Cut => Self::Cut,
            Kind::Interrupted => Self::Interrupted,
        }
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

diagnosed!(AppError, StoreError);

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

/// An output that cannot be written. A reader that closed it is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::ReaderGone, "the output is incomplete", "its reader closed it", "read all of it");
        }
        Self::new(
            Kind::General,
            "the output cannot be written",
            error.to_string(),
            "check the destination of the output",
        )
    }
}

#[cfg(test)]
mod tests {
    use hermes_diagnostic::Action;

    use super::*;

    #[test]
    fn a_remedy_names_commands_and_options_of_the_program() {
        let in_use = Diagnostic::new(
            Category::InUse.into(),
            "the session cannot be opened",
            "it is open",
            Action::BranchSession,
        );
        let failure = Failure::from(in_use);
        assert_eq!((failure.kind, failure.code.as_ref()), (Kind::InUse, "cli.in-use"));
        assert_eq!(failure.fix, "continue in a copy with `--branch`");
        let fix = Fix::words("choose compressor (context.engine)").or(Action::InstallPlugin);
        let missing =
            Failure::from(Diagnostic::new(Category::Plugin.into(), "no engine", "there is no engine `nope`", fix));
        assert_eq!(
            missing.fix,
            "choose compressor (context.engine), or install one with `hermes plugins install SOURCE`"
        );
        assert_eq!(missing.kind as u8, 5);
    }

    #[test]
    fn line_breaks_in_a_cause_become_spaces() {
        let failure = Failure::new(Kind::General, "a\nb", "c\r\n d", "e");
        assert_eq!(failure.lines().map(|(_, text)| text), ["a b", "c d", "e"]);
    }
}
