//! Names that a file system may take for other names.

use std::ffi::OsStr;

/// A name as the least strict file system reads it: without case, without the characters that HFS+ ignores, and without what
/// Windows drops at the end.
pub(super) fn folded(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    let ignored =
        |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text: String = text.chars().filter(|c| !ignored(*c)).flat_map(char::to_lowercase).collect();
    let text = text.split_once(':').map_or(text.as_str(), |(name, _)| name);
    text.trim_end_matches(['.', ' ']).to_owned()
}

/// Whether some file system takes this name for `.git`. Windows gives it the short name `GIT~1`.
pub(in crate::files) fn is_git(name: &OsStr) -> bool {
    matches!(folded(name).as_str(), ".git" | "git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_file_system_takes_for_git_are_recognised() {
        for name in [
            ".git",
            ".GIT",
            ".gIt",
            ".git.",
            ".git ",
            ".git . .",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{202e}",
            "git~1",
            "GIT~1",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
        ] {
            assert!(is_git(name.as_ref()), "{name:?}");
        }
        for name in [".github", ".gitignore", ".gitmodules", "git", "x.git", ".git-hooks", ".gi", "..git", ".git.bak"] {
            assert!(!is_git(name.as_ref()), "{name:?}");
        }
    }
}
