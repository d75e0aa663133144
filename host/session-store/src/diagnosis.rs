//! Codes and remedies for the rules that a store enforces.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::{ImportProblem, SessionError, StoreError, TransferError};

hermes_diagnostic::codes! {
    /// The codes of the rules about sessions.
    pub mod codes {
        UNKNOWN_SESSION = "store.unknown-session", Category::General, "no session has this id or title";
        AMBIGUOUS_SESSION = "store.ambiguous-session", Category::General, "several sessions begin with this id";
        IN_USE = "store.in-use", Category::InUse, "another process is working on the session";
        HAS_CHILDREN = "store.has-children", Category::General, "other sessions continue the one to be deleted";
        NO_SUCH_MESSAGE = "store.no-such-message", Category::General, "the message is not part of the session";
        NOT_FROM_USER = "store.not-from-user", Category::Store, "a rewind must begin at a message of the user";
        NOTHING_REWOUND = "store.nothing-rewound", Category::Store, "there is no rewind to undo";
        NEWER_MESSAGES = "store.newer-messages", Category::Store, "messages were added since the rewind";
        SUMMARY_CHANGED = "store.summary-changed", Category::Store, "a summary key was used for another text";
        SYSTEM_MESSAGE = "store.system-message", Category::Store, "a system message cannot be part of a conversation";
        TITLE_TOO_LONG = "store.title-too-long", Category::General, "a title is too long";
        TITLE_TAKEN = "store.title-taken", Category::General, "another session has the title";
        WORKSPACE_NAME = "store.workspace-name", Category::Store, "the path of the workspace is not valid Unicode";
        OUTPUT = "store.output", Category::General, "an export cannot be written";
        INPUT = "store.input", Category::General, "an import file cannot be read";
        IMPORT = "store.import", Category::General, "an import file is not an export of Hermes";
        IMPORT_STOPPED = "store.import-stopped", Category::Store, "an import stopped in the middle";
    }
}

impl Diagnose for StoreError {
    fn parts(&self) -> Parts {
        match self {
            Self::Session(error) => error.parts(),
            Self::Transfer(error) => error.parts(),
            Self::Unusable(error) | Self::Failed(error) => error.parts(),
        }
    }
}

impl Diagnose for SessionError {
    fn parts(&self) -> Parts {
        const OPEN: &str = "the session cannot be opened";
        const STORE: &str = "the conversations cannot be stored";
        const REWIND: &str = "the session cannot be rewound";
        const TITLE: &str = "the session cannot have this title";
        let (code, what, fix) = match self {
            Self::UnknownSession(_) => (codes::UNKNOWN_SESSION, OPEN, Action::ListSessions.into()),
            Self::AmbiguousSession { .. } => (codes::AMBIGUOUS_SESSION, OPEN, Fix::words("give more of the id")),
            Self::InUse { .. } => (codes::IN_USE, OPEN, Fix::words("close that one first").or(Action::BranchSession)),
            Self::HasChildren { .. } => {
                (codes::HAS_CHILDREN, "the session cannot be deleted", Action::DeleteWithChildren.into())
            }
            Self::NoSuchMessage { session, .. } => (
                codes::NO_SUCH_MESSAGE,
                "the message cannot be found",
                Action::ShowSession { session: session.to_string() }.into(),
            ),
            Self::NotTheUsers { .. } => {
                (codes::NOT_FROM_USER, REWIND, Fix::words("take back a message of the user, with all that follows it"))
            }
            Self::NothingRewound(_) => (
                codes::NOTHING_REWOUND,
                "the rewind cannot be undone",
                Fix::words("continue with the conversation as it is"),
            ),
            Self::SaidSince { .. } => {
                (codes::NEWER_MESSAGES, "the rewind cannot be undone", Fix::words("take the newer messages back first"))
            }
            Self::SummaryChanged { .. } => {
                (codes::SUMMARY_CHANGED, STORE, Fix::words("use a new key for a new summary"))
            }
            Self::SystemMessage => {
                (codes::SYSTEM_MESSAGE, STORE, Fix::words("leave out system messages, which belong to the prompt"))
            }
            Self::TitleTooLong { .. } => (codes::TITLE_TOO_LONG, TITLE, Fix::words("choose a shorter title")),
            Self::TitleTaken { .. } => (codes::TITLE_TAKEN, TITLE, Fix::words("choose the free title, or another one")),
            Self::WorkspaceName(_) => (
                codes::WORKSPACE_NAME,
                "the session cannot be stored",
                Fix::words("start from a folder whose name is valid Unicode"),
            ),
        };
        (code, what.into(), fix)
    }
}

impl Diagnose for TransferError {
    fn parts(&self) -> Parts {
        const TRANSFER: &str = "the sessions cannot be transferred";
        let (code, what, fix) = match self {
            Self::Output(_) => (codes::OUTPUT, TRANSFER, Fix::words("check the destination")),
            Self::Input(_) => (codes::INPUT, TRANSFER, Fix::words("check that the file exists and can be read")),
            Self::Import { problem, line } => {
                let again = || Fix::words("export the sessions again");
                let fix = match problem {
                    ImportProblem::Newer { .. } => Fix::words("update Hermes"),
                    ImportProblem::Empty | ImportProblem::NoHeader => {
                        Fix::words("give a file that was exported from Hermes")
                    }
                    ImportProblem::CutOff | ImportProblem::Counts { .. } => again(),
                    ImportProblem::Record(_) => again().or(format!("correct line {line}")),
                };
                (codes::IMPORT, "the file cannot be imported", fix)
            }
            Self::ImportStopped { source, .. } => {
                let (_, _, own) = source.parts();
                let then = "import the file again, which continues with the other sessions";
                let fix = if own.is_empty() { Fix::words(then) } else { Fix::words(format!("{own}; then {then}")) };
                (codes::IMPORT_STOPPED, "the file was imported only in part", fix)
            }
        };
        (code, what.into(), fix)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use hermes_conversation::{MessageId, SessionId};

    use super::*;
    use crate::AdapterError;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let text = || "fix; mallory".to_owned();
        let session = || SessionId("s".into());
        let errors = [
            SessionError::UnknownSession(text()),
            SessionError::AmbiguousSession { prefix: text(), candidates: vec![session()] },
            SessionError::InUse { session: session(), pid: Some(7) },
            SessionError::HasChildren { session: session(), children: vec![session()] },
            SessionError::NoSuchMessage { session: session(), message: MessageId(1) },
            SessionError::NotTheUsers { session: session(), message: MessageId(1) },
            SessionError::NothingRewound(session()),
            SessionError::SaidSince { session: session(), message: MessageId(1) },
            SessionError::SummaryChanged { session: session(), key: text() },
            SessionError::SystemMessage,
            SessionError::TitleTooLong { length: 300, most: 200 },
            SessionError::TitleTaken { title: text(), holder: session(), free: text() },
            SessionError::WorkspaceName("/home/ada; mallory/x".into()),
        ];
        let cause = || io::Error::other(text());
        let transfers = [
            TransferError::Output(cause()),
            TransferError::Input(cause()),
            TransferError::Import { line: 1, problem: ImportProblem::Record(text()) },
            TransferError::ImportStopped { stored: 1, source: AdapterError::new(TransferError::Input(cause())) },
        ];
        let diagnostics = errors.iter().map(Diagnose::diagnose).chain(transfers.iter().map(Diagnose::diagnose));
        let diagnostics: Vec<_> = diagnostics.collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
        for diagnostic in diagnostics {
            assert!(!diagnostic.fix.to_string().contains("mallory"), "{diagnostic:?}");
        }
    }
}
