//! Files that become part of the prompt: SOUL.md in the home, and the project's context files.
//!
//! An unusable file never stops a session. A [`Notice`] names it, and the next kind of file is tried.

mod imports;
mod project;
pub(crate) mod reading;
mod soul;

pub(crate) use project::Search;
pub use project::{Project, imported_below, project, repository};
pub use soul::{Soul, soul};

use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::shape;

const READ_ON: &str = "read_file shows the rest";

/// A project file in its form for the prompt: scanned, and within its size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    name: String,
    text: String,
}

impl ContextFile {
    /// Scans and shortens a text. Returns `None` if nothing is left, and notices about what was removed.
    pub fn new(name: &str, text: &str, limit: usize) -> (Option<Self>, Vec<Notice>) {
        let cleaned = scan::cleaned(name, text, Scope::Context, 1);
        let mut notices: Vec<Notice> = cleaned.notice.into_iter().collect();
        let text = fitted(name, cleaned.text, limit, READ_ON, &mut notices);
        (Self::of(name, &text), notices)
    }

    fn of(name: &str, text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self { name: name.to_owned(), text: text.to_owned() })
    }

    /// The file's path within the project.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text for the prompt.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The beginning of a text, up to its limit.
pub(crate) fn beginning(source: &str, text: &str, limit: usize, notices: &mut Vec<Notice>) -> String {
    match shape::beginning(source, text, limit, READ_ON) {
        None => text.to_owned(),
        Some(cut) => {
            let (source_name, kept, total) = (source.to_owned(), cut.head, cut.total);
            notices.push(Notice::Truncated { source_name, kept, total, remedy: READ_ON });
            cut.text
        }
    }
}

/// The text, cut to its limit.
fn fitted(source: &str, text: String, limit: usize, remedy: &'static str, notices: &mut Vec<Notice>) -> String {
    match shape::around(source, text.trim(), limit, remedy) {
        None => text,
        Some(cut) => {
            let kept = cut.head + cut.tail;
            notices.push(Notice::Truncated { source_name: source.to_owned(), kept, total: cut.total, remedy });
            cut.text
        }
    }
}
