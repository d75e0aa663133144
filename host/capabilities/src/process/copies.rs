//! Private copies of programs that plugins may change: what was hashed is what runs.
//!
//! A copy has the name of its original. The folder around it has links to the original's neighbours, up to the changeable folder,
//! so that programs find their own parts beside themselves. Nothing can be created there: it would be lost with the copy.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use blake3::Hash;

use super::chain::{Places, Take};

/// The largest program that is copied.
const LARGEST: u64 = 1 << 30;
/// The most neighbours of a copy in one folder.
const NEIGHBOURS: usize = 10_000;
/// The suffix of the lock beside each folder of copies. Its process holds it.
const LOCK: &str = "lock";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The copies of one run. Dropping this removes them.
pub(super) struct Copies {
    private: PathBuf,
    tops: Vec<PathBuf>,
    own: Option<Own>,
}

struct Own {
    folder: PathBuf,
    _lock: File,
    /// Folders of copies, with their originals.
    mirrored: BTreeMap<PathBuf, PathBuf>,
    copied: BTreeMap<PathBuf, Hash>,
}

impl Copies {
    pub(super) fn new(places: &Places) -> Self {
        Self { private: places.private.clone(), tops: places.tops(), own: None }
    }

    /// Whether a file was copied.
    pub(super) fn any(&self) -> bool {
        self.own.is_some()
    }

    /// The folder with all copies.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.own.as_ref().map(|own| own.folder.as_path())
    }

    /// Completes the folders. No more can be copied.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        for (mirror, original) in &own.mirrored {
            // A folder that is gone has no neighbours.
            let neighbours = fs::read_dir(original).into_iter().flatten().flatten().take(NEIGHBOURS);
            for neighbour in neighbours {
                let link = mirror.join(neighbour.file_name());
                if link.symlink_metadata().is_err() {
                    link_to(&neighbour.path(), &link)?;
                }
            }
        }
        own.mirrored.keys().try_for_each(|mirror| permit(mirror, 0o500))
    }

    fn own(&mut self) -> io::Result<&mut Own> {
        let own = match self.own.take() {
            Some(own) => own,
            None => Own::new(&self.private)?,
        };
        Ok(self.own.insert(own))
    }
}

impl Take for Copies {
    fn take(&mut self, real: &Path) -> io::Result<(PathBuf, Hash)> {
        let found =
            self.tops.iter().enumerate().find_map(|(at, top)| Some((at, top.clone(), real.strip_prefix(top).ok()?)));
        let (at, top, rest) = found.ok_or_else(|| io::Error::other("it is in no known folder"))?;
        let own = self.own()?;
        let (mut mirror, mut original) = (own.folder.join(at.to_string()), top);
        for part in rest.components() {
            hermes_private_files::create_folder(&mirror)?;
            own.mirrored.insert(mirror.clone(), original.clone());
            mirror.push(part);
            original.push(part);
        }
        if let Some(hash) = own.copied.get(&mirror) {
            return Ok((mirror, *hash));
        }
        let hash = copy(real, &mirror)?;
        own.copied.insert(mirror.clone(), hash);
        Ok((mirror, hash))
    }
}

impl Own {
    fn new(private: &Path) -> io::Result<Self> {
        hermes_private_files::create_folder(private)?;
        sweep(private);
        loop {
            let folder = private.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
            match hermes_private_files::create_file(&folder.with_extension(LOCK)) {
                Ok(lock) => {
                    hermes_private_files::lock_within(&lock, Duration::ZERO)?;
                    hermes_private_files::create_folder(&folder)?;
                    return Ok(Self { folder, _lock: lock, mirrored: BTreeMap::new(), copied: BTreeMap::new() });
                }
                // An earlier process with this number was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes the copies of processes that were killed.
fn sweep(private: &Path) {
    for entry in fs::read_dir(private).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != LOCK) {
            continue;
        }
        let Ok(lock) = hermes_private_files::open_regular(&path) else { continue };
        if lock.try_lock().is_ok() {
            remove(&path.with_extension(""));
        }
    }
}

/// Removes a folder of copies and its lock. What remains is swept later.
fn remove(folder: &Path) {
    open_up(folder);
    let _ = fs::remove_dir_all(folder);
    let _ = fs::remove_file(folder.with_extension(LOCK));
}

/// Lets the files of a folder be removed. Links are not followed.
fn open_up(folder: &Path) {
    let _ = permit(folder, 0o700);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Copies a program and returns the hash of the copy.
fn copy(from: &Path, to: &Path) -> io::Result<Hash> {
    let mut from = hermes_private_files::open_regular(from)?.take(LARGEST + 1);
    let mut file = hermes_private_files::create_file(to)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes += count as u64;
        if bytes > LARGEST {
            return Err(io::Error::other(format!(
                "it is larger than {} MiB, the most for a program that plugins may change",
                LARGEST >> 20
            )));
        }
        hasher.update(&buffer[..count]);
        file.write_all(&buffer[..count])?;
    }
    drop(file);
    permit(to, 0o500)?;
    Ok(hasher.finalize())
}

#[cfg(unix)]
fn permit(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn permit(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn link_to(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Links may need a privilege there. A program finds no neighbours then.
#[cfg(not(unix))]
fn link_to(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}
