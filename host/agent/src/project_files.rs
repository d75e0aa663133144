//! The project's files as a session follows them: as they were before a program of others started.
//!
//! Servers of tools, hooks and programs of plugins may write into the workspace. What they put into `AGENTS.md` is not the user's, so
//! the files are read before such a program starts, and what differs later is named and not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hermes_mcp::Endpoint;
use hermes_prompt::files::{self, Project};

use crate::approval::Listed;
use crate::host::Host;

/// The most entries of the workspace that are looked at.
const MOST: usize = 10_000;

/// The files of a session and of those that work for it. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectFiles(Arc<Mutex<Option<Before>>>);

#[derive(Debug)]
struct Before {
    workspace: PathBuf,
    /// How many characters a file may have.
    limit: usize,
    project: Project,
    /// The entries of the workspace that start programs or instruct agents, and why they are on the list.
    listed: BTreeMap<PathBuf, String>,
    /// Whether programs run beside the session from now on.
    is_beside_programs: bool,
    since: SystemTime,
}

/// When a prompt is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// When a session begins or is opened.
    Opening,
    /// At a compaction, which nobody asked for.
    Compaction,
    /// When the user asks for it, and so for the files as they are.
    Asked,
}

impl ProjectFiles {
    /// Reads them. Call it before a program of others starts. Where programs of servers have run since an earlier call, the files of
    /// that call count.
    pub(crate) fn read(&self, host: &Host, workspace: &Path, limit: usize) {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if before.as_ref().is_some_and(|known| known.is_beside_programs && known.workspace == workspace) {
            return;
        }
        let is_program = |server: &hermes_mcp::ServerDefinition| matches!(server.endpoint, Endpoint::Program(_));
        *before = Some(Before {
            workspace: workspace.to_owned(),
            limit,
            project: files::project(workspace, limit),
            listed: listed(workspace, &host.approvals.listed),
            is_beside_programs: host.settings.mcp.iter().any(is_program),
            since: SystemTime::now(),
        });
    }

    /// Since when programs of servers run beside the session, if there are any.
    pub(crate) fn beside_programs_since(&self) -> Option<SystemTime> {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        before.as_ref().filter(|known| known.is_beside_programs).map(|known| known.since)
    }

    /// The files for a prompt, and lines about what appeared or changed since they were read.
    pub(crate) fn follow(&self, host: &Host, workspace: &Path, limit: usize, moment: Moment) -> (Project, Vec<String>) {
        let now = files::project(workspace, limit);
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = before.as_mut().filter(|known| known.workspace == workspace) else {
            return (now, Vec::new());
        };
        if moment == Moment::Asked {
            known.project = now.clone();
            known.limit = limit;
            return (now, Vec::new());
        }
        if moment == Moment::Compaction && !known.is_beside_programs {
            return (now, Vec::new());
        }
        let mut lines = Vec::new();
        // Texts that are cut in another place cannot be compared.
        let changed = if known.limit == limit { differing(&known.project, &now) } else { Vec::new() };
        if !changed.is_empty() {
            lines.push(format!(
                "{} appeared or changed after programs of servers, hooks or plugins were started, and one of them may have written it: this \
                 session follows what was there before. Look at it before you use it: a later session takes it as yours, and so does \
                 a rebuild of the prompt (`hermes prompt --rebuild`)",
                changed.join(", ")
            ));
        }
        for (path, why) in listed(workspace, &host.approvals.listed) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !known.listed.contains_key(&path) && !changed.contains(&name) {
                lines.push(format!(
                    "{:?} appeared after programs of servers, hooks or plugins were started: look at it, because {why}",
                    path.display().to_string()
                ));
                known.listed.insert(path, why);
            }
        }
        (known.project.clone(), lines)
    }
}

/// The names of the files that are not the same in both, imported ones too. A file is not named if only what it imports differs.
fn differing(before: &Project, now: &Project) -> Vec<String> {
    let missing = |from: &Project, of: &Project| -> Vec<String> {
        let files = of.files.iter().filter(|file| !from.files.contains(file)).map(|file| file.name().to_owned());
        let texts = of.texts.iter().filter(|text| !from.texts.contains(text)).map(|(name, _)| name.clone());
        files.chain(texts).collect()
    };
    let has_same_text = |name: &String| {
        let mut own = before.texts.iter().filter(|(known, _)| known == name);
        own.any(|text| now.texts.contains(text))
    };
    let mut names = missing(before, now);
    names.extend(missing(now, before));
    names.sort();
    names.dedup();
    match names.iter().all(has_same_text) {
        true => names,
        false => names.into_iter().filter(|name| !has_same_text(name)).collect(),
    }
}

/// The entries of a folder that start programs or instruct agents.
fn listed(workspace: &Path, listed: &Listed) -> BTreeMap<PathBuf, String> {
    let entries = std::fs::read_dir(workspace).into_iter().flatten().flatten().take(MOST);
    let reason = |path: &Path| {
        let of_folder = || listed.of_file(&path.join("file"));
        listed.of_file(path).or_else(of_folder).map(|entry| entry.reason.to_string())
    };
    entries.filter_map(|entry| Some((entry.path(), reason(&entry.path())?))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_imported_file_is_named_whose_text_changed() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let read = || files::project(folder.path(), 10_000);
        put("AGENTS.md", "Use tabs. @rules.md @later.md");
        put("rules.md", "Be kind.");
        let before = read();
        assert_eq!(differing(&before, &read()), Vec::<String>::new());
        put("rules.md", "Be quick.");
        assert_eq!(differing(&before, &read()), ["rules.md"]);
        put("later.md", "Hello.");
        assert_eq!(differing(&before, &read()), ["later.md", "rules.md"]);
        put("AGENTS.md", "Use blanks. @rules.md");
        assert_eq!(differing(&before, &read()), ["AGENTS.md", "rules.md"]);
    }
}
