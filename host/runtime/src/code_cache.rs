//! The cache of compiled code, keyed by content and engine. A warm start maps files from it.
//!
//! Mapped code runs, so the cache maps only files that this installation wrote: every file carries a tag over the code
//! and its origin, made with the installation's own key. A foreign, altered or outdated file is compiled again.

mod artifact;
#[cfg(all(test, unix))]
mod attack;
mod eviction;
#[cfg(any(test, fuzzing))]
pub(crate) mod invariants;
mod key;
#[cfg(all(test, unix))]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use wasmtime::Engine;
use wasmtime::component::Component;

use self::artifact::Origin;
use self::eviction::Allowance;
use self::key::Key;
use crate::compiler::{Compiler, Manner, Progress};
use crate::contract::LaterVersions;
use crate::error::LoadError;
use crate::fingerprint::fingerprint;
use crate::functions::FunctionFiles;
use crate::packed::Packed;
use crate::precompiled::{self, Artifact};
use crate::stamp::{self, Coverage};

/// The folder of the compiled code, and the key file for its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFolder {
    /// A folder of its own, private to its owner. It is created when something is compiled.
    pub path: PathBuf,
    /// A file of 32 random bytes, created when missing. It lies outside of the folder, so that a code folder copied
    /// from elsewhere does not bring its own key.
    pub key: PathBuf,
}

impl CodeFolder {
    /// A folder that also holds its key: for measurements, tests and other temporary folders.
    pub fn alone(path: PathBuf) -> Self {
        Self { key: path.join("key"), path }
    }
}

/// How often a process checks whether another process has finished compiling.
const POLL: Duration = Duration::from_millis(50);

/// A component to load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) bytes: Packed<'a>,
    /// The digest of the bytes as they are.
    pub(crate) digest: blake3::Hash,
    /// What to do if it was built for a later version of the contract.
    pub(crate) later: LaterVersions,
    /// How to compile it if the cache has no code for it.
    pub(crate) manner: Manner,
}

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8], later: LaterVersions) -> Self {
        Self { bytes: Packed::Plain(bytes), digest: blake3::hash(bytes), later, manner: Manner::default() }
    }
}

/// The cache over one private folder.
pub(crate) struct CodeCache {
    folder: CodeFolder,
    fingerprint: [u8; 32],
    key: Mutex<Option<Key>>,
    allowance: Allowance,
    /// The code under development that this process compiled, the newest at the end.
    drafts: Mutex<Vec<PathBuf>>,
    /// Code that was compiled while the binary was built; used before a compiler is started.
    precompiled: &'static [Artifact],
}

/// Mapped code, and the open file whose lock keeps other processes from evicting it.
pub(crate) struct Mapped {
    pub(crate) component: Component,
    pub(crate) lease: File,
}

impl CodeCache {
    pub(crate) fn new(folder: CodeFolder, engine: &Engine) -> Self {
        Self {
            folder,
            fingerprint: fingerprint(engine),
            key: Mutex::new(None),
            allowance: Allowance::standard(),
            drafts: Mutex::default(),
            precompiled: &[],
        }
    }

    pub(crate) fn add_precompiled(&mut self, artifacts: &'static [Artifact]) {
        self.precompiled = artifacts;
    }

    /// The folder, created when missing.
    pub(crate) fn folder(&self) -> Result<&Path, LoadError> {
        let path = &self.folder.path;
        make_private(path).map_err(|source| LoadError::Cache { path: path.clone(), source })?;
        Ok(path)
    }

    /// Whether the cache has code for this source. The file may still be refused later.
    pub(crate) fn holds(&self, source: blake3::Hash) -> bool {
        self.file(source).exists()
            || self.file(declared(source)).exists()
            || precompiled::find(self.precompiled, source).is_some()
    }

    /// Maps the component of these bytes if it was compiled before, on this machine or while the binary was built.
    /// Otherwise checks, compiles and stores it first.
    pub(crate) fn load(
        &self,
        engine: &Engine,
        compiler: &Compiler,
        source: Source<'_>,
        progress: Progress<'_>,
    ) -> Result<Mapped, LoadError> {
        let Source { bytes, digest: mut source, later, manner } = source;
        if let Some(mapped) = self.map(engine, source)? {
            return Ok(mapped);
        }
        // The build checked what it compiled: with the digest alone, a bundled plugin need not be unpacked.
        if let Some(mapped) = self.unpack(engine, source)? {
            return Ok(mapped);
        }
        let bytes = bytes.unpack().map_err(|error| LoadError::Compile { why: error.to_string() })?;
        if stamp::check(&bytes, later)? == Coverage::Declared {
            // Without the manifest's declaration, these bytes would be refused. So the code gets a key that depends on the
            // declaration, too.
            source = declared(source);
            if let Some(mapped) = self.map(engine, source)? {
                return Ok(mapped);
            }
        }
        if manner.draft {
            // Draft code has a key of its own, so an installation of these bytes later compiles the better code once.
            source = draft(source);
            if let Some(mapped) = self.map(engine, source)? {
                return Ok(mapped);
            }
        }
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| LoadError::Cache { path, source }
        };
        let folder = self.folder()?;
        let begun = Instant::now();
        // One compilation at a time per home: a compiler uses all cores and much memory, and a process that waits may
        // find the code compiled.
        let lock = folder.join("compile.lock");
        let lock = open_lock(&lock).map_err(at(&lock))?;
        while let Err(TryLockError::WouldBlock) = lock.try_lock() {
            if progress(begun.elapsed()) == ControlFlow::Break(()) {
                return Err(LoadError::Cancelled);
            }
            std::thread::sleep(POLL);
        }
        if let Some(mapped) = self.map(engine, source)? {
            return Ok(mapped);
        }
        let written = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
        let next = manner.draft.then(|| tempfile::NamedTempFile::new_in(folder)).transpose().map_err(at(folder))?;
        let functions = FunctionFiles {
            known: next.as_ref().and_then(|_| self.known_functions()),
            next: next.as_ref().map(|next| next.path().to_owned()),
        };
        compiler.compile(engine, &bytes, written.as_file(), (manner, &functions), progress)?;
        if let Some(next) = next {
            self.keep_functions(next)?;
        }
        self.store(written, source)?;
        if manner.draft {
            self.retire_before(self.file(source));
        }
        self.map(engine, source)?
            .ok_or_else(|| LoadError::Compile {
                why: format!("the compiled code cannot be mapped from {}", self.file(source).display()),
            })
            .inspect(|_| eviction::sweep(folder, &self.suffix(), &self.allowance, SystemTime::now()))
    }

    /// Copies code that was compiled while the binary was built into the folder, and maps the copy. Returns `None` if
    /// there is no such code or it does not fit; the component is then compiled on this machine.
    fn unpack(&self, engine: &Engine, source: blake3::Hash) -> Result<Option<Mapped>, LoadError> {
        let Some(artifact) = precompiled::find(self.precompiled, source) else { return Ok(None) };
        let unused = |why: String| {
            tracing::warn!(why, "precompiled code is not used, and the plugin is compiled here");
            Ok(None)
        };
        let artifact = match artifact.unpack() {
            Ok(artifact) => artifact,
            Err(error) => return unused(error.to_string()),
        };
        let code = match precompiled::code(&artifact, source) {
            Ok(code) => code,
            Err(why) => return unused(why.to_string()),
        };
        let folder = self.folder()?;
        let failed = |source| LoadError::Cache { path: folder.to_owned(), source };
        let written = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        written.as_file().write_all(code).map_err(failed)?;
        self.store(written, source)?;
        // Two processes may do this at once: the later file replaces the earlier one, and both hold the same code.
        let mapped = self.map(engine, source)?;
        eviction::sweep(folder, &self.suffix(), &self.allowance, SystemTime::now());
        Ok(mapped)
    }

    /// The functions of earlier compilations of plugins under development, and how many bytes they have, if this installation
    /// wrote the file.
    fn known_functions(&self) -> Option<(PathBuf, u64)> {
        let path = self.functions();
        if !is_private(&self.folder.path) {
            return None;
        }
        let file = artifact::open(&path).ok()?;
        let checked = artifact::check(&file, &path, &self.key().ok()?, self.origin(functions()));
        if let Err(error) = checked {
            tracing::warn!(path = %path.display(), %error, "functions that were compiled before are not used");
            return None;
        }
        Some((path, artifact::length(&file).ok()?))
    }

    fn keep_functions(&self, next: tempfile::NamedTempFile) -> Result<(), LoadError> {
        if next.as_file().metadata().is_ok_and(|found| found.len() == 0) {
            return Ok(());
        }
        let path = self.functions();
        let failed = |source| LoadError::Cache { path: path.clone(), source };
        artifact::tag(next.as_file(), &self.key()?, self.origin(functions())).map_err(failed)?;
        next.persist(&path).map(drop).map_err(|error| failed(error.error))
    }

    fn functions(&self) -> PathBuf {
        self.folder.path.join(format!("functions{}", self.suffix().replace(".cwasm", eviction::FUNCTIONS)))
    }

    /// Remembers code under development, and removes what was compiled before it, unless sessions use it: each build would
    /// otherwise leave its own, until the allowance evicts the code of other plugins.
    fn retire_before(&self, newest: PathBuf) {
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        drafts.retain(|draft| {
            let is_gone = *draft != newest && eviction::remove_unused(draft);
            if is_gone {
                let _ = fs::remove_file(artifact::seal_path(draft));
            }
            !is_gone && *draft != newest
        });
        drafts.push(newest);
    }

    /// Moves compiled code to its final name, with this installation's tag.
    fn store(&self, written: tempfile::NamedTempFile, source: blake3::Hash) -> Result<(), LoadError> {
        let file = self.file(source);
        let failed = |source| LoadError::Cache { path: file.clone(), source };
        artifact::tag(written.as_file(), &self.key()?, self.origin(source)).map_err(failed)?;
        written.persist(&file).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn map(&self, engine: &Engine, source: blake3::Hash) -> Result<Option<Mapped>, LoadError> {
        let path = self.file(source);
        if !path.exists() {
            return Ok(None);
        }
        if !is_private(&self.folder.path) {
            tracing::warn!(folder = %self.folder.path.display(), "compiled code is not used: others can open its folder");
            return Ok(None);
        }
        let refused = |why: String| {
            tracing::warn!(path = %path.display(), why, "cached code is refused and compiled again");
            Ok(None)
        };
        let file = match artifact::open(&path) {
            Ok(file) => file,
            Err(error) => return refused(error.to_string()),
        };
        // On a file system without locks, eviction goes by age alone; mapped code stays mapped.
        let _ = file.try_lock_shared();
        if let Err(error) = artifact::check(&file, &path, &self.key()?, self.origin(source)) {
            return refused(error.to_string());
        }
        match deserialize(engine, &file, &path) {
            Ok(component) => Ok(Some(Mapped { component, lease: file })),
            Err(error) => refused(format!("{error:#}")),
        }
    }

    fn origin(&self, source: blake3::Hash) -> Origin {
        Origin { source: *source.as_bytes(), fingerprint: self.fingerprint }
    }

    fn file(&self, source: blake3::Hash) -> PathBuf {
        self.folder.path.join(format!("{}{}", source.to_hex(), self.suffix()))
    }

    fn suffix(&self) -> String {
        let name: String = self.fingerprint.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("-{name}.cwasm")
    }

    /// The key, read at its first use: a command that only lists things creates no key file.
    fn key(&self) -> Result<Key, LoadError> {
        let mut cached = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = &*cached {
            return Ok(key.clone());
        }
        let path = &self.folder.key;
        let key = Key::read_or_create(path).map_err(|source| LoadError::Cache { path: path.clone(), source })?;
        Ok(cached.insert(key).clone())
    }
}

fn deserialize(engine: &Engine, file: &File, path: &Path) -> wasmtime::Result<Component> {
    #[cfg(target_os = "linux")]
    let path = {
        use std::os::fd::AsRawFd;
        // Opens the file that was checked, even if another file has taken its name since.
        let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if own.exists() { own } else { path.to_owned() }
    };
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    // SAFETY: the file must be what this engine's compiler wrote, or the same compiler in the build of this binary; the
    // engine checks version, target and settings itself. It is a regular file of this user that no other user can
    // write, in a folder that no other user can enter. Its tag covers all of its bytes, its source and the engine, and
    // was made with a key that only this user can read. Only a process that already runs as this user can have altered
    // it.
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize_file(engine, path)
    }
}

/// The key of code for a component that runs only because its manifest accepts this host.
fn declared(source: blake3::Hash) -> blake3::Hash {
    blake3::Hasher::new().update(b"declared").update(source.as_bytes()).finalize()
}

/// The key of the file of functions.
fn functions() -> blake3::Hash {
    blake3::hash(b"functions of plugins under development")
}

/// The key of code that was compiled in a hurry.
fn draft(source: blake3::Hash) -> blake3::Hash {
    blake3::Hasher::new().update(b"draft").update(source.as_bytes()).finalize()
}

/// Whether a file or folder belongs to this user, is no link, and has none of the `forbidden` mode bits.
#[cfg(unix)]
fn is_ours(found: &fs::Metadata, forbidden: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    !found.is_symlink() && found.mode() & forbidden == 0 && found.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_ours(found: &fs::Metadata, _: u32) -> bool {
    !found.is_symlink()
}

fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && is_ours(&found, 0o077))
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

/// Opens the file whose lock a compilation holds, creating it when missing. Never blocks on a pipe.
fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(path)
}

/// Opens a file without following a link and without blocking on a pipe.
fn open_plainly(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(path)
}
