//! Undo: which turns, what happens to files that changed since, and what was restored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The turns whose changes an undo takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// This many, the newest first.
    Last(usize),
    /// The turn with this number, and all later ones.
    From(u32),
}

/// What happens to a file that changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// No file is restored.
    #[default]
    Refuse,
    /// The file stays as it is; the other files are restored.
    Skip,
    /// The file is restored too. Its present content is lost.
    Overwrite,
}

/// The result of an undo. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undo {
    /// The numbers of the turns, the oldest first.
    pub turns: Vec<u32>,
    /// The user's message at the beginning of the oldest turn.
    pub words: String,
    /// The restored paths.
    pub restored: Vec<String>,
    /// The paths that stay as they are, because they changed since.
    pub skipped: Vec<Unrestored>,
    /// The paths that could not be restored. A later undo still can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// The paths whose content was not saved, or is lost.
    pub unsaved: Vec<Unrestored>,
    /// The folders that stay, because they have other files.
    pub kept_folders: Vec<String>,
    /// The head of git before and after the turns, if it moved.
    pub heads: Option<(Head, Head)>,
    /// The programs that ran: they may have done more than change files.
    pub programs: Vec<String>,
    /// How many further programs ran.
    pub more_programs: u32,
    /// Why changes of some programs were not recorded.
    pub unrecorded: Vec<String>,
    /// The changed files outside of the workspace.
    pub outside: Vec<String>,
}

/// A path that was not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unrestored {
    /// The path.
    pub path: String,
    /// The cause in a few words.
    pub why: String,
}

/// The head of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// The branch; `None` if a commit is checked out without one.
    pub branch: Option<String>,
    /// The commit; `None` before the first.
    pub commit: Option<String>,
}

impl Head {
    /// The commit in a few digits.
    pub fn short(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("no commit");
        commit.chars().filter(|character| !character.is_control()).take(10).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of a repository says what its head is, and anybody may have written it.
    #[test]
    fn a_commit_is_shown_in_ten_digits_without_control_characters() {
        let short = |commit: Option<&str>| Head { branch: None, commit: commit.map(str::to_owned) }.short();
        assert_eq!(short(Some("0123456789abcdef")), "0123456789");
        assert_eq!(short(Some("\x1b[2J\n0123456789")), "[2J0123456");
        assert_eq!(short(None), "no commit");
    }
}
