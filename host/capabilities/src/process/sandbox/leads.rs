//! The targets of protected links, and protected files that have a second name.
//!
//! Nothing can be mounted over a link, and a program that can move a folder on the way, or write through the other name, changes what
//! is read at the protected place.

use std::fs;
use std::path::{Path, PathBuf};

use super::named::NAMED;
use super::repository::{self, Repository, State};
use super::search::Search;
use crate::files::Listed;

/// How many entries of a folder of hooks are looked at.
const MOST_HOOKS: usize = 1_000;
/// Why hooks and the like are protected.
pub(super) const CHOOSES: &str = "it chooses the programs that git runs";

/// A protected link or file, and what it led to.
#[derive(Debug)]
pub(super) struct Lead {
    pub(super) path: PathBuf,
    /// What it leads to, with links resolved. None if nothing is there.
    pub(super) target: Option<PathBuf>,
    state: Option<State>,
    link: Option<PathBuf>,
    /// Why it is protected.
    pub(super) why: String,
    /// Whether the target is protected in another way.
    pub(super) is_git: bool,
}

/// How a lead changed.
pub(super) enum Changed {
    /// It led to nothing.
    Created(PathBuf),
    Other,
}

impl Lead {
    fn new(path: PathBuf, why: String, is_git: bool, inside: &dyn Fn(&Path) -> bool) -> Self {
        let target = path.canonicalize().ok();
        // What is elsewhere does not change by a program.
        let state = target.as_deref().filter(|target| !is_git && inside(target)).map(State::of);
        let link = fs::read_link(&path).ok();
        Self { path, target, state, link, why, is_git }
    }

    /// Whether it leads elsewhere now, or to another content. A link that was exchanged itself is found elsewhere.
    pub(super) fn changed(&self) -> Option<Changed> {
        let now = self.path.canonicalize().ok().filter(|_| fs::read_link(&self.path).ok() == self.link)?;
        match &self.target {
            None => Some(Changed::Created(now)),
            Some(before) if *before == now && self.state.as_ref().is_none_or(|state| State::of(&now) == *state) => None,
            Some(_) => Some(Changed::Other),
        }
    }
}

fn is_in_git(path: &Path, repositories: &[Repository]) -> bool {
    repositories.iter().any(|repository| path.starts_with(&repository.folder))
}

/// The protected links, the protected files that have a second name, and the paths that the configuration of git names.
pub(super) fn leads(
    before: &Search,
    repositories: &[Repository],
    named: &[PathBuf],
    listed: &Listed,
    inside: &dyn Fn(&Path) -> bool,
) -> Vec<Lead> {
    let is_lead = |path: &Path| path.is_symlink() || (path.is_file() && !repository::has_one_name(path));
    let mut all = Vec::new();
    for path in before.listed.iter().chain(&before.linked).filter(|path| is_lead(path)) {
        let entry =
            listed.of_file(path).or_else(|| listed.of_file(&path.join("file"))).or_else(|| listed.of_link(path));
        let why = entry.map_or("it is protected", |entry| &entry.reason).to_owned();
        all.push(Lead::new(path.clone(), why, false, inside));
    }
    for path in before.git.iter().filter(|path| path.is_symlink()) {
        all.push(Lead::new(path.clone(), CHOOSES.to_owned(), true, inside));
    }
    let is_around = |path: &Path| repositories.iter().any(|repository| repository.folder.starts_with(path));
    for path in named {
        let lead = Lead::new(path.clone(), NAMED.to_owned(), false, inside);
        // A target in a folder of git is protected with that folder, and a target outside of the writable folders needs no
        // protection.
        let is_meant = match &lead.target {
            Some(target) => inside(target) && !is_around(target) && !is_in_git(target, repositories),
            None => path
                .ancestors()
                .skip(1)
                .find_map(|folder| folder.canonicalize().ok())
                .is_some_and(|folder| inside(&folder) && !is_in_git(&folder, repositories)),
        };
        if is_meant {
            all.push(lead);
        }
    }
    for path in repositories.iter().flat_map(|repository| &repository.decisive) {
        let hooks = fs::read_dir(path).into_iter().flatten().flatten().take(MOST_HOOKS).map(|hook| hook.path());
        let own = Some(path.clone()).into_iter();
        all.extend(
            hooks
                .chain(own)
                .filter(|path| is_lead(path))
                .map(|path| Lead::new(path, CHOOSES.to_owned(), false, inside)),
        );
    }
    all
}
