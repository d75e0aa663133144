//! What protects a workspace from the file tools of plugins: the folders of git are closed to changes, and some changes need
//! the user's approval.
//!
//! Every change of a file passes here, whichever plugin asks for it. [`Guard`] holds what the plugins of a session share:
//! the list of files that start programs or instruct agents, and the contents that the session has read.

mod built_in;
mod change;
mod kernel;
mod listed;
mod name;
pub(super) mod repository;
mod seen;

use std::path::Path;
use std::sync::Arc;

pub use built_in::BUILT_IN;
pub use change::{Agreed, Change, Concern, Deed};
pub(super) use kernel::is_kernel_interface;
pub use listed::{Listed, ListedFile, PatternError};
pub(super) use name::is_git;
pub use seen::Seen;

/// The rules for changes of files, shared by the plugins of a session.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    listed: Arc<Listed>,
    seen: Arc<Seen>,
}

impl Guard {
    /// The rules with this list, for a session that has read these contents.
    pub fn new(listed: Arc<Listed>, seen: Arc<Seen>) -> Self {
        Self { listed, seen }
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The concerns of a file that appears, changes or goes at this place.
    pub(super) fn of_file(&self, path: &Path) -> Option<Concern> {
        self.listed.of_file(path).map(|listed| Concern::listed(path, listed))
    }

    /// The concerns of a link at this place: it may lead to a folder, and each file below would then have this path.
    pub(super) fn of_link(&self, path: &Path) -> Option<Concern> {
        self.listed.of_link(path).map(|listed| Concern::listed(path, listed))
    }
}
