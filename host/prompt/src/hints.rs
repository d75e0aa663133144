//! Context files of folders below the workspace, shown when the model first goes there.
//!
//! They ride on the result of the tool call that led there, before that is stored, so that the prompt stays as it is
//! and nothing that was sent changes.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::files::reading::Folder;
use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::{shape, wording};

const NAMES: [&str; 5] = ["AGENTS.md", "agents.md", "CLAUDE.md", "claude.md", ".cursorrules"];
/// Characters of a file that are shown.
pub const LIMIT: usize = 8_000;
/// How far up from the place of a call is looked.
const LEVELS: usize = 5;
/// Files that one result carries at most; the others come with a later call.
const MOST_FILES: usize = 4;
/// Words of a command that are looked at.
const MOST_WORDS: usize = 64;
/// A longer command carries a text, not more places.
const MOST_COMMAND: usize = 16 * 1024;
const MARKER: &str = "[Subdirectory context discovered: ";

/// What a session was shown of its workspace's folders.
pub struct SubdirectoryHints {
    workspace: Folder,
    /// Folders that were looked into or shown, relative to the workspace and as the marker names them.
    seen: HashSet<String>,
    notices: Vec<Notice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Arguments {
    path: Value,
    file_path: Value,
    workdir: Value,
    command: Value,
}

impl SubdirectoryHints {
    /// For the workspace of a session. The workspace itself and the folders given count as shown: their files are in
    /// the prompt.
    ///
    /// # Errors
    ///
    /// When the workspace cannot be opened.
    pub fn new(workspace: &Path, loaded: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let workspace = Folder::open(workspace)?;
        let mut hints = Self { workspace, seen: HashSet::new(), notices: Vec::new() };
        let root = hints.workspace.path().to_owned();
        for folder in std::iter::once(root.clone()).chain(loaded) {
            if let Ok(real) = root.join(folder).canonicalize()
                && let Ok(inside) = real.strip_prefix(&root)
            {
                hints.seen.insert(wording::shown(inside));
            }
        }
        Ok(hints)
    }

    /// Takes note of what an earlier result already showed, so that a resumed session does not show it again.
    pub fn learn(&mut self, result: &str) {
        for line in result.lines() {
            if let Some(file) = line.strip_prefix(MARKER).and_then(|rest| rest.strip_suffix(']'))
                && let Some((folder, _)) = file.rsplit_once('/')
            {
                self.seen.insert(folder.to_owned());
            }
        }
    }

    /// What a call with these arguments (a JSON object) is the first to lead to, to stand behind its result.
    pub fn for_call(&mut self, arguments: &str) -> Option<String> {
        let arguments: Arguments = serde_json::from_str(arguments).ok()?;
        let mut shown = Vec::new();
        for place in self.places(&arguments) {
            for folder in self.unseen_above(&place) {
                if shown.len() == MOST_FILES {
                    return Some(shown.join("\n\n"));
                }
                shown.extend(self.visit(&folder));
            }
        }
        (!shown.is_empty()).then(|| shown.join("\n\n"))
    }

    /// What the user is to be told of files that were not shown as they are, since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The paths that a call names.
    fn places(&self, arguments: &Arguments) -> Vec<PathBuf> {
        let root = self.workspace.path();
        let base = arguments.workdir.as_str().map_or_else(|| root.to_owned(), |workdir| root.join(workdir));
        let mut places: Vec<PathBuf> = Vec::new();
        places.extend(arguments.path.as_str().map(|path| root.join(path)));
        places.extend(arguments.file_path.as_str().map(|path| root.join(path)));
        places.extend(arguments.workdir.is_string().then(|| base.clone()));
        if let Some(command) = arguments.command.as_str() {
            places.extend(words(command).into_iter().map(|word| base.join(word)));
        }
        places
    }

    /// The folder that a path leads to and those above it that were not seen, outermost first, so that what is
    /// said for the narrowest place stands last.
    fn unseen_above(&self, place: &Path) -> Vec<PathBuf> {
        // What a call is about to create lies in the next folder above that exists.
        let Some(real) = place.ancestors().take(LEVELS).find_map(|path| path.canonicalize().ok()) else {
            return Vec::new();
        };
        let folder = if real.is_dir() { real.as_path() } else { real.parent().unwrap_or(&real) };
        let root = self.workspace.path();
        let mut unseen: Vec<PathBuf> = folder
            .ancestors()
            .take(LEVELS)
            .take_while(|folder| {
                folder.strip_prefix(root).is_ok_and(|inside| !self.seen.contains(&wording::shown(inside)))
            })
            .map(Path::to_owned)
            .collect();
        unseen.reverse();
        unseen
    }

    /// The context file of a folder, framed; from now on the folder is seen.
    fn visit(&mut self, folder: &Path) -> Option<String> {
        let inside = wording::shown(folder.strip_prefix(self.workspace.path()).ok()?);
        self.seen.insert(inside.clone());
        for name in NAMES {
            let source = format!("{inside}/{name}");
            let text = match self.workspace.text(&folder.join(name), &source) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(notice) => {
                    self.notices.push(notice);
                    continue;
                }
            };
            if !scan::findings(&source, Scope::Context).is_empty() {
                self.notices.push(Notice::Name { source_name: source });
                continue;
            }
            let cleaned = scan::cleaned(&source, &text, Scope::Context, 1);
            self.notices.extend(cleaned.notice);
            let text = cleaned.text.trim();
            if text.is_empty() {
                continue;
            }
            const READ_ON: &str = "read_file shows the rest";
            let text = match shape::beginning(&source, text, LIMIT, READ_ON) {
                None => text.to_owned(),
                Some(cut) => {
                    let (kept, total) = (cut.head, cut.total);
                    self.notices.push(Notice::Truncated { source_name: source.clone(), kept, total, remedy: READ_ON });
                    cut.text
                }
            };
            return Some(format!("{MARKER}{source}]\n{text}"));
        }
        None
    }
}

/// The words of a shell command that may be paths.
fn words(command: &str) -> Vec<String> {
    if command.len() > MOST_COMMAND {
        return Vec::new();
    }
    // A command with an open quote is still a command that the model is going to run.
    let words = shlex::split(command).unwrap_or_else(|| command.split_whitespace().map(str::to_owned).collect());
    let mut places: Vec<String> = Vec::new();
    for word in words.iter().flat_map(|word| word.split(['&', '|', ';', '(', ')', '<', '>'])) {
        let is_path = word.contains(['/', '.']) && !word.starts_with('-') && !word.contains("://");
        if is_path && places.len() < MOST_WORDS && !places.iter().any(|place| place == word) {
            places.push(word.to_owned());
        }
    }
    places
}
