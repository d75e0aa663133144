//! What protects a workspace from the file tools of plugins: the folders of git are closed to changes, and some changes need
//! the user's approval.
//!
//! Every change of a file passes here, whichever plugin asks for it. [`Guard`] holds what the plugins of a session share:
//! the list of files that start programs or instruct agents, and the contents that the session has read.

mod built_in;
mod change;
mod kernel;
mod linked;
mod listed;
mod name;
pub(super) mod repository;
mod seen;
mod turns;

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::removed::Removed;
use crate::changes::Changes;

pub use built_in::BUILT_IN;
pub use change::{Agreed, Change, Concern, Deed, EveryChange};
pub(super) use kernel::is_kernel_interface;
pub(super) use linked::Linked;
pub use listed::{Listed, ListedFile, PatternError};
pub(super) use name::folded;
pub(crate) use name::is_git;
pub use seen::Seen;
pub(super) use turns::Turns;

/// The rules for changes of files, shared by the plugins of a session.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    listed: Arc<Listed>,
    seen: Arc<Seen>,
    turns: Arc<Turns>,
    changes: Changes,
    every_change: EveryChange,
    removed: Arc<Removed>,
}

impl Guard {
    /// The rules with this list, for a session that has read these contents.
    pub fn new(listed: Arc<Listed>, seen: Arc<Seen>) -> Self {
        Self {
            listed,
            seen,
            turns: Arc::default(),
            changes: Changes::default(),
            every_change: EveryChange::default(),
            removed: Arc::default(),
        }
    }

    /// The files that were removed last.
    pub(super) fn removed(&self) -> &Removed {
        &self.removed
    }

    /// The same rules, for changes that are recorded.
    #[must_use]
    pub fn recording(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    /// Who records the changes.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The same rules, and whether every other change in the workspace needs approval, too.
    #[must_use]
    pub fn with_every_change(self, every_change: EveryChange) -> Self {
        Self { every_change, ..self }
    }

    /// The concern of an ordinary change.
    pub(super) fn of_edit(&self, root: &str, path: &Path) -> Option<Concern> {
        /// The root with the project. The others hold what plugins keep for themselves, or were granted by the user.
        const WORKSPACE: &str = "workspace";
        /// A longer file is not shown.
        const MOST: u64 = 1 << 20;
        if root != WORKSPACE || !self.every_change.is_set() {
            return None;
        }
        let is_shown = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
        let before = if is_shown { std::fs::read(path).ok() } else { None };
        Some(Concern::Edit { path: path.to_owned(), before })
    }

    /// The files that start programs or instruct agents.
    pub fn listed(&self) -> &Arc<Listed> {
        &self.listed
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The concerns of a file that appears, changes or goes. Every name of it counts: its path with links resolved, the paths
    /// `as_written` through links, and links at places of the list that lead to it.
    pub(super) fn of_file(&self, path: &Path, as_written: &[PathBuf]) -> Vec<Concern> {
        let linked = self.listed.links_to(path).names;
        let names = iter::once(path).chain(as_written.iter().chain(&linked).map(PathBuf::as_path));
        let mut concerns = Vec::new();
        self.add_file(names, &mut concerns);
        concerns
    }

    /// The concerns of a link: it may lead to a folder, and each file below would then have its names.
    pub(super) fn of_link(&self, path: &Path, as_written: &[PathBuf]) -> Vec<Concern> {
        let mut concerns = Vec::new();
        self.add_link(iter::once(path).chain(as_written.iter().map(PathBuf::as_path)), &mut concerns);
        concerns
    }

    /// The links at places of the list that lead to an entry, or to something below it.
    pub(super) fn links_to(&self, path: &Path) -> Linked {
        self.listed.links_to(path)
    }

    /// Adds the concerns of a file with these names. The first concern of each pattern is enough.
    pub(super) fn add_file<'a>(&self, names: impl IntoIterator<Item = &'a Path>, concerns: &mut Vec<Concern>) {
        for name in names {
            add(concerns, self.listed.of_file(name).map(|listed| Concern::listed(name, listed)));
        }
    }

    /// The same for a link.
    pub(super) fn add_link<'a>(&self, names: impl IntoIterator<Item = &'a Path>, concerns: &mut Vec<Concern>) {
        for name in names {
            add(concerns, self.listed.of_link(name).map(|listed| Concern::listed(name, listed)));
        }
    }
}

/// Adds a concern, unless its pattern has one.
pub(super) fn add(concerns: &mut Vec<Concern>, concern: impl Into<Option<Concern>>) {
    let Some(concern) = concern.into() else { return };
    if !concerns.iter().any(|known| known.pattern() == concern.pattern()) {
        concerns.push(concern);
    }
}
