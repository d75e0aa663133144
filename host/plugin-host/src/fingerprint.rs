//! A fingerprint of the folder of plugins and its lock, to notice changes without reading the plugins again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::catalog::{SLOTS, is_held};
use crate::digest::{MOST_DEPTH, MOST_FILES};
use crate::lock::Lock;
use crate::seal::Key;

/// A folder with more entries has no fingerprint.
const MOST_ENTRIES: usize = 10 * MOST_FILES;
/// A plugin's folder lies at most two levels below the folder of plugins.
const MOST_LEVELS: usize = MOST_DEPTH + 2;
/// The coarsest time stamps of common file systems (FAT). A file that changed more recently may change again without a
/// visible difference.
const GRANULARITY: Duration = Duration::from_secs(2);

/// The state of the folder of plugins at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint {
    hash: blake3::Hash,
    is_settled: bool,
}

impl Fingerprint {
    /// Takes the names, sizes and times of all files below the folder, the bytes of `plugins.lock` and of its key beside it,
    /// and which plugins are under development. None if something cannot be read.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let mut hasher = blake3::Hasher::new();
        match folder.parent().map(|home| hermes_private_files::read_regular(&Lock::path(home), crate::lock::MOST_BYTES))
        {
            Some(Ok(lock)) => hasher.update(blake3::hash(&lock).as_bytes()),
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => hasher.update(b"no lock"),
            Some(Err(_)) | None => return None,
        };
        // The key decides which entries count.
        let key = folder.parent().and_then(|home| Key::known(&Lock::path(home)).ok())?;
        hasher.update(key.map_or([0; 32], |key| *key.mark().as_bytes()).as_slice());
        let mut newest = SystemTime::UNIX_EPOCH;
        let mut entries = 0;
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, level)) = folders.pop() {
            for path in sorted(&folder)? {
                entries += 1;
                if entries > MOST_ENTRIES || level > MOST_LEVELS {
                    return None;
                }
                // Follows links, like the catalog.
                let found = fs::metadata(&path).ok()?;
                for part in [path.as_os_str().as_encoded_bytes(), &found.len().to_le_bytes()] {
                    hasher.update(&part.len().to_le_bytes());
                    hasher.update(part);
                }
                if found.is_dir() {
                    hasher.update(b"folder");
                    if folder.ends_with(SLOTS) {
                        hasher.update(&[u8::from(is_held(&path))]);
                    }
                    folders.push((path, level + 1));
                    continue;
                }
                let changed = changed(&found)?;
                hasher.update(&changed.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos().to_le_bytes());
                hasher.update(&inode(&found).to_le_bytes());
                newest = newest.max(changed);
            }
        }
        let is_settled = SystemTime::now().duration_since(newest).is_ok_and(|since| since > GRANULARITY);
        Some(Self { hash: hasher.finalize(), is_settled })
    }

    /// Whether an equal fingerprint later means that nothing has changed.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Whether both were taken of the same state.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

/// The paths of a folder's entries in order; a missing folder has none.
fn sorted(folder: &Path) -> Option<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().ok()?;
    paths.sort();
    Some(paths)
}

/// The last change of content or attributes. Programs can set the time of the content, but not the other.
#[cfg(unix)]
fn changed(found: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    let since = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
    Some(found.modified().ok()?.max(SystemTime::UNIX_EPOCH + since))
}

#[cfg(not(unix))]
fn changed(found: &fs::Metadata) -> Option<SystemTime> {
    found.modified().ok()
}

/// Tells a file from one that was moved into its place.
#[cfg(unix)]
fn inode(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_files_and_lock_gives_another_fingerprint() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("plugins");
        let path = |name: &str| folder.join("mine").join(name);
        let mut seen = vec![Fingerprint::of(&folder).unwrap()];
        assert!(seen[0].is_settled(), "a missing folder has no recent changes");
        let steps: &[&dyn Fn()] = &[
            &|| fs::create_dir_all(folder.join("mine")).unwrap(),
            &|| fs::write(path("plugin.yaml"), "name: mine").unwrap(),
            &|| fs::write(path("plugin.yaml"), "name: ours, longer").unwrap(),
            &|| fs::rename(path("plugin.yaml"), path("other.yaml")).unwrap(),
            &|| {
                fs::write(home.path().join("aside"), "name: that, longer").unwrap();
                fs::rename(home.path().join("aside"), path("other.yaml")).unwrap();
            },
            &|| fs::remove_file(path("other.yaml")).unwrap(),
            &|| fs::write(Lock::path(home.path()), "{\"form\": 1}").unwrap(),
            &|| fs::write(Lock::path(home.path()), "{\"form\": 2}").unwrap(),
            &|| fs::write(home.path().join("plugins.key"), [1; 32]).unwrap(),
            &|| fs::write(home.path().join("plugins.key"), [2; 32]).unwrap(),
        ];
        for (number, step) in steps.iter().enumerate() {
            step();
            let now = Fingerprint::of(&folder).unwrap();
            assert!(!now.is_same(seen.last().unwrap()), "step {number}");
            assert!(now.is_same(&Fingerprint::of(&folder).unwrap()), "step {number} is stable");
            seen.push(now);
        }
    }

    #[test]
    fn a_recent_change_is_not_settled() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("plugins");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        assert!(!Fingerprint::of(&folder).unwrap().is_settled());
        // Setting the time of the content back does not hide the change.
        let file = fs::File::options().write(true).open(folder.join("file")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3_600)).unwrap();
        assert_eq!(Fingerprint::of(&folder).unwrap().is_settled(), !cfg!(unix));
    }

    #[test]
    fn a_folder_that_cannot_be_read_whole_has_no_fingerprint() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("plugins");
        fs::create_dir_all((0..MOST_LEVELS + 3).fold(folder.clone(), |path, _| path.join("d"))).unwrap();
        assert!(Fingerprint::of(&folder).is_none());
    }
}
