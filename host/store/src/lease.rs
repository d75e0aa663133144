//! One process at a time works on a session.
//!
//! A lease is a lock of the operating system on a file, so that it ends with the process that holds it, however
//! that ends. The file holds the process id for the one who is turned away.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_conversation::SessionId;

use crate::database::LOCKS;
use crate::{SessionError, Store, StoreError};
use hermes_private_files as private;

/// Whoever only asks who works on a session holds its lock for a moment: one that lasts no longer than that is no lease.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(6);

/// The right to work on a session, until it is dropped or the process ends.
#[derive(Debug)]
#[must_use = "the session is free again as soon as its lease is dropped"]
pub struct Lease {
    session: SessionId,
    path: PathBuf,
    _lock: File,
}

impl Lease {
    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // While the lock is still held; whoever has opened the file meanwhile notices that it is gone.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Store {
    /// Who works on a session: none where nobody does, else the process, where that could be read.
    pub(crate) fn holder(&self, session: &SessionId) -> Result<Option<Option<u32>>, StoreError> {
        holder(&self.home().join(LOCKS), session)
    }

    /// Takes a session for this process, or says who has it. Two leases of one process exclude each other too.
    pub fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        // Also what makes the id a safe file name: those of the database are our own.
        self.session(session)?;
        self.lease_unseen(session)
    }

    /// The same for one that is not there yet, or that nobody sees yet; its id must be a file name.
    pub(crate) fn lease_unseen(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let folder = self.home().join(LOCKS);
        let path = folder.join(format!("{session}.lock"));
        let failed = |error: io::Error| StoreError::file(&path, error);
        private::create_folder(&folder).map_err(failed)?;
        let mut looks = 1;
        loop {
            let mut file = private::open_file(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {
                    if !is_at(&file, &path).map_err(failed)? {
                        continue;
                    }
                    write_pid(&mut file).map_err(failed)?;
                    return Ok(Lease { session: session.clone(), path, _lock: file });
                }
                Err(TryLockError::WouldBlock) if looks < LOOKS => {
                    looks += 1;
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(SessionError::InUse { session: session.clone(), pid: read_pid(&mut file) }.into());
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// As [`Store::holder`], in the folder of the locks.
pub(crate) fn holder(locks: &Path, session: &SessionId) -> Result<Option<Option<u32>>, StoreError> {
    let path = locks.join(format!("{session}.lock"));
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::file(&path, error)),
    };
    // Shared, so that two who ask do not take each other for the holder.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&mut file))),
        Err(TryLockError::Error(error)) => Err(StoreError::file(&path, error)),
    }
}

/// Whether an id can name a lock. Those that this program makes can; one that comes from outside is asked.
pub(crate) fn is_file_name(session: &SessionId) -> bool {
    const LONGEST: usize = 100;
    // What this program calls its own locks.
    const TAKEN: [&str; 2] = ["state", "writers"];
    let id = session.as_str();
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    plain && (1..=LONGEST).contains(&id.len()) && !TAKEN.iter().any(|taken| id.eq_ignore_ascii_case(taken))
}

/// Whether the file is the one that has this name, and not one whose holder removed it before letting go.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((held.dev(), held.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Nothing removes the file there.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    write!(file, "{}", std::process::id())
}

/// None where the holder has not written it yet, or the system lets nobody read a locked file.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
