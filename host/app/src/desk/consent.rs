//! What the file of an imported session decides, for the user who accepts it or not.

use std::path::{Path, PathBuf};

use hermes_agent::suspicions;
use hermes_conversation::SessionId;
use hermes_session_store::{Frozen, Session};

/// A session from somebody's file that waits for the user's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSession {
    /// Its id.
    pub id: SessionId,
    /// The folder that the file names.
    pub workspace: PathBuf,
    /// What is at that path on this machine.
    pub folder: ImportedFolder,
    /// The system prompt of the file, if it has one.
    pub prompt: Option<String>,
    /// The tools of the file, as JSON.
    pub tools: String,
    /// The rules of the scan for injected instructions that prompt or tools violate. Such a prompt is never used.
    pub suspicions: Vec<String>,
}

/// What is at the path of an imported session's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedFolder {
    /// The path is relative, so it is never used.
    Relative,
    /// Something that is not a folder.
    NoFolder,
    /// The folder itself.
    Exists,
    /// A link, or a path with links, to this folder.
    LeadsTo(PathBuf),
    /// Nothing.
    Missing,
}

impl ImportedSession {
    /// Describes a stored session.
    pub fn of(session: &Session) -> Self {
        let Frozen { system_prompt, tools, .. } = session.frozen.clone().unwrap_or_default();
        Self {
            id: session.id.clone(),
            workspace: session.workspace.clone(),
            folder: folder(&session.workspace),
            prompt: session.frozen.is_some().then_some(system_prompt),
            tools,
            suspicions: session.frozen.as_ref().map(suspicions).unwrap_or_default(),
        }
    }

    /// Whether the user can accept the prompt.
    pub fn can_use_prompt(&self) -> bool {
        self.prompt.is_some() && self.suspicions.is_empty()
    }

    /// The names of the tools.
    pub fn tool_names(&self) -> Vec<String> {
        let tools: serde_json::Value = serde_json::from_str(&self.tools).unwrap_or_default();
        let tools = tools.as_array().into_iter().flatten();
        tools.filter_map(|tool| tool.pointer("/function/name")?.as_str().map(str::to_owned)).collect()
    }
}

fn folder(path: &Path) -> ImportedFolder {
    match std::fs::canonicalize(path) {
        _ if !path.is_absolute() => ImportedFolder::Relative,
        Ok(real) if !real.is_dir() => ImportedFolder::NoFolder,
        Ok(real) if real == *path => ImportedFolder::Exists,
        Ok(real) => ImportedFolder::LeadsTo(real),
        Err(_) => ImportedFolder::Missing,
    }
}
