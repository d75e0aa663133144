//! Errors that prevent a plugin from being tested at all.

use std::path::PathBuf;

use hermes_plugin_host::artifact::ArtifactError;

/// Why a plugin cannot be tested.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The path does not exist.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// The folder has no component that can be tested, or several.
    #[error("{}: {error}", .folder.display())]
    NoBuild {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with its builds.
        error: ArtifactError,
    },
    /// The folder has no native library for this machine.
    #[error("no native library for this machine was found in {}", .folder.display())]
    NoLibrary {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The manifest is invalid.
    #[error("{}: {why}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What to write instead, if it follows from the problem.
        fix: Option<&'static str>,
    },
    /// A file of fixtures is invalid.
    #[error("{}: {why}", .path.display())]
    Fixtures {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        why: String,
    },
    /// The configuration is not a JSON object.
    #[error("the configuration is not a JSON object: {0}")]
    Config(String),
    /// The temporary test environment cannot be created.
    #[error("the environment of the test cannot be set up: {0}")]
    Surroundings(String),
}
