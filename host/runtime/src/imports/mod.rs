//! What plugins may import. Nothing here traps: what can fail answers with an error of the contract.

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
use crate::error::FaultKind;

impl imported::types::Host for Context {}

/// The contract's imports, and of WASI what the runtimes of languages link.
pub(crate) fn link(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    /// Every use of an import of the contract comes by here.
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

fn random(context: &mut Context) -> &mut wasmtime_wasi::random::WasiRandomCtx {
    use wasmtime_wasi::WasiView;
    context.ctx().ctx.random()
}

/// Whether plugins get an import of this name.
pub(crate) fn offers(import: &str) -> bool {
    const OFFERED: &[&str] = &["hermes:plugin/", "wasi:io/", "wasi:cli/", "wasi:clocks/", "wasi:random/"];
    OFFERED.iter().any(|package| import.starts_with(package))
}

/// The contract's kinds by name, as the services name them.
fn kind(name: &str) -> FaultKind {
    match name {
        "invalid-input" => FaultKind::InvalidInput,
        "unavailable" => FaultKind::Unavailable,
        "denied" => FaultKind::Denied,
        "timeout" => FaultKind::Timeout,
        "cancelled" => FaultKind::Cancelled,
        "conflict" => FaultKind::Conflict,
        "exhausted" => FaultKind::Exhausted,
        _ => FaultKind::Failed,
    }
}
