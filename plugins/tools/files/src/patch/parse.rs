//! Reads patches: V4A (`*** Begin Patch`) and unified diffs, also with the usual mistakes of models, such as wrong counts.

use hermes_plugin::Error;

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
}

impl Row {
    fn new(mark: Mark, text: &str) -> Self {
        Self { mark, text: text.to_owned(), bare: false }
    }
}

/// The changes of a patch, in its order.
pub(super) fn parse(patch: &str) -> Result<Vec<Change>, Error> {
    let mut lines: Vec<&str> = patch.lines().collect();
    // `lines` leaves the carriage return of a last line without a line feed.
    if let Some(last) = lines.last_mut() {
        *last = last.strip_suffix('\r').unwrap_or(last);
    }
    let is_v4a = |line: &&str| V4A.iter().any(|head| line.trim_end().starts_with(head));
    let changes = if lines.iter().any(is_v4a) { v4a(&lines)? } else { unified(&lines)? };
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
    let mut changes: Vec<Change> = Vec::new();
    let mut open = false;
    for (number, line) in lines.iter().enumerate().skip(begin) {
        if line.trim_end() == END {
            break;
        }
        if line.starts_with("```") {
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
                    None if line.trim().is_empty() || line.trim_end() == END_OF_FILE => {}
                    None => return Err(bad(number, line, "is part of a new file, so it has to begin with `+`")),
                },
                _ if line.trim().is_empty() => {}
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
    match rest.next() {
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
    old: Option<String>,
    new: Option<String>,
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
    let is_file = |at: usize| {
        lines.get(at).is_some_and(|line| line.starts_with("--- "))
            && lines.get(at + 1).is_some_and(|line| line.starts_with("+++ "))
    };
    while let Some(line) = lines.get(at) {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            close(head.take(), &mut changes)?;
            let (old, new) = git_paths(paths);
            head = Some(Head { old, new, ..Head::default() });
        } else if is_file(at) {
            if head.as_ref().is_none_or(|head| !head.hunks.is_empty()) {
                close(head.take(), &mut changes)?;
            }
            let head = head.get_or_insert_default();
            (head.old, head.new) = (Some(named(&line[4..])), Some(named(&lines[at + 1][4..])));
            at += 1;
        } else if line.starts_with("@@") {
            let Some(head) = head.as_mut() else {
                return Err(bad(at, line, "comes before the `--- PATH` and `+++ PATH` of a file"));
            };
            let (hunk, next) = unified_hunk(lines, at, &is_file)?;
            head.hunks.push(hunk);
            at = next;
            continue;
        } else if let Some(head) = head.as_mut() {
            if let Some(path) = line.strip_prefix("rename from ") {
                head.from_to.0 = Some(path.to_owned());
            } else if let Some(path) = line.strip_prefix("rename to ") {
                head.from_to.1 = Some(path.to_owned());
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
fn unified_hunk(lines: &[&str], at: usize, is_file: &dyn Fn(usize) -> bool) -> Result<(Hunk, usize), Error> {
    let counts = range(lines[at].trim_start_matches('@'));
    let mut hunk = Hunk { line: counts.map(|(line, _, _)| line), ..Hunk::default() };
    let (mut old, mut new) = counts.map_or((0, 0), |(_, old, new)| (old, new));
    let (mut next, mut counted) = (at + 1, 0);
    while let Some(line) = lines.get(next) {
        // The counts only decide about lines that could also be something else: `--- a` may be a removed line `-- a`.
        let expected = old > 0 || new > 0;
        let ends = line.starts_with("@@") || line.starts_with("diff --git ") || line.starts_with("```");
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

/// A path of `---` or `+++`, without the time that may follow a tab.
fn named(path: &str) -> String {
    path.split('\t').next().unwrap_or(path).trim_end().trim_matches('"').to_owned()
}

/// Both paths of `a/PATH b/PATH`.
fn git_paths(paths: &str) -> (Option<String>, Option<String>) {
    match paths.split_once(" b/") {
        Some((old, new)) => (Some(old.to_owned()), Some(format!("b/{new}"))),
        None => (None, None),
    }
}

fn close(head: Option<Head>, changes: &mut Vec<Change>) -> Result<(), Error> {
    const NONE: &str = "/dev/null";
    let Some(head) = head else { return Ok(()) };
    let (old, new) = (head.old.unwrap_or_default(), head.new.unwrap_or_default());
    // `a/` and `b/` come from git.
    let has = |path: &str, prefix: &str| path == NONE || path.starts_with(prefix);
    let strip = |path: &str| match has(&old, "a/") && has(&new, "b/") && path.len() > 2 && path != NONE {
        true => path[2..].to_owned(),
        false => path.to_owned(),
    };
    let added = |hunk: Hunk| hunk.rows.into_iter().filter(|row| row.mark == Mark::Added);
    let mode = head.mode.map(|mode| {
        let path = head.from_to.1.clone().unwrap_or_else(|| strip(&new));
        Change::Mode { path, mode }
    });
    changes.extend(match head.from_to {
        (Some(path), Some(to)) => Some(Change::Update { path, to: Some(to), hunks: head.hunks }),
        _ if old == NONE || head.created => {
            Some(Change::Add { path: strip(&new), lines: head.hunks.into_iter().flat_map(added).collect() })
        }
        _ if new == NONE || head.deleted => Some(Change::Delete { path: strip(&old), hunks: head.hunks }),
        _ if head.hunks.is_empty() => None,
        _ => Some(Change::Update { path: strip(&new), to: None, hunks: head.hunks }),
    });
    changes.extend(mode);
    Ok(())
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
        ] {
            let error = parse(patch).unwrap_err().message;
            assert!(error.contains(why), "{patch:?}: {error}");
        }
    }
}
