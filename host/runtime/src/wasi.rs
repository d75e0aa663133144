//! WASI 0.2 for language runtimes. Every interface that they link is served, but there is nothing behind it: no folders,
//! no sockets, no environment, no arguments, an empty standard input. The clocks and random numbers are those of the
//! imports `clock` and `random`. Standard output and standard error go to the plugin's log.

pub(crate) mod output;
pub(crate) mod world;

use wasmtime::component::{Component, Linker};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::p2::bindings::{cli, random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{WasiView, p2};

use crate::context::Context;

/// The interfaces of WASI 0.2 that are served.
const SERVED: [&str; 27] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// Whether plugins get the import with this name.
pub(crate) fn serves(import: &str) -> bool {
    import.split_once('@').is_some_and(|(name, version)| version.starts_with("0.2.") && SERVED.contains(&name))
}

/// Links the interfaces of [`SERVED`] without files and sockets.
pub(crate) fn link(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<Context, WasiRandom>(linker, |context| context.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<Context, WasiRandom>(linker, |context| context.ctx().ctx.random())?;
    cli::environment::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::exit::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_input::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_output::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_stdin::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_stdout::add_to_linker::<Context, WasiCli>(linker, Context::cli)?;
    cli::terminal_stderr::add_to_linker::<Context, WasiCli>(linker, Context::cli)
}

/// Links the rest of [`SERVED`].
pub(crate) fn link_files_and_sockets(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    // It links the rest again.
    linker.allow_shadowing(true);
    p2::add_to_linker_async(linker)
}

/// Whether a component imports files or sockets.
pub(crate) fn needs_files_or_sockets(component: &Component) -> bool {
    let kind = component.component_type();
    let mut imports = kind.imports(component.engine());
    imports.any(|(name, _)| name.starts_with("wasi:filesystem/") || name.starts_with("wasi:sockets/"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What a plugin can reach through WASI. A new entry needs a reason: it widens the sandbox.
    #[test]
    fn exactly_these_interfaces_of_wasi_can_be_reached() {
        for served in SERVED {
            assert!(serves(&format!("{served}@0.2.0")) && serves(&format!("{served}@0.2.9")), "{served}");
            assert!(!serves(served) && !serves(&format!("{served}@0.3.0")), "{served}");
        }
        for other in [
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:keyvalue/store@0.2.0",
            "wasi:config/store@0.2.0",
            "wasi:cli/run@0.2.0",
            "wasi:clocks/timezone@0.2.0",
            "wasi:filesystem/types-more@0.2.0",
            "hermes:other/files@0.2.0",
        ] {
            assert!(!serves(other), "{other}");
        }
    }
}

#[cfg(test)]
mod attack {
    use super::*;

    #[test]
    fn a_name_that_only_looks_like_wasi_is_not_served() {
        for import in [
            "wasi:cli/exit@0.3.0",
            "wasi:cli/exit@0.20.0",
            "wasi:cli/exit@0.2",
            "wasi:cli/exit@00.2.0",
            "wasi:cli/exit@10.2.0",
            "wasi:cli/exit@ 0.2.0",
            "wasi:cli/exit",
            "@0.2.0",
            "WASI:cli/exit@0.2.0",
            "wasi:CLI/exit@0.2.0",
            "wasi:cli/exit/exit@0.2.0",
            "wasi:cli/exit @0.2.0",
            "wasi:cli/exit\0@0.2.0",
            "wasi:filesystem/../cli/exit@0.2.0",
            "wasi:cli@0.2.0",
            "wasi:io/streams-more@0.2.0",
            "wasi:sockets/tcp-listen@0.2.0",
            "wasi:cli/command@0.2.0",
            "wasi:clocks/timezone@0.2.6",
            "wasi:http/types@0.2.6",
            "wasi:nn/inference@0.2.0-rc",
            "w\u{430}si:cli/exit@0.2.0",
        ] {
            assert!(!serves(import), "{import:?}");
        }
    }
}
