//! Adapts the host's services and capabilities to the imports of the contract. No import traps: every expected failure
//! is an error of the contract.

mod basics;
mod documents;
mod files;
mod history;
mod http;
mod llm;
mod process;
mod sql;

use hermes_bindings::hermes::plugin as imported;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::p2::{self, bindings::cli};
use wasmtime_wasi::random::WasiRandom;

use crate::context::Context;
use crate::error::{Fault, FaultKind};

impl imported::types::Host for Context {}

/// Links the contract's imports, and the parts of WASI that language runtimes link.
pub(crate) fn link(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    /// Counts every use of a contract import.
    fn counted(context: &mut Context) -> &mut Context {
        context.call.host_calls += 1;
        context
    }
    type Own = HasSelf<Context>;
    hermes_bindings::Everything::add_to_linker::<Context, Own>(linker, counted)?;

    p2::add_to_linker_proxy_interfaces_async(linker)?;
    p2::bindings::random::insecure::add_to_linker::<Context, WasiRandom>(linker, random)?;
    p2::bindings::random::insecure_seed::add_to_linker::<Context, WasiRandom>(linker, random)?;
    cli::environment::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::exit::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_input::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_output::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_stdin::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_stdout::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_stderr::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    Ok(())
}

impl Context {
    /// Runs blocking work off the thread that drives the guest, and waits for it within the call's time.
    async fn off_thread<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let work = tokio::task::spawn_blocking(work);
        let done = async { work.await.map_err(|error| Fault::new(FaultKind::Failed, "io", error.to_string()))? };
        self.call.bounded(done).await
    }
}

fn random(context: &mut Context) -> &mut wasmtime_wasi::random::WasiRandomCtx {
    use wasmtime_wasi::WasiView;
    context.ctx().ctx.random()
}

/// Whether plugins get the import with this name.
pub(crate) fn offers(import: &str) -> bool {
    const OFFERED: &[&str] = &["hermes:plugin/", "wasi:io/", "wasi:cli/", "wasi:clocks/", "wasi:random/"];
    OFFERED.iter().any(|package| import.starts_with(package))
}
