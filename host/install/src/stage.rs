//! The stage: a folder beside the plugins that holds a prepared plugin. It belongs to one process, and is removed when
//! that process is gone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hermes_private_files::UNFINISHED;

use crate::error::{At, InstallError};

/// Receives the name of each step before it is taken, so that tests can end the process there.
pub type Steps<'a> = &'a (dyn Fn(&str) + Sync);

const PREFIX: &str = ".stage-";
const OWNER: &str = "owner";
const LOCK: &str = ".lock";

/// Paths of a home that installations change.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    /// The folder of the plugins, or of the skills.
    pub(crate) folder: PathBuf,
}

impl Places {
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: home.to_owned(), folder: home.join("plugins") }
    }

    /// The same for skills: their folder has a stage, a journal and a lock of its own.
    pub(crate) fn of_skills(home: &Path) -> Self {
        Self { home: home.to_owned(), folder: home.join("skills") }
    }

    pub(crate) fn lock(&self) -> PathBuf {
        hermes_plugin_host::Lock::path(&self.home)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.join(".journal")
    }

    pub(crate) fn previous(&self, name: &str) -> PathBuf {
        self.folder.join(".previous").join(name)
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.home.join("data").join(name)
    }
}

/// The exclusive right to change installed plugins. A process holds it during the commit, never while it fetches or asks.
pub(crate) struct Turn {
    _file: File,
}

impl Turn {
    /// Waits for the right.
    pub(crate) fn take(places: &Places) -> Result<Self, InstallError> {
        private_folder(&places.folder)?;
        let path = places.folder.join(LOCK);
        loop {
            // With both ends open, a pipe in its place does not block.
            let file = hermes_private_files::open_file(&path).at(&path)?;
            if !file.metadata().at(&path)?.is_file() {
                return Err(std::io::Error::other("it is not a regular file")).at(&path);
            }
            file.lock().at(&path)?;
            // The last process removes the lock file together with the empty folder.
            if is_at(&file, &path) {
                return Ok(Self { _file: file });
            }
        }
    }

    /// Releases the right, and removes the folder of plugins if it is empty.
    pub(crate) fn leave(self, places: &Places) {
        // Folders that are not empty stay.
        let _ = fs::remove_dir(places.folder.join(".previous"));
        let path = places.folder.join(LOCK);
        let others = fs::read_dir(&places.folder)
            .map_or(1, |entries| entries.flatten().filter(|entry| entry.file_name() != LOCK).count());
        if others == 0 {
            let _ = fs::remove_file(&path);
            let _ = fs::remove_dir(&places.folder);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// A temporary folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    _owner: File,
}

impl Stage {
    pub(crate) fn new(places: &Places) -> Result<Self, InstallError> {
        private_folder(&places.folder)?;
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&places.folder).at(&places.folder)?;
            let path = folder.path().join(OWNER);
            let owner = File::create_new(&path).at(&path)?;
            // Another process may have swept the folder before it had an owner.
            if owner.try_lock().is_ok() && is_at(&owner, &path) {
                return Ok(Self { folder, _owner: owner });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn name(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder of the plugin to install.
    pub(crate) fn plugin(&self) -> PathBuf {
        self.path().join("plugin")
    }
}

/// Removes stages whose process is gone, and unfinished journals: the caller holds the turn, so nobody writes one. A stage
/// that a journal still needs stays.
pub(crate) fn sweep(places: &Places, _: &Turn, needed: Option<&str>) {
    for entry in fs::read_dir(&places.folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
        if !name.starts_with(PREFIX) || needed == Some(&name) {
            continue;
        }
        let free = match File::options().write(true).open(entry.path().join(OWNER)) {
            Ok(owner) => owner.try_lock().is_ok(),
            Err(_) => true,
        };
        if free {
            // The next sweep finds what cannot be removed now.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether an interrupted command left files.
pub(crate) fn has_leftovers(places: &Places) -> bool {
    let left = |name: &str| name.starts_with(PREFIX) || name.starts_with(UNFINISHED);
    let mut entries = fs::read_dir(&places.folder).into_iter().flatten().flatten();
    places.journal().exists() || entries.any(|entry| left(&entry.file_name().to_string_lossy()))
}

/// Creates a folder that only its owner can open, and its missing parents.
pub(crate) fn private_folder(folder: &Path) -> Result<(), InstallError> {
    hermes_private_files::create_folder(folder).at(folder)
}
