//! The code and the remedy of each failure.

use hermes_diagnostic::{Diagnose, Fix, Parts};

use crate::{PeerError, Usable, codes};

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
            Self::OtherAgent(usable) => (codes::OTHER_AGENT, NOTHING.into(), what_can_be_done(usable)),
            Self::Unreadable { .. } => (
                codes::UNREADABLE,
                NOTHING.into(),
                Fix::words("name the folder in which Hermes Agent keeps its data, and make it readable"),
            ),
            Self::NotWritten { .. } => (
                codes::NOT_WRITTEN,
                "the import did not end".into(),
                Fix::words("make room, and make the file writable; then import again"),
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

/// What the user can take of another agent by other commands.
fn what_can_be_done(usable: &Usable) -> Fix {
    let skills = match &usable.skills {
        Some((skill, 1)) => format!("install its skill with `hermes skills install {}`", skill.display()),
        Some((skill, count)) => {
            format!("install its {count} skills one by one, as in `hermes skills install {}`", skill.display())
        }
        None => "install a skill of it with `hermes skills install FOLDER`".to_owned(),
    };
    Fix::words(skills)
        .or("add its MCP servers with `hermes mcp add`")
        .or("measure engines on its sessions with `hermes lab replay FILE`")
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
            PeerError::OtherAgent(Usable { agent: "pi", folder: path(), skills: Some((path(), 2)) }),
            PeerError::NotWritten { path: path(), source: Error::other("full") },
            PeerError::Unreadable { path: path(), source: Error::other("refused") },
            PeerError::Temporary { source: Error::other("full") },
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
