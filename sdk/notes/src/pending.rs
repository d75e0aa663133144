//! Writes that wait for the user's approval. The plugin keeps them in a document of its own, as JSON.

use serde::{Deserialize, Serialize};

use crate::notes::Change;

/// The writes that wait, and the number of the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pending {
    /// The number of the last write that was queued. Numbers are not used again.
    pub last: u64,
    /// The oldest first.
    pub writes: Vec<PendingWrite>,
}

/// A write that waits: all of its operations apply, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingWrite {
    /// Its number.
    pub id: u64,
    /// When it was requested, in Unix milliseconds.
    pub at: u64,
    /// The session in which it was requested.
    pub session: String,
    /// The name of its document: `memory`, `user` or `facts`.
    pub target: String,
    /// The changes, in order.
    pub operations: Vec<Operation>,
}

/// A change as the tool's arguments describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// `add`, `replace` or `remove`.
    pub action: String,
    /// The new entry.
    pub content: Option<String>,
    /// Text of the entry to replace or remove.
    pub old_text: Option<String>,
}

impl Pending {
    /// The document of the plugin that contains them.
    pub const DOCUMENT: &'static str = "pending.json";
    /// The most writes that wait. A model that goes on writing learns that it must wait.
    pub const MOST: usize = 100;

    /// Queues a write and returns its number; none if too many wait already.
    pub fn push(&mut self, at: u64, session: &str, target: &str, changes: &[Change]) -> Option<u64> {
        if self.writes.len() >= Self::MOST {
            return None;
        }
        self.last = self.last.saturating_add(1);
        self.writes.push(PendingWrite {
            id: self.last,
            at,
            session: session.to_owned(),
            target: target.to_owned(),
            operations: changes.iter().map(Operation::from).collect(),
        });
        Some(self.last)
    }
}

impl Operation {
    /// The change; none for an action that does not exist.
    pub fn change(&self) -> Option<Change> {
        let content = || self.content.clone().unwrap_or_default();
        let old_text = || self.old_text.clone().unwrap_or_default();
        Some(match self.action.as_str() {
            "add" => Change::Add { content: content() },
            "replace" => Change::Replace { old_text: old_text(), content: content() },
            "remove" => Change::Remove { old_text: old_text() },
            _ => return None,
        })
    }
}

impl From<&Change> for Operation {
    fn from(change: &Change) -> Self {
        let (action, content, old_text) = match change {
            Change::Add { content } => ("add", Some(content), None),
            Change::Replace { old_text, content } => ("replace", Some(content), Some(old_text)),
            Change::Remove { old_text } => ("remove", None, Some(old_text)),
        };
        Self { action: action.to_owned(), content: content.cloned(), old_text: old_text.cloned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_keeps_its_changes_and_numbers_are_not_used_again() {
        let changes = [
            Change::Add { content: "a".to_owned() },
            Change::Replace { old_text: "b".to_owned(), content: "c".to_owned() },
            Change::Remove { old_text: "d".to_owned() },
        ];
        let mut pending = Pending::default();
        assert_eq!(pending.push(5, "s", "user", &changes), Some(1));
        let kept: Vec<_> = pending.writes[0].operations.iter().filter_map(Operation::change).collect();
        assert_eq!(kept, changes);
        pending.writes.clear();
        assert_eq!(pending.push(6, "s", "user", &changes), Some(2));
        for _ in 1..Pending::MOST {
            pending.push(7, "s", "user", &changes);
        }
        assert_eq!(pending.push(8, "s", "user", &changes), None);
        assert_eq!(Operation::default().change(), None);
    }
}
