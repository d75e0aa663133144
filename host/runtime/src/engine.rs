//! The one wasmtime engine of a process.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Config, Engine};

use crate::code_cache::{CodeCache, CodeFolder};
use crate::compiler::{Compiler, Progress};
use crate::component::Component;
use crate::context::Context;
use crate::error::LoadError;
use crate::imports;
use crate::loaded::Loaded;
use crate::native::{Library, TARGET};

/// How often a running guest looks whether its time is up.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Compiles, links and keeps the time.
pub struct Runtime {
    engine: Engine,
    linker: Linker<Context>,
    cache: CodeCache,
    compiler: Compiler,
    /// What is loaded and in use: sessions of one process share it.
    loaded: Mutex<HashMap<blake3::Hash, Weak<Loaded>>>,
}

impl Runtime {
    /// One that compiles in this process and keeps code and key in a folder of its own: for laboratories and tests.
    pub fn new(code: PathBuf) -> Self {
        Self::with(CodeFolder::alone(code), Compiler::InProcess)
    }

    /// One that keeps compiled code in a folder, and has it made by a compiler.
    pub fn with(code: CodeFolder, compiler: Compiler) -> Self {
        let engine = engine();
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker).expect("no import is linked twice");
        let cache = CodeCache::new(code, &engine);
        keep_time(&engine);
        Self { engine, linker, cache, compiler, loaded: Mutex::default() }
    }

    /// The same runtime with code that was compiled while the binary was built, as [`precompiled::compile`] makes it.
    ///
    /// [`precompiled::compile`]: crate::precompiled::compile
    pub fn with_precompiled(mut self, artifacts: &'static [&'static [u8]]) -> Self {
        self.cache.add_precompiled(artifacts);
        self
    }

    /// Whether the component seems to have been compiled before, so that loading it is quick.
    pub fn is_compiled(&self, bytes: &[u8]) -> bool {
        self.cache.holds(blake3::hash(bytes))
    }

    /// Compiles a component unless that was done before. Nothing of it runs.
    pub fn compile(&self, bytes: &[u8], progress: Progress<'_>) -> Result<(), LoadError> {
        let source = blake3::hash(bytes);
        self.cache.load(&self.engine, &self.compiler, source, bytes, progress).map(drop)
    }

    /// Makes a component ready for instances: mapped when it was compiled before.
    pub fn load(&self, bytes: &[u8]) -> Result<Arc<Loaded>, LoadError> {
        self.load_watched(bytes, &|_| ControlFlow::Continue(()))
    }

    /// The same; where it has to be compiled, progress is told.
    pub fn load_watched(&self, bytes: &[u8], progress: Progress<'_>) -> Result<Arc<Loaded>, LoadError> {
        let source = blake3::hash(bytes);
        let known = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = known().get(&source).and_then(Weak::upgrade) {
            return Ok(loaded);
        }
        let mapped = self.cache.load(&self.engine, &self.compiler, source, bytes, progress)?;
        let loaded = Arc::new(Loaded::component(Component::new(mapped, &self.linker)?, *source.as_bytes()));
        let mut known = known();
        known.retain(|_, loaded| loaded.strong_count() > 0);
        known.insert(source, Arc::downgrade(&loaded));
        Ok(loaded)
    }

    /// Opens a native library: from here on its code runs in this process, with all of the user's rights, and it stays
    /// until the process ends. Only for what the user has granted as native.
    pub fn load_native(&self, bytes: &[u8]) -> Result<Arc<Loaded>, LoadError> {
        let library = Library::open(bytes, self.cache.folder()?)?;
        Ok(Arc::new(Loaded::native(library, *blake3::hash(bytes).as_bytes())))
    }
}

/// The engine as every process of this build makes it: what one has compiled, another can map.
pub(crate) fn engine() -> Engine {
    Engine::new(&configuration()).expect("the configuration is sound for this processor")
}

/// An engine that compiles for every processor of this target. It runs nothing.
pub(crate) fn baseline() -> Engine {
    let mut config = configuration();
    // With a named target, wasmtime does not look for optional features of this machine's processor.
    config.target(TARGET).expect("wasmtime knows the target that it was built for");
    Engine::new(&config).expect("the configuration is sound for this target")
}

pub(crate) fn configuration() -> Config {
    let mut config = Config::new();
    // Contract functions are plain: the host waits on fibers, and calls are three times cheaper without.
    config.concurrency_support(false);
    config.epoch_interruption(true);
    // The fiber's stack must be larger than what a guest may use of it.
    config.max_wasm_stack(1 << 20);
    config.async_stack_size(2 << 20);
    config
}

/// A thread that ticks as long as the engine is alive.
fn keep_time(engine: &Engine) {
    let engine = engine.weak();
    let ticker = std::thread::Builder::new().name("hermes-epochs".to_owned());
    let started = ticker.spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    });
    started.expect("the system can start a thread");
}
