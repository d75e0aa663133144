//! Follows a path from a root to the entry that it names.
//!
//! `cap-std` keeps every step inside the root. It does not know the denied places below the root,
//! so the steps are taken one by one here, links included, and each directory is compared with the
//! denied ones by device and inode: a name can be swapped while we look, an inode that we hold cannot.

use std::cell::OnceCell;
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};

use super::guard::{self, repository};
use super::{FilesError, Root, lock};

/// The longest path in bytes; the system itself takes no longer ones.
const MAX_PATH: usize = 4096;
/// The most components of a path: each holds a file descriptor while the path is followed.
pub(super) const MAX_DEPTH: usize = 128;
/// The most links that are followed, as in Linux.
const MAX_LINKS: usize = 40;
/// How often a name may be swapped during an operation before it fails.
const MAX_SWAPS: usize = 16;

/// The identity of a file or directory: device and inode.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(meta: &Metadata) -> Identity {
    (meta.dev(), meta.ino())
}

/// The current denied places. They are looked up again for every operation, since they may be created, moved or replaced
/// while the host runs.
pub(super) struct Fence {
    denied: HashSet<Identity>,
    /// The parents of denied paths: moving one would move the denied path too.
    above: HashSet<Identity>,
    /// Denied paths that do not exist: the deepest existing directory, the first missing name, and whether that name is
    /// the last component.
    missing: Vec<(Identity, OsString, bool)>,
    everything: bool,
    folders: Vec<PathBuf>,
    /// The files directly in denied folders that have another name by a hard link. Looked up when a file with several
    /// names is opened.
    linked: OnceCell<HashSet<Identity>>,
}

impl Fence {
    pub(super) fn around(root: &Root) -> Self {
        let mut fence = Self {
            denied: HashSet::new(),
            above: HashSet::new(),
            missing: Vec::new(),
            everything: false,
            folders: Vec::new(),
            linked: OnceCell::new(),
        };
        for place in &root.denied {
            fence.add(place, &root.real);
        }
        fence
    }

    fn add(&mut self, place: &Path, root: &Path) {
        let mut rest: Vec<OsString> = Vec::new();
        let mut existing = place;
        let (real, meta) = loop {
            // If the host cannot see the path, for example because a folder is missing, the nearest visible folder is
            // guarded.
            if let Ok(real) = existing.canonicalize()
                && let Ok(meta) = real.metadata()
            {
                break (real, meta);
            }
            let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                self.everything = true;
                return;
            };
            rest.push(name.to_owned());
            existing = parent;
        };
        let here = (meta.dev(), meta.ino());
        match rest.pop() {
            None => {
                self.denied.insert(here);
                if meta.is_dir() {
                    self.folders.push(real.clone());
                }
                self.everything |= root.starts_with(&real);
            }
            Some(name) => {
                self.above.insert(here);
                self.missing.push((here, name, rest.is_empty()));
            }
        }
        for ancestor in real.ancestors().skip(1) {
            if let Ok(meta) = ancestor.metadata() {
                self.above.insert((meta.dev(), meta.ino()));
            }
        }
    }

    pub(super) fn closes(&self, what: Identity) -> bool {
        self.everything || self.denied.contains(&what)
    }

    /// Whether an open file is also one directly in a denied folder, such as the keys in the home of Hermes.
    fn closes_linked(&self, meta: &Metadata) -> bool {
        /// The most entries of a denied folder that are looked at.
        const MAX_LOOKED_AT: usize = 10_000;
        if meta.nlink() < 2 {
            return false;
        }
        let files = || {
            let entries = self.folders.iter().filter_map(|folder| folder.read_dir().ok());
            let entries = entries.flat_map(|entries| entries.flatten().take(MAX_LOOKED_AT));
            let metas = entries.filter_map(|entry| entry.metadata().ok()).filter(|meta| meta.is_file());
            metas.filter(|meta| meta.nlink() > 1).map(|meta| (meta.dev(), meta.ino())).collect()
        };
        self.linked.get_or_init(files).contains(&identity(meta))
    }

    fn holds_closed(&self, what: Identity) -> bool {
        self.above.contains(&what)
    }

    /// Whether a new entry with this name would be a denied path or lead to one. Names are compared as the least strict file
    /// system does.
    fn closes_new(&self, parent: Identity, name: &OsStr, passing: bool) -> bool {
        self.everything
            || self.missing.iter().any(|(dir, missing, last)| {
                *dir == parent && (*last || !passing) && guard::folded(missing) == guard::folded(name)
            })
    }
}

/// How a link as the last part of a path is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Followed,
    Itself,
}

/// How missing directories on the way are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    MustExist,
    Made,
}

/// The end of a path.
pub(super) enum Place {
    /// At a directory without a usable name: the root itself, or one reached by a link to `..`.
    Directory(Dir),
    Slot(Box<Slot>),
}

/// A name in a directory, and its entry if there is one.
pub(super) struct Slot {
    pub(super) parent: Dir,
    pub(super) name: OsString,
    pub(super) meta: Option<Metadata>,
    /// Its absolute path, with links resolved.
    pub(super) path: PathBuf,
}

/// A directory on the way.
struct Passed {
    dir: Dir,
    /// Its absolute path, with links resolved.
    path: PathBuf,
    /// Whether its entries belong to git.
    git: bool,
}

impl Passed {
    fn slot(&self, name: OsString, meta: Option<Metadata>) -> io::Result<Place> {
        let path = self.path.join(&name);
        Ok(Place::Slot(Box::new(Slot { parent: self.dir.try_clone()?, name, meta, path })))
    }
}

/// A path of a plugin, and the root in which it is looked up.
pub(super) struct Request<'a> {
    pub(super) root: &'a Root,
    pub(super) path: &'a str,
    fence: Fence,
    /// Whether something is to be changed.
    changes: bool,
    /// If so, the paths of the entry as they were written, before each link on the way was followed.
    as_written: Vec<PathBuf>,
}

impl<'a> Request<'a> {
    pub(super) fn new(root: &'a Root, path: &'a str) -> Result<Self, FilesError> {
        let request = Self { root, path, fence: Fence::around(root), changes: false, as_written: Vec::new() };
        let top = root.dir.dir_metadata().map_err(|e| request.io("look at", e))?;
        if request.fence.closes(identity(&top)) {
            return Err(request.denied());
        }
        if guard::is_kernel_interface(&root.dir) {
            return Err(request.kernel());
        }
        Ok(request)
    }

    /// The same path, to be changed: never in a folder of git.
    pub(super) fn changing(self) -> Result<Self, FilesError> {
        if !self.root.writable {
            return Err(self.read_only());
        }
        Ok(Self { changes: true, ..self })
    }

    /// Follows the path. `allowed` decides about the final path before a missing directory is made.
    pub(super) fn follow(
        &mut self,
        leaf: Leaf,
        way: Way,
        allowed: &dyn Fn(&Self, &Path) -> Result<(), FilesError>,
    ) -> Result<Place, FilesError> {
        let mut pending = self.steps()?;
        if self.changes && self.root.path != self.root.real {
            self.as_written.push(pending.iter().fold(self.root.path.clone(), |path, step| path.join(step)));
        }
        let dir = self.root.dir.try_clone().map_err(|e| self.io("open", e))?;
        let git = self.changes && repository::surrounds(&self.root.real);
        let mut trail = vec![Passed { dir, path: self.root.real.clone(), git }];
        let mut links = 0;
        let mut checked = false;
        while let Some(step) = pending.pop_front() {
            if step == ".." {
                if trail.len() == 1 {
                    return Err(self.outside());
                }
                trail.pop();
                continue;
            }
            let passed = trail.last().ok_or_else(|| self.outside())?;
            let dir = &passed.dir;
            let last = pending.is_empty();
            if self.changes && guard::is_git(&step) {
                return Err(self.repository());
            }
            let Some(meta) = self.look(dir, &step)? else {
                if last {
                    self.check_git(passed)?;
                    return passed.slot(step, None).map_err(|e| self.io("open", e));
                }
                if way == Way::MustExist {
                    return Err(self.not_found());
                }
                self.check_git(passed)?;
                if !checked {
                    allowed(self, &self.destination(&passed.path, &step, &pending)?)?;
                    checked = true;
                }
                self.make_directory(dir, &step)?;
                pending.push_front(step);
                continue;
            };
            if meta.is_symlink() && !(last && leaf == Leaf::Itself) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(self.bad_path("its links lead in a circle"));
                }
                let target = match dir.read_link_contents(&step) {
                    Ok(target) => target,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.not_found()),
                    Err(error) => return Err(self.io("follow the link", error)),
                };
                if self.changes {
                    self.as_written.push(self.destination(&passed.path, &step, &pending)?);
                }
                self.prepend(&mut pending, &target)?;
                continue;
            }
            if last {
                self.check_git(passed)?;
                return passed.slot(step, Some(meta)).map_err(|e| self.io("open", e));
            }
            if !meta.is_dir() {
                return Err(self.not_a_directory());
            }
            if trail.len() > MAX_DEPTH {
                return Err(self.bad_path("it is nested too deep"));
            }
            let next = self.open_dir(dir, &step)?;
            let git = self.changes && repository::covers(&next, passed.git);
            let path = passed.path.join(&step);
            trail.push(Passed { dir: next, path, git });
        }
        let passed = trail.pop().ok_or_else(|| self.outside())?;
        self.check_git(&passed)?;
        Ok(Place::Directory(passed.dir))
    }

    /// Entries of git's folders do not change.
    fn check_git(&self, passed: &Passed) -> Result<(), FilesError> {
        if passed.git { Err(self.repository()) } else { Ok(()) }
    }

    /// The paths of the entry that is to be changed, before links on the way were followed.
    pub(super) fn as_written(&self) -> &[PathBuf] {
        &self.as_written
    }

    /// Where a path ends if nothing from `step` on is a link.
    fn destination(&self, parent: &Path, step: &OsStr, pending: &VecDeque<OsString>) -> Result<PathBuf, FilesError> {
        let mut path = parent.join(step);
        for step in pending {
            if step == ".." {
                path.pop();
            } else if guard::is_git(step) {
                return Err(self.repository());
            } else {
                path.push(step);
            }
        }
        Ok(path)
    }

    /// The components of the path. Refuses a path that is not valid below any root.
    fn steps(&self) -> Result<VecDeque<OsString>, FilesError> {
        let path = self.path;
        if path.len() > MAX_PATH {
            return Err(self.bad_path("it is too long"));
        }
        if path.contains('\0') {
            return Err(self.bad_path("it has a NUL character"));
        }
        if path.starts_with('/') {
            return Err(self.bad_path("it is absolute"));
        }
        let mut steps = VecDeque::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(self.bad_path("it has a `..`")),
                name => steps.push_back(OsString::from(name)),
            }
        }
        if steps.len() > MAX_DEPTH {
            return Err(self.bad_path("it is nested too deep"));
        }
        Ok(steps)
    }

    fn prepend(&self, pending: &mut VecDeque<OsString>, target: &Path) -> Result<(), FilesError> {
        let mut steps = Vec::new();
        for part in target.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => steps.push(OsString::from("..")),
                Component::Normal(name) => steps.push(name.to_owned()),
                // An absolute link is refused also if it leads back into the root: its meaning depends on the machine.
                Component::RootDir | Component::Prefix(_) => return Err(self.outside()),
            }
        }
        if pending.len() + steps.len() > MAX_PATH {
            return Err(self.bad_path("its links are nested too deep"));
        }
        for step in steps.into_iter().rev() {
            pending.push_front(step);
        }
        Ok(())
    }

    /// The entry of a name, without following a link.
    pub(super) fn look(&self, dir: &Dir, name: &OsStr) -> Result<Option<Metadata>, FilesError> {
        let meta = match dir.symlink_metadata(name) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                return Err(self.bad_path("a name in it is too long or not allowed here"));
            }
            Err(error) => return Err(self.io("look at", error)),
        };
        if self.fence.closes(identity(&meta)) {
            return Err(self.denied());
        }
        Ok(Some(meta))
    }

    fn make_directory(&mut self, dir: &Dir, name: &OsStr) -> Result<(), FilesError> {
        // Otherwise parallel calls could each make one part of a folder of git.
        let _alone = if repository::is_part(name) { Some(lock(self, dir)?) } else { None };
        self.check_new(dir, name, true)?;
        match dir.create_dir(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(self.io("make the directory of", error));
            }
            _ => {}
        }
        // The new directory may be a parent of a denied path that did not exist before.
        self.fence = Fence::around(self.root);
        Ok(())
    }

    fn check_new(&self, parent: &Dir, name: &OsStr, passing: bool) -> Result<(), FilesError> {
        let meta = parent.dir_metadata().map_err(|e| self.io("look at", e))?;
        if self.fence.closes_new(identity(&meta), name, passing) {
            return Err(self.denied());
        }
        if repository::would_become(parent, name) {
            return Err(self.repository());
        }
        Ok(())
    }

    /// Whether a new entry may be created here.
    pub(super) fn check_creation(&self, slot: &Slot) -> Result<(), FilesError> {
        self.check_new(&slot.parent, &slot.name, false)
    }

    /// Whether an entry may be moved or removed: not if it contains a denied place.
    pub(super) fn check_departure(&self, meta: &Metadata) -> Result<(), FilesError> {
        if self.fence.holds_closed(identity(meta)) {
            return Err(self.denied());
        }
        Ok(())
    }

    /// Opens a directory, but not a link to one.
    pub(super) fn open_dir(&self, dir: &Dir, name: &OsStr) -> Result<Dir, FilesError> {
        for _ in 0..MAX_SWAPS {
            let seen = self.look(dir, name)?.ok_or_else(|| self.not_found())?;
            if !seen.is_dir() {
                return Err(self.not_a_directory());
            }
            if let Some(opened) = self.open_seen_dir(dir, name, &seen)? {
                return Ok(opened);
            }
        }
        Err(self.busy())
    }

    /// Opens a regular file for reading, but not a link to one.
    pub(super) fn open_file(&self, dir: &Dir, name: &OsStr) -> Result<(File, Metadata), FilesError> {
        for _ in 0..MAX_SWAPS {
            let seen = self.look(dir, name)?.ok_or_else(|| self.not_found())?;
            if !seen.is_file() {
                return Err(self.not_a_file(&seen));
            }
            if let Some(opened) = self.open_seen_file(dir, name, &seen)? {
                return Ok(opened);
            }
        }
        Err(self.busy())
    }

    /// None if the name has another entry than at the check, such as a link to a denied place.
    fn open_seen_dir(&self, dir: &Dir, name: &OsStr, seen: &Metadata) -> Result<Option<Dir>, FilesError> {
        let opened = match dir.open_dir(name) {
            Ok(opened) => opened,
            Err(error) if was_swapped(&error) => return Ok(None),
            Err(error) => return Err(self.io("open", error)),
        };
        let held = opened.dir_metadata().map_err(|e| self.io("look at", e))?;
        if guard::is_kernel_interface(&opened) {
            return Err(self.kernel());
        }
        Ok((identity(&held) == identity(seen)).then_some(opened))
    }

    fn open_seen_file(&self, dir: &Dir, name: &OsStr, seen: &Metadata) -> Result<Option<(File, Metadata)>, FilesError> {
        let mut options = OpenOptions::new();
        // Opened non-blocking, so that a swapped-in pipe does not make the host wait for its writer.
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let opened = match dir.open_with(name, &options) {
            Ok(opened) => opened,
            Err(error) if was_swapped(&error) => return Ok(None),
            Err(error) => return Err(self.io("open", error)),
        };
        let held = opened.metadata().map_err(|e| self.io("look at", e))?;
        if guard::is_kernel_interface(&opened) {
            return Err(self.kernel());
        }
        if self.fence.closes_linked(&held) {
            return Err(self.denied());
        }
        Ok((identity(&held) == identity(seen)).then_some((opened, held)))
    }
}

/// Whether opening failed because the entry changed after the check: gone, a socket, or a link
/// that `cap-std` would not follow, for which it makes an error of its own.
fn was_swapped(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(code) => [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::ENXIO].contains(&code),
        None => true,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn an_entry_swapped_between_check_and_open_is_not_opened() {
        let base = tempfile::tempdir().unwrap();
        let at = |path: &str| base.path().join(path);
        fs::create_dir_all(at("closed/dir")).unwrap();
        fs::write(at("closed/file"), "secret").unwrap();
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("file"), "harmless").unwrap();
        let root = Root::open("workspace", base.path(), true, [at("closed")]).unwrap();
        let request = Request::new(&root, "").unwrap();
        let [dir, file] = ["dir", "file"].map(|name| request.look(&root.dir, name.as_ref()).unwrap().unwrap());
        let open = || {
            let dir = request.open_seen_dir(&root.dir, "dir".as_ref(), &dir).unwrap().is_some();
            let file = request.open_seen_file(&root.dir, "file".as_ref(), &file).unwrap().is_some();
            (dir, file)
        };
        assert_eq!(open(), (true, true));

        for name in ["dir", "file"] {
            fs::rename(at(name), at(&format!("{name}-aside"))).unwrap();
        }
        assert_eq!(open(), (false, false));
        for target in ["closed", "..", "/"] {
            for name in ["dir", "file"] {
                symlink(Path::new(target).join(name), at(name)).unwrap();
            }
            // `cap-std` alone would follow links within the root.
            assert_eq!(root.dir.open("file").is_ok(), target == "closed");
            assert_eq!(open(), (false, false), "{target}");
            for name in ["dir", "file"] {
                fs::remove_file(at(name)).unwrap();
            }
        }
        assert!(Command::new("mkfifo").args([at("dir"), at("file")]).status().unwrap().success());
        assert_eq!(open(), (false, false));
    }
}
