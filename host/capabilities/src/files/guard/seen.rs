//! The contents that a session has read or written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most files that are remembered. Beyond that, the first ones by path are forgotten, so a change of them asks the user
/// again.
const MAX_FILES: usize = 100_000;

/// The contents of files that the session knows, by path, and the paths that it changed. All plugins of a session share it.
#[derive(Debug, Default)]
pub struct Seen {
    contents: Mutex<BTreeMap<PathBuf, Content>>,
    changed: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Debug)]
struct Content {
    version: String,
    total: u64,
    /// How many bytes from the start were read.
    read: u64,
}

impl Seen {
    fn contents(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Content>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read of `length` bytes from `offset`.
    pub(in crate::files) fn read(&self, path: &Path, version: &str, total: u64, offset: u64, length: u64) {
        let mut contents = self.contents();
        let known = contents.get(path).filter(|known| known.version == version).map_or(0, |known| known.read);
        // Only a gapless reading from the start is a reading of the whole file.
        let read = if offset <= known { known.max(offset.saturating_add(length)) } else { known };
        Self::put(&mut contents, path, Content { version: version.to_owned(), total, read });
    }

    /// The session has created, changed or removed what is at this path.
    pub(in crate::files) fn change(&self, path: &Path) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.len() < MAX_FILES {
            changed.insert(path.to_owned());
        }
    }

    /// The paths that the session created, changed or removed, in order.
    pub fn changed(&self) -> Vec<PathBuf> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Whether the session has read or written any content of the file.
    pub fn knows(&self, path: &Path) -> bool {
        self.contents().contains_key(path)
    }

    /// The session has written the whole file.
    pub(in crate::files) fn wrote(&self, path: &Path, version: &str) {
        self.change(path);
        // A later reading of a part takes nothing away.
        Self::put(&mut self.contents(), path, Content { version: version.to_owned(), total: 0, read: u64::MAX });
    }

    fn put(contents: &mut BTreeMap<PathBuf, Content>, path: &Path, content: Content) {
        contents.insert(path.to_owned(), content);
        if contents.len() > MAX_FILES {
            contents.pop_first();
        }
    }

    /// The file, or everything in the folder, is somewhere else now.
    pub(in crate::files) fn moved(&self, from: &Path, to: &Path) {
        self.change(from);
        self.change(to);
        let mut contents = self.contents();
        let below: Vec<PathBuf> = contents.range(from.to_owned()..).map(|(path, _)| path.clone()).collect();
        for path in below.into_iter().take_while(|path| path.starts_with(from)) {
            let Ok(rest) = path.strip_prefix(from) else { continue };
            let target = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            if let Some(content) = contents.remove(&path) {
                contents.insert(target, content);
            }
        }
    }

    /// Whether the session knows the whole content of the file at this version.
    pub(in crate::files) fn has(&self, path: &Path, version: &str) -> bool {
        self.contents().get(path).is_some_and(|known| known.version == version && known.read >= known.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_reading_of_the_current_version_counts() {
        let seen = Seen::default();
        let file = Path::new("/w/file");
        assert!(!seen.has(file, "a"));
        seen.read(file, "a", 10, 5, 5);
        assert!(!seen.has(file, "a"), "its beginning was not read");
        seen.read(file, "a", 10, 0, 5);
        assert!(!seen.has(file, "a"));
        seen.read(file, "a", 10, 5, 5);
        assert!(seen.has(file, "a") && !seen.has(file, "b"));
        seen.read(file, "b", 10, 0, 1);
        assert!(!seen.has(file, "a") && !seen.has(file, "b"), "another version begins anew");
        assert_eq!(seen.changed(), Vec::<PathBuf>::new());
        seen.wrote(file, "c");
        assert!(seen.has(file, "c"));
        seen.read(file, "c", 10, 1, 9);
        assert!(seen.has(file, "c"), "what was written is known, whatever is read of it");
        seen.change(Path::new("/w/gone"));
        assert_eq!(seen.changed(), [file, Path::new("/w/gone")]);
        assert!(seen.knows(file) && !seen.knows(Path::new("/w/gone")));
    }

    #[test]
    fn a_moved_folder_takes_its_contents_along() {
        let seen = Seen::default();
        for path in ["/w/a/one", "/w/a/b/two", "/w/ab"] {
            seen.wrote(Path::new(path), "1");
        }
        seen.moved(Path::new("/w/a"), Path::new("/w/c"));
        let known = |path: &str| seen.has(Path::new(path), "1");
        assert!(known("/w/c/one") && known("/w/c/b/two") && known("/w/ab"));
        assert!(!known("/w/a/one") && !known("/w/a/b/two"));
    }
}
