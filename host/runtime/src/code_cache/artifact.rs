//! A file of compiled code: the compiler's output, followed by its origin and a tag over both.
//!
//! Reading a large file to check its tag takes longer than the rest of a warm start. A successful check is therefore
//! recorded in a seal beside the file: a tag over the file's own tag, its inode and the times that only the system
//! sets. Any later write to the file invalidates the seal.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::key::Key;
use super::{is_ours, open_plainly};

const MAGIC: &[u8; 16] = b"hermes code 0001";
/// Magic, source, fingerprint and tag.
const TRAILER: usize = 16 + 32 + 32 + 32;
/// The least age of a file before it gets a seal: a newer file could change within the same tick of the system's clock.
const MIN_AGE: Duration = Duration::from_secs(2);
/// How often a use is recorded, for eviction.
const TOUCH_INTERVAL: Duration = Duration::from_secs(3600);

/// What the code was compiled from, and by which compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// Hash of the component's bytes.
    pub(super) source: [u8; 32],
    /// Fingerprint of the compiler, its settings and the build.
    pub(super) fingerprint: [u8; 32],
}

/// Why a file is not mapped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it does not belong to this user, or other users can write it")]
    Foreign,
    #[error("it is truncated, or not compiled code")]
    Truncated,
    #[error("it was compiled from another component, or by another compiler")]
    Outdated,
    #[error("it was altered, or another installation made its tag")]
    Tag,
}

/// Appends origin and tag to the code.
pub(super) fn tag(mut file: &File, key: &Key, origin: Origin) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let header = header(origin);
    let tag = tag_of(file, length, key, &header)?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(&[&header[..], tag.as_bytes()].concat())
}

/// Opens a file that only this user can have written.
pub(super) fn open(path: &Path) -> Result<File, Refusal> {
    let file = open_plainly(path)?;
    let found = file.metadata()?;
    if found.is_file() && is_ours(&found, 0o022) { Ok(file) } else { Err(Refusal::Foreign) }
}

/// Checks that this installation made the file from this origin, and that it is unchanged since.
pub(super) fn check(mut file: &File, path: &Path, key: &Key, origin: Origin) -> Result<(), Refusal> {
    let found = file.metadata()?;
    let length = found.len().checked_sub(TRAILER as u64).ok_or(Refusal::Truncated)?;
    let mut trailer = [0; TRAILER];
    file.seek(SeekFrom::Start(length))?;
    file.read_exact(&mut trailer)?;
    let (stored, tag) = trailer.split_at(TRAILER - 32);
    if !stored.starts_with(MAGIC) {
        return Err(Refusal::Truncated);
    }
    let header = header(origin);
    if stored != header {
        return Err(Refusal::Outdated);
    }
    let tag: [u8; 32] = tag.try_into().map_err(|_| Refusal::Truncated)?;
    let seal = seal_of(&tag, &found, key);
    let sealed = seal_path(path);
    if let Some(seal) = &seal
        && is_sealed(&sealed, seal)
    {
        return Ok(());
    }
    if tag_of(file, length, key, &header)? != blake3::Hash::from_bytes(tag) {
        return Err(Refusal::Tag);
    }
    if let Some(seal) = seal
        && let Err(error) = write_seal(&sealed, &seal)
    {
        tracing::debug!(%error, "the seal of compiled code cannot be written");
    }
    Ok(())
}

/// The bytes before the origin and the tag.
pub(super) fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len().saturating_sub(TRAILER as u64))
}

/// The path of the seal of a file.
pub(super) fn seal_path(path: &Path) -> PathBuf {
    path.with_extension("seal")
}

fn header(origin: Origin) -> [u8; TRAILER - 32] {
    let mut header = [0; TRAILER - 32];
    header[..16].copy_from_slice(MAGIC);
    header[16..48].copy_from_slice(&origin.source);
    header[48..].copy_from_slice(&origin.fingerprint);
    header
}

fn tag_of(mut file: &File, length: u64, key: &Key, header: &[u8]) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new_keyed(&key.tag);
    file.seek(SeekFrom::Start(0))?;
    hasher.update_reader(file.take(length))?;
    if hasher.count() != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    hasher.update(header);
    Ok(hasher.finalize())
}

/// `None` if the file is too young, or if the system does not report what a seal needs.
#[cfg(unix)]
fn seal_of(tag: &[u8; 32], found: &fs::Metadata, key: &Key) -> Option<blake3::Hash> {
    use std::os::unix::fs::MetadataExt;
    let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(found.ctime()).ok()?))?;
    if SystemTime::now().duration_since(changed).ok()? < MIN_AGE {
        return None;
    }
    let mut hasher = blake3::Hasher::new_keyed(&key.seal);
    hasher.update(tag);
    for number in [found.dev(), found.ino(), found.len()] {
        hasher.update(&number.to_le_bytes());
    }
    for time in [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()] {
        hasher.update(&time.to_le_bytes());
    }
    Some(hasher.finalize())
}

#[cfg(not(unix))]
fn seal_of(_: &[u8; 32], _: &fs::Metadata, _: &Key) -> Option<blake3::Hash> {
    None
}

fn is_sealed(path: &Path, seal: &blake3::Hash) -> bool {
    let Ok(mut file) = open_plainly(path) else { return false };
    let mut stored = [0; 32];
    if file.read_exact(&mut stored).is_err() || blake3::Hash::from_bytes(stored) != *seal {
        return false;
    }
    let used = file.metadata().and_then(|found| found.modified());
    if used.is_ok_and(|used| used.elapsed().is_ok_and(|since| since > TOUCH_INTERVAL)) {
        // If the time cannot be set, the file is only evicted a little early.
        let _ = file.set_modified(SystemTime::now());
    }
    true
}

fn write_seal(path: &Path, seal: &blake3::Hash) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    written.write_all(seal.as_bytes())?;
    written.persist(path).map_err(|error| error.error)?;
    Ok(())
}
