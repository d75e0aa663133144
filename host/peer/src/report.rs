//! What an import took, changed and left, as lines that a front end shows. The lines may quote the peer's files: a front end
//! escapes them.

use serde::Serialize;

/// The most lines of a kind that name single items.
const MOST: usize = 12;

/// What was imported, part by part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In the order of the import.
    pub parts: Vec<PartReport>,
}

/// What was imported of one part of the peer's home, such as its sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartReport {
    /// Its name.
    pub name: &'static str,
    /// What is new here.
    pub taken: Vec<String>,
    /// What is here already, from an earlier import.
    pub known: Vec<String>,
    /// What sessions do from now on because of it: the programs that run, where requests and values of variables go, and the
    /// texts of prompts. These lines are never shortened, since the user agrees to them.
    pub rights: Vec<String>,
    /// What is not here as it was there.
    pub changed: Vec<String>,
    /// What stays behind, with the reason.
    pub left: Vec<String>,
}

impl Report {
    /// Adds a part, unless the peer's home has nothing of it.
    pub(crate) fn add(&mut self, part: PartReport) {
        let PartReport { taken, known, rights, changed, left, .. } = &part;
        if [taken, known, rights, changed, left].iter().any(|lines| !lines.is_empty()) {
            self.parts.push(part);
        }
    }

    /// Whether the import changes anything.
    pub fn has_news(&self) -> bool {
        self.parts.iter().any(|part| !part.taken.is_empty())
    }
}

impl PartReport {
    pub(crate) fn of(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    pub(crate) fn taken(&mut self, line: impl Into<String>) {
        self.taken.push(line.into());
    }

    pub(crate) fn known(&mut self, line: impl Into<String>) {
        self.known.push(line.into());
    }

    pub(crate) fn right(&mut self, line: impl Into<String>) {
        self.rights.push(line.into());
    }

    pub(crate) fn changed(&mut self, line: impl Into<String>) {
        self.changed.push(line.into());
    }

    pub(crate) fn left(&mut self, line: impl Into<String>) {
        self.left.push(line.into());
    }
}

/// The first lines, and a line with the number of the others.
pub(crate) fn first(lines: Vec<String>, of: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("and {} of the same kind", hermes_diagnostic::counted(more as u64, of)));
    lines.into_iter().take(MOST).chain(more).collect()
}
