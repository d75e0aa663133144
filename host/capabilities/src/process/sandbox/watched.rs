//! Protects files in the writable folders that choose programs: before a run those that exist, after it those that it created.
//!
//! Mounts protect what exists. The kernel offers ordinary users nothing that keeps a name from being created, so what a run
//! created is renamed when the run ends.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::entry::{Identity, changed_at, identity};
use super::git_folder::{GitFolders, Left};
use super::index::Fault;
use super::leads::{CHOOSES, Changed, Lead};
use super::repository::{self, ABSENT, Repository, State};
use super::search::{MOST_AFTER, Search, folders_around};
use crate::files::Listed;

/// The most lines about one run.
const MOST_SAID: usize = 20;
/// The ending of a file that was created against the rules.
const DENIED: &str = ".denied";

/// The state before a run, to compare with.
#[derive(Debug)]
pub(in crate::process) struct Watched {
    pub(super) roots: Vec<PathBuf>,
    pub(super) unseen: Vec<PathBuf>,
    /// Whether the program runs in the background.
    pub(super) background: bool,
    /// When the run began, in seconds.
    pub(super) since: i64,
    /// The folders of git that were protected.
    pub(super) protected: HashSet<Identity>,
    pub(super) before: Search,
    pub(super) repositories: Vec<Repository>,
    pub(super) absent: Vec<PathBuf>,
    /// What the paths that must not change contained.
    pub(super) states: Vec<(PathBuf, State)>,
    /// What the protected links led to.
    pub(super) leads: Vec<Lead>,
    /// What programs may write in the folders of git.
    pub(super) folders: GitFolders,
    /// How many files of the list were too many to be protected.
    pub(super) unprotected: usize,
    pub(super) listed: std::sync::Arc<Listed>,
}

impl Watched {
    /// The paths in folders of git that must not appear.
    pub(super) fn absent_in(repositories: &[Repository]) -> Vec<PathBuf> {
        let complete = repositories.iter().filter(|repository| !repository.is_passage);
        let all = complete.flat_map(|repository| ABSENT.map(|name| repository.folder.join(name)));
        all.filter(|path| path.symlink_metadata().is_err()).collect()
    }

    /// What the paths in folders of git that must not change contain now.
    pub(super) fn states_of(repositories: &[Repository]) -> Vec<(PathBuf, State)> {
        let decisive = repositories.iter().flat_map(|repository| &repository.decisive);
        decisive.map(|path| (path.clone(), State::of(path))).collect()
    }

    /// Renames what was created against the rules, and says so, with a line for each. While a program in the background runs, the user
    /// and other tools create files too, so what appeared then is only named.
    pub(in crate::process) fn undo(&self) -> Vec<String> {
        let mut said: Vec<String> = self.roots.iter().filter_map(|root| made_listable(root)).collect();
        let after = Search::within(MOST_AFTER, &self.roots, &self.unseen, &self.listed);
        let created = self.absent.iter().filter(|path| path.symlink_metadata().is_ok());
        said.extend(created.filter_map(|path| self.deny(path, CHOOSES)));
        let armed = "its configuration or its hooks would make git run programs";
        for path in after.git.iter().filter(|path| !self.is_accepted(path)) {
            // The workspace itself is not renamed, but its `HEAD`: without it, git finds no repository there.
            let path = if self.roots.contains(path) { &path.join("HEAD") } else { path };
            said.extend(self.deny(path, armed));
        }
        for path in self.new_parts() {
            said.extend(self.deny(&path, armed));
        }
        for path in after.listed.iter().chain(&after.linked).filter(|path| !self.was_there(path)) {
            let entry = self.listed.of_file(path).or_else(|| self.listed.of_file(&path.join("file")));
            let entry = entry.or_else(|| self.listed.of_link(path));
            said.extend(self.deny(path, entry.map_or("it is protected", |entry| &entry.reason)));
        }
        said.extend(self.of_git(&after));
        said.extend(self.leads.iter().filter_map(|lead| self.of_lead(lead)));
        // Without the list of the workspace itself, the next program is not run.
        let is_new = |path: &&PathBuf| !self.roots.contains(path) && !self.was_there(path);
        for path in after.unlistable.iter().filter(is_new) {
            said.extend(self.deny(path, "it cannot be listed, so nothing can be said about what is in it"));
        }
        if let Some(why) = &after.failed {
            said.push(format!(
                "not everything could be looked at after the program ({why}): files that start programs may be among what it left"
            ));
        }
        if after.is_partial && !self.before.is_partial {
            said.push(format!(
                "there are more than {MOST_AFTER} entries now, and not all were looked at: files that start programs may be among them"
            ));
        }
        if self.unprotected > 0 {
            said.push(format!(
                "there are so many files that start programs or instruct agents that the newest {} were not protected from the program",
                self.unprotected
            ));
        }
        said.extend(self.changed().map(|path| {
            format!(
                "{:?} changed while the program ran, although programs cannot change it. Another program may have replaced it, \
                 which ends its protection: look at it before you use git",
                path.display().to_string()
            )
        }));
        let more = said.len().saturating_sub(MOST_SAID);
        if more > 1 {
            said.truncate(MOST_SAID);
            said.push(format!("the same holds for {more} more paths"));
        }
        said
    }

    /// Renames the links and the index that would make git write elsewhere, and says so.
    fn of_git(&self, after: &Search) -> Vec<String> {
        let known = self.repositories.iter().filter(|known| !known.is_passage).map(|known| known.folder.clone());
        let found = after.git.iter().filter_map(|path| path.canonicalize().ok());
        let inside = |folder: &PathBuf| self.roots.iter().any(|root| folder.starts_with(root));
        let folders: BTreeSet<PathBuf> = known
            .chain(found.filter(inside))
            .filter(|folder| folder.is_dir())
            .flat_map(|folder| repository::folders_of_git(&folder))
            .collect();
        let left = folders.iter().flat_map(|folder| self.folders.left(folder, self.since, &self.listed));
        left.filter_map(|left| match left {
            Left::Link(path) => {
                // git takes a name that begins with a dot for no branch.
                let new = [OsStr::new("."), path.file_name()?, OsStr::new(DENIED)].into_iter().collect::<OsString>();
                self.deny_as(&path, &new, "git would write to the file that the link leads to")
            }
            Left::Index(path, fault) => Some(self.of_index(&path, &fault)),
            Left::Entries(folder, names) => Some(format!(
                "the index of git in {:?} has {} since this command. git writes such files at a checkout, and they start programs or \
                 instruct agents: look at them (`git diff --cached`) before you use git",
                folder.display().to_string(),
                names.join(", ")
            )),
            Left::Many(folder) => Some(format!(
                "{:?} has so many entries now that not all were looked at: links that make git write elsewhere may be among them",
                folder.display().to_string()
            )),
        })
        .collect()
    }

    fn of_index(&self, path: &Path, fault: &Fault) -> String {
        let shown = format!("{:?}", path.display().to_string());
        let why = match fault {
            Fault::Path(entry) => {
                format!("git would write its entry {entry:?} outside of the work tree or into a folder of git")
            }
            Fault::Unreadable => "Hermes cannot read it, so git might write any file at a checkout".to_owned(),
            Fault::TooLarge => "it is too large to be looked at, so git might write any file at a checkout".to_owned(),
        };
        let new = if self.background { None } else { renamed(path, OsStr::new("index.denied")) };
        match new {
            Some(new) => format!(
                "the index {shown} changed and is now called {:?}, because {why}. `git reset` makes a new index from the last commit",
                new.display().to_string()
            ),
            None => format!("the index {shown} changed: run `git reset` before anything else of git, because {why}"),
        }
    }

    /// Renames what appeared at the end of a protected link, and says so; or says that something else is there.
    fn of_lead(&self, lead: &Lead) -> Option<String> {
        match lead.changed()? {
            Changed::Created(target) if self.roots.iter().any(|root| target.starts_with(root) && target != *root) => {
                self.deny(&target, &lead.why)
            }
            Changed::Created(_) | Changed::Other => Some(format!(
                "what {:?} leads to changed while the program ran: look at it, because {}",
                lead.path.display().to_string(),
                lead.why
            )),
        }
    }

    /// Folders of submodules and work trees that appeared in known repositories, and would make git run programs.
    fn new_parts(&self) -> Vec<PathBuf> {
        let known = self.repositories.iter().filter(|known| !known.is_passage && known.folder.is_dir());
        let parts = known.flat_map(|known| Repository::with_parts(known.folder.clone()));
        let is_new = |folder: &Path| identity(folder).is_some_and(|(own, _)| !self.protected.contains(&own));
        let mut new: Vec<PathBuf> =
            parts.filter(|part| !part.is_passage && is_new(&part.folder)).map(|part| part.folder).collect();
        new.sort();
        new.dedup();
        new.retain(|folder| {
            let is_worktree = folder.parent().and_then(Path::file_name) == Some(OsStr::new("worktrees"));
            let is_accepted =
                is_worktree && repository::is_own_worktree(folder) || repository::is_harmless_module(folder);
            !is_accepted
        });
        new
    }

    /// Paths in folders of git that must not change, and did.
    fn changed(&self) -> impl Iterator<Item = &Path> {
        // A repository can move with a folder around it, and then it is as before.
        let is_there = |path: &&(PathBuf, State)| path.0.parent().is_some_and(Path::is_dir);
        let states = self.states.iter().filter(is_there).filter(|(path, state)| State::of(path) != *state);
        states.map(|(path, _)| path.as_path())
    }

    fn deny(&self, path: &Path, why: &str) -> Option<String> {
        let mut new = path.file_name()?.to_owned();
        new.push(DENIED);
        // Some patterns of the list have a wildcard at their end, and would match again.
        if self.listed.of_file(&path.with_file_name(&new)).is_some() {
            new = [OsStr::new("denied-"), &new].into_iter().collect();
        }
        self.deny_as(path, &new, why)
    }

    fn deny_as(&self, path: &Path, new: &OsStr, why: &str) -> Option<String> {
        let shown = |path: &Path| format!("{:?}", path.display().to_string());
        // Programs cannot replace a file that is mounted over, but others can. A program can put another folder in the place of one
        // around it.
        let stayed = folders_around(path, &self.roots)
            .all(|folder| identity(folder).map(|(own, _)| own) == self.before.around.get(folder).copied());
        if stayed && self.before.listed.contains(path) && !self.before.links.contains_key(path) {
            return Some(format!(
                "{} was replaced while the program ran, by you or by another program: look at it, because {why}",
                shown(path)
            ));
        }
        if self.background {
            return Some(format!(
                "{} appeared while the program ran. Nobody knows whether the program created it: look at it, because {why}",
                shown(path)
            ));
        }
        let Some(renamed) = renamed(path, new).or_else(|| renamed(path, OsStr::new("denied"))) else {
            return path
                .symlink_metadata()
                .is_ok()
                .then(|| format!("{} was created and cannot be renamed: look at it, because {why}", shown(path)));
        };
        Some(format!(
            "{} was created and is now called {}, because {why}. Tools such as `write_file` can create it with the user's \
             approval, except for what belongs to git",
            shown(path),
            shown(Path::new(&renamed))
        ))
    }

    /// Whether this was protected during the run: the same file or folder, perhaps moved with a folder around it.
    fn was_there(&self, path: &Path) -> bool {
        match identity(path) {
            // A link can be exchanged, because nothing can be mounted over it.
            Some((_, true)) => self.before.links.get(path) == fs::read_link(path).ok().as_ref(),
            Some((file, false)) => {
                self.before.files.contains(&file)
                    // The search before the run ended early, so the file may have been there.
                    || (self.before.is_partial && changed_at(path).is_some_and(|time| time < self.since))
            }
            None => true,
        }
    }

    /// Whether a folder of git, or a file that leads to one, was protected, or runs no program.
    fn is_accepted(&self, path: &Path) -> bool {
        if path.is_dir() {
            let was_there = self.was_there(path);
            let was_protected = was_there && (path.is_symlink() || self.was_repository(path));
            // A folder that existed before the run and still has no part of git is not the run's work.
            let is_other = was_there && !repository::is_repository(path) && !repository::has_parts(path);
            return was_protected || repository::is_harmless(path) || is_other;
        }
        if self.was_there(path) {
            return true;
        }
        // `git worktree add` makes a file that leads into a known folder of git, and so does `git submodule add`.
        let Some(leads_to) = repository::gitdir(path).filter(|_| repository::has_one_name(path)) else { return false };
        let known = || self.repositories.iter().filter(|known| !known.is_passage);
        let in_worktrees = known().any(|known| leads_to.parent() == Some(&known.folder.join("worktrees")));
        let in_modules = known().any(|known| leads_to.starts_with(known.folder.join("modules")));
        in_worktrees && repository::is_own_worktree(&leads_to)
            || in_modules && repository::is_harmless_module(&leads_to)
    }

    fn was_repository(&self, path: &Path) -> bool {
        let own = identity(path);
        self.before.is_partial || own.is_some_and(|(own, _)| self.protected.contains(&own))
    }
}

/// Makes a writable folder listable again, and says so. It could be listed before the run.
#[cfg(unix)]
fn made_listable(root: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_closed = fs::read_dir(root).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    let mut permissions = root.symlink_metadata().ok().filter(|data| is_closed && data.is_dir())?.permissions();
    permissions.set_mode(permissions.mode() | 0o700);
    fs::set_permissions(root, permissions).ok()?;
    Some(format!("{:?} could not be listed any more, and you have all rights to it again", root.display().to_string()))
}

#[cfg(not(unix))]
fn made_listable(_: &Path) -> Option<String> {
    None
}

/// Renames an entry within its folder, to this name or one with a number. Follows no link: another program may change the folders above.
#[cfg(target_os = "linux")]
fn renamed(path: &Path, to: &OsStr) -> Option<OsString> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;

    let name = path.file_name()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat2(CWD, path.parent()?, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    match renamed_in(&folder, name, to) {
        // The program made the folder read-only.
        Err(Errno::ACCESS) => {
            let same = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
            let before = same.metadata().ok()?.permissions();
            let open = fs::Permissions::from_mode(before.mode() | 0o700);
            fs::set_permissions(&same, open).ok()?;
            let new = renamed_in(&folder, name, to).ok();
            // The folder stays as the program left it.
            let _ = fs::set_permissions(&same, before);
            new
        }
        new => new.ok(),
    }
}

#[cfg(target_os = "linux")]
fn renamed_in(folder: &std::os::fd::OwnedFd, name: &OsStr, to: &OsStr) -> rustix::io::Result<OsString> {
    use rustix::fs::RenameFlags;
    use rustix::io::Errno;

    /// A program can create names that are easy to foresee.
    const FORESEEN: u32 = 10;
    const TRIES: u32 = 20;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    for number in 0..TRIES {
        let mut new = to.to_owned();
        match number {
            0 => {}
            1..FORESEEN => new.push(format!("-{number}")),
            _ => new.push(format!("-{}", now.as_nanos() + u128::from(number))),
        }
        match rustix::fs::renameat_with(folder, name, folder, &new, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(new),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(not(target_os = "linux"))]
fn renamed(_: &Path, _: &OsStr) -> Option<OsString> {
    None
}
