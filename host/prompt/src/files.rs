//! The files that become part of the prompt: SOUL.md of the home and the project's context files.
//!
//! A file that cannot be used never stops a session: each of them is named in a [`Notice`], and the next kind
//! of file is looked for.

mod project;
pub(crate) mod reading;
mod soul;

pub use project::{Project, project};
pub use soul::{Soul, soul};

use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::shape;

const READ_ON: &str = "read_file shows the rest";

/// A file of the project as it enters the prompt: scanned, and not longer than its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    name: String,
    text: String,
}

impl ContextFile {
    /// A file of that text, and what is to be told about it; none where nothing is left to say.
    pub fn new(name: &str, text: &str, limit: usize) -> (Option<Self>, Vec<Notice>) {
        Self::from_line(1, name, text, limit)
    }

    /// The same for a text that begins further down in its file.
    fn from_line(first_line: usize, name: &str, text: &str, limit: usize) -> (Option<Self>, Vec<Notice>) {
        let cleaned = scan::cleaned(name, text, Scope::Context, first_line);
        let mut notices: Vec<Notice> = cleaned.notice.into_iter().collect();
        let text = fitted(name, cleaned.text, limit, READ_ON, &mut notices);
        (Self::of(name, &text), notices)
    }

    fn of(name: &str, text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self { name: name.to_owned(), text: text.to_owned() })
    }

    /// The file's path in the project.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What enters the prompt.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The text within its limit.
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
