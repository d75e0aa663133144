//! The code and the remedy of each failure of the application.

use std::path::Path;

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};
use hermes_models::{PROVIDERS, ResolveError};

use crate::error::PrefillFlaw;
use crate::{AppError, codes};

/// The known provider whose name is most like one that nobody knows.
fn similar_provider(error: &ResolveError) -> Option<String> {
    let ResolveError::UnknownProvider { given, .. } = error else { return None };
    let known = PROVIDERS.iter().flat_map(|row| std::iter::once(&row.id).chain(row.aliases));
    hermes_config::most_similar(given, known.map(|name| (*name).to_owned()))
}

impl Diagnose for AppError {
    fn parts(&self) -> Parts {
        const HOME: &str = "the home folder cannot be used";
        let unusable = |file: &Path| format!("{} cannot be used", file.display());
        match self {
            Self::Config(error) => (error.code, error.what.clone().into(), error.fix.clone()),
            Self::Store(error) => error.parts(),
            Self::Resolve(error) => {
                let (code, what, fix) = error.parts();
                match similar_provider(error) {
                    Some(near) => (code, what, Fix::words(format!("did you mean `{near}`? {fix}"))),
                    None => (code, what, fix),
                }
            }
            Self::Model(error) => error.parts(),
            Self::Plugins(error) => {
                let (code, _, fix) = error.parts();
                (code, "the session cannot start".into(), fix)
            }
            Self::Install(error) => error.parts(),
            Self::Login(error) => error.parts(),
            Self::Approvals(error) => error.parts(),
            Self::Undo(error) => error.parts(),
            Self::Agent(error) => error.parts(),
            Self::NoHome => {
                (codes::HOME, HOME.into(), Fix::words("set HERMES_HOME to a folder for conversations and settings"))
            }
            Self::HomePath { .. } => {
                (codes::HOME, HOME.into(), Fix::words("set HERMES_HOME to a folder by its full path"))
            }
            Self::Rule { file, source } => (codes::SETTING, unusable(file).into(), source.parts().2),
            Self::Hook { file, source } => (source.parts().0, unusable(file).into(), source.parts().2),
            Self::UnknownRule { file, source } => (codes::SETTING, unusable(file).into(), source.parts().2),
            Self::Protected { file, .. } => (
                codes::SETTING,
                unusable(file).into(),
                Fix::words("write patterns as in .gitignore, such as `deploy/**` or `*.tf`"),
            ),
            Self::CacheTtl { file, source } => (codes::SETTING, unusable(file).into(), source.parts().2),
            Self::Dotenv { names, .. } => (
                codes::DOTENV,
                "the values were not stored".into(),
                Fix::words(format!("set {} in the environment or in .env by hand", names.join(", "))),
            ),
            Self::NoSource { name, .. } => (
                codes::NO_SOURCE,
                "nothing was changed".into(),
                Fix::words("install it from its source").or(Action::GrantPlugin { plugin: name.clone() }),
            ),
            Self::Renamed { name, .. } => (
                codes::RENAMED,
                "nothing was changed".into(),
                Fix::words(format!("remove `{name}`, and install the plugin from the source")),
            ),
            Self::SkillBlocked { name, command, .. } => (
                codes::SKILL_BLOCKED,
                format!("the skill `{name}` is refused").into(),
                Fix::words("read these lines, and ask the author of the skill")
                    .or(format!("if you trust them, accept exactly this version with `{command}`")),
            ),
            Self::SkillDigest { name, command, .. } => (
                codes::SKILL_DIGEST,
                format!("the skill `{name}` was not changed").into(),
                Fix::words("look at what is new in its source").or(format!("accept this version with `{command}`")),
            ),
            Self::NothingToAdopt { name } => (
                codes::NOTHING_TO_ADOPT,
                "nothing was changed".into(),
                Fix::words(format!("name the new source of `{name}` if the plugin has moved")),
            ),
            Self::Temporary { .. } => (
                codes::TEMPORARY,
                "the plugins cannot be examined".into(),
                Fix::words("set TMPDIR to a writable folder"),
            ),
            Self::Clock { .. } => (
                codes::CLOCK,
                "HERMES_CLOCK cannot be used".into(),
                Fix::words("unset HERMES_CLOCK").or("set it to a time such as 2026-11-22T10:00:00Z"),
            ),
            Self::Prefill { setting, flaw, .. } => (
                codes::PREFILL,
                "the prefilled messages cannot be used".into(),
                match flaw {
                    PrefillFlaw::Missing => Fix::words("create it").or(format!("correct {setting}")),
                    PrefillFlaw::Unreadable(_) => {
                        Fix::words(format!("make {setting} the path of a file that you can read"))
                    }
                    PrefillFlaw::Content(_) => Fix::words(
                        "write a JSON list of {\"role\": \"user\" or \"assistant\", \"content\": text}, alternating, with \
                         the user first and the assistant last",
                    ),
                    PrefillFlaw::NoReply => Fix::words("end the list with an assistant message"),
                },
            ),
            Self::NoSessionHere { .. } => (
                codes::NO_SESSION_HERE,
                "there is no session to continue".into(),
                Fix::words("start a new session").or(Action::ResumeListed),
            ),
            Self::RelativeWorkspace { .. } => (
                codes::RELATIVE_WORKSPACE,
                "the session cannot start".into(),
                Fix::words("name its folder by an absolute path"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use hermes_models::UnknownTtl;

    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let file = || "/h/config.yaml".into();
        let errors = [
            AppError::NoHome,
            AppError::HomePath { path: "/h".into(), source: std::io::Error::other("refused") },
            AppError::CacheTtl { file: file(), source: UnknownTtl { given: "2h".into() } },
            AppError::Dotenv {
                file: "/h/.env".into(),
                names: vec!["KEY".into()],
                source: std::io::Error::other("refused"),
            },
            AppError::NoSource { name: "mine".into(), folder: "/p".into() },
            AppError::Renamed { name: "mine".into(), now: "other".into() },
            AppError::NothingToAdopt { name: "mine".into() },
            AppError::SkillBlocked {
                name: "mine".into(),
                command: "hermes skills update mine --accept blake3:00".into(),
                found: vec!["SKILL.md, line 1".into()],
            },
            AppError::SkillDigest {
                name: "mine".into(),
                digest: "blake3:00".into(),
                accepted: vec!["blake3:11".into()],
                found: vec!["SKILL.md, line 1".into()],
                command: "hermes skills update mine --accept blake3:00".into(),
            },
            AppError::Temporary { source: std::io::Error::other("refused") },
            AppError::Clock { value: "noon".into(), why: "it has no date".into() },
            AppError::Prefill { file: file(), setting: "HERMES_PREFILL_MESSAGES_FILE", flaw: PrefillFlaw::NoReply },
            AppError::NoSessionHere { workspace: "/w".into() },
            AppError::RelativeWorkspace { workspace: "w".into() },
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
