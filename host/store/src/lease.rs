//! Only one process at a time works on a session.
//!
//! A lease is an operating-system lock on a file, so it ends with its process, however the process ends. The file
//! contains the process id, which a refused process shows.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_conversation::SessionId;

use crate::queue::LOCKS;
use crate::{SessionError, Store, StoreError};
use hermes_private_files as private;

/// A process that looks up the holder takes the lock for a moment. Retries tell such a lock from a lease.
const MAX_TRIES: u32 = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(6);

/// The right to work on a session. It ends when this value is dropped or the process ends.
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
        // Remove the file while the lock is held: a process that has opened the file meanwhile sees that it is gone.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Store {
    /// The holder of a session's lease: `None` without one, else its process id if that could be read.
    pub(crate) fn holder(&self, session: &SessionId) -> Result<Option<Option<u32>>, StoreError> {
        holder(&self.home().join(LOCKS), session)
    }

    /// Takes the lease of a session, or reports its holder. Two leases within one process exclude each other too.
    pub fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        // This also makes the id a safe file name: the store contains only ids that it made or checked.
        self.session(session)?;
        self.lease_unseen(session)
    }

    /// Takes the right to deliver the turns of a session to a memory provider. It is independent of the session's lease.
    pub fn delivery_lease(&self, session: &SessionId, provider: &str) -> Result<Lease, StoreError> {
        self.session(session)?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        let provider: String = provider.chars().map(plain).collect();
        // The dot tells this file from the lease of a session.
        self.take(session, &format!("{session}.{provider}.lock"))
    }

    /// The lease of a session that is not stored or not visible yet. Its id must be a file name.
    pub(crate) fn lease_unseen(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.take(session, &format!("{session}.lock"))
    }

    fn take(&self, session: &SessionId, file: &str) -> Result<Lease, StoreError> {
        let folder = self.home().join(LOCKS);
        let path = folder.join(file);
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
                Err(TryLockError::WouldBlock) if looks < MAX_TRIES => {
                    looks += 1;
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(SessionError::InUse { session: session.clone(), pid: read_pid(&mut file) }.into());
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// [`Store::holder`] for a folder of locks.
pub(crate) fn holder(locks: &Path, session: &SessionId) -> Result<Option<Option<u32>>, StoreError> {
    let path = locks.join(format!("{session}.lock"));
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::file(&path, error)),
    };
    // A shared lock, so that two processes that look up the holder do not find each other.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&mut file))),
        Err(TryLockError::Error(error)) => Err(StoreError::file(&path, error)),
    }
}

/// Whether an id can name a lock file. Ids from outside have to be checked; those that this program makes always can.
pub(crate) fn is_file_name(session: &SessionId) -> bool {
    const MAX_LENGTH: usize = 100;
    // Names of the program's own locks.
    const RESERVED: [&str; 2] = ["state", "writers"];
    let id = session.as_str();
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    plain && (1..=MAX_LENGTH).contains(&id.len()) && !RESERVED.iter().any(|taken| id.eq_ignore_ascii_case(taken))
}

/// Whether the file still has this name. The holder may have removed it before it released the lock.
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

/// `None` if the holder has not written it yet, or if the system does not let others read a locked file.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
