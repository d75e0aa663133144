//! Which entry of the file system a path is, whatever its name.

use std::path::Path;

/// The device and the number of an entry.
pub(super) type Identity = (u64, u64);

/// The identity of an entry, and whether it is a link.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<(Identity, bool)> {
    use std::os::unix::fs::MetadataExt as _;
    let data = path.symlink_metadata().ok()?;
    Some(((data.dev(), data.ino()), data.is_symlink()))
}

#[cfg(not(unix))]
pub(super) fn identity(_: &Path) -> Option<(Identity, bool)> {
    None
}

/// When the entry itself changed or was moved, in seconds.
#[cfg(unix)]
pub(super) fn changed_at(path: &Path) -> Option<i64> {
    use std::os::unix::fs::MetadataExt as _;
    path.symlink_metadata().ok().map(|data| data.ctime())
}

#[cfg(not(unix))]
pub(super) fn changed_at(_: &Path) -> Option<i64> {
    None
}
