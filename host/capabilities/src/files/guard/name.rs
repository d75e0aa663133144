//! Names that a file system may take for other names.

use std::ffi::OsStr;
use std::path::{Component, Path};

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{BinaryProperty, DefaultIgnorableCodePoint};

/// A name as the least strict file system reads it: caseless, and without what Windows drops at the end.
pub(in crate::files) fn folded(name: &OsStr) -> String {
    let text = caseless(&name.to_string_lossy());
    let text = text.split_once(':').map_or(text.as_str(), |(name, _)| name);
    text.trim_end_matches(['.', ' ']).to_owned()
}

/// The path as the least strict file system reads it.
pub(super) fn readable(path: &Path) -> String {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(folded(name)),
        _ => None,
    });
    names.fold(String::new(), |path, name| path + "/" + &name)
}

/// A text without case, composition, compatibility forms such as ligatures, and characters that are not displayed. This covers the
/// comparisons of ext4 and f2fs with `casefold`, APFS and HFS+, ZFS with its normalisations, and NTFS.
pub(super) fn caseless(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let is_visible = |c: &char| !DefaultIgnorableCodePoint::for_char(*c);
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize_iter(text.chars().filter(is_visible));
    // One mapping is not enough: a capital sharp s becomes a small one, then `SS`, and then `ss`.
    let folded = decomposed.flat_map(char::to_lowercase).flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    ComposingNormalizerBorrowed::new_nfkc().normalize_iter(folded.filter(is_visible)).collect()
}

/// Whether some file system takes this name for `.git`. Windows gives it the short name `GIT~1`.
pub(crate) fn is_git(name: &OsStr) -> bool {
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

    #[test]
    fn texts_that_differ_only_in_case_or_composition_are_one() {
        for (one, other) in [
            ("\u{c4}rger", "a\u{308}RGER"),
            ("stra\u{df}e", "STRASSE"),
            ("stra\u{1e9e}e", "strasse"),
            ("\u{3c2}", "\u{3a3}"),
            ("\u{fb01}ne", "FINE"),
            ("\u{1f0}", "J\u{30c}"),
            ("a\u{3164}", "A"),
        ] {
            assert_eq!(caseless(one), caseless(other), "{one} {other}");
        }
        assert_ne!(caseless("a\u{308}"), caseless("a"));
    }
}
