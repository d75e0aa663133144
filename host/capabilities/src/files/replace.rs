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
    let draft = write_draft(dir, content, mode)?;
    if let Err(error) = dir.rename(&draft, dir, name) {
        // The first error is the relevant one.
        let _ = dir.remove_file(&draft);
        return Err(error);
    }
    // The new content is in place. Some file systems cannot sync a directory; they keep renames in their own way.
    let _ = handle.sync_all();
    Ok(())
}

/// Like [`replace`] for a file that must still contain `expected`. Returns false, and leaves the file, if it does not.
///
/// Writers of this program exclude one another by locks, but an editor that saves at the same moment knows no lock. The two
/// files are therefore exchanged in one step, which shows what was replaced.
pub(crate) fn replace_unchanged(
    dir: &Dir,
    handle: &std::fs::File,
    name: &OsStr,
    (expected, content): (&[u8], &[u8]),
    mode: Mode,
) -> io::Result<bool> {
    let draft = write_draft(dir, content, mode)?;
    let exchanged = exchange(dir, &draft, name, (expected, content));
    if exchanged.is_err() || matches!(exchanged, Ok(Exchanged::No)) {
        let _ = dir.remove_file(&draft);
        return exchanged.map(|_| false);
    }
    if matches!(exchanged, Ok(Exchanged::Yes)) {
        let _ = dir.remove_file(&draft);
    }
    let _ = handle.sync_all();
    Ok(true)
}

enum Exchanged {
    /// The draft is in place, and its name has the replaced file.
    Yes,
    /// The draft was renamed: the file system cannot exchange files.
    Renamed,
    /// The file has another content, and stays.
    No,
}

fn exchange(dir: &Dir, draft: &str, name: &OsStr, (expected, content): (&[u8], &[u8])) -> io::Result<Exchanged> {
    let has = |name: &OsStr, content: &[u8]| match dir.read(name) {
        Ok(found) => Ok(found == content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    if !has(name, expected)? {
        return Ok(Exchanged::No);
    }
    match swap(dir, draft, name) {
        Ok(()) if has(draft.as_ref(), expected)? => Ok(Exchanged::Yes),
        // An editor saved after the last look: what it saved comes back, unless it has saved again.
        Ok(()) => {
            swap(dir, draft, name)?;
            if !has(draft.as_ref(), content)? {
                swap(dir, draft, name)?;
            }
            Ok(Exchanged::No)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Exchanged::No),
        Err(_) => dir.rename(draft, dir, name).map(|()| Exchanged::Renamed),
    }
}

/// Exchanges two files of a folder in one step.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn swap(dir: &Dir, draft: &str, name: &OsStr) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    Ok(renameat_with(dir, draft, dir, name, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn swap(_: &Dir, _: &str, _: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writes a draft, which is on the disk when this returns.
fn write_draft(dir: &Dir, content: &[u8], mode: Mode) -> io::Result<String> {
    let (mut file, draft) = draft(dir, mode)?;
    let written = (|| {
        file.write_all(content)?;
        if let Mode::Kept(bits) = mode {
            // Set them after the content, without the set-user and set-group bits.
            file.set_permissions(std::fs::Permissions::from_mode(bits & 0o777))?;
        }
        file.sync_all()
    })();
    match written {
        Ok(()) => Ok(draft),
        Err(error) => {
            let _ = dir.remove_file(&draft);
            Err(error)
        }
    }
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
