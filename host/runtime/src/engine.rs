//! The one wasmtime engine of a process: its settings, and the clock of the deadlines.

use std::alloc::{Layout, handle_alloc_error};
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Config, Engine, OptLevel, OutOfMemory, RegallocAlgorithm};

use crate::functions::Functions;

/// The target that this program is built for. A manifest lists its libraries by target.
pub const TARGET: &str = env!("HERMES_TARGET");

/// How often a running guest checks its deadline.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Unwraps a result that can fail only for lack of memory. wasmtime reports this failure. Elsewhere in the program a lack of
/// memory ends the process, so it does here too.
pub(crate) fn made<T>(result: wasmtime::Result<T>, why: &str) -> T {
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
pub(crate) fn start_ticker(engine: &Engine) -> std::io::Result<()> {
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
