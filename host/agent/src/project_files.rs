//! The project's files as a session follows them: as they were before a program of others started.
//!
//! Servers of tools, hooks and programs of plugins may write into the workspace. What they put into `AGENTS.md` is not the user's, so
//! the files are read before such a program starts, and what differs later is named and not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hermes_mcp::{Endpoint, ServerDefinition};
use hermes_prompt::files::{self, Project};
use hermes_session_store::SessionStore;

use crate::approval::Listed;

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
    /// Whether servers run as programs beside the session since the files were read.
    is_beside_programs: bool,
    since: SystemTime,
}

/// When a prompt is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// When a session begins or is opened.
    Opening,
    /// At a compaction. The user did not ask for a new prompt.
    Compaction,
    /// The user asks for a new prompt, and so accepts the files as they are now.
    Asked,
}

impl ProjectFiles {
    /// Reads them. Call it before a program of others starts. Where programs of servers have run since an earlier call, the files of
    /// that call count.
    pub(crate) fn read(&self, protected: &Listed, servers: &[ServerDefinition], workspace: &Path, limit: usize) {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if before.as_ref().is_some_and(|known| known.is_beside_programs && known.workspace == workspace) {
            return;
        }
        let is_program = |server: &hermes_mcp::ServerDefinition| matches!(server.endpoint, Endpoint::Program(_));
        *before = Some(Before {
            workspace: workspace.to_owned(),
            limit,
            project: files::project(workspace, limit),
            listed: listed(workspace, protected),
            is_beside_programs: servers.iter().any(is_program),
            since: SystemTime::now(),
        });
    }

    /// Since when programs of servers run beside the session, if there are any.
    pub(crate) fn beside_programs_since(&self) -> Option<SystemTime> {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        before.as_ref().filter(|known| known.is_beside_programs).map(|known| known.since)
    }

    /// The files for a prompt, and lines about what appeared or changed since they were read.
    pub(crate) fn follow(
        &self,
        protected: &Listed,
        workspace: &Path,
        limit: usize,
        moment: Moment,
    ) -> (Project, Vec<String>) {
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
        for (path, why) in listed(workspace, protected) {
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

/// Protects the files that context files of a workspace import, as instructions: from plugins, and from the programs of servers. It is
/// done for the folder of each session, because a resumed one can work in another folder than the front end.
pub(crate) fn protect_imports(protected: &mut Arc<Listed>, servers: &mut [ServerDefinition], workspace: &Path) {
    let Project { imported, awaited, .. } = files::project(workspace, usize::MAX);
    let imported: Vec<PathBuf> = imported.into_iter().chain(awaited).chain(files::imported_below(workspace)).collect();
    match protected.importing(&imported) {
        Ok(listed) => *protected = Arc::new(listed),
        Err(error) => tracing::warn!(%error, "imported context files are not protected"),
    }
    for server in servers {
        if let Endpoint::Program(program) = &mut server.endpoint {
            program.confinement.imported.clone_from(&imported);
        }
    }
}

/// A notice of the files that changed since the last new session in this workspace. Stores the present texts for the next
/// comparison.
pub(crate) async fn changed_since_last(
    store: &dyn SessionStore,
    workspace: &Path,
    texts: &[(String, String)],
) -> Option<hermes_prompt::Notice> {
    let name = format!("context files {}", blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex());
    let digest = |text: &String| blake3::hash(text.as_bytes()).to_hex().to_string();
    let now: BTreeMap<String, String> = texts.iter().map(|(name, text)| (name.clone(), digest(text))).collect();
    let known = store.note(&name).await.ok().flatten();
    let known: Option<BTreeMap<String, String>> = known.and_then(|note| serde_json::from_str(&note).ok());
    if known.as_ref() == Some(&now) {
        return None;
    }
    if let Err(error) = store.set_note(&name, Some(&serde_json::json!(now).to_string())).await {
        tracing::warn!(%error, "the user will not learn which context files change");
    }
    // The first session here has nothing to compare with.
    let known = known?;
    let names: Vec<String> =
        now.into_iter().filter(|(name, digest)| known.get(name) != Some(digest)).map(|(name, _)| name).collect();
    (!names.is_empty()).then_some(hermes_prompt::Notice::Changed { names })
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

    #[tokio::test]
    async fn a_change_between_two_sessions_is_named_once() {
        let home = tempfile::tempdir().unwrap();
        let store = hermes_store::Store::open(home.path()).unwrap();
        let store = hermes_store::SqliteSessions::new(Arc::new(store));
        let texts =
            |agents: &str| vec![("AGENTS.md".to_owned(), agents.to_owned()), ("a.md".to_owned(), "a".to_owned())];
        for (folder, agents, expected) in [
            ("/one", "Use tabs.", None),
            ("/one", "Use tabs.", None),
            ("/one", "Use blanks.", Some("AGENTS.md changed since")),
            ("/one", "Use blanks.", None),
            ("/two", "Use blanks.", None),
        ] {
            let notice = changed_since_last(&store, Path::new(folder), &texts(agents)).await.map(|it| it.to_string());
            assert!(notice.as_deref().unwrap_or_default().starts_with(expected.unwrap_or_default()), "{notice:?}");
            assert_eq!(notice.is_some(), expected.is_some(), "{agents} {notice:?}");
        }
    }

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
