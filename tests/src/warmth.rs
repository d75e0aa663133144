//! Compiled code shared between tests: compiling every plugin in every home would take most of the time.
//!
//! Only homes with a scripted server share it; the behaviour of a fresh home is tested in fresh homes.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::process::binary;

/// The folder from which homes link the code. It lies beside the binary, or beside the homes if those are on another file system:
/// links cannot leave theirs, and copying all code into each home takes longer than the tests.
fn shared() -> PathBuf {
    let (binary, homes) = (binary(), std::env::temp_dir());
    let device = |path: &Path| fs::metadata(path).map(|file| file.dev()).ok();
    if device(&binary) == device(&homes) {
        return binary.with_file_name("test-code-cache");
    }
    // One for each checkout.
    let mut hasher = DefaultHasher::new();
    binary.hash(&mut hasher);
    homes.join(format!("hermes-test-code-{:016x}", hasher.finish()))
}

/// Whether a file of a home is compiled code that other homes have too.
pub(crate) fn is_shared(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "cwasm")
        && fs::symlink_metadata(file).is_ok_and(|file| file.nlink() > 1)
}

fn own(home: &Path) -> PathBuf {
    home.join("cache/code")
}

/// Links the code that earlier tests compiled into a home.
pub(crate) fn bring(home: &Path) {
    let shared = shared();
    // A failure here only costs time.
    let _ = private_folder(&own(home))
        .and_then(|()| share_key(home))
        .and_then(|()| own_folder(&shared, home))
        .and_then(|()| link_all(&shared, &own(home)));
}

/// Fails if the folder is another user's, who could bring code of their own.
fn own_folder(folder: &Path, home: &Path) -> std::io::Result<()> {
    let (folder, home) = (fs::symlink_metadata(folder)?, fs::metadata(home)?);
    match folder.is_dir() && folder.uid() == home.uid() {
        true => Ok(()),
        false => Err(std::io::ErrorKind::PermissionDenied.into()),
    }
}

/// All homes use the same key; otherwise none could use another's code.
fn share_key(home: &Path) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut key = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.join("code.key"))?;
    key.write_all(b"the key that all test homes have")
}

/// Saves the code that a home has compiled.
pub(crate) fn keep(home: &Path) {
    let shared = shared();
    let _ =
        private_folder(&shared).and_then(|()| own_folder(&shared, home)).and_then(|()| link_all(&own(home), &shared));
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn link_all(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "cwasm")
            && let Some(name) = file.file_name()
        {
            let place = to.join(name);
            // Linking is atomic, and an existing link is just as good.
            if !place.exists() && fs::hard_link(&file, &place).is_err() {
                let copy = place.with_extension(format!("{}.part", std::process::id()));
                fs::copy(&file, &copy)?;
                fs::rename(&copy, &place)?;
            }
        }
    }
    Ok(())
}
