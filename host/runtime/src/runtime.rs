//! The runtime of a process: loads plugins for all of its sessions.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::code_cache::{CodeCache, CodeFolder, Source};
use crate::compiler::{Compiler, Manner, Progress};
use crate::component::Component;
use crate::context::Context;
use crate::contract::LaterVersions;
use crate::engine::{engine, made, start_ticker};
use crate::error::LoadError;
use crate::imports;
use crate::loaded::Loaded;
use crate::native::{Library, sweep};
use crate::packed::Packed;
use crate::precompiled::Artifact;
use crate::wasi;

/// Loads plugins: compiles and links them, and drives the clock of their deadlines.
pub struct Runtime {
    engine: Engine,
    /// Links what most plugins import.
    linker: Linker<Context>,
    /// Also links WASI's files and sockets, which take a large part of a short session's start. Made when first needed.
    whole_linker: OnceLock<Linker<Context>>,
    cache: CodeCache,
    compiler: Compiler,
    /// Whether the clock of the deadlines runs.
    has_clock: bool,
    /// The plugins in use, shared by the sessions of the process.
    loaded: Mutex<HashMap<(blake3::Hash, LaterVersions, bool), Weak<Loaded>>>,
}

impl Runtime {
    /// A runtime that compiles in this process and keeps code and key in one folder: for measurements and tests.
    pub fn new(code: PathBuf) -> Self {
        Self::with(CodeFolder::alone(code), Compiler::InProcess)
    }

    /// A runtime that keeps compiled code in a folder and compiles with the given compiler.
    pub fn with(code: CodeFolder, compiler: Compiler) -> Self {
        let engine = engine();
        let mut linker = Linker::new(&engine);
        made(imports::link(&mut linker), "no import is linked twice");
        sweep(&code.path);
        let cache = CodeCache::new(code, &engine);
        let has_clock = start_ticker(&engine).is_ok();
        Self { engine, linker, whole_linker: OnceLock::new(), cache, compiler, has_clock, loaded: Mutex::default() }
    }

    /// The same runtime with code that was compiled while the binary was built, as [`precompiled::compile`] makes it.
    ///
    /// [`precompiled::compile`]: crate::precompiled::compile
    pub fn with_precompiled(mut self, artifacts: &'static [Artifact]) -> Self {
        self.cache.add_precompiled(artifacts);
        self
    }

    /// Whether the component was probably compiled before, so that loading it is quick.
    pub fn is_compiled(&self, bytes: &[u8]) -> bool {
        self.cache.holds(blake3::hash(bytes))
    }

    /// Compiles a component unless it was compiled before. None of its code runs.
    pub fn compile(&self, bytes: &[u8], progress: Progress<'_>) -> Result<(), LoadError> {
        let source = Source::new(bytes, LaterVersions::Refused);
        self.cache.load(&self.engine, &self.compiler, source, progress).map(drop)
    }

    /// Makes a component ready for instances: maps its code, compiling it first if necessary. Refuses one that was built
    /// for a later version of the contract, unless semantic versioning promises that it fits.
    pub fn load(&self, bytes: &[u8]) -> Result<Arc<Loaded>, LoadError> {
        self.load_watched(bytes, LaterVersions::Refused, &|_| ControlFlow::Continue(()))
    }

    /// Like [`Runtime::load`]; reports progress while it compiles.
    pub fn load_watched(
        &self,
        bytes: &[u8],
        later: LaterVersions,
        progress: Progress<'_>,
    ) -> Result<Arc<Loaded>, LoadError> {
        self.load_in(bytes, later, Manner::default(), progress)
    }

    /// Like [`Runtime::load_watched`], compiled in the given manner unless its code is there already.
    pub fn load_in(
        &self,
        bytes: &[u8],
        later: LaterVersions,
        manner: Manner,
        progress: Progress<'_>,
    ) -> Result<Arc<Loaded>, LoadError> {
        self.load_source(Source { manner, ..Source::new(bytes, later) }, progress)
    }

    /// Like [`Runtime::load_watched`], for a component with a known BLAKE3 digest: its bytes are read only if it was not
    /// compiled before.
    pub fn load_known(
        &self,
        bytes: Packed<'_>,
        digest: [u8; 32],
        later: LaterVersions,
        progress: Progress<'_>,
    ) -> Result<Arc<Loaded>, LoadError> {
        self.load_source(Source { bytes, digest: digest.into(), later, manner: Manner::default() }, progress)
    }

    fn load_source(&self, source: Source<'_>, progress: Progress<'_>) -> Result<Arc<Loaded>, LoadError> {
        if !self.has_clock {
            return Err(LoadError::NoClock);
        }
        let key = (source.digest, source.later, source.manner.draft);
        let known = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = known().get(&key).and_then(Weak::upgrade) {
            return Ok(loaded);
        }
        let mapped = self.cache.load(&self.engine, &self.compiler, source, progress)?;
        let linker = if wasi::needs_files_or_sockets(&mapped.component) { self.whole_linker() } else { &self.linker };
        let loaded = Arc::new(Loaded::component(Component::new(mapped, linker)?, *source.digest.as_bytes()));
        let mut known = known();
        known.retain(|_, loaded| loaded.strong_count() > 0);
        known.insert(key, Arc::downgrade(&loaded));
        Ok(loaded)
    }

    fn whole_linker(&self) -> &Linker<Context> {
        self.whole_linker.get_or_init(|| {
            let mut linker = self.linker.clone();
            made(wasi::link_files_and_sockets(&mut linker), "no import is linked twice");
            linker
        })
    }

    /// Opens a native library. From then on its code runs in this process with all of the user's rights, until the
    /// process ends. Call it only for code that the user has granted as native.
    pub fn load_native(&self, bytes: &[u8], later: LaterVersions) -> Result<Arc<Loaded>, LoadError> {
        let library = Library::open(bytes, later, self.cache.folder()?, &self.compiler)?;
        Ok(Arc::new(Loaded::native(library, *blake3::hash(bytes).as_bytes())))
    }
}
