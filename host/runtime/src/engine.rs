//! The one wasmtime engine of a process.

use std::alloc::{Layout, handle_alloc_error};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Config, Engine, OptLevel, OutOfMemory, RegallocAlgorithm};

use crate::code_cache::{CodeCache, CodeFolder, Source};
use crate::compiler::{Compiler, Manner, Progress};
use crate::component::Component;
use crate::context::Context;
use crate::contract::LaterVersions;
use crate::error::LoadError;
use crate::functions::Functions;
use crate::imports;
use crate::loaded::Loaded;
use crate::native::{Library, TARGET, sweep};
use crate::wasi;

/// How often a running guest checks its deadline.
pub(crate) const TICK: Duration = Duration::from_millis(10);

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
    pub fn with_precompiled(mut self, artifacts: &'static [&'static [u8]]) -> Self {
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
        bytes: &[u8],
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

/// What cannot fail, except for want of memory. wasmtime reports that; everywhere else it ends the process, and so it does here.
fn made<T>(result: wasmtime::Result<T>, why: &str) -> T {
    result.unwrap_or_else(|error| match error.downcast_ref::<OutOfMemory>() {
        Some(lack) => {
            let layout = Layout::from_size_align(lack.requested_allocation_size(), 1);
            handle_alloc_error(layout.unwrap_or(Layout::new::<u8>()))
        }
        None => panic!("{why}: {error:#}"),
    })
}

/// The engine that every process of this build uses, so that one process can map code that another compiled.
pub(crate) fn engine() -> Engine {
    made(Engine::new(&configuration()), "the configuration is sound for this processor")
}

/// The same engine, which compiles in the thread that asks it. The code is the same.
pub(crate) fn of_one_thread() -> Engine {
    let mut config = configuration();
    config.parallel_compilation(false);
    made(Engine::new(&config), "the configuration is sound for this processor")
}

/// An engine that compiles in a fraction of the time, to slower code. [`engine`] loads this code: how far code was optimised does not
/// change what it needs.
pub(crate) fn draft(parallel: bool, functions: Option<Arc<Functions>>) -> Engine {
    let mut config = configuration();
    if let Some(functions) = functions {
        made(config.enable_incremental_compilation(functions), "the compiler is part of this build");
    }
    config.cranelift_opt_level(OptLevel::None).cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
    config.parallel_compilation(parallel);
    made(Engine::new(&config), "the configuration is sound for this processor")
}

/// An engine that compiles for every processor of this target. It cannot run code.
pub(crate) fn baseline() -> Engine {
    let mut config = configuration();
    // With an explicit target, wasmtime does not probe this machine's processor for optional features.
    made(config.target(TARGET), "wasmtime knows the target that it was built for");
    made(Engine::new(&config), "the configuration is sound for this target")
}

pub(crate) fn configuration() -> Config {
    let mut config = Config::new();
    // Contract functions are synchronous: the host waits on fibers. Calls are three times cheaper without concurrency.
    config.concurrency_support(false);
    config.epoch_interruption(true);
    // The fiber's stack must be larger than the part of it that a guest may use.
    config.max_wasm_stack(1 << 20);
    config.async_stack_size(2 << 20);
    config
}

/// Starts a thread that advances the epoch as long as the engine is alive.
fn start_ticker(engine: &Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    let ticker = std::thread::Builder::new().name("hermes-epochs".to_owned());
    ticker.spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    })?;
    Ok(())
}
