//! Reads patches: V4A (`*** Begin Patch`) and unified diffs, also with the usual mistakes of models, such as wrong counts.

use hermes_plugin::Error;

use super::names::{self, NONE};
use crate::text::without_end;

/// What happens to a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Add {
        path: String,
        lines: Vec<Row>,
    },
    /// Unified: the hunks have to remove all that the file holds.
    Delete {
        path: String,
        hunks: Vec<Hunk>,
    },
    /// Changes, and moves with `to`.
    Update {
        path: String,
        to: Option<String>,
        hunks: Vec<Hunk>,
    },
    /// Unified, of git: a mode that the tool cannot set. The answer says so.
    Mode {
        path: String,
        mode: String,
    },
}

impl Change {
    fn rows_mut(&mut self) -> Vec<&mut Row> {
        match self {
            Self::Add { lines, .. } => lines.iter_mut().collect(),
            Self::Delete { hunks, .. } | Self::Update { hunks, .. } => {
                hunks.iter_mut().flat_map(|hunk| &mut hunk.rows).collect()
            }
            Self::Mode { .. } => Vec::new(),
        }
    }
}

/// A place of a file and its change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hunk {
    /// V4A: lines above the place, such as the head of its function.
    pub(super) scope: Vec<String>,
    /// Unified: the number of the first old line; of the line above if there are no old lines.
    pub(super) line: Option<usize>,
    pub(super) rows: Vec<Row>,
    /// V4A: the place is the end of the file.
    pub(super) at_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Kept,
    Removed,
    Added,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) mark: Mark,
    pub(super) text: String,
    /// Unified: the file ends here, without a line end.
    pub(super) bare: bool,
    /// The line end, if the patch says which one.
    pub(super) end: Option<&'static str>,
}

impl Row {
    pub(super) fn new(mark: Mark, text: &str) -> Self {
        let (plain, end) = without_end(text);
        let end = (plain.len() < text.len()).then_some(end);
        Self { mark, text: plain.to_owned(), bare: false, end }
    }

    /// The line end: `usual`, unless the patch has another one.
    pub(super) fn ending(&self, usual: &'static str) -> &'static str {
        match (self.bare, self.end) {
            // The last line has carriage returns, but no line feed.
            (true, Some(end)) => end.strip_suffix('\n').unwrap_or(end),
            (true, None) => "",
            (false, end) => end.unwrap_or(usual),
        }
    }
}

/// The changes of a patch, in its order.
pub(super) fn parse(patch: &str) -> Result<Vec<Change>, Error> {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    // After the last line end there is no line.
    lines.pop_if(|last| last.is_empty());
    let has_return = |line: &&str| line.ends_with('\r');
    // The carriage returns are those of the files if git wrote its own lines without them.
    let ended = &lines[..lines.len() - usize::from(!patch.ends_with('\n') && !lines.is_empty())];
    let states_ends = lines.iter().any(has_return) && !ended.iter().all(has_return);
    if !states_ends {
        lines.iter_mut().for_each(|line| *line = line.strip_suffix('\r').unwrap_or(line));
    }
    let is_v4a = |line: &&str| V4A.iter().any(|head| line.trim_end().starts_with(head));
    let mut changes = if lines.iter().any(is_v4a) { v4a(&lines)? } else { unified(&lines)? };
    if states_ends {
        changes.iter_mut().flat_map(Change::rows_mut).for_each(|row| row.end = row.end.or(Some("\n")));
    }
    match changes.is_empty() {
        false => Ok(changes),
        true => Err(Error::invalid(
            "the patch changes no file: begin each file with `*** Update File: PATH`, `*** Add File: PATH` or \
             `*** Delete File: PATH`, or give a unified diff with `--- PATH` and `+++ PATH`",
        )),
    }
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const UPDATE: &str = "*** Update File:";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move File:";
const MOVE_TO: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const V4A: [&str; 5] = [BEGIN, UPDATE, ADD, DELETE, MOVE];

fn bad(number: usize, line: &str, why: &str) -> Error {
    Error::invalid(format!("line {} of the patch, `{line}`, {why}", number + 1))
}

fn path_after(number: usize, line: &str, head: &str) -> Result<Option<String>, Error> {
    match line.trim_end().strip_prefix(head).map(str::trim) {
        Some("") => Err(bad(number, line, "names no file")),
        path => Ok(path.map(str::to_owned)),
    }
}

fn v4a(lines: &[&str]) -> Result<Vec<Change>, Error> {
    let has_line = |head: &str| lines.iter().position(|line| line.trim_end() == head);
    if has_line(BEGIN).is_some() && has_line(END).is_none() {
        let why =
            format!("the patch has no `{END}`, so its end may be missing: nothing was changed; give the whole patch");
        return Err(Error::invalid(why));
    }
    let begin = has_line(BEGIN).map_or(0, |at| at + 1);
    let end = has_line(END).filter(|end| *end >= begin).unwrap_or(lines.len());
    let is_head = |line: &&str| V4A.iter().any(|head| line.trim_end().starts_with(head));
    let mut changes: Vec<Change> = Vec::new();
    let (mut open, mut has_fence) = (false, false);
    for (number, line) in lines.iter().enumerate().take(end).skip(begin) {
        let is_blank = line.trim().is_empty();
        let is_fence = line.starts_with("```");
        // Whether only such lines follow up to the next part of the patch, which they separate from this one.
        let is_gap = (is_blank || is_fence) && {
            let rest = &lines[number..end];
            let separates =
                |line: &&&str| line.trim().is_empty() || line.starts_with("```") || line.trim_end() == END_OF_FILE;
            rest.iter().find(|line| !separates(line)).is_none_or(is_head)
        };
        // A fence around the patch or a part of it. Any other one is a line of a file, and has lost the sign before it.
        if is_fence && (changes.is_empty() || (is_gap && (has_fence || line.trim_end().len() > 3))) {
            has_fence = true;
            continue;
        }
        if let Some(path) = path_after(number, line, UPDATE)? {
            changes.push(Change::Update { path, to: None, hunks: Vec::new() });
        } else if let Some(path) = path_after(number, line, ADD)? {
            changes.push(Change::Add { path, lines: Vec::new() });
        } else if let Some(path) = path_after(number, line, DELETE)? {
            changes.push(Change::Delete { path, hunks: Vec::new() });
        } else if let Some(paths) = path_after(number, line, MOVE)? {
            let (path, to) =
                paths.split_once(" -> ").ok_or_else(|| bad(number, line, "has no ` -> ` between the two paths"))?;
            changes.push(Change::Update {
                path: path.trim().to_owned(),
                to: Some(to.trim().to_owned()),
                hunks: Vec::new(),
            });
        } else {
            match changes.last_mut() {
                Some(Change::Update { to, hunks, .. }) => {
                    if let Some(path) = path_after(number, line, MOVE_TO)? {
                        *to = Some(path);
                    } else {
                        v4a_row(number, line, hunks, &mut open)?;
                    }
                    continue;
                }
                Some(Change::Add { lines, .. }) => match line.strip_prefix('+') {
                    Some(text) => lines.push(Row::new(Mark::Added, text)),
                    None if line.trim_end() == END_OF_FILE => {}
                    // Models leave out the `+` of empty lines. Empty lines at the beginning and the end do not belong to the
                    // file.
                    None if is_blank && (lines.is_empty() || is_gap) => {}
                    None if is_blank => lines.push(Row::new(Mark::Added, "")),
                    None => return Err(bad(number, line, "is part of a new file, so it has to begin with `+`")),
                },
                _ if is_blank => {}
                _ => return Err(bad(number, line, "belongs to no file")),
            }
            continue;
        }
        open = false;
    }
    for change in &mut changes {
        if let Change::Update { path, to, hunks } = change {
            hunks.iter_mut().for_each(|hunk| trim(&mut hunk.rows, 0));
            hunks.retain(|hunk| !hunk.rows.is_empty());
            if hunks.is_empty() && to.is_none() {
                return Err(Error::invalid(format!("the patch has no changed line for {path}")));
            }
        }
    }
    Ok(changes)
}

fn v4a_row(number: usize, line: &str, hunks: &mut Vec<Hunk>, open: &mut bool) -> Result<(), Error> {
    if let Some(scope) = line.strip_prefix("@@") {
        // Several `@@` lines in a row narrow the place down together.
        if !(*open && hunks.last().is_some_and(|hunk| hunk.rows.is_empty())) {
            hunks.push(Hunk::default());
        }
        *open = true;
        if let Some(hunk) = hunks.last_mut() {
            match range(scope) {
                Some((line, _, _)) => hunk.line = Some(line),
                None => {
                    let scope = scope.trim().trim_end_matches("@@").trim_end();
                    hunk.scope.extend((!scope.is_empty()).then(|| scope.to_owned()));
                }
            }
        }
        return Ok(());
    }
    if !*open {
        hunks.push(Hunk::default());
        *open = true;
    }
    let Some(hunk) = hunks.last_mut() else { return Ok(()) };
    if line.trim_end() == END_OF_FILE {
        hunk.at_end = true;
        *open = false;
        return Ok(());
    }
    hunk.rows.push(row(number, line)?);
    Ok(())
}

fn row(number: usize, line: &str) -> Result<Row, Error> {
    let mut rest = line.chars();
    match rest.next().filter(|sign| *sign != '\r') {
        Some(' ') => Ok(Row::new(Mark::Kept, rest.as_str())),
        Some('-') => Ok(Row::new(Mark::Removed, rest.as_str())),
        Some('+') => Ok(Row::new(Mark::Added, rest.as_str())),
        // Models leave out the space before an empty line. `bare` tells it from one that was written.
        None => Ok(Row { bare: true, ..Row::new(Mark::Kept, "") }),
        Some(_) => Err(bad(number, line, "begins with neither ` ` (kept), `-` (removed) nor `+` (added)")),
    }
}

/// Removes empty lines at the end that only separate parts of the patch. The first `counted` rows belong to the hunk.
fn trim(rows: &mut Vec<Row>, counted: usize) {
    let is_gap = |row: &Row| row.mark == Mark::Kept && row.bare && row.text.is_empty();
    while rows.len() > counted && rows.last().is_some_and(is_gap) {
        rows.pop();
    }
    for row in rows.iter_mut().filter(|row| is_gap(row)) {
        row.bare = false;
    }
}

/// The first old line and the numbers of old and new lines in ` -1,2 +3,4 @@`.
fn range(head: &str) -> Option<(usize, usize, usize)> {
    let mut parts = head.split_whitespace();
    let part = |part: Option<&str>, sign: char| {
        let (start, count) = part?.strip_prefix(sign)?.split_once(',').map_or((part?.get(1..)?, "1"), |pair| pair);
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let ((line, old), (_, new)) = (part(parts.next(), '-')?, part(parts.next(), '+')?);
    Some((line, old, new))
}

/// What the lines before the hunks of a file say about it.
#[derive(Default)]
struct Head {
    /// The names of `diff --git`, with their prefixes.
    git: Option<(String, String)>,
    /// The names of `---` and `+++`, with their prefixes.
    old: Option<String>,
    new: Option<String>,
    /// The names of a file that moves, without prefixes.
    from_to: (Option<String>, Option<String>),
    created: bool,
    deleted: bool,
    /// A mode other than that of any new file.
    mode: Option<String>,
    hunks: Vec<Hunk>,
}

fn unified(lines: &[&str]) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    let mut head: Option<Head> = None;
    let mut at = 0;
    let fenced = lines.iter().take_while(|line| !line.starts_with("@@")).any(|line| line.starts_with("```"));
    let is_file = |at: usize| {
        lines.get(at).is_some_and(|line| line.starts_with("--- "))
            && lines.get(at + 1).is_some_and(|line| line.starts_with("+++ "))
    };
    while let Some(line) = lines.get(at) {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            close(head.take(), &mut changes)?;
            head = Some(Head { git: names::of_git(paths)?, ..Head::default() });
        } else if is_file(at) {
            if head.as_ref().is_none_or(|head| !head.hunks.is_empty()) {
                close(head.take(), &mut changes)?;
            }
            let head = head.get_or_insert_default();
            (head.old, head.new) = (Some(names::of_file(&line[4..])?), Some(names::of_file(&lines[at + 1][4..])?));
            at += 1;
        } else if line.starts_with("@@") {
            let Some(head) = head.as_mut() else {
                return Err(bad(at, line, "comes before the `--- PATH` and `+++ PATH` of a file"));
            };
            let (hunk, next) = unified_hunk(lines, at, fenced, &is_file)?;
            head.hunks.push(hunk);
            at = next;
            continue;
        } else if let Some(head) = head.as_mut() {
            if let Some(path) = line.strip_prefix("rename from ") {
                head.from_to.0 = Some(names::read(path)?);
            } else if let Some(path) = line.strip_prefix("rename to ") {
                head.from_to.1 = Some(names::read(path)?);
            } else if line.starts_with("copy from ") {
                return Err(bad(at, line, "copies a file, which patch cannot do: add the new file with its lines"));
            } else if let Some(mode) = line.strip_prefix("new file mode") {
                head.created = true;
                head.mode = regular(at, line, mode)?.filter(|mode| mode != "100644");
            } else if let Some(mode) = line.strip_prefix("new mode") {
                head.mode = regular(at, line, mode)?;
            } else if let Some(mode) = line.strip_prefix("deleted file mode") {
                head.deleted = true;
                regular(at, line, mode)?;
            } else if let Some(mode) = line.strip_prefix("old mode") {
                regular(at, line, mode)?;
            } else if let Some((_, mode)) = line.strip_prefix("index ").and_then(|rest| rest.split_once(' ')) {
                regular(at, line, mode)?;
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(bad(at, line, "is a change of a binary file: only text can be changed"));
            } else if line.starts_with(['+', '-', ' ']) && !head.hunks.is_empty() {
                return Err(bad(at, line, "belongs to no hunk"));
            }
        }
        at += 1;
    }
    close(head, &mut changes)?;
    Ok(changes)
}

/// The mode of a regular file, if the line has one.
fn regular(number: usize, line: &str, mode: &str) -> Result<Option<String>, Error> {
    let other = match mode.trim() {
        "120000" => "a symbolic link",
        "160000" => "a submodule",
        mode => return Ok((!mode.is_empty()).then(|| mode.to_owned())),
    };
    Err(bad(number, line, &format!("is the mode of {other}: only regular files can be changed")))
}

/// A hunk, and the number of the first line after it.
fn unified_hunk(
    lines: &[&str],
    at: usize,
    fenced: bool,
    is_file: &dyn Fn(usize) -> bool,
) -> Result<(Hunk, usize), Error> {
    let counts = range(lines[at].trim_start_matches('@'));
    let mut hunk = Hunk { line: counts.map(|(line, _, _)| line), ..Hunk::default() };
    let (mut old, mut new) = counts.map_or((0, 0), |(_, old, new)| (old, new));
    let (mut next, mut counted) = (at + 1, 0);
    while let Some(line) = lines.get(next) {
        // The counts only decide about lines that could also be something else: `--- a` may be a removed line `-- a`.
        let expected = old > 0 || new > 0;
        let ends = line.starts_with("@@") || line.starts_with("diff --git ")
            // Amid a hunk of a patch without a fence, it is a line that has lost the sign before it.
            || (line.starts_with("```") && (fenced || !expected));
        // With wrong counts, the next hunk gives the head of a file away.
        let is_head = is_file(next)
            && (!expected || ((old, new) != (1, 1) && lines.get(next + 2).is_some_and(|line| line.starts_with("@@"))));
        if ends || is_head {
            break;
        }
        if line.starts_with('\\') {
            if let Some(row) = hunk.rows.last_mut() {
                row.bare = true;
            }
            next += 1;
            continue;
        }
        // The end of a mail has `-- ` and a version.
        if !expected && (*line == "-- " || *line == "--") {
            next = lines.len();
            break;
        }
        let row = row(next, line)?;
        if row.mark != Mark::Added {
            old = old.saturating_sub(1);
        }
        if row.mark != Mark::Removed {
            new = new.saturating_sub(1);
        }
        hunk.rows.push(row);
        if expected {
            counted = hunk.rows.len();
        }
        next += 1;
    }
    let is_counted = counts.is_some() && old == 0 && new == 0;
    trim(&mut hunk.rows, if is_counted { counted } else { 0 });
    if hunk.rows.is_empty() { Err(bad(at, lines[at], "has no lines")) } else { Ok((hunk, next)) }
}

/// The names of a file before and after the change, without prefixes.
fn names_of(head: &Head) -> Result<(String, String), Error> {
    let git = head.git.clone();
    let (old, new) = match (head.old.clone().zip(head.new.clone()), git.clone()) {
        (Some(names), _) | (None, Some(names)) => names,
        (None, None) => {
            return Err(Error::invalid(
                "a `diff --git` line of the patch names two files that cannot be told apart: give `--- PATH` and `+++ PATH`",
            ));
        }
    };
    let is = |name: &str, other: &str| name == other || name == NONE;
    let begins = |name: &str, prefix: &str| name == NONE || (name.starts_with(prefix) && name.len() > prefix.len());
    let (from, to) = match git.filter(|(git_old, git_new)| is(&old, git_old) && is(&new, git_new)) {
        // Git wrote both names of one file, so what differs is a prefix, however it is called.
        Some((old, new)) => names::prefixes(&old, &new).unwrap_or_default(),
        // Others can mean two files. These prefixes are those of git, with `diff.mnemonicPrefix`, too.
        None if begins(&old, "a/") && begins(&new, "b/") => (2, 2),
        None => names::prefixes(&old, &new).filter(|lengths| *lengths == (2, 2)).unwrap_or_default(),
    };
    let strip = |name: String, length: usize| if name == NONE { name } else { name[length..].to_owned() };
    Ok((strip(old, from), strip(new, to)))
}

fn close(head: Option<Head>, changes: &mut Vec<Change>) -> Result<(), Error> {
    let Some(head) = head else { return Ok(()) };
    if let (Some(path), Some(to)) = head.from_to.clone() {
        let mode = head.mode.map(|mode| Change::Mode { path: to.clone(), mode });
        changes.push(Change::Update { path, to: Some(to), hunks: head.hunks });
        changes.extend(mode);
        return Ok(());
    }
    let is_change = head.created || head.deleted || head.mode.is_some() || !head.hunks.is_empty();
    if !is_change {
        return Ok(());
    }
    let (old, new) = names_of(&head)?;
    let mode = head.mode.map(|mode| Change::Mode { path: new.clone(), mode });
    changes.extend(match (old == NONE || head.created, new == NONE || head.deleted) {
        (true, _) => Some(Change::Add { lines: new_lines(&new, head.hunks)?, path: new }),
        (_, true) => Some(Change::Delete { path: old, hunks: head.hunks }),
        _ if head.hunks.is_empty() => None,
        _ => Some(Change::Update { path: new, to: None, hunks: head.hunks }),
    });
    changes.extend(mode);
    Ok(())
}

/// The lines of a new file. Models leave out the `+` of empty lines.
fn new_lines(path: &str, hunks: Vec<Hunk>) -> Result<Vec<Row>, Error> {
    let line = |row: Row| match row.mark {
        Mark::Added => Ok(row),
        Mark::Kept if row.text.trim().is_empty() => Ok(Row::new(Mark::Added, "")),
        _ => Err(Error::invalid(format!(
            "the patch creates {path}, so each of its lines has to begin with `+`: `{}` does not",
            row.text
        ))),
    };
    hunks.into_iter().flat_map(|hunk| hunk.rows).map(line).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn paths(patch: &str) -> Vec<String> {
        let named = |change: &Change| match change {
            Change::Add { path, lines } => format!("add {path} {}", lines.len()),
            Change::Delete { path, hunks } => format!("delete {path}{}", " by lines".repeat(hunks.len())),
            Change::Mode { path, mode } => format!("mode {path} {mode}"),
            Change::Update { path, to, hunks } => {
                let to = to.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
                let rows: Vec<String> = hunks.iter().map(|hunk| hunk.rows.len().to_string()).collect();
                format!("update {path}{to} [{}]", rows.join(" "))
            }
        };
        parse(patch).unwrap().iter().map(named).collect()
    }

    #[test]
    fn a_v4a_patch_is_read() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@ impl A\n@@ fn b()\n x\n-y\n+z\n\n w\n@@\n-q\n\n*** Add File: n\n+1\n+\n\
                     *** Delete File: old\n*** Update File: m\n*** Move to: k\n*** Move File: p -> q\n*** End Patch\nrest";
        assert_eq!(
            paths(patch),
            ["update a.rs [5 1]", "add n 2", "delete old", "update m -> k []", "update p -> q []"]
        );
        let Change::Update { hunks, .. } = parse(patch).unwrap().remove(0) else { panic!() };
        assert_eq!(hunks[0].scope, ["impl A", "fn b()"]);
        assert!(hunks.iter().flat_map(|hunk| &hunk.rows).all(|row| !row.bare));
        assert_eq!(paths("```\n*** Update File: a\n-x\n```\n*** End Patch").len(), 1, "also without a beginning");
    }

    #[test]
    fn a_unified_diff_is_read() {
        let git = "diff --git a/a.rs b/a.rs\nindex 1..2 100644\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@ fn x\n a\n--- b\n+++ b\n\
                   \\ No newline at end of file\ndiff --git a/e b/e\nnew file mode 100644\nindex 0..1\n\
                   diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n-- \n2.39";
        assert_eq!(paths(git), ["update a.rs [3]", "add e 0", "update o -> n []"]);
        let plain = "--- x.c\t2020-01-01\n+++ x.c\t2020-01-02\n@@ -7,9 +7 @@\n-a\n+b\n--- /dev/null\n+++ n.c\n@@ -0,0 +1 @@\n+c\n\
                     --- o.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n";
        assert_eq!(paths(plain), ["update x.c [2]", "add n.c 1", "delete o.c by lines"]);
        let modes = "diff --git a/n b/n\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\
                     diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\ndiff --git a/o b/p\nold mode 100755\n\
                     new mode 100644\nrename from o\nrename to p\n";
        assert_eq!(paths(modes), ["add n 1", "mode n 100755", "mode x.sh 100755", "update o -> p []", "mode p 100644"]);
    }

    /// The lines of the new files of a patch.
    fn added(patch: &str) -> Result<Vec<Vec<String>>, String> {
        let lines = |change: Change| match change {
            Change::Add { lines, .. } => {
                lines.into_iter().map(|row| format!("{}{}", row.text, row.ending("\n"))).collect()
            }
            other => panic!("{other:?}"),
        };
        parse(patch).map(|changes| changes.into_iter().map(lines).collect()).map_err(|error| error.message)
    }

    #[test]
    fn blank_lines_of_a_new_file_need_no_plus() {
        for (patch, expected) in [
            ("*** Add File: a\n+1\n\n\n+2\n", &[&["1\n", "\n", "\n", "2\n"][..]][..]),
            ("*** Begin Patch\n*** Add File: a\n+1\n \t \n+2\n\n*** End Patch\n", &[&["1\n", "\n", "2\n"]]),
            // Those around the lines only separate the parts of the patch.
            ("*** Add File: a\n\n+1\n\n\n*** Add File: b\n\n+2\n\n", &[&["1\n"], &["2\n"]]),
            ("*** Add File: a\n+1\n+\n\n*** End of File\n\n*** Add File: b\n+2", &[&["1\n", "\n"], &["2\n"]]),
            ("*** Add File: a\n+1\n\n+2\n*** End of File", &[&["1\n", "\n", "2\n"]]),
            (
                "```diff\n*** Add File: a\n+1\n\n+2\n```\n\n```\n*** Add File: b\n+3\n```\n",
                &[&["1\n", "\n", "2\n"], &["3\n"]],
            ),
            ("*** Add File: a\n+1\n+```\n\n+```\n", &[&["1\n", "```\n", "\n", "```\n"]]),
            ("*** Add File: a\r\n+1\r\n\r\n+2\r\n", &[&["1\n", "\n", "2\n"]]),
            ("*** Begin Patch\r\n*** Add File: a\r\n+1\r\n\r\n+2\r\n*** End Patch", &[&["1\n", "\n", "2\n"]]),
            ("--- /dev/null\n+++ b/n\n@@ -0,0 +1,4 @@\n+1\n\n \n+2\n", &[&["1\n", "\n", "\n", "2\n"]]),
            ("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+1\n\n", &[&["1\n", "\n"]]),
            ("--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+1\n\n", &[&["1\n"]]),
            (
                "--- /dev/null\n+++ b/n\n@@ -0,0 +1,9 @@\n+1\n\n+2\n\n\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+3\n",
                &[&["1\n", "\n", "2\n"], &["3\n"]],
            ),
            ("--- /dev/null\n+++ b/n\n@@ -0,0 +1,3 @@\n+1\r\n+\r\n+2\n", &[&["1\r\n", "\r\n", "2\n"]]),
        ] {
            let expected: Vec<Vec<String>> =
                expected.iter().map(|lines| lines.iter().map(|line| (*line).to_owned()).collect()).collect();
            assert_eq!(added(patch), Ok(expected), "{patch:?}");
        }
    }

    #[test]
    fn a_line_of_a_new_file_without_a_plus_is_refused() {
        for patch in [
            "*** Add File: a\n+1\n    pass\n+2",
            "*** Add File: a\n+1\n```\n+code\n```\n",
            "*** Add File: a\n+```\n+code\n```\n",
            "*** Add File: a\n+1\n-2\n",
            "--- /dev/null\n+++ b/n\n@@ -0,0 +1,3 @@\n+1\n 2\n+3\n",
            "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+1\n-2\n",
            "--- /dev/null\n+++ b/n\n@@ -0,0 +1,3 @@\n+1\n```\n+2\n",
        ] {
            let error = added(patch).unwrap_err();
            assert!(error.contains('+'), "{patch:?}: {error}");
        }
    }

    #[test]
    fn prefixes_of_names_are_taken_off_if_they_are_prefixes() {
        let update = |head: &str| paths(&format!("{head}\n@@ -1 +1 @@\n-a\n+b\n")).concat();
        for (head, path) in [
            ("--- a/f\n+++ b/f", "f"),
            ("--- a/f\n+++ b/g", "g"),
            ("--- i/f\n+++ w/f", "f"),
            ("--- f\n+++ f", "f"),
            ("--- a/f\n+++ a/f", "a/f"),
            ("--- old/f\n+++ new/f", "new/f"),
            ("diff --git a/f b/f\n--- a/f\n+++ b/f", "f"),
            ("diff --git b/f a/f\n--- b/f\n+++ a/f", "f"),
            ("diff --git 1/f 2/f\n--- 1/f\n+++ 2/f", "f"),
            ("diff --git old/f new/f\n--- old/f\n+++ new/f", "f"),
            ("diff --git a/b/f a/b/f\n--- a/b/f\n+++ a/b/f", "a/b/f"),
            ("diff --git a/foo b/foo\n--- foo\n+++ foo", "foo"),
        ] {
            assert_eq!(update(head), format!("update {path} [2]"), "{head}");
        }
        let none = "diff --git b/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n";
        assert_eq!(paths(none), ["add b/x 1"], "`diff.noprefix`, and a folder of that name");
        assert_eq!(paths("diff --git a/x b/y b/x b/y\nnew file mode 100644\nindex 0..1\n"), ["add x b/y 0"]);
    }

    #[test]
    fn a_patch_that_cannot_be_read_says_where() {
        for (patch, why) in [
            ("", "changes no file"),
            ("hello", "changes no file"),
            ("*** Begin Patch\nx\n*** End Patch", "line 2 of the patch, `x`, belongs to no file"),
            ("*** Update File: a\n", "no changed line for a"),
            ("*** Update File: a\n x\n*y", "begins with neither"),
            ("*** Add File: a\nx", "has to begin with `+`"),
            ("*** Begin Patch\n*** Update File: a\n@@\n-x\n", "no `*** End Patch`"),
            ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a", "a symbolic link"),
            ("diff --git a/l b/l\nindex 1..2 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n+b", "a symbolic link"),
            ("*** Add File:", "names no file"),
            ("*** Move File: a b", "` -> `"),
            ("@@ -1 +1 @@\n-a\n+b", "comes before"),
            ("--- a\n+++ a\n@@ -1 +1 @@\n", "has no lines"),
            ("diff --git a/p b/p\nGIT binary patch\n", "binary"),
            ("diff --git a/p b/q\nsimilarity index 100%\ncopy from p\ncopy to q\n", "copies a file"),
            ("diff --git a/p b/q\nnew file mode 100644\n", "cannot be told apart"),
        ] {
            let error = parse(patch).unwrap_err().message;
            assert!(error.contains(why), "{patch:?}: {error}");
        }
    }
}
