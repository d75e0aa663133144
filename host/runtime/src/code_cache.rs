//! Compiled code, kept by content and engine: a warm start maps it.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::error::LoadError;
use crate::stamp;

/// A folder that only its owner can open.
pub(crate) struct CodeCache {
    folder: PathBuf,
    fingerprint: String,
}

impl CodeCache {
    pub(crate) fn new(folder: PathBuf, engine: &Engine) -> Self {
        Self { folder, fingerprint: fingerprint(engine) }
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        self.folder.join(format!("{}-{}.cwasm", blake3::hash(bytes).to_hex(), self.fingerprint))
    }

    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        self.file(bytes).exists()
    }

    /// The component behind these bytes: mapped when it was compiled before, else checked, compiled and kept.
    pub(crate) fn load(&self, engine: &Engine, bytes: &[u8]) -> Result<Component, LoadError> {
        let file = self.file(bytes);
        if let Some(component) = self.map(engine, &file) {
            return Ok(component);
        }
        stamp::check(bytes)?;
        let component =
            Component::new(engine, bytes).map_err(|error| LoadError::NotAComponent { why: root_cause(&error) })?;
        let code = component.serialize().map_err(|error| LoadError::NotAComponent { why: root_cause(&error) })?;
        self.keep(&file, &code).map_err(|source| LoadError::Cache { path: file.clone(), source })?;
        Ok(component)
    }

    fn map(&self, engine: &Engine, file: &Path) -> Option<Component> {
        if !private(&self.folder, 0o077) || !private(file, 0o022) {
            return None;
        }
        // SAFETY: the file must be what `Component::serialize` wrote. It lies under a name made of the source's hash and
        // the engine's fingerprint, in a folder that belongs to this user and that nobody else may enter, and
        // it was put there by a rename of a file written in full: only somebody who already acts as this user could
        // have altered it.
        #[allow(unsafe_code)]
        let mapped = unsafe { Component::deserialize_file(engine, file) };
        mapped.inspect_err(|error| tracing::debug!(%error, "compiled code is recompiled")).ok()
    }

    fn keep(&self, file: &Path, code: &[u8]) -> io::Result<()> {
        make_private(&self.folder)?;
        let mut written = tempfile::NamedTempFile::new_in(&self.folder)?;
        written.write_all(code)?;
        written.persist(file)?;
        Ok(())
    }
}

fn root_cause(error: &wasmtime::Error) -> String {
    error.chain().last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// A short name for the compiler, its version and its settings.
fn fingerprint(engine: &Engine) -> String {
    struct Blake(blake3::Hasher);
    impl Hasher for Blake {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            self.0.finalize().as_bytes().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        }
    }
    let mut hasher = Blake(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().to_hex()[..16].to_owned()
}

#[cfg(unix)]
fn private(path: &Path, forbidden: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    // The home folder's owner is this user, or the cache would not be below it.
    fs::symlink_metadata(path)
        .is_ok_and(|found| !found.is_symlink() && found.mode() & forbidden == 0 && found.uid() == user_id())
}

#[cfg(unix)]
fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn private(path: &Path, _: u32) -> bool {
    path.exists()
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        builder.mode(0o700).create(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
    }
    #[cfg(not(unix))]
    builder.create(folder)
}
