//! Moving a file or a folder: everything in the folder gets another path.

use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata};

use super::guard::{self, Agreed, Concern, Deed, repository};
use super::walk::{Leaf, MAX_DEPTH, Place, Request, Slot, Way};
use super::{FilesError, MAX_HASHED, Roots, anything, content_version, lock, version_of, whole};

/// The most entries of a folder that is moved: each is looked at before.
const MAX_MOVED: usize = 100_000;

/// The names of an entry before and after its move.
struct Moved {
    /// Its path before, with links resolved.
    from: PathBuf,
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
    /// Whether it moves with a folder.
    in_folder: bool,
}

impl Moved {
    /// The paths of an entry of the moved folder.
    fn entry(&self, name: &OsStr) -> Self {
        let below = |names: &[PathBuf]| names.iter().map(|path| path.join(name)).collect();
        Self { from: self.from.join(name), before: below(&self.before), after: below(&self.after), in_folder: true }
    }
}

/// Why a move needs approval, and what the user has to see.
#[derive(Default)]
struct Judged {
    concerns: Vec<Concern>,
    content: Option<Vec<u8>>,
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
        let recorded = self.guard.changes().begin();
        let allowed = |into: &Request<'_>, target: &Path| {
            let Judged { concerns, content } = self.judge_move((&from, &source), (into, target))?;
            let deed = || Deed::Rename { to: target.to_owned(), content };
            self.check(&from, &source.path, concerns, agreed, deed)?;
            // Before missing folders are made.
            recorded.will_change(target);
            Ok(())
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
        recorded.will_change(&source.path);
        source.parent.rename(&source.name, &target.parent, &target.name).map_err(|error| from.io("rename", error))?;
        self.guard.seen().moved(&source.path, &target.path);
        // As with writes: some file systems cannot sync a directory and persist it by themselves.
        let _ = handle.sync_all();
        Ok(())
    }

    /// Why the move needs approval. Refuses it if the entry contains a folder of git, or if files of a folder would be on the list
    /// only at their new places: the user could not see them.
    fn judge_move(
        &self,
        (request, source): (&Request<'_>, &Slot),
        (into, target): (&Request<'_>, &Path),
    ) -> Result<Judged, FilesError> {
        let meta = source.meta.as_ref().ok_or_else(|| request.not_found())?;
        let (left, reached) = (self.guard.links_to(&source.path), self.guard.links_to(target));
        let names = |path: &Path, request: &Request<'_>, linked: Vec<PathBuf>| {
            iter::once(path.to_owned()).chain(request.as_written().iter().cloned()).chain(linked).collect()
        };
        let moved = Moved {
            from: source.path.clone(),
            before: names(&source.path, request, left.names),
            after: names(target, into, reached.names),
            in_folder: false,
        };
        let mut judged = Judged::default();
        if !meta.is_dir() {
            self.judge_entry(request, (&source.parent, &source.name, meta), &moved, &mut judged)?;
            return Ok(judged);
        }
        // A file of the folder is the target of these links.
        self.guard.add_link(left.below.iter().map(PathBuf::as_path), &mut judged.concerns);
        if let Some(link) = reached.below.first() {
            return Err(request.together(link));
        }
        let dir = request.open_dir(&source.parent, &source.name)?;
        let mut left = MAX_MOVED;
        self.look_through(request, &dir, &moved, 0, &mut left, &mut judged)?;
        Ok(judged)
    }

    fn look_through(
        &self,
        request: &Request<'_>,
        dir: &Dir,
        folder: &Moved,
        depth: usize,
        left: &mut usize,
        judged: &mut Judged,
    ) -> Result<(), FilesError> {
        if depth > MAX_DEPTH {
            return Err(request.bad_path("its folders are nested too deep to move at once: move the inner ones first"));
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
                self.look_through(request, &next, &moved, depth + 1, left, judged)?;
            } else {
                self.judge_entry(request, (dir, &name, &meta), &moved, judged)?;
            }
        }
        Ok(())
    }

    /// A file or a link leaves one place and appears at another.
    fn judge_entry(
        &self,
        request: &Request<'_>,
        (dir, name, meta): (&Dir, &OsStr, &Metadata),
        moved: &Moved,
        judged: &mut Judged,
    ) -> Result<(), FilesError> {
        let [before, after] = [&moved.before, &moved.after].map(|names| {
            let (names, mut concerns) = (names.iter().map(PathBuf::as_path), Vec::new());
            if meta.is_symlink() {
                self.guard.add_link(names, &mut concerns);
            } else {
                self.guard.add_file(names, &mut concerns);
            }
            concerns
        });
        let is_new = |concern: &Concern| before.iter().all(|known| known.pattern() != concern.pattern());
        let (new, after): (Vec<_>, Vec<_>) = after.into_iter().partition(is_new);
        if let Some(Concern::Listed { path, .. }) = new.first() {
            if moved.in_folder {
                return Err(request.together(path));
            }
            // Writing the file needed no approval, so the user has not seen its content.
            let content = shown_content(request, dir, name, meta)?;
            let version = content_version(&content);
            new.into_iter().for_each(|concern| guard::add(&mut judged.concerns, concern.of_content(&version)));
            judged.content = Some(content);
        }
        before.into_iter().chain(after).for_each(|concern| guard::add(&mut judged.concerns, concern));
        // Like a removal, a move takes a file from its place, so an unread file needs approval. One such file is enough for the
        // question.
        let has_unread = judged.concerns.iter().any(|concern| matches!(concern, Concern::Unread { .. }));
        if meta.is_file() && !has_unread {
            let version = version_of(request, dir, name, meta)?;
            judged.concerns.extend(self.unread(&moved.from, version, meta.len()));
        }
        Ok(())
    }
}

/// The content of a file, or the target of a link, that the user has to see.
fn shown_content(request: &Request<'_>, dir: &Dir, name: &OsStr, meta: &Metadata) -> Result<Vec<u8>, FilesError> {
    if meta.is_symlink() {
        let target = dir.read_link_contents(name).map_err(|e| request.io("follow the link", e))?;
        return Ok([b"a link to ", target.as_os_str().as_encoded_bytes()].concat());
    }
    let (mut file, meta) = request.open_file(dir, name)?;
    let content = whole(&mut file, &meta).map_err(|e| request.io("read", e))?;
    content.ok_or_else(|| request.too_large(usize::try_from(meta.len()).unwrap_or(usize::MAX), MAX_HASHED as usize))
}
