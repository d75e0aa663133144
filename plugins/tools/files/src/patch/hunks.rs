//! Applies the hunks of a patch to a file.

use hermes_plugin::Error;

use super::assumed::{Assumed, not_found, places, with_bytes};
use super::matching::{self, Found};
use super::parse::{Hunk, Mark, Row};
use crate::text::{Edit, Line, Text, end_at, has_lone_returns, lines};

/// The edits of the file at `path` by these hunks, which come in its order.
pub(super) fn edits(path: &str, text: &Text, hunks: &[Hunk]) -> Result<(Vec<Edit>, Assumed), Error> {
    let all = lines(&text.content);
    let is_mac = has_lone_returns(&text.content);
    let mut assumed = Assumed::default();
    let mut edits = Vec::new();
    let mut from = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let what = if hunks.len() == 1 { "the hunk".to_owned() } else { format!("hunk {}", number + 1) };
        let rows = hunk.rows.iter().flat_map(|row| in_lines(row, text.has_mark(), is_mac)).collect();
        let hunk = &Hunk { rows, ..hunk.clone() };
        let place = Place { path, text, all: &all, what: &what };
        let found = place.find(hunk, from, &mut assumed)?;
        edits.extend(place.edits(&found, &hunk.rows)?);
        from = found.at + hunk.rows.iter().filter(|row| row.mark != Mark::Added).count();
    }
    Ok((edits, assumed))
}

/// The lines of the file that a row stands for. Git shows a byte order mark as text, and all lines of a classic Macintosh file as
/// one row.
fn in_lines(row: &Row, has_mark: bool, is_mac: bool) -> Vec<Row> {
    let text = row.text.strip_prefix('\u{feff}').filter(|_| has_mark).unwrap_or(&row.text);
    if !is_mac {
        return vec![Row { text: text.to_owned(), ..row.clone() }];
    }
    let mut rows: Vec<Row> = text.split('\r').map(|line| Row::new(row.mark, line)).collect();
    if let Some(last) = rows.last_mut() {
        // With a carriage return and no line feed, the last line ends like the others.
        last.bare = row.bare && row.end.is_none_or(|end| end == "\n");
    }
    rows
}

struct Place<'t> {
    path: &'t str,
    text: &'t Text,
    all: &'t [Line<'t>],
    /// The hunk, for errors.
    what: &'t str,
}

impl Place<'_> {
    /// Where the hunk belongs, after the hunks before it.
    fn find(&self, hunk: &Hunk, from: usize, assumed: &mut Assumed) -> Result<Found, Error> {
        let old: Vec<&str> =
            hunk.rows.iter().filter(|row| row.mark != Mark::Added).map(|row| row.text.as_str()).collect();
        let after_scope = self.after_scope(&hunk.scope, from, assumed)?;
        if old.is_empty() {
            return self.insertion(hunk, from, after_scope, assumed);
        }
        let mut found = matching::find(self.all, &old, after_scope);
        if hunk.at_end {
            let at_end = |found: &Found| found.at + old.len() == self.all.len();
            if found.iter().any(at_end) {
                found.retain(at_end);
            }
        }
        let named = hunk.line.map(|line| line.saturating_sub(1));
        if let Some(exact) = found.iter().position(|found| Some(found.at) == named) {
            found = vec![found.swap_remove(exact)];
        }
        match &found[..] {
            [] => Err(self.missing(&old, after_scope)),
            [one] => {
                assumed.forgiven(one.forgiven);
                if let Some(named) = named.filter(|named| *named != one.at) {
                    assumed.add(format!("{} belongs at line {}, not at line {}", self.what, one.at + 1, named + 1));
                }
                Ok(one.clone())
            }
            several => Err(Error::invalid(format!(
                "{} matches {} places of {}, {}: give more lines around the change, or a line such as `@@ fn name` above it",
                self.what,
                several.len(),
                self.path,
                places(several.iter().map(|found| found.at + 1))
            ))
            .with_code("ambiguous")),
        }
    }

    /// The number of the line after those that narrow the place down.
    fn after_scope(&self, scope: &[String], mut from: usize, assumed: &mut Assumed) -> Result<usize, Error> {
        for line in scope {
            let found = matching::find(self.all, &[line], from);
            let found = match found.first() {
                Some(found) => Some((found.at, found.forgiven.typography)),
                // Models shorten the head of a function.
                None => {
                    (from..self.all.len()).find(|at| self.all[*at].text.contains(line.as_str())).map(|at| (at, false))
                }
            };
            let (at, typography) = found.ok_or_else(|| {
                not_found(self.path, self.text, &format!("`@@ {line}` of {}", self.what), &[line.as_str()])
            })?;
            if typography {
                assumed.typography();
            }
            from = at + 1;
        }
        Ok(from)
    }

    /// Where a hunk without old lines is put in.
    fn insertion(&self, hunk: &Hunk, from: usize, after_scope: usize, assumed: &mut Assumed) -> Result<Found, Error> {
        let at = match hunk.line {
            _ if !hunk.scope.is_empty() => after_scope,
            Some(line) if line > self.all.len() || line < from => {
                return Err(Error::invalid(format!(
                    "{} adds lines after line {line} of {}, which has {}: give some lines around the place",
                    self.what,
                    self.path,
                    crate::count(self.all.len() as u64, "line")
                )));
            }
            Some(line) => line,
            None => {
                if !self.all.is_empty() && !hunk.at_end {
                    assumed.add(format!("{} has no old lines, so its lines belong at the end of the file", self.what));
                }
                self.all.len()
            }
        };
        Ok(matching::Found::exactly(at))
    }

    fn missing(&self, old: &[&str], from: usize) -> Error {
        if let Some(found) = matching::find(self.all, old, 0).first() {
            return Error::invalid(format!(
                "{} is found in {} only at line {}, above line {} where it has to begin: give the hunks in the order of the file",
                self.what,
                self.path,
                found.at + 1,
                from + 1
            ))
            .with_code("not-found");
        }
        not_found(self.path, self.text, self.what, old)
    }

    /// The edits at this place. Kept lines stay as they are in the file.
    fn edits(&self, found: &Found, rows: &[Row]) -> Result<Vec<Edit>, Error> {
        let mut edits = Vec::new();
        let mut at = found.at;
        let mut rest = rows;
        while !rest.is_empty() {
            let kept = rest.iter().take_while(|row| row.mark == Mark::Kept).count();
            (at, rest) = (at + kept, &rest[kept..]);
            let changed = rest.iter().take_while(|row| row.mark != Mark::Kept).count();
            let (run, after) = rest.split_at(changed);
            rest = after;
            if run.is_empty() {
                continue;
            }
            let removed: Vec<&Row> = run.iter().filter(|row| row.mark == Mark::Removed).collect();
            let added: Vec<&Row> = run.iter().filter(|row| row.mark == Mark::Added).collect();
            let next = at + removed.len();
            let bound = |line: usize| self.all.get(line).map_or(self.text.content.len(), |line| line.start);
            let part = bound(at)..bound(next);
            let mut new = String::new();
            let ends_bare = self.all.last().is_some_and(|line| line.end.is_empty());
            if next == self.all.len() && removed.is_empty() && ends_bare {
                // The lines come after one without a line end.
                new.push_str(end_at(self.all, at));
            }
            for (number, row) in added.iter().enumerate() {
                new.push_str(&found.indented(&row.text));
                let is_last = number + 1 == added.len() && next == self.all.len();
                // Unless the patch says something about it, the file goes on to end without a line end.
                let stays_bare = ends_bare && !removed.last().is_some_and(|row| row.bare);
                if !(is_last && stays_bare && row.end.is_none()) {
                    new.push_str(row.ending(end_at(self.all, at + number.min(removed.len().saturating_sub(1)))));
                }
            }
            let new = with_bytes(self.path, self.text, &self.text.content[part.clone()], &new)?;
            edits.push(Edit { part, new });
            at = next;
        }
        Ok(edits)
    }
}
