//! The one wasmtime engine of a process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Config, Engine};

use crate::code_cache::CodeCache;
use crate::component::Loaded;
use crate::context::Context;
use crate::error::LoadError;
use crate::imports;

/// How often a running guest looks whether its time is up.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Compiles, links and keeps the time.
pub struct Runtime {
    engine: Engine,
    linker: Linker<Context>,
    cache: CodeCache,
}

impl Runtime {
    /// An engine that keeps compiled code in `code`, a folder of its own.
    pub fn new(code: PathBuf) -> Self {
        let mut config = Config::new();
        // Contract functions are plain: the host waits on fibers, and calls are three times cheaper without.
        config.concurrency_support(false);
        config.epoch_interruption(true);
        // The fiber's stack must be larger than what a guest may use of it.
        config.max_wasm_stack(1 << 20);
        config.async_stack_size(2 << 20);
        let engine = Engine::new(&config).expect("the configuration is sound for this processor");
        let mut linker = Linker::new(&engine);
        imports::link(&mut linker).expect("no import is linked twice");
        let cache = CodeCache::new(code, &engine);
        keep_time(&engine);
        Self { engine, linker, cache }
    }

    /// Whether the component was compiled before, so that loading it is quick.
    pub fn is_compiled(&self, bytes: &[u8]) -> bool {
        self.cache.holds(bytes)
    }

    /// Makes a component ready for instances: mapped when it was compiled before.
    pub fn load(&self, bytes: &[u8]) -> Result<Arc<Loaded>, LoadError> {
        let component = self.cache.load(&self.engine, bytes)?;
        Ok(Arc::new(Loaded::new(&component, &self.linker)?))
    }
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
