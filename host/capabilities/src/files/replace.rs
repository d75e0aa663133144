//! Replaces a file as a whole, for `files` and `documents`: readers see the old content or the new one, and of two writers
//! that compare versions only one wins. A killed process leaves the old content and a hidden `.hermes-….tmp`.
//!
//! `private-files` works on paths; here the folder is a capability that must not be left.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};

/// Longest wait for a lock. A writer holds it only during one write.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The permissions of the written file.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// Those of a new file, before the umask.
    New(u32),
    /// Those of the replaced file, which stay.
    Kept(u32),
}

/// A directory opened as a file, which can be locked and synced. Handles of `cap-std` cannot.
pub(crate) fn handle(dir: &Dir) -> io::Result<std::fs::File> {
    Ok(dir.open(".")?.into_std())
}

/// Replaces the file `name`, a plain name in `dir`, by `content`. `handle` is that of `dir`.
pub(crate) fn replace(dir: &Dir, handle: &std::fs::File, name: &OsStr, content: &[u8], mode: Mode) -> io::Result<()> {
    let (mut file, draft) = draft(dir, mode)?;
    let written = (|| {
        file.write_all(content)?;
        if let Mode::Kept(bits) = mode {
            // Set them after the content, without the set-user and set-group bits.
            file.set_permissions(std::fs::Permissions::from_mode(bits & 0o777))?;
        }
        file.sync_all()?;
        dir.rename(&draft, dir, name)
    })();
    if let Err(error) = written {
        // The first error is the relevant one.
        let _ = dir.remove_file(&draft);
        return Err(error);
    }
    // The new content is in place. Some file systems cannot sync a directory; they keep renames in their own way.
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
            // A killed process with the same number left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
