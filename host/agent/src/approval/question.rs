//! Changes of files and runs of programs, in the form in which a question shows them.

use hermes_capabilities::files::{Change, Concern, Deed};
use hermes_capabilities::process::{Confinement, Run};
use hermes_protocol::{FileChange, FileDeed, ProgramRun};

use super::code;
use crate::difference::changed_lines;

/// What the user sees of a change.
pub(crate) fn file_change(change: &Change) -> FileChange {
    let deed = match &change.deed {
        Deed::Create(bytes) => {
            let (content, binary) = shown(bytes);
            FileDeed::Create { bytes: bytes.len() as u64, content, binary }
        }
        Deed::Replace { size, content: bytes } => {
            let (content, binary) = shown(bytes);
            FileDeed::Replace { before: *size, bytes: bytes.len() as u64, content, binary }
        }
        Deed::Rename { to, content } => {
            let bytes = content.as_ref().map(|bytes| bytes.len() as u64);
            let (content, binary) = content.as_deref().map(shown).unwrap_or_default();
            FileDeed::Rename { to: to.display().to_string(), bytes, content, binary }
        }
        Deed::Remove => FileDeed::Remove,
    };
    let because = |concern: &Concern| match concern {
        Concern::Listed { path, pattern, reason, .. } if *path == change.path => format!("{reason} ({pattern})"),
        Concern::Listed { path, pattern, reason, .. } => format!("{}: {reason} ({pattern})", path.display()),
        Concern::Unread { path, .. } if *path == change.path => {
            "the session has not read what the file contains now".to_owned()
        }
        Concern::Unread { path, .. } => {
            format!("the session has not read what files in it contain now, such as {}", path.display())
        }
        Concern::Edit { .. } => "the mode `ask` asks before every change".to_owned(),
    };
    let edit = change.concerns.iter().find_map(|concern| match concern {
        Concern::Edit { before, .. } => Some(before.as_deref()),
        Concern::Listed { .. } | Concern::Unread { .. } => None,
    });
    FileChange {
        path: change.path.display().to_string(),
        deed,
        because: change.concerns.iter().map(because).collect(),
        lines: edit.and_then(|before| lines(before, &change.deed)),
        is_ordinary: edit.is_some(),
    }
}

/// The changed lines of a text.
fn lines(before: Option<&[u8]>, deed: &Deed) -> Option<Vec<String>> {
    let (before, after) = match deed {
        Deed::Create(after) => ("", std::str::from_utf8(after).ok()?),
        Deed::Replace { content, .. } => (std::str::from_utf8(before?).ok()?, std::str::from_utf8(content).ok()?),
        Deed::Rename { .. } | Deed::Remove => return None,
    };
    Some(changed_lines(before, after))
}

/// Bytes as text, or with escapes if they are no text, so that the user can view all of them.
fn shown(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(bytes.escape_ascii().to_string())),
    }
}

/// What the user sees of a run.
pub(crate) fn program_run(run: &Run) -> ProgramRun {
    let (input, binary_input) = shown(&run.input);
    ProgramRun {
        program: run.program.clone(),
        path: run.path.display().to_string(),
        real: run.real.display().to_string(),
        arguments: run.arguments.clone(),
        folder: run.folder.display().to_string(),
        input_bytes: run.input.len(),
        input,
        binary_input,
        variables: run.variables.clone(),
        inherited: run.inherited.clone(),
        pinned: run.pin.is_some(),
        background: run.background,
        exact: code::runs_its_arguments(run),
        unconfined: match &run.confinement {
            Confinement::Unavailable(why) => Some(why.clone()),
            Confinement::Off | Confinement::Confined(_) => None,
        },
        network: matches!(&run.confinement, Confinement::Confined(sandbox) if sandbox.has_network()),
        pattern: None,
        rule: None,
    }
}
