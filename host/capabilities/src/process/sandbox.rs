//! Confines programs: which paths they may write, which they may not even see, and what is said when they are denied something.
//!
//! `hermes-sandbox` enforces what is planned here. Without it a program runs as before, with the user's approval.

mod denial;
mod entry;
mod git_folder;
mod index;
mod leads;
mod named;
mod plan;
mod repository;
mod search;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod watched;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_private_files::TemporaryFolder;

use crate::files::Listed;

pub(super) use plan::{Planned, Start, TMPDIR};

/// The folder for temporary files of confined programs cannot be made. An [`io::Error`] has it inside.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .root.display())]
pub struct NoScratch {
    /// The folder for all of them.
    pub root: PathBuf,
    source: io::Error,
}

/// Makes the folder that confined programs of a session have for temporary files, in the place of `/tmp`. It is in the home of
/// Hermes: in the system's temporary folder, which may be small, programs could leave no room for those of other sessions and of
/// Hermes itself, and the user may have set `TMPDIR` to anything.
pub(super) fn scratch(home: &Path) -> io::Result<TemporaryFolder> {
    let root = home.join("cache").join("scratch");
    let named = |source: io::Error| io::Error::new(source.kind(), NoScratch { root: root.clone(), source });
    let mut folders = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.recursive(true).create(&root).map_err(named)?;
    TemporaryFolder::within(&root, "hermes-scratch-").map_err(named)
}

/// Whether programs are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// Where the system can do so.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always: without a sandbox, no program runs.
    Require,
}

/// What the user wants of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxRules {
    /// Whether programs are confined.
    pub mode: SandboxMode,
    /// Whether confined programs can use the network.
    pub network: bool,
    /// Folders that they can write, besides the workspace and temporary folders.
    pub writable: Vec<PathBuf>,
    /// Folders and files that they do not see, besides the built-in ones.
    pub hidden: Vec<PathBuf>,
}

/// The sandbox of the programs of one plugin.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// What the user wants.
    pub rules: SandboxRules,
    /// `$HERMES_HOME`.
    pub home: PathBuf,
    /// The granted folders that the plugin may change.
    pub writable: Vec<PathBuf>,
    /// Folders in `$HERMES_HOME` that programs see all the same.
    pub readable: Vec<PathBuf>,
    /// Folders of the rules that hold work of the user like the granted ones: repositories in them are protected, too.
    pub guarded: Vec<PathBuf>,
    /// The files that start programs or instruct agents.
    pub listed: Arc<Listed>,
}

/// How a run is confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Not at all: the user wants it so, or nobody asked for a sandbox.
    Off,
    /// Not at all, because this machine cannot do it, for this reason.
    Unavailable(String),
    /// By a sandbox.
    Confined(Arc<Confined>),
}

/// A sandbox for one run.
#[derive(Debug)]
pub struct Confined {
    pub(super) sandbox: Sandbox,
    /// Granted folders that can be read, also in `$HERMES_HOME`.
    pub(super) readable: Vec<PathBuf>,
    /// Parts of the granted folders that are closed.
    pub(super) closed: Vec<PathBuf>,
    /// The session's folder for temporary files.
    pub(super) scratch: Arc<TemporaryFolder>,
}

impl PartialEq for Confined {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Confined {}

impl Confined {
    /// A sandbox with this folder for temporary files.
    pub fn new(sandbox: Sandbox, scratch: TemporaryFolder) -> Self {
        Self { sandbox, readable: Vec::new(), closed: Vec::new(), scratch: Arc::new(scratch) }
    }

    /// Whether the program can use the network.
    pub fn has_network(&self) -> bool {
        self.sandbox.rules.network
    }
}
