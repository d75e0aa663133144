//! What a confined process may reach.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a confined process may reach. All paths are absolute, and without links where the field says so.
///
/// Everything is readable and nothing writable, except as the fields say. If two fields have the same path, the later field
/// counts; a path below another one counts for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Folders and files that stay readable below hidden or temporary ones. Paths that do not exist are left out.
    pub readable: Vec<PathBuf>,
    /// The folder for temporary files, if there is one.
    pub temporary: Option<Temporary>,
    /// Folders that can be written, with links resolved.
    pub writable: Vec<PathBuf>,
    /// Writable folders that cannot be moved or removed, with links resolved. They may lie in a writable folder.
    pub pinned: Vec<PathBuf>,
    /// Paths in writable folders that cannot be changed, moved or removed, with links resolved. They exist.
    pub read_only: Vec<PathBuf>,
    /// Folders and files that appear empty. Paths that do not exist are left out.
    pub hidden: Vec<PathBuf>,
    /// Whether the network can be used.
    pub network: bool,
    /// The current folder.
    pub folder: PathBuf,
}

/// A folder for temporary files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Temporary {
    /// The folder, with links resolved.
    pub folder: PathBuf,
    /// The paths at which it appears.
    pub at: Vec<PathBuf>,
}
