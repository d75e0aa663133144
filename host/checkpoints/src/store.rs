//! The store of checkpoints below `$HERMES_HOME`: contents by digest, an index for each workspace, and records for each session.
//!
//! ```text
//! checkpoints/
//!   blobs/ab/abcdef…          a content; all sessions share it
//!   workspaces/<digest>.json  what the files of a workspace were when Hermes last looked
//!   sessions/<id>/000001.json what a turn changed
//!   undo/<id>.json            an undo that is under way
//!   generation                changes whenever contents are removed
//!   lock                      shared by those who add contents, exclusive for the one who removes them
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::state::Digest;

/// The limits of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of all contents.
    pub max_bytes: u64,
    /// How long records stay.
    pub max_age: Duration,
    /// The largest file whose content is saved.
    pub max_file: u64,
    /// The most files of a workspace that is looked through.
    pub max_files: usize,
    /// The most time to look through a workspace.
    pub max_time: Duration,
}

impl Limits {
    /// Those of the default configuration.
    pub const STANDARD: Self = Self::of(1024, 30, 10);

    /// Limits in MiB, days and MiB.
    pub const fn of(max_size: u32, keep_days: u32, max_file_size: u32) -> Self {
        Self {
            max_bytes: (max_size as u64) << 20,
            max_age: Duration::from_secs(keep_days as u64 * 24 * 60 * 60),
            max_file: (max_file_size as u64) << 20,
            max_files: 50_000,
            max_time: Duration::from_secs(30),
        }
    }
}

/// The store in a home folder.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    /// Bytes that were added since the store was last looked at as a whole.
    added: Arc<AtomicU64>,
}

/// The largest record or index that is read.
pub(crate) const MAX_JSON: u64 = 256 << 20;

impl Store {
    /// The store of a home folder. Nothing is created before something is saved.
    pub fn in_home(home: &Path) -> Self {
        Self { root: home.join("checkpoints"), added: Arc::default() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether anything was ever saved.
    pub(crate) fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// The folder of a session's records; `None` for an id that is a path.
    pub(crate) fn session(&self, id: &str) -> Option<PathBuf> {
        is_plain(id).then(|| self.sessions().join(id))
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    pub(crate) fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// The index of a workspace.
    pub(crate) fn index(&self, workspace: &Path) -> PathBuf {
        let digest = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
        self.workspaces().join(format!("{}.json", &digest[..32]))
    }

    pub(crate) fn undos(&self) -> PathBuf {
        self.root.join("undo")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.0.get(..2).unwrap_or_default()).join(&digest.0)
    }

    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.blob(digest).is_file()
    }

    /// Saves a content.
    pub(crate) fn put(&self, content: &[u8]) -> io::Result<Digest> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let digest = Digest::of(content);
        let path = self.blob(&digest);
        // A shorter file is what a full disk or a loss of power left.
        if fs::metadata(&path).is_ok_and(|meta| meta.len() == content.len() as u64) {
            return Ok(digest);
        }
        let folder = path.parent().unwrap_or(&self.root);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = folder.join(format!("{}{}-{next}", hermes_private_files::UNFINISHED, std::process::id()));
        let file = match hermes_private_files::create_file(&draft) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                hermes_private_files::create_folder(folder)?;
                hermes_private_files::create_file(&draft)
            }
            // A killed process with the same number left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&draft)?;
                hermes_private_files::create_file(&draft)
            }
            file => file,
        };
        let mut file = file?;
        let written = file.write_all(content).and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        self.added.fetch_add(content.len() as u64, Ordering::Relaxed);
        Ok(digest)
    }

    /// A content, if the store has it whole.
    pub(crate) fn get(&self, digest: &Digest) -> Option<Vec<u8>> {
        let content = hermes_private_files::read_regular(&self.blob(digest), u64::MAX - 1).ok()?;
        (Digest::of(&content) == *digest).then_some(content)
    }

    /// The number of removals of contents so far: those who know what the store has look again when it changes.
    pub(crate) fn generation(&self) -> String {
        fs::read_to_string(self.root.join("generation")).unwrap_or_default()
    }

    pub(crate) fn next_generation(&self) -> io::Result<()> {
        let next = self.generation().trim().parse::<u64>().unwrap_or_default().wrapping_add(1);
        hermes_private_files::write_atomically(&self.root.join("generation"), next.to_string().as_bytes())
    }

    pub(crate) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    pub(crate) fn reset_added(&self) {
        self.added.store(0, Ordering::Relaxed);
    }

    fn lock_file(&self) -> io::Result<File> {
        hermes_private_files::create_folder(&self.root)?;
        hermes_private_files::open_file(&self.root.join("lock"))
    }

    /// Keeps others from removing contents. A file system without locks has no other way to keep them.
    pub(crate) fn adding(&self) -> io::Result<File> {
        let file = self.lock_file()?;
        match file.lock_shared() {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
            _ => Ok(file),
        }
    }

    /// Keeps others from adding contents; `None` if someone adds contents at the moment.
    pub(crate) fn removing(&self) -> io::Result<Option<File>> {
        let file = self.lock_file()?;
        Ok(file.try_lock().is_ok().then_some(file))
    }
}

fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
