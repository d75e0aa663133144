//! The project's context files. Only the first kind that exists is used, and what others would have read is named.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::reading::{Folder, is_missing, unreadable};
use super::{ContextFile, READ_ON, fitted, imports};
use crate::hints::{self, changed_after};
use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::{shape, wording};

const OWN: [&str; 2] = [".hermes.md", "HERMES.md"];
/// The names that several agents read, the first one first. Upper and lower case are the same.
const SHARED: [&str; 4] = ["AGENTS.override.md", "AGENTS.md", "AGENT.md", "CLAUDE.md"];
const CLAUDE_FOLDER: &str = ".claude/CLAUDE.md";
const CURSOR: &str = ".cursorrules";
const CURSOR_RULES: &str = ".cursor/rules";
/// Most rule files. A larger folder is not meant to be read in full in every session.
const MOST_RULES: usize = 128;
/// Most entries of a folder among which a name in another case is looked for.
const MOST_ENTRIES: usize = 10_000;
/// Folders that are not searched for context files that are read later.
const BUILT: [&str; 2] = ["node_modules", "target"];
/// With less room, a file from further up is left out.
const LEAST_ROOM: usize = 500;
/// Instructions that users of other agents expect to be read, in the workspace and at the root of its repository.
const INSTRUCTIONS: [&str; 18] = [
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENT.md",
    "CLAUDE.md",
    CLAUDE_FOLDER,
    "CLAUDE.local.md",
    "GEMINI.md",
    ".gemini/GEMINI.md",
    "QWEN.md",
    "CRUSH.md",
    "WARP.md",
    ".github/copilot-instructions.md",
    CURSOR,
    CURSOR_RULES,
    ".windsurfrules",
    ".clinerules",
    ".goosehints",
    ".junie/guidelines.md",
];
/// Other files that other agents read, and the way to the same in Hermes.
const SETTINGS: [(&str, &str); 9] = [
    (".mcp.json", "`hermes mcp add` adds a server"),
    (".cursor/mcp.json", "`hermes mcp add` adds a server"),
    (".vscode/mcp.json", "`hermes mcp add` adds a server"),
    ("opencode.json", "`hermes mcp add` adds a server"),
    (".claude/settings.json", "hooks and rules are in config.yaml"),
    (".claude/skills", "`hermes skills install .claude/skills` installs skills"),
    (".claude/commands", "a skill is a command too"),
    (".agents/skills", "`hermes skills install .agents/skills` installs skills"),
    (".gemini/settings.json", "`hermes mcp add` adds a server"),
];

/// The project files that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The files in the order of the prompt: those of the folders above come first.
    pub files: Vec<ContextFile>,
    /// Notices about them.
    pub notices: Vec<Notice>,
    /// What another agent would read here, and Hermes does not.
    pub unread: Option<Notice>,
    /// The files that others import: canonical paths.
    pub imported: Vec<PathBuf>,
    /// Where files inside the project would be that others import, and that are not there or cannot be read now.
    pub awaited: Vec<PathBuf>,
    /// The names of the files that were read, imported ones too, and their own texts.
    pub texts: Vec<(String, String)>,
}

/// The files that context files of folders below the workspace import, and where such files would be that are not there. A session
/// reads them when it reaches the folder.
pub fn imported_below(workspace: &Path) -> Vec<PathBuf> {
    let Ok(mut search) = Search::later(workspace) else { return Vec::new() };
    let mut found = Vec::new();
    let mut folders = VecDeque::from([search.workspace.clone()]);
    let mut left = MOST_ENTRIES;
    while let Some(folder) = folders.pop_front() {
        let entries = folder.read_dir().into_iter().flatten().flatten().take(left);
        let entries: Vec<_> = entries.map(|entry| (entry.file_name(), entry.file_type())).collect();
        left -= entries.len();
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        let is_below = folder != search.workspace;
        let contexts = hints::NAMES.iter().filter(|name| is_below && has(name));
        for file in contexts.map(|name| folder.join(name)) {
            if let Some(text) = search.text(&file) {
                let name = search.name(&file);
                search.later_text(&file, &name, &text);
                found.append(&mut search.imported);
                found.append(&mut search.awaited);
            }
        }
        let is_folder = |kind: &std::io::Result<std::fs::FileType>| kind.as_ref().is_ok_and(std::fs::FileType::is_dir);
        for (name, _) in entries.iter().filter(|(_, kind)| is_folder(kind)) {
            // Folders of build results and dependencies do not contain rules of the user, and are large.
            let is_left_out = name.as_encoded_bytes().starts_with(b".") || BUILT.iter().any(|built| name == built);
            folders.extend((!is_left_out).then(|| folder.join(name)));
        }
    }
    found
}

/// Reads the context files of a workspace, all of them together up to `limit` characters.
///
/// The order is: `.hermes.md` or `HERMES.md`, the nearest one from the workspace up to the root of its git repository; else one of
/// `AGENTS.md`, `CLAUDE.md` and their like from each of these folders; else `.cursorrules` with the rules in `.cursor/rules`.
pub fn project(workspace: &Path, limit: usize) -> Project {
    let mut search = match Search::new(workspace, limit) {
        Ok(search) => search,
        Err(error) => {
            let notices = vec![unreadable(&wording::shown(workspace), &error)];
            return Project { notices, ..Project::default() };
        }
    };
    let mut files: Vec<ContextFile> = search.own().into_iter().collect();
    if files.is_empty() {
        files = search.shared();
    }
    if files.is_empty() {
        files.extend(search.cursor());
    }
    let unread = search.unread(&files);
    let Search { notices, imported, awaited, texts, .. } = search;
    Project { files, notices, unread, imported, awaited, texts }
}

pub(crate) struct Search {
    /// Canonical path.
    workspace: PathBuf,
    /// Links may lead anywhere inside: the repository, or the workspace.
    root: Folder,
    limit: usize,
    pub(crate) notices: Vec<Notice>,
    /// Imported files that changed after this moment are left out.
    pub(crate) only_before: Option<SystemTime>,
    /// Canonical paths of the files that are in the prompt.
    read: Vec<PathBuf>,
    /// Those of them that others import, and their bytes.
    imported: Vec<PathBuf>,
    awaited: Vec<PathBuf>,
    texts: Vec<(String, String)>,
    bytes: u64,
    /// How many characters of each file are taken.
    each: usize,
    /// How many more are taken of all files together.
    room: usize,
}

impl Search {
    fn new(workspace: &Path, limit: usize) -> std::io::Result<Self> {
        let workspace = workspace.canonicalize()?;
        let root = Folder::open(repository(&workspace).unwrap_or(&workspace))?;
        Ok(Self {
            workspace,
            root,
            limit,
            notices: Vec::new(),
            only_before: None,
            read: Vec::new(),
            imported: Vec::new(),
            awaited: Vec::new(),
            texts: Vec::new(),
            bytes: 0,
            each: usize::MAX,
            room: usize::MAX,
        })
    }

    /// The same for files that are read later: those in the prompt count as read.
    pub(crate) fn later(workspace: &Path) -> std::io::Result<Self> {
        let mut search = Self::new(workspace, usize::MAX)?;
        if search.own().is_none() && search.shared().is_empty() {
            let _ = search.cursor();
        }
        search.notices.clear();
        search.awaited.clear();
        Ok(search)
    }

    /// Takes so many characters of each file, and of the next one with all that it imports, from now on.
    pub(crate) fn within(&mut self, each: usize, all: usize) -> &mut Self {
        (self.each, self.room) = (each, all);
        self
    }

    /// A text that is read later, scanned, with the files behind it that it imports. `None` if it says nothing.
    pub(crate) fn later_text(&mut self, file: &Path, name: &str, text: &str) -> Option<String> {
        self.imported.clear();
        self.bytes = 0;
        self.read.extend(file.canonicalize());
        self.with_imports(file, name, text, 1, 0)
    }

    /// The folders from the workspace up to the root.
    fn up_to_root(&self) -> Vec<PathBuf> {
        let root = self.root.path();
        self.workspace.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
    }

    fn own(&mut self) -> Option<ContextFile> {
        for folder in self.up_to_root() {
            for name in OWN {
                let file = folder.join(name);
                if let Some(text) = self.text(&file) {
                    let (body, lines) = shape::without_front_matter(&text);
                    if let Some(found) = self.prepared(&file, body, lines + 1, self.limit) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// The first file of each folder. The nearest ones get the room first, and come last.
    fn shared(&mut self) -> Vec<ContextFile> {
        let mut files: Vec<ContextFile> = Vec::new();
        let mut room = self.limit;
        for folder in self.up_to_root() {
            for file in shared_in(&folder) {
                if file.canonicalize().is_ok_and(|real| self.read.contains(&real)) {
                    break;
                }
                let Some(text) = self.text(&file) else { continue };
                if room < LEAST_ROOM.min(self.limit) && !text.trim().is_empty() {
                    let source_name = self.name(&file);
                    self.notices.push(Notice::NoRoom { source_name });
                    break;
                }
                if let Some(found) = self.prepared(&file, &text, 1, room) {
                    room = room.saturating_sub(found.text().chars().count());
                    files.push(found);
                    break;
                }
            }
        }
        files.reverse();
        files
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

    /// A file with what it imports, within this many characters.
    fn prepared(&mut self, file: &Path, text: &str, first_line: usize, limit: usize) -> Option<ContextFile> {
        let name = self.name(file);
        self.read.extend(file.canonicalize());
        self.texts.push((name.clone(), text.to_owned()));
        let text = self.with_imports(file, &name, text, first_line, 0)?;
        let text = fitted(&name, text, limit, READ_ON, &mut self.notices);
        ContextFile::of(&name, &text)
    }

    /// A text, scanned, with the files behind it that it imports.
    fn with_imports(&mut self, file: &Path, name: &str, text: &str, first_line: usize, depth: usize) -> Option<String> {
        let scan::Cleaned { text, notice, .. } = scan::cleaned(name, text, Scope::Context, first_line);
        self.notices.extend(notice);
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let limit = self.each.min(self.room);
        let beginning = super::beginning(name, text, limit, &mut self.notices);
        self.room -= beginning.chars().count().min(limit);
        // The part of the text that is cut off still imports files.
        let mut parts = vec![beginning];
        if let Some(path) = imports::written_link(text) {
            parts.extend(self.import(file, name, path, depth));
        }
        for path in imports::named(text) {
            parts.extend(self.import(file, name, &path, depth));
        }
        Some(parts.join("\n\n"))
    }

    /// A file that another one imports, under its name. A file that is already in the prompt is not repeated.
    fn import(&mut self, importer: &Path, importer_name: &str, path: &str, depth: usize) -> Option<String> {
        let flaw = |why: &'static str| Notice::Import {
            source_name: importer_name.to_owned(),
            path: path.replace(char::is_control, "\u{fffd}"),
            why,
        };
        if path.starts_with("~/") {
            self.notices.push(flaw("leads out of the project"));
            return None;
        }
        let file = importer.parent()?.join(path);
        let real = match file.canonicalize() {
            Ok(real) if self.read.contains(&real) => return None,
            Ok(real) if real.is_file() => real,
            _ => {
                self.awaits(&file);
                if imports::means_file(path) {
                    self.notices.push(flaw("is not a file"));
                }
                return None;
            }
        };
        let Ok(inside) = real.strip_prefix(self.root.path()) else {
            self.notices.push(flaw("leads out of the project"));
            return None;
        };
        let refused = if let Some(why) = imports::refusal(self.root.path(), inside) {
            Some(why)
        } else if self.only_before.is_some_and(|moment| changed_after(&file, moment)) {
            Some("appeared or changed while programs of servers ran")
        } else if depth >= imports::DEEPEST {
            Some("is more than five files away")
        } else if self.imported.len() >= imports::MOST {
            Some("is beyond the 32 files that are imported")
        } else if self.bytes >= super::reading::MOST_BYTES {
            Some("is beyond the 4 MiB that are imported")
        } else if self.room < LEAST_ROOM {
            Some("has no room beside the files before it")
        } else {
            None
        };
        if let Some(why) = refused {
            self.notices.push(flaw(why));
            return None;
        }
        let Some(text) = self.text(&real) else {
            self.awaits(&real);
            return None;
        };
        if imports::is_key(inside, &text) {
            self.notices.push(flaw("holds a private key"));
            return None;
        }
        self.bytes += text.len() as u64;
        self.read.push(real.clone());
        self.imported.push(real.clone());
        let name = self.name(&real);
        self.texts.push((name.clone(), text.clone()));
        let text = self.with_imports(&real, &name, &text, 1, depth + 1)?;
        Some(format!("## {name}\n\n{text}"))
    }

    /// Notes a path at which a later session would import a file, if there were one.
    fn awaits(&mut self, file: &Path) {
        let root = self.root.path();
        let found = imports::place(file)
            .filter(|place| place.strip_prefix(root).is_ok_and(|inside| imports::refusal(root, inside).is_none()));
        if let Some(place) = found
            && self.awaited.len() < imports::MOST_AWAITED
            && place != root
            && !self.awaited.contains(&place)
        {
            self.awaited.push(place);
        }
    }

    /// What another agent would read in the workspace or at the root.
    fn unread(&self, files: &[ContextFile]) -> Option<Notice> {
        let mut folders = vec![self.workspace.clone()];
        if self.root.path() != self.workspace {
            folders.push(self.root.path().to_owned());
        }
        let has_text = |text: &str| files.iter().any(|file| file.text().contains(text.trim()));
        let mut names: Vec<String> = Vec::new();
        let mut settings: Vec<(String, &'static str)> = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        for folder in &folders {
            let others = shared_in(folder).into_iter().chain(INSTRUCTIONS.iter().map(|name| folder.join(name)));
            for file in others {
                let Ok(real) = file.canonicalize() else { continue };
                if seen.contains(&real) || self.read.contains(&real) {
                    continue;
                }
                seen.push(real);
                let is_cursors = [CURSOR, CURSOR_RULES].iter().any(|name| file.ends_with(name));
                if is_cursors && files.iter().any(|file| file.name() == CURSOR) && file.starts_with(&self.workspace) {
                    continue;
                }
                // A copy says nothing new, and a file that only imports one that is read neither.
                let text = self.root.text(&file, "").ok().flatten();
                // A file that cannot be read was named when it was tried, and so was a folder with the name of a text.
                let is_text = file.is_file() || file.extension().is_some_and(|end| end == "md");
                if text.is_none() && is_text {
                    continue;
                }
                if text.as_deref().is_some_and(|text| has_text(text) || self.only_imports_read(&file, text)) {
                    continue;
                }
                names.push(self.name(&file));
            }
            for (name, hint) in SETTINGS {
                let path = folder.join(name);
                if path.exists() {
                    settings.push((self.name(&path), hint));
                }
            }
        }
        if names.is_empty() && settings.is_empty() {
            return None;
        }
        let used = files.iter().map(|file| file.name().to_owned()).collect();
        Some(Notice::NotRead { names, used, settings })
    }

    fn only_imports_read(&self, file: &Path, text: &str) -> bool {
        let is_read = |path: &str| {
            let real = file.parent().map(|folder| folder.join(path)).and_then(|path| path.canonicalize().ok());
            real.is_some_and(|real| self.read.contains(&real))
        };
        let text = text.trim();
        text.lines().all(|line| line.trim().strip_prefix('@').unwrap_or(line.trim()).split_whitespace().all(is_read))
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

/// The files of a folder that several agents read, the first one first: exact names before those in another case.
fn shared_in(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().take(MOST_ENTRIES).flatten();
    let mut entries: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    entries.sort();
    let mut files: Vec<PathBuf> = Vec::new();
    for name in SHARED {
        let is_other = |entry: &&String| entry.as_str() != name && entry.eq_ignore_ascii_case(name);
        files.push(folder.join(name));
        files.extend(entries.iter().filter(is_other).map(|entry| folder.join(entry)));
    }
    files.push(folder.join(CLAUDE_FOLDER));
    files
}
