//! Adapts the host's services and capabilities to the imports of the contract. No import traps: every expected failure
//! is an error of the contract.

mod basics;
mod documents;
mod embeddings;
mod files;
mod history;
mod http;
mod llm;
mod llm_stream;
#[cfg(feature = "draft")]
mod notes;
mod process;
mod sql;

use hermes_bindings::imported;
use wasmtime::component::{HasSelf, Linker};

use crate::context::Context;
use crate::contract::Name;
use crate::error::{Fault, FaultKind};
use crate::wasi;

impl imported::types::Host for Context {}

/// Links the contract's imports and WASI for language runtimes.
pub(crate) fn link(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    /// Counts every use of a contract import.
    fn counted(context: &mut Context) -> &mut Context {
        context.call.host_calls += 1;
        context
    }
    type Own = HasSelf<Context>;
    hermes_bindings::Everything::add_to_linker::<Context, Own>(linker, counted)?;
    wasi::link(linker)
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

/// The imports of the contract: interfaces with their functions.
const SERVED: &[(&str, &[&str])] = &[
    ("hermes:embeddings/embeddings", &["resolve", "embed"]),
    ("hermes:files/files", &["roots", "stat", "entries", "read", "write", "rename", "remove", "search"]),
    #[cfg(not(feature = "draft"))]
    ("hermes:history/history", &["whole", "headers", "read", "parts", "summary", "search"]),
    #[cfg(feature = "draft")]
    ("hermes:history/history", &["whole", "headers", "read", "parts", "summary", "search", "search-dated", "count"]),
    #[cfg(feature = "draft")]
    ("hermes:notes/notes", &["show"]),
    ("hermes:host/clock", &["now", "utc-offset"]),
    ("hermes:host/info", &["version", "has"]),
    ("hermes:host/log", &["write"]),
    ("hermes:host/random", &["bytes"]),
    ("hermes:host/task", &["cancelled", "time-left", "progress"]),
    ("hermes:http/http", &["send", "has-secret", "replace-secret"]),
    ("hermes:llm/llm", &["resolve", "complete", "count-tokens"]),
    ("hermes:llm/llm-stream", &["start", "[method]generation.next"]),
    ("hermes:process/process", &["run", "start", "read", "write", "close-input", "wait", "stop", "programs"]),
    ("hermes:storage/documents", &["read", "write"]),
    ("hermes:storage/sql", &["query", "execute"]),
    ("hermes:types/types", &[]),
];

/// Whether the host has an import of the contract, and in it a function unless that is empty.
pub(crate) fn serves(interface: &str, function: &str) -> bool {
    SERVED.iter().any(|(name, functions)| *name == interface && (function.is_empty() || functions.contains(&function)))
}

/// Whether the host has the interface of a name in some version, and in it a function unless that is empty.
pub(crate) fn has(name: &Name<'_>, function: &str) -> bool {
    serves(&format!("{}/{}", name.package, name.interface), function)
}

/// Whether plugins get the import with this name. The contract's imports are checked by version elsewhere.
pub(crate) fn offers(import: &str) -> bool {
    Name::parse(import).is_some() || wasi::serves(import)
}
