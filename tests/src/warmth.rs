//! Compiled code shared between tests: compiling every plugin in every home would take most of the time.
//!
//! Only homes with a scripted server share it; the behaviour of a fresh home is tested in fresh homes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::binary;

/// A folder beside the binary, with a name of its own for each build.
fn shared() -> PathBuf {
    binary().with_file_name("test-code-cache")
}

fn own(home: &Path) -> PathBuf {
    home.join("cache/code")
}

/// Links the code that earlier tests compiled into a home.
pub(crate) fn bring(home: &Path) {
    // A failure here only costs time.
    let _ = private_folder(&own(home)).and_then(|()| share_key(home)).and_then(|()| link_all(&shared(), &own(home)));
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
    let _ = private_folder(&shared()).and_then(|()| link_all(&own(home), &shared()));
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
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
