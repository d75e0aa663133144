//! Finds files below a root by glob, and lines in them by regular expression.
//!
//! The walk uses the handle of the root, since existing walkers take paths of the whole file system. It reads ignore files
//! through the same handle; the crate `ignore` only interprets their rules.

use std::ffi::OsStr;
use std::io::Read as _;
use std::ops::Range;
use std::vec;

use cap_std::fs::Dir;
use globset::{GlobBuilder, GlobMatcher};
use hermes_charset::NoText;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use regex::bytes::{Regex, RegexBuilder};

use super::found::{Findings, Found};
use super::lines::{Reading, each_line};
use super::unsearched::{Reason, Unsearched};
use super::walk::{MAX_DEPTH, Request};
use super::{FilesError, Roots};

/// The most results of one call. `offset` gets the next ones.
pub const MAX_FOUND: u32 = 2_000;
/// The most characters of a line that are shown.
const MAX_SHOWN: usize = 500;
/// The text shown before a match far into a long line.
const LEAD: usize = 100;
const MAX_GLOB: usize = 1 << 10;
const MAX_REGEX: usize = 8 << 10;
/// Most bytes of a compiled expression: enough for usual ones, too few for nested repetitions.
const MAX_COMPILED: usize = 2 << 20;
const MAX_IGNORE_FILE: u64 = 256 << 10;
/// Bytes that one search reads of files above 16 MiB, after their first 16 MiB.
const MAX_LARGE: u64 = 512 << 20;
/// At the beginning of an expression, it asks for what was not searched. A group that occurs zero times matches nothing, so that
/// the expression is the same for a host that does not know this.
const UNSEARCHED: &str = "(?<unsearched>){0}";
/// Bytes that are matched between two checks whether the caller still waits.
const STRIDE: usize = 64 << 10;

/// The expression that a line must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The expression, in the syntax of the crate `regex`; `^` and `$` match the ends of a line.
    pub regex: String,
    /// Whether case is ignored.
    pub ignore_case: bool,
}

impl Roots {
    /// Finds the files whose path matches `glob` and, with `pattern`, the lines in them that match it. Returns up to
    /// `limit` results (at most [`MAX_FOUND`]) after the first `offset`.
    ///
    /// A glob without `/` matches in any depth (`*.rs` is `**/*.rs`), one that ends in `/` everything below (`src/`
    /// is `src/**`); `*` stops at `/`. Left out are what `.gitignore` and `.ignore` files from the root downwards
    /// ignore, names that begin with a dot (unless a part of the glob does, as in `.github/**`), `.git` always,
    /// links, unreadable files and everything more than 128 directories deep; with a pattern also binary files, and what lies
    /// beyond 512 MiB of large files.
    ///
    /// Lines are matched in UTF-8, whatever the file is encoded in. A pattern that begins with `(?<unsearched>){0}` asks for a
    /// result with line 0 for each reason why something was left out, after the others; its text says what. The limit does not
    /// count them.
    ///
    /// `cancelled` is called at every entry and every 64 KiB.
    ///
    /// # Errors
    ///
    /// [`FilesError::BadPattern`] for a glob or expression that is invalid or too large, and
    /// [`FilesError::Cancelled`].
    pub fn search(
        &self,
        root: &str,
        glob: &str,
        pattern: Option<&Pattern>,
        offset: u32,
        limit: u32,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Findings, FilesError> {
        let request = self.request(root, "")?;
        let glob = Glob::parse(&request, glob)?;
        let asks = pattern.is_some_and(|pattern| pattern.regex.starts_with(UNSEARCHED));
        let regex = pattern.map(|pattern| compile(&request, pattern)).transpose()?;
        let limit = limit.min(MAX_FOUND) as usize;
        let mut search = Search {
            request: &request,
            glob,
            regex: regex.as_ref(),
            skip: offset,
            limit,
            found: Vec::new(),
            more: false,
            large: MAX_LARGE,
            unsearched: Unsearched::default(),
            cancelled,
        };
        search.run()?;
        if asks {
            search.found.extend(search.unsearched.notes());
        }
        Ok(Findings { found: search.found, more: search.more })
    }
}

struct Search<'a> {
    request: &'a Request<'a>,
    glob: Glob,
    regex: Option<&'a Regex>,
    skip: u32,
    limit: usize,
    found: Vec<Found>,
    more: bool,
    /// Bytes of large files that may still be read.
    large: u64,
    unsearched: Unsearched,
    cancelled: &'a dyn Fn() -> bool,
}

/// A directory that is being walked.
struct Level {
    dir: Dir,
    /// Its path followed by `/`; empty for the root.
    prefix: String,
    names: vec::IntoIter<String>,
    rules: Rules,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), FilesError> {
        let top = self.request.root.dir.try_clone().map_err(|e| self.request.io("open", e))?;
        let names = self.names(&top, "").map_err(|e| self.request.io("list", e))?;
        let rules = Rules::read(self.request, &top, "");
        let mut levels = vec![Level { dir: top, prefix: String::new(), names: names.into_iter(), rules }];
        while let Some(level) = levels.last_mut() {
            if (self.cancelled)() {
                return Err(self.abandoned());
            }
            if self.more {
                return Ok(());
            }
            let Some(name) = level.names.next() else {
                levels.pop();
                continue;
            };
            if !self.glob.may_hold(levels.len() - 1, &name) {
                continue;
            }
            if let Some(next) = self.visit(&levels, &name)? {
                levels.push(next);
            }
        }
        Ok(())
    }

    /// Records a file. Returns the level of a directory that must be walked.
    fn visit(&mut self, levels: &[Level], name: &str) -> Result<Option<Level>, FilesError> {
        let Some(level) = levels.last() else { return Ok(None) };
        // Denied, removed and unreadable entries do not exist for the search.
        let Ok(Some(meta)) = self.request.look(&level.dir, name.as_ref()) else {
            return Ok(None);
        };
        let path = format!("{}{name}", level.prefix);
        if ignored(levels, &path, meta.is_dir()) {
            return Ok(None);
        }
        if meta.is_dir() {
            if levels.len() > MAX_DEPTH {
                self.unsearched.add(Reason::TooDeep, &path);
                return Ok(None);
            }
            let Some(dir) = self.readable(self.request.open_dir(&level.dir, name.as_ref()), &path) else {
                return Ok(None);
            };
            let names = self.names(&dir, &path).map_err(|e| self.request.io("list", e));
            let Some(names) = self.readable(names, &path) else { return Ok(None) };
            let rules = Rules::read(self.request, &dir, &path);
            return Ok(Some(Level { dir, prefix: format!("{path}/"), names: names.into_iter(), rules }));
        }
        if meta.is_file() && self.glob.matcher.is_match(&path) {
            match self.regex {
                None => self.note(|| Found { path, line: 0, text: String::new() }),
                Some(regex) => self.lines(&level.dir, name, &path, regex)?,
            }
        }
        Ok(None)
    }

    fn lines(&mut self, dir: &Dir, name: &str, path: &str, regex: &Regex) -> Result<(), FilesError> {
        let Some((file, _)) = self.readable(self.request.open_file(dir, name.as_ref()), path) else {
            return Ok(());
        };
        let (mut matched, mut number, mut large) = (0, 0_u32, self.large);
        let reading = each_line(file, &mut large, &mut |line| {
            number = number.saturating_add(1);
            matched += line.len() + 1;
            if matched > STRIDE {
                matched = 0;
                if (self.cancelled)() {
                    return Err(self.abandoned());
                }
            }
            if let Some(hit) = regex.find(line) {
                self.note(|| Found { path: path.to_owned(), line: number, text: shown(line, hit.range()) });
            }
            Ok(!self.more)
        });
        self.large = large;
        let reason = match reading {
            Ok(reading) => match reading? {
                Reading::Done => return Ok(()),
                Reading::Cut => Reason::Cut,
                Reading::NoText(NoText::Binary) => Reason::Binary,
                Reading::NoText(NoText::Utf32) => Reason::Utf32,
            },
            Err(_) => Reason::Unreadable,
        };
        self.unsearched.add(reason, path);
        Ok(())
    }

    /// What could be opened. Denied and removed entries do not exist for the search.
    fn readable<T>(&mut self, opened: Result<T, FilesError>, path: &str) -> Option<T> {
        match opened {
            Ok(opened) => Some(opened),
            Err(FilesError::Io { .. }) => {
                self.unsearched.add(Reason::Unreadable, path);
                None
            }
            Err(_) => None,
        }
    }

    /// The sorted entries, so that pages fit together, without names that no path of the contract can have.
    fn names(&mut self, dir: &Dir, path: &str) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in dir.entries()? {
            match entry?.file_name().into_string() {
                Ok(name) => names.push(name),
                Err(name) => {
                    let name = name.to_string_lossy();
                    let (folder, whole) = match path {
                        "" => (".", name.to_string()),
                        path => (path, format!("{path}/{name}")),
                    };
                    if self.glob.is_wanted(&name) && self.glob.matcher.is_match(&whole) {
                        self.unsearched.add(Reason::Name, folder);
                    }
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn note(&mut self, found: impl FnOnce() -> Found) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.found.len() == self.limit {
            self.more = true;
        } else {
            self.found.push(found());
        }
    }

    fn abandoned(&self) -> FilesError {
        FilesError::Cancelled { root: self.request.root.name.clone() }
    }
}

struct Glob {
    matcher: GlobMatcher,
    /// The path components before the first wildcard: a path without them cannot match.
    fixed: Vec<String>,
    hidden: bool,
}

impl Glob {
    fn parse(request: &Request<'_>, given: &str) -> Result<Self, FilesError> {
        let bad = |reason: &str| bad_pattern(request, given, reason.to_owned());
        let glob = given.strip_prefix("./").unwrap_or(given);
        if glob.is_empty() {
            return Err(bad("an empty glob matches nothing; use `**` for all files"));
        }
        if glob.len() > MAX_GLOB {
            return Err(bad("the glob is too long; use a shorter one"));
        }
        if glob.starts_with('/') || glob.split('/').any(|part| part == "..") {
            return Err(bad("globs are relative to the root and have no `..`; write it like `src/**/*.rs`"));
        }
        let hidden = glob.split('/').any(|part| part.starts_with('.'));
        let full = match glob.strip_suffix('/') {
            Some(folder) => format!("{folder}/**"),
            None if glob.contains('/') => glob.to_owned(),
            None => format!("**/{glob}"),
        };
        let matcher = GlobBuilder::new(&full)
            .literal_separator(true)
            .build()
            .map_err(|error| bad(&format!("the glob is wrong: {}; correct it", error.kind())))?
            .compile_matcher();
        let mut fixed: Vec<String> = Vec::new();
        // Braces may contain a `/`, so the glob is cut at its first wildcard and not at each part.
        let plain = full.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
        if let Some((folders, _)) = plain.rsplit_once('/') {
            fixed.extend(folders.split('/').map(str::to_owned));
        }
        Ok(Self { matcher, fixed, hidden })
    }

    fn is_wanted(&self, name: &str) -> bool {
        name != ".git" && (self.hidden || !name.starts_with('.'))
    }

    fn may_hold(&self, depth: usize, name: &str) -> bool {
        self.is_wanted(name) && self.fixed.get(depth).is_none_or(|fixed| fixed == name)
    }
}

fn compile(request: &Request<'_>, pattern: &Pattern) -> Result<Regex, FilesError> {
    let written = pattern.regex.strip_prefix(UNSEARCHED).unwrap_or(&pattern.regex);
    let bad = |reason: String| bad_pattern(request, written, reason);
    if written.len() > MAX_REGEX {
        return Err(bad("the expression is too long; use a shorter one".to_owned()));
    }
    RegexBuilder::new(written)
        .case_insensitive(pattern.ignore_case)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(50)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                bad("the expression grows too large; use fewer or smaller repetitions".to_owned())
            }
            error => {
                // The message shows the expression on several lines; the last line names the error.
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                bad(format!(
                    "{reason}; look-around and back-references are not known, a `\\` makes a special character plain"
                ))
            }
        })
}

fn bad_pattern(request: &Request<'_>, pattern: &str, reason: String) -> FilesError {
    FilesError::BadPattern { root: request.root.name.clone(), pattern: pattern.chars().take(200).collect(), reason }
}

/// The rules of one directory's ignore files for everything below it.
struct Rules {
    ignore: Gitignore,
    gitignore: Gitignore,
}

impl Rules {
    fn read(request: &Request<'_>, dir: &Dir, prefix: &str) -> Self {
        let read = |name: &str| rules(request, dir, prefix, name.as_ref()).unwrap_or_else(Gitignore::empty);
        Self { ignore: read(".ignore"), gitignore: read(".gitignore") }
    }
}

fn rules(request: &Request<'_>, dir: &Dir, prefix: &str, name: &OsStr) -> Option<Gitignore> {
    let (file, meta) = request.open_file(dir, name).ok()?;
    if meta.len() > MAX_IGNORE_FILE {
        return None;
    }
    let mut content = Vec::new();
    file.take(MAX_IGNORE_FILE).read_to_end(&mut content).ok()?;
    let mut builder = GitignoreBuilder::new(prefix);
    for line in String::from_utf8_lossy(&content).trim_start_matches('\u{feff}').lines() {
        // Like git, skip a line that is not a valid pattern.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// The deepest directory with a matching rule decides; `.ignore` goes before `.gitignore`.
fn ignored(levels: &[Level], path: &str, is_dir: bool) -> bool {
    let opinions = |rules: fn(&Rules) -> &Gitignore| {
        levels.iter().rev().find_map(|level| match rules(&level.rules).matched(path, is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        })
    };
    opinions(|rules| &rules.ignore).or_else(|| opinions(|rules| &rules.gitignore)).unwrap_or(false)
}

/// The shown part of a line: all of it, or 500 characters around the match.
fn shown(line: &[u8], hit: Range<usize>) -> String {
    let text = String::from_utf8_lossy(line);
    if text.chars().count() <= MAX_SHOWN {
        return text.into_owned();
    }
    let before = String::from_utf8_lossy(&line[..hit.start]).chars().count();
    let start = if before < MAX_SHOWN - LEAD { 0 } else { before - LEAD };
    let room = MAX_SHOWN - usize::from(start > 0);
    let mut rest = text.chars().skip(start);
    let mut cut: String = rest.by_ref().take(room).collect();
    if rest.next().is_some() {
        cut.pop();
        cut.push('…');
    }
    if start > 0 {
        cut.insert(0, '…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_long_line_is_cut_to_five_hundred_characters_around_the_match() {
        let line = |before: usize, after: usize| format!("{}ñeedle{}", "ä".repeat(before), "z".repeat(after));
        for (before, after) in [(0, 1000), (399, 1000), (400, 1000), (2000, 0), (2000, 3000), (450, 44), (450, 45)] {
            let line = line(before, after);
            let hit = line.find("ñeedle").map_or(0..0, |at| at..at + "ñeedle".len());
            let text = shown(line.as_bytes(), hit);
            assert!(text.chars().count() <= 500, "{before} {after}: {}", text.chars().count());
            assert!(text.contains("ñeedle"), "{before} {after}");
            let whole = before + 6 + after <= 500;
            assert_eq!(whole, text == line);
            assert_eq!(text.starts_with('…') || text.ends_with('…'), !whole);
        }
    }
}
