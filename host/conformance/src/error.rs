//! What keeps a plugin from being examined at all.

use std::path::PathBuf;

/// There is nothing to examine, or no place to do it.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// Nothing lies at the path.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// A folder without a component.
    #[error(
        "no component was found in {}, nor below {}",
        .folder.display(), .target.display()
    )]
    NoComponent {
        /// The folder.
        folder: PathBuf,
        /// Where cargo would have put it.
        target: PathBuf,
    },
    /// A folder without a native library for this machine.
    #[error("no native library for this machine was found in {}", .folder.display())]
    NoLibrary {
        /// The folder.
        folder: PathBuf,
    },
    /// Several components, and none is named.
    #[error("{} has several components: {}", .folder.display(), .found.join(", "))]
    Several {
        /// The folder.
        folder: PathBuf,
        /// Their names.
        found: Vec<String>,
    },
    /// A file that cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A manifest that is no good.
    #[error("{}: {why}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A configuration that is no JSON object.
    #[error("the configuration is not a JSON object: {0}")]
    Config(String),
    /// There is no room for what is made up around the plugin.
    #[error("the environment of the test cannot be set up: {0}")]
    Surroundings(String),
}
