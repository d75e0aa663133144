//! The project's context files. Only the first kind that exists is used.

use std::path::{Path, PathBuf};

use super::reading::{Folder, is_missing, unreadable};
use super::{ContextFile, READ_ON, fitted};
use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::{shape, wording};

const OWN: [&str; 2] = [".hermes.md", "HERMES.md"];
const SHARED: [&str; 4] = ["AGENTS.md", "agents.md", "CLAUDE.md", "claude.md"];
const CURSOR: &str = ".cursorrules";
const CURSOR_RULES: &str = ".cursor/rules";
/// Most rule files. A larger folder is not meant to be read in full in every session.
const MOST_RULES: usize = 128;

/// The project files that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The files in the order of the prompt.
    pub files: Vec<ContextFile>,
    /// Notices about them.
    pub notices: Vec<Notice>,
}

/// Reads the context files of a workspace, each up to `limit` characters.
///
/// The order is: `.hermes.md` or `HERMES.md` (from the workspace up to the root of its git repository), `AGENTS.md`, `CLAUDE.md`,
/// and `.cursorrules` with the rules in `.cursor/rules`.
pub fn project(workspace: &Path, limit: usize) -> Project {
    let mut search = match Search::new(workspace, limit) {
        Ok(search) => search,
        Err(error) => {
            return Project { files: Vec::new(), notices: vec![unreadable(&wording::shown(workspace), &error)] };
        }
    };
    let found = search.own().or_else(|| search.shared()).or_else(|| search.cursor());
    Project { files: found.into_iter().collect(), notices: search.notices }
}

struct Search {
    /// Canonical path.
    workspace: PathBuf,
    /// Links may lead anywhere inside: the repository, or the workspace.
    root: Folder,
    limit: usize,
    notices: Vec<Notice>,
}

impl Search {
    fn new(workspace: &Path, limit: usize) -> std::io::Result<Self> {
        let workspace = workspace.canonicalize()?;
        let root = Folder::open(repository(&workspace).unwrap_or(&workspace))?;
        Ok(Self { workspace, root, limit, notices: Vec::new() })
    }

    fn own(&mut self) -> Option<ContextFile> {
        let root = self.root.path().to_owned();
        let up_to_root: Vec<PathBuf> =
            self.workspace.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_owned).collect();
        for folder in up_to_root {
            for name in OWN {
                let file = folder.join(name);
                if let Some(text) = self.text(&file) {
                    let (body, lines) = shape::without_front_matter(&text);
                    if let Some(found) = self.prepared(&file, body, lines + 1) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    fn shared(&mut self) -> Option<ContextFile> {
        SHARED.into_iter().find_map(|name| {
            let file = self.workspace.join(name);
            let text = self.text(&file)?;
            self.prepared(&file, &text, 1)
        })
    }

    fn cursor(&mut self) -> Option<ContextFile> {
        let mut parts = Vec::new();
        let mut bytes = 0;
        for file in std::iter::once(self.workspace.join(CURSOR)).chain(self.rules()) {
            let Some(text) = self.text(&file) else { continue };
            let name = self.name(&file);
            let scan::Cleaned { text, notice, .. } = scan::cleaned(&name, text.trim_end(), Scope::Context, 1);
            self.notices.extend(notice);
            if !text.trim().is_empty() {
                bytes += text.len();
                parts.push(if name == CURSOR { text } else { format!("## {name}\n\n{}", text.trim()) });
            }
            if bytes as u64 > super::reading::MOST_BYTES {
                self.notices.push(Notice::TooLarge { source_name: name, limit: super::reading::MOST_BYTES });
                break;
            }
        }
        let text = fitted(CURSOR, parts.join("\n\n"), self.limit, READ_ON, &mut self.notices);
        ContextFile::of(CURSOR, &text)
    }

    /// Rule files, sorted by name.
    fn rules(&mut self) -> Vec<PathBuf> {
        let folder = self.workspace.join(CURSOR_RULES);
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => {
                if !is_missing(&error) {
                    self.notices.push(unreadable(CURSOR_RULES, &error));
                }
                return Vec::new();
            }
        };
        let is_rule = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "mdc");
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_rule).collect();
        files.sort();
        if files.len() > MOST_RULES {
            self.notices.push(Notice::TooMany { source_name: CURSOR_RULES.to_owned(), limit: MOST_RULES });
            files.truncate(MOST_RULES);
        }
        files
    }

    fn text(&mut self, file: &Path) -> Option<String> {
        let name = self.name(file);
        let text = self.root.text(file, &name).unwrap_or_else(|notice| {
            self.notices.push(notice);
            None
        })?;
        // Names become part of the prompt too.
        if !scan::findings(&name, Scope::Context).is_empty() {
            self.notices.push(Notice::Name { source_name: name });
            return None;
        }
        Some(text)
    }

    fn prepared(&mut self, file: &Path, text: &str, first_line: usize) -> Option<ContextFile> {
        let name = self.name(file);
        let (prepared, notices) = ContextFile::from_line(first_line, &name, text, self.limit);
        self.notices.extend(notices);
        prepared
    }

    /// The file's name for the model: relative to the workspace, or absolute if it lies above.
    fn name(&self, file: &Path) -> String {
        wording::shown(file.strip_prefix(&self.workspace).unwrap_or(file))
    }
}

/// The root of the repository that contains a folder. A repository of another user does not count: otherwise anyone who can write
/// to a parent folder, such as `/tmp`, could instruct the model.
pub fn repository(folder: &Path) -> Option<&Path> {
    let root = folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let owner = |path: &Path| path.symlink_metadata().map(|metadata| metadata.uid()).ok();
        if owner(&root.join(".git")) != owner(folder) {
            return None;
        }
    }
    Some(root)
}
