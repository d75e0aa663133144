//! What keeps a plugin from being examined at all.

use std::path::PathBuf;

/// There is nothing to examine, or no place to do it.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// Nothing lies at the path.
    #[error("{} is not there; name a component, a plugin's folder or a Rust project", .0.display())]
    Missing(PathBuf),
    /// A folder without a component.
    #[error(
        "no component was found in {}, nor below {}; build it with `cargo build --release --target wasm32-wasip2`",
        .folder.display(), .target.display()
    )]
    NoComponent {
        /// The folder.
        folder: PathBuf,
        /// Where cargo would have put it.
        target: PathBuf,
    },
    /// A folder without a native library for this machine.
    #[error(
        "no native library was found in {}: name it in plugin.yaml, as `native: {{{}: FILE}}`, and build it with `cargo build \
         --release --features native`", .folder.display(), hermes_runtime::TARGET
    )]
    NoLibrary {
        /// The folder.
        folder: PathBuf,
    },
    /// Several components, and none is named.
    #[error("{} has several components: {}; name one in its plugin.yaml, as `component: FILE.wasm`", .folder.display(), .found.join(", "))]
    Several {
        /// The folder.
        folder: PathBuf,
        /// Their names.
        found: Vec<String>,
    },
    /// A file that cannot be read.
    #[error("{} cannot be read: {source}; check its permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A manifest that is no good.
    #[error("{}: {why}; correct it and try again", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A configuration that is no JSON object.
    #[error("the configuration is no JSON object: {0}; give one such as '{{\"key\": \"value\"}}'")]
    Config(String),
    /// There is no room for what is made up around the plugin.
    #[error("what surrounds the plugin cannot be set up: {0}; free some space, or set TMPDIR to another folder")]
    Surroundings(String),
}
