//! Moving a file or a folder: everything in the folder gets another path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata};

use super::guard::{self, Agreed, Concern, Deed, repository};
use super::walk::{Leaf, MAX_DEPTH, Place, Request, Slot, Way};
use super::{FilesError, Roots, anything, lock, version_of};

/// The most entries of a folder that is moved: each is looked at before.
const MAX_MOVED: usize = 100_000;

/// The paths of an entry before and after its move.
struct Moved {
    /// Its path before, with links resolved.
    from: PathBuf,
    /// All its names before and after, that path included.
    names: Vec<PathBuf>,
}

impl Moved {
    /// Those of an entry of the moved folder.
    fn entry(&self, name: &OsStr) -> Self {
        Self { from: self.from.join(name), names: self.names.iter().map(|path| path.join(name)).collect() }
    }

    fn names(&self) -> impl Iterator<Item = &Path> {
        self.names.iter().map(PathBuf::as_path)
    }
}

impl Roots {
    /// Moves a file, a link or a directory to `to`, which must not exist. Missing directories of `to` are created.
    ///
    /// # Errors
    ///
    /// [`FilesError::Exists`] if `to` exists; [`FilesError::Approval`] as for writes and removals.
    pub fn rename(&self, root: &str, path: &str, to: &str, agreed: &Agreed) -> Result<(), FilesError> {
        let mut from = self.request(root, path)?.changing()?;
        let mut into = self.request(root, to)?.changing()?;
        let _turn = self.guard.turns().alone().ok_or_else(|| from.busy())?;
        let Place::Slot(source) = from.follow(Leaf::Itself, Way::MustExist, &anything)? else {
            return Err(from.bad_path("it is the root itself"));
        };
        let meta = source.meta.as_ref().ok_or_else(|| from.not_found())?;
        from.check_departure(meta)?;
        let allowed = |into: &Request<'_>, target: &Path| {
            let concerns = self.concerns_of_move((&from, &source), (into, target))?;
            self.check(&from, &source.path, concerns, agreed, || Deed::Rename(target.to_owned()))
        };
        let Place::Slot(target) = into.follow(Leaf::Itself, Way::Made, &allowed)? else {
            return Err(into.exists());
        };
        let handle = lock(&into, &target.parent)?;
        if into.look(&target.parent, &target.name)?.is_some() {
            return Err(into.exists());
        }
        into.check_creation(&target)?;
        allowed(&into, &target.path)?;
        source.parent.rename(&source.name, &target.parent, &target.name).map_err(|error| from.io("rename", error))?;
        self.guard.seen().moved(&source.path, &target.path);
        // As with writes: some file systems cannot sync a directory and persist it by themselves.
        let _ = handle.sync_all();
        Ok(())
    }

    /// Why the move needs approval. Refuses it if the entry contains a folder of git.
    fn concerns_of_move(
        &self,
        (request, source): (&Request<'_>, &Slot),
        (into, target): (&Request<'_>, &Path),
    ) -> Result<Vec<Concern>, FilesError> {
        let meta = source.meta.as_ref().ok_or_else(|| request.not_found())?;
        let mut concerns = Vec::new();
        let mut moved = Moved { from: source.path.clone(), names: Vec::new() };
        for (path, as_written) in [(&*source.path, request.as_written()), (target, into.as_written())] {
            let linked = self.guard.links_to(path);
            moved.names.push(path.to_owned());
            moved.names.extend(as_written.iter().cloned().chain(linked.names));
            // A file in the folder is the target of these links, before the move or after it.
            self.guard.add_link(linked.below.iter().map(PathBuf::as_path), &mut concerns);
        }
        if meta.is_dir() {
            let dir = request.open_dir(&source.parent, &source.name)?;
            let mut left = MAX_MOVED;
            self.look_through(request, &dir, &moved, 0, &mut left, &mut concerns)?;
        } else {
            self.add_concerns(request, (&source.parent, &source.name, meta), &moved, &mut concerns)?;
        }
        Ok(concerns)
    }

    fn look_through(
        &self,
        request: &Request<'_>,
        dir: &Dir,
        folder: &Moved,
        depth: usize,
        left: &mut usize,
        concerns: &mut Vec<Concern>,
    ) -> Result<(), FilesError> {
        if depth > MAX_DEPTH {
            return Err(request.unchecked(MAX_MOVED));
        }
        if repository::covers(dir, false) {
            return Err(request.repository());
        }
        for entry in dir.entries().map_err(|e| request.io("list", e))? {
            let name = entry.map_err(|e| request.io("list", e))?.file_name();
            *left = left.checked_sub(1).ok_or_else(|| request.unchecked(MAX_MOVED))?;
            if guard::is_git(&name) {
                return Err(request.repository());
            }
            let Some(meta) = request.look(dir, &name)? else { continue };
            let moved = folder.entry(&name);
            if meta.is_dir() {
                let next = request.open_dir(dir, &name)?;
                self.look_through(request, &next, &moved, depth + 1, left, concerns)?;
            } else {
                self.add_concerns(request, (dir, &name, &meta), &moved, concerns)?;
            }
        }
        Ok(())
    }

    /// A file or a link leaves one place and appears at another.
    fn add_concerns(
        &self,
        request: &Request<'_>,
        (dir, name, meta): (&Dir, &OsStr, &Metadata),
        moved: &Moved,
        concerns: &mut Vec<Concern>,
    ) -> Result<(), FilesError> {
        if meta.is_symlink() {
            self.guard.add_link(moved.names(), concerns);
            return Ok(());
        }
        self.guard.add_file(moved.names(), concerns);
        // A move takes a file from its place, as a removal does. One unread file is enough.
        let has_unread = concerns.iter().any(|concern| matches!(concern, Concern::Unread { .. }));
        if meta.is_file() && !has_unread {
            let version = version_of(request, dir, name, meta)?;
            concerns.extend(self.unread(&moved.from, version, meta.len()));
        }
        Ok(())
    }
}
