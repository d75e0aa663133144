//! Sessions that came from somebody's file: nothing that the file decides is used unless the user accepted it.
//!
//! Such a session has [`Session::imported`] until it is resumed. Then it either keeps the folder and the system prompt of
//! the file, or it works in the current folder with a prompt of its own.

use std::path::Path;

use hermes_prompt::scan::{self, Scope};
use hermes_session_store::{Frozen, Session};

/// What the user accepts of an imported session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptedParts {
    /// The folder that the file names.
    pub folder: bool,
    /// The system prompt and the tools of the file.
    pub prompt: bool,
}

/// The rules of the scan for injected instructions that a stored prompt or its tools violate. Such a prompt of a file is
/// never used.
pub fn suspicions(frozen: &Frozen) -> Vec<String> {
    let mut found = scan::findings(&frozen.system_prompt, Scope::Context);
    match serde_json::from_str::<serde_json::Value>(&frozen.tools) {
        Ok(tools) => {
            found.extend(scan::json_findings(&tools, Scope::Context));
            // The scan reads one of the values, and the model's server perhaps the other.
            found.extend(scan::has_repeated_member(&frozen.tools).then(|| "repeated_member".to_owned()));
        }
        Err(_) => found.extend(scan::findings(&frozen.tools, Scope::Context)),
    }
    found.into_iter().collect()
}

/// The session as it is used: without what the user did not accept. A session of the user's own is unchanged.
pub(crate) fn as_accepted(mut session: Session, accepted: AcceptedParts, workspace: &Path) -> Session {
    if !session.imported {
        return session;
    }
    // A relative path would be another folder each time.
    if !accepted.folder || !session.workspace.is_absolute() {
        session.workspace = workspace.to_owned();
    }
    if !accepted.prompt || session.frozen.as_ref().is_some_and(|frozen| !suspicions(frozen).is_empty()) {
        session.frozen = None;
    }
    session
}

/// For the user: what is used instead of what the file decides. `None` if everything of the file is used.
pub(crate) fn notice(of_file: &Session, used: &Session, accepted: AcceptedParts) -> Option<String> {
    let mut left_out = Vec::new();
    if used.workspace != of_file.workspace {
        left_out.push(format!("its folder {}", of_file.workspace.display()));
    }
    if let Some(frozen) = of_file.frozen.as_ref().filter(|_| used.frozen.is_none()) {
        let suspicions = suspicions(frozen);
        left_out.push(match accepted.prompt && !suspicions.is_empty() {
            true => format!(
                "its system prompt, in which the scan for injected instructions found {}",
                suspicions.join(", ")
            ),
            false => "its system prompt".to_owned(),
        });
    }
    let prompt = if used.frozen.is_some() { "the system prompt of the file" } else { "a new system prompt" };
    (!left_out.is_empty()).then(|| {
        format!(
            "this session was imported from a file; it continues in {} with {prompt}; not used: {}",
            used.workspace.display(),
            left_out.join(", and ")
        )
    })
}
