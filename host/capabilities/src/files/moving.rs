//! Moving a file or a folder: everything in the folder gets another path.

use std::path::Path;

use cap_std::fs::Dir;

use super::guard::{self, Agreed, Concern, Deed, repository};
use super::walk::{Leaf, MAX_DEPTH, Place, Request, Slot, Way};
use super::{FilesError, Roots, anything, lock};

/// The most entries of a folder that is moved: each is looked at before.
const MAX_MOVED: usize = 100_000;

impl Roots {
    /// Moves a file, a link or a directory to `to`, which must not exist. Missing directories of `to` are created.
    ///
    /// # Errors
    ///
    /// [`FilesError::Exists`] if `to` exists; [`FilesError::Approval`] as for writes.
    pub fn rename(&self, root: &str, path: &str, to: &str, agreed: &Agreed) -> Result<(), FilesError> {
        let mut from = self.request(root, path)?.changing()?;
        let mut into = self.request(root, to)?.changing()?;
        let Place::Slot(source) = from.follow(Leaf::Itself, Way::MustExist, &anything)? else {
            return Err(from.bad_path("it is the root itself"));
        };
        let meta = source.meta.as_ref().ok_or_else(|| from.not_found())?;
        from.check_departure(meta)?;
        let allowed = |_: &Request<'_>, target: &Path| {
            let concerns = self.concerns_of_move(&from, &source, target)?;
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
        request: &Request<'_>,
        source: &Slot,
        target: &Path,
    ) -> Result<Vec<Concern>, FilesError> {
        let meta = source.meta.as_ref().ok_or_else(|| request.not_found())?;
        let mut concerns = Vec::new();
        if meta.is_dir() {
            let dir = request.open_dir(&source.parent, &source.name)?;
            let mut left = MAX_MOVED;
            self.look_through(request, &dir, (&source.path, target), 0, &mut left, &mut concerns)?;
        } else {
            self.add_concerns(meta.is_symlink(), (&source.path, target), &mut concerns);
        }
        Ok(concerns)
    }

    fn look_through(
        &self,
        request: &Request<'_>,
        dir: &Dir,
        (from, to): (&Path, &Path),
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
            let paths = (&*from.join(&name), &*to.join(&name));
            if meta.is_dir() {
                let next = request.open_dir(dir, &name)?;
                self.look_through(request, &next, paths, depth + 1, left, concerns)?;
            } else {
                self.add_concerns(meta.is_symlink(), paths, concerns);
            }
        }
        Ok(())
    }

    /// A file leaves one place and appears at another. The first concern of each pattern is enough.
    fn add_concerns(&self, is_link: bool, (from, to): (&Path, &Path), concerns: &mut Vec<Concern>) {
        for path in [from, to] {
            let concern = if is_link { self.guard.of_link(path) } else { self.guard.of_file(path) };
            let Some(concern) = concern else { continue };
            if !concerns.iter().any(|known| known.pattern() == concern.pattern()) {
                concerns.push(concern);
            }
        }
    }
}
