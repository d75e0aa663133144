//! Files of other programs that have no recording which can be read: what they are, for the error.

use std::fs;
use std::path::{Path, PathBuf};

use super::records::Records;

/// What a file is by its name, if its content cannot say so.
pub(super) fn named(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_history = name == ".aider.chat.history.md" || name == ".aider.input.history";
    is_history.then(|| "it is the history of aider, which has no tool calls".to_owned())
}

/// What a file is that cannot be read, but is known.
pub(super) fn known(records: &Records) -> Option<&'static str> {
    let has = |name: &str| records.iter().take(super::MOST_LOOKED_AT).any(|record| record.value.get(name).is_some());
    let kind = |start: &str| {
        let mut kinds = records.iter().take(super::MOST_LOOKED_AT).filter_map(|record| record.value["type"].as_str());
        kinds.any(|kind| kind.starts_with(start))
    };
    if kind("session.") && has("data") {
        Some("it is a session of Copilot CLI, whose format is not read")
    } else if has("jsonrpc") || has("dir") && has("msg") {
        Some("it is an exchange of a protocol, not a session")
    } else if has("session_id") && has("messages_path") {
        Some(
            "it describes a session of Cline; its messages are in the file beside it whose name ends in .messages.json",
        )
    } else if has("agentType") || has("subagent_type") {
        Some("it describes a subagent, whose messages are in the file beside it")
    } else {
        None
    }
}

/// A file in a folder that is probably a recording: the newest.
pub(super) fn session_in(folder: &Path) -> Option<PathBuf> {
    /// Enough for the folders of all agents.
    const DEEPEST: usize = 5;
    const MOST: usize = 20_000;
    let mut found: Option<(std::time::SystemTime, PathBuf)> = None;
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            let (Ok(kind), path) = (entry.file_type(), entry.path()) else { continue };
            if seen > MOST {
                break;
            }
            if kind.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_session = name.ends_with(".jsonl") || name.ends_with(".messages.json") || name == "opencode.db";
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            if let Ok(changed) = changed
                && kind.is_file()
                && is_session
                && found.as_ref().is_none_or(|(newest, other)| (changed, &path) > (*newest, other))
            {
                found = Some((changed, path));
            }
        }
    }
    found.map(|(_, path)| path)
}
