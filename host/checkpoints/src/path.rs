//! Paths below a workspace, as records name them.

use std::borrow::Borrow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path relative to the workspace, of plain names only: it never leads out of it. Paths are ordered by their bytes, so that a folder
/// comes before its entries. [`Path`] compares name by name, which takes most of the time of a look at many files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(OsString);

impl RelPath {
    /// The path below `root`; `None` for the root itself and for what is outside.
    pub fn below(root: &Path, path: &Path) -> Option<Self> {
        Self::new(path.strip_prefix(root).ok()?)
    }

    /// A relative path of at least one name, without `..`.
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        // `a//b` and `a/b/` become `a/b`.
        let path: PathBuf = if is_plain { path.components().collect() } else { return None };
        (!path.as_os_str().is_empty()).then(|| Self(path.into_os_string()))
    }

    /// The same for an absolute path whose root is written in the same way; compares bytes only.
    pub(crate) fn text_below<'a>(root: &Path, path: &'a Path) -> Option<&'a OsStr> {
        let rest = path.as_os_str().as_bytes().strip_prefix(root.as_os_str().as_bytes())?;
        rest.strip_prefix(b"/").filter(|rest| !rest.is_empty()).map(OsStr::from_bytes)
    }

    /// The folder that contains it; `None` for an entry of the root.
    pub fn parent(&self) -> Option<Self> {
        Self::new(self.as_path().parent()?)
    }

    /// Every folder above it below the root, the uppermost first.
    pub fn folders(&self) -> Vec<Self> {
        let mut folders: Vec<Self> = std::iter::successors(self.parent(), Self::parent).collect();
        folders.reverse();
        folders
    }

    /// Its last name.
    pub fn name(&self) -> &OsStr {
        self.as_path().file_name().unwrap_or_default()
    }

    /// Its names.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.as_path().iter()
    }

    /// An entry of this folder.
    #[must_use]
    pub fn join(&self, name: &OsStr) -> Self {
        let mut path = OsString::with_capacity(self.0.len() + 1 + name.len());
        path.push(&self.0);
        path.push("/");
        path.push(name);
        Self(path)
    }

    /// As a relative path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// So that a map can be searched by the text of a path.
impl Borrow<OsStr> for RelPath {
    fn borrow(&self) -> &OsStr {
        &self.0
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().display().fmt(f)
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text_of(&self.0))
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = os_string_of(&String::deserialize(deserializer)?).and_then(Self::new);
        path.ok_or_else(|| D::Error::custom("this is not a path below a workspace"))
    }
}

/// A name of the system as JSON text: no name contains NUL, so NUL marks the digits of one that is not UTF-8.
pub(crate) fn text_of(name: &OsStr) -> String {
    name.to_str().map_or_else(
        || name.as_bytes().iter().fold("\0".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        str::to_owned,
    )
}

/// The opposite of [`text_of`].
pub(crate) fn os_string_of(text: &str) -> Option<OsString> {
    let Some(digits) = text.strip_prefix('\0') else { return Some(text.into()) };
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    bytes.map(OsString::from_vec)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_out_of_the_workspace_is_none() {
        for path in ["", "..", "a/../b", "/etc", "./a/.."] {
            assert_eq!(RelPath::new(path), None, "{path}");
        }
        assert_eq!(serde_json::from_str::<RelPath>("\"../x\"").ok(), None);
        assert_eq!(RelPath::below(Path::new("/w"), Path::new("/w/a/b")), RelPath::new("a/b"));
        assert_eq!(RelPath::below(Path::new("/w"), Path::new("/wide/b")), None);
    }

    #[test]
    fn names_that_are_not_utf_8_survive_as_text() {
        for bytes in [&b"a/b"[..], b"a\xff\x00\x01".split_at(2).0, "grün".as_bytes()] {
            let path = RelPath::new(OsStr::from_bytes(bytes)).unwrap();
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RelPath>(&text).unwrap(), path);
        }
    }

    #[test]
    fn folders_come_from_the_uppermost_down() {
        let path = RelPath::new("a/b/c").unwrap();
        assert_eq!(path.folders(), [RelPath::new("a").unwrap(), RelPath::new("a/b").unwrap()]);
    }
}
