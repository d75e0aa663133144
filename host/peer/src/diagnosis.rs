//! The code and the remedy of each failure.

use hermes_diagnostic::{Diagnose, Fix, Parts};

use crate::{PeerError, codes};

impl Diagnose for PeerError {
    fn parts(&self) -> Parts {
        const NOTHING: &str = "nothing was imported";
        match self {
            Self::SameHome { named: true, .. } => (
                codes::SAME_HOME,
                NOTHING.into(),
                Fix::words("name the folder in which Hermes Agent keeps its data, such as ~/.hermes"),
            ),
            Self::SameHome { named: false, .. } => (
                codes::SAME_HOME,
                NOTHING.into(),
                Fix::words("set HERMES_HOME to a folder of this program's own, such as ~/.hermes-home")
                    .or("name the folder of Hermes Agent"),
            ),
            Self::OwnKind { .. } => (
                codes::NO_PEER,
                NOTHING.into(),
                Fix::words(
                    "move sessions with `hermes sessions export` and `import`, and notes with `hermes memory export`",
                ),
            ),
            Self::NoPeer { .. } => {
                (codes::NO_PEER, NOTHING.into(), Fix::words("name the folder in which Hermes Agent keeps its data"))
            }
            Self::Unreadable { .. } => (
                codes::UNREADABLE,
                NOTHING.into(),
                Fix::words("name the folder in which Hermes Agent keeps its data, and make it readable"),
            ),
            Self::NoHome => (codes::NO_PEER, NOTHING.into(), Fix::words("name the folder of Hermes Agent")),
            Self::Temporary { .. } => (
                codes::TEMPORARY,
                NOTHING.into(),
                Fix::words("make room in the temporary folder").or("set TMPDIR to a folder with room"),
            ),
            Self::Store(error) => error.parts(),
            Self::App(error) => error.parts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let path = || "/h".into();
        let errors = [
            PeerError::SameHome { path: path(), named: true },
            PeerError::SameHome { path: path(), named: false },
            PeerError::OwnKind { path: path() },
            PeerError::NoPeer { path: path() },
            PeerError::NoHome,
            PeerError::Unreadable { path: path(), source: Error::other("refused") },
            PeerError::Temporary { source: Error::other("full") },
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
