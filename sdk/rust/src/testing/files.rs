//! Files in memory, below roots.

use std::collections::{BTreeMap, BTreeSet};

use super::Host;
use crate::Error;
use crate::bindings::imports::files as wit;

/// Bytes per read, and entries per list.
const SLICE: usize = 8 << 20;
const ENTRIES: usize = 10_000;

#[derive(Default)]
struct Root {
    writable: bool,
    /// The content and how often it was written, by path.
    files: BTreeMap<String, (Vec<u8>, u32)>,
}

#[derive(Default)]
pub(crate) struct Files {
    roots: BTreeMap<String, Root>,
}

impl Files {
    pub(crate) fn roots(&mut self) -> Result<Vec<wit::Root>, Error> {
        let root = |(name, root): (&String, &Root)| wit::Root {
            name: name.clone(),
            path: format!("/{name}"),
            writable: root.writable,
        };
        Ok(self.roots.iter().map(root).collect())
    }

    pub(crate) fn stat(&mut self, root: &str, path: &str) -> Result<wit::Entry, Error> {
        let path = checked(path)?;
        let root = self.root(root)?;
        if let Some((content, version)) = root.files.get(path) {
            return Ok(entry(path, Some((content, *version))));
        }
        let folder = folder(path);
        if path.is_empty() || root.files.keys().any(|file| file.starts_with(&folder)) {
            return Ok(entry(path, None));
        }
        Err(absent(path))
    }

    pub(crate) fn entries(&mut self, root: &str, path: &str) -> Result<Vec<wit::Entry>, Error> {
        if self.stat(root, path)?.kind == wit::Kind::File {
            return Err(Error::invalid(format!("{path} is not a directory")).with_code("not-a-directory"));
        }
        let folder = folder(path);
        let files = &self.root(root)?.files;
        let inner = files.keys().filter_map(|file| file.strip_prefix(&folder));
        let names: BTreeSet<&str> = inner.filter_map(|rest| rest.split('/').next()).collect();
        let named = |name: &str| {
            let path = format!("{folder}{name}");
            let file = files.get(&path).map(|(content, version)| (content, *version));
            entry(&path, file)
        };
        Ok(names.into_iter().take(ENTRIES).map(named).collect())
    }

    pub(crate) fn read(&mut self, root: &str, path: &str, offset: u64, limit: u32) -> Result<wit::Slice, Error> {
        let (content, version) = self.file(root, path)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let to = from.saturating_add(SLICE.min(limit as usize)).min(content.len());
        Ok(wit::Slice {
            content: content[from..to].to_vec(),
            total: content.len() as u64,
            version: version.to_string(),
        })
    }

    pub(crate) fn write(
        &mut self,
        root: &str,
        path: &str,
        content: &[u8],
        version: Option<&str>,
    ) -> Result<String, Error> {
        let path = checked(path)?;
        let files = self.writable(root)?;
        let current = files.get(path).map(|(_, version)| version.to_string());
        if version.is_some() && version != current.as_deref() {
            return Err(Error::conflict(format!("{path} is at another version")));
        }
        let file = files.entry(path.to_owned()).or_default();
        *file = (content.to_vec(), file.1 + 1);
        Ok(file.1.to_string())
    }

    pub(crate) fn rename(&mut self, root: &str, path: &str, to: &str) -> Result<(), Error> {
        let to = checked(to)?;
        if self.stat(root, to).is_ok() {
            return Err(Error::conflict(format!("{to} exists")));
        }
        let content = self.file(root, path)?.clone();
        let files = self.writable(root)?;
        files.remove(path);
        files.insert(to.to_owned(), content);
        Ok(())
    }

    pub(crate) fn remove(&mut self, root: &str, path: &str) -> Result<(), Error> {
        self.file(root, path)?;
        self.writable(root)?.remove(path);
        Ok(())
    }

    pub(crate) fn search(
        &mut self,
        root: &str,
        glob: &str,
        pattern: Option<&wit::Pattern>,
        offset: u32,
        limit: u32,
    ) -> Result<wit::Findings, Error> {
        let line_fits = pattern.map(literal).transpose()?;
        let mut found = Vec::new();
        for (path, (content, _)) in &self.root(root)?.files {
            if !path_fits(glob, path) {
                continue;
            }
            let Some(line_fits) = &line_fits else {
                found.push(wit::Found { path: path.clone(), line: 0, text: String::new() });
                continue;
            };
            let Ok(text) = std::str::from_utf8(content) else { continue };
            let lines = (1..).zip(text.lines()).filter(|(_, text)| line_fits(text));
            found.extend(lines.map(|(line, text)| wit::Found { path: path.clone(), line, text: text.to_owned() }));
        }
        let more = found.len() > (offset as usize).saturating_add(limit as usize);
        Ok(wit::Findings { found: found.into_iter().skip(offset as usize).take(limit as usize).collect(), more })
    }

    fn root(&self, name: &str) -> Result<&Root, Error> {
        let root = self.roots.get(name);
        root.ok_or_else(|| {
            Error::denied(format!("the root `{name}` was not granted; in a test, `.file(…)` grants one"))
        })
    }

    fn writable(&mut self, name: &str) -> Result<&mut BTreeMap<String, (Vec<u8>, u32)>, Error> {
        match self.roots.get_mut(name) {
            Some(root) if root.writable => Ok(&mut root.files),
            _ => Err(Error::denied(format!("the root `{name}` cannot be written")).with_code("read-only")),
        }
    }

    fn file(&mut self, root: &str, path: &str) -> Result<&(Vec<u8>, u32), Error> {
        if self.stat(root, path)?.kind != wit::Kind::File {
            return Err(Error::invalid(format!("{path} is not a file")).with_code("not-a-file"));
        }
        self.root(root)?.files.get(path).ok_or_else(|| absent(path))
    }
}

fn entry(path: &str, file: Option<(&Vec<u8>, u32)>) -> wit::Entry {
    let kind = if file.is_some() { wit::Kind::File } else { wit::Kind::Directory };
    let (size, version) = file.map_or((0, 0), |(content, version)| (content.len() as u64, version));
    wit::Entry { path: path.to_owned(), kind, size, modified_at: 0, version: version.to_string() }
}

/// The path, unless it leads out of its root.
fn checked(path: &str) -> Result<&str, Error> {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(Error::denied(format!("{path} leads out of the root")).with_code("outside"));
    }
    Ok(path)
}

fn absent(path: &str) -> Error {
    Error::invalid(format!("{path} does not exist")).with_code("not-found")
}

/// What the paths in a folder begin with.
fn folder(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}/") }
}

/// Whether a glob matches a path, or without `/` its name.
fn path_fits(glob: &str, path: &str) -> bool {
    if !glob.contains('/') {
        return glob == "**" || part_fits(glob, path.rsplit('/').next().unwrap_or(path));
    }
    let (globs, parts): (Vec<&str>, Vec<&str>) = (glob.split('/').collect(), path.split('/').collect());
    parts_fit(&globs, &parts)
}

fn parts_fit(globs: &[&str], parts: &[&str]) -> bool {
    match (globs, parts) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=parts.len()).any(|skip| parts_fit(rest, &parts[skip..])),
        ([glob, globs @ ..], [part, parts @ ..]) => part_fits(glob, part) && parts_fit(globs, parts),
        _ => false,
    }
}

/// `*` stands for any characters and `?` for one.
fn part_fits(glob: &str, part: &str) -> bool {
    let mut rest = glob.chars();
    match rest.next() {
        None => part.is_empty(),
        Some('*') => {
            (0..=part.len()).filter(|at| part.is_char_boundary(*at)).any(|at| part_fits(rest.as_str(), &part[at..]))
        }
        Some(wanted) => {
            let mut own = part.chars();
            own.next().is_some_and(|first| wanted == '?' || wanted == first) && part_fits(rest.as_str(), own.as_str())
        }
    }
}

/// Finds a text in a line. The SDK contains no regular expressions.
fn literal(pattern: &wit::Pattern) -> Result<impl Fn(&str) -> bool + use<>, Error> {
    // So a pattern asks for what is not searched, too. Here, everything is.
    let regex = pattern.regex.strip_prefix("(?<unsearched>){0}").unwrap_or(&pattern.regex);
    if regex.contains(['.', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\']) {
        let why = format!("`{}` is a regular expression, and the host of a test only finds plain texts", pattern.regex);
        return Err(Error::unsupported(why));
    }
    let (wanted, ignore_case) = (regex.to_owned(), pattern.ignore_case);
    Ok(
        move |line: &str| {
            if ignore_case { line.to_lowercase().contains(&wanted.to_lowercase()) } else { line.contains(&wanted) }
        },
    )
}

impl Host {
    /// Writes a file below a root, such as `workspace`, and grants the root.
    ///
    /// ```
    /// use hermes_plugin::{Error, files, testing};
    ///
    /// let host = testing::Host::new().file("workspace", "src/tea.md", "At four.");
    /// assert_eq!(files::read_all("workspace", "src/tea.md", 100)?, b"At four.");
    /// assert_eq!(files::search("workspace", "*.md", None, 0, 10)?.found[0].path, "src/tea.md");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn file(self, root: &str, path: &str, content: impl Into<Vec<u8>>) -> Self {
        let mut files = self.state.files.borrow_mut();
        let root =
            files.roots.entry(root.to_owned()).or_insert_with(|| Root { writable: true, files: BTreeMap::new() });
        let version = root.files.get(path).map_or(1, |(_, version)| version + 1);
        root.files.insert(path.to_owned(), (content.into(), version));
        drop(files);
        self
    }

    /// Grants a root, and whether it can be written.
    pub fn root(self, name: &str, writable: bool) -> Self {
        self.state.files.borrow_mut().roots.entry(name.to_owned()).or_default().writable = writable;
        self
    }

    /// The content of a file.
    pub fn file_content(&self, root: &str, path: &str) -> Option<Vec<u8>> {
        let files = self.state.files.borrow();
        files.roots.get(root)?.files.get(path).map(|(content, _)| content.clone())
    }
}
