//! How a file is replaced so that readers see the old content or the new one, never a part, and so
//! that two writers who compare first do not both win. Used by `files` and by `documents`. A process that is killed
//! in the middle leaves a hidden `.hermes-….tmp` behind, and the old content in its place.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};

/// How long a writer waits for a lock: nobody holds one for longer than one write takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The permissions of what is written.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Of a new file, before the user's umask.
    New(u32),
    /// Of the file that is replaced, which keeps them.
    Kept(u32),
}

/// A directory as a file: what can be locked and synced, which the handles of `cap-std` cannot.
pub(crate) fn handle(dir: &Dir) -> io::Result<std::fs::File> {
    Ok(dir.open(".")?.into_std())
}

/// Puts `content` in the place of `name`, which must be a plain name in `dir`. `handle` is that of `dir`.
pub(crate) fn replace(dir: &Dir, handle: &std::fs::File, name: &OsStr, content: &[u8], mode: Mode) -> io::Result<()> {
    let (mut file, draft) = draft(dir, mode)?;
    let written = (|| {
        file.write_all(content)?;
        if let Mode::Kept(bits) = mode {
            // After the content, and without the bits that would let it run as somebody else.
            file.set_permissions(std::fs::Permissions::from_mode(bits & 0o777))?;
        }
        file.sync_all()?;
        dir.rename(&draft, dir, name)
    })();
    if let Err(error) = written {
        // The first error is the one that matters.
        let _ = dir.remove_file(&draft);
        return Err(error);
    }
    // The new content stands already. Some file systems cannot sync a directory; then it is theirs to keep it.
    let _ = handle.sync_all();
    Ok(())
}

fn draft(dir: &Dir, mode: Mode) -> io::Result<(std::fs::File, String)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let bits = match mode {
        Mode::New(bits) => bits,
        Mode::Kept(_) => 0o600,
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(bits);
    loop {
        let name = format!(".hermes-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match dir.open_with(&name, &options) {
            Ok(file) => return Ok((file.into_std(), name)),
            // Left behind by a process of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
