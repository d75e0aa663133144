//! Writing and removing files, within the rules for changes.

use std::path::Path;

use cap_std::fs::MetadataExt as _;

use super::guard::{Agreed, Change, Concern, Deed};
use super::replace::{self, Mode};
use super::walk::{Leaf, Place, Request, Slot, Way};
use super::{FilesError, MAX_HASHED, MAX_WRITE, Roots, anything, content_version, large_version, lock, version_of};

impl Roots {
    /// Replaces the content of a file atomically, and returns its new version. A link is followed: it is kept, and its
    /// target is replaced. Permissions are kept, and missing directories are created. With `version`, the write happens
    /// only if the file is at that version; without it, unconditionally.
    ///
    /// Writers wait for each other by a lock on the directory, which other programs do not use. Of two writers that name the
    /// same version, one gets the conflict.
    ///
    /// # Errors
    ///
    /// [`FilesError::Conflict`] if the file is at another version or gone; [`FilesError::Protected`] if it is marked
    /// read-only; [`FilesError::Approval`] if the user has to agree, which `agreed` then records.
    pub fn write(
        &self,
        root: &str,
        path: &str,
        content: &[u8],
        version: Option<&str>,
        agreed: &Agreed,
    ) -> Result<String, FilesError> {
        let mut request = self.request(root, path)?.changing()?;
        if content.len() > MAX_WRITE {
            return Err(request.too_large(content.len(), MAX_WRITE));
        }
        let _turn = self.guard.turns().beside_others().ok_or_else(|| request.busy())?;
        let way = if version.is_some() { Way::MustExist } else { Way::Made };
        let recorded = self.guard.changes().begin();
        let create = |request: &Request<'_>, target: &Path| {
            let concerns = self.guard.of_file(target, request.as_written());
            self.check(request, target, concerns, agreed, || Deed::Create(content.to_vec()))?;
            // Before missing folders are made.
            recorded.will_change(target);
            Ok(())
        };
        let slot = match request.follow(Leaf::Followed, way, &create) {
            Ok(Place::Slot(slot)) => slot,
            Ok(Place::Directory(dir)) => {
                let meta = dir.dir_metadata().map_err(|e| request.io("look at", e))?;
                return Err(request.not_a_file(&meta));
            }
            // The caller knows a version, so the file existed before.
            Err(FilesError::NotFound { .. }) => return Err(request.conflict(None)),
            Err(error) => return Err(error),
        };
        let handle = lock(&request, &slot.parent)?;

        let meta = request.look(&slot.parent, &slot.name)?;
        let mode = match &meta {
            // A link replaced it after the check.
            Some(meta) if meta.is_symlink() => return Err(request.busy()),
            Some(meta) if !meta.is_file() => return Err(request.not_a_file(meta)),
            Some(meta) if meta.permissions().readonly() => return Err(request.protected()),
            Some(meta) => Mode::Kept(meta.mode()),
            None => {
                request.check_creation(&slot)?;
                let version = || content_version(content);
                let removed = (content.len() as u64 <= MAX_HASHED).then(version);
                let bits = removed.and_then(|version| self.guard.removed().bits(&slot.path, &version));
                bits.map_or(Mode::New(0o666), Mode::Kept)
            }
        };
        let current = match &meta {
            Some(meta) => Some(version_of(&request, &slot.parent, &slot.name, meta)?),
            None => None,
        };
        if let Some(known) = version
            && current.as_deref() != Some(known)
        {
            return Err(request.conflict(current));
        }
        match &meta {
            None => create(&request, &slot.path)?,
            Some(meta) => {
                let concerns = self.concerns(&request, &slot, current.unwrap_or_default(), meta.len());
                let deed = || Deed::Replace { size: meta.len(), content: content.to_vec() };
                self.check(&request, &slot.path, concerns, agreed, deed)?;
            }
        }
        recorded.will_change(&slot.path);
        replace::replace(&slot.parent, &handle, &slot.name, content, mode).map_err(|e| request.io("write", e))?;
        let version = if content.len() as u64 <= MAX_HASHED {
            content_version(content)
        } else {
            let meta = request.look(&slot.parent, &slot.name)?.ok_or_else(|| request.not_found())?;
            large_version(&meta)
        };
        self.guard.seen().wrote(&slot.path, &version);
        Ok(version)
    }

    /// Why replacing or removing a file needs approval.
    fn concerns(&self, request: &Request<'_>, slot: &Slot, version: String, size: u64) -> Vec<Concern> {
        let mut concerns = self.guard.of_file(&slot.path, request.as_written());
        concerns.extend(self.unread(&slot.path, version, size));
        concerns
    }

    /// The concern of a file with this version whose content the session has not read.
    pub(super) fn unread(&self, path: &Path, version: String, size: u64) -> Option<Concern> {
        let is_unread = size > 0 && !self.guard.seen().has(path, &version);
        is_unread.then(|| Concern::Unread { path: path.to_owned(), version })
    }

    /// Stops a change that the user has not agreed to.
    pub(super) fn check(
        &self,
        request: &Request<'_>,
        path: &Path,
        concerns: Vec<Concern>,
        agreed: &Agreed,
        deed: impl FnOnce() -> Deed,
    ) -> Result<(), FilesError> {
        let concerns = match concerns.is_empty() {
            true => self.guard.of_edit(&request.root.name, path).into_iter().collect(),
            false => concerns,
        };
        let concerns = agreed.open(concerns);
        if concerns.is_empty() {
            return Ok(());
        }
        Err(request.approval(Change { deed: deed(), path: path.to_owned(), concerns }))
    }

    /// Removes a file, a link (not its target) or an empty directory.
    ///
    /// # Errors
    ///
    /// [`FilesError::NotEmpty`] for a directory that is not empty; [`FilesError::Approval`] as for writes.
    pub fn remove(&self, root: &str, path: &str, agreed: &Agreed) -> Result<(), FilesError> {
        let mut request = self.request(root, path)?.changing()?;
        let _turn = self.guard.turns().beside_others().ok_or_else(|| request.busy())?;
        let Place::Slot(slot) = request.follow(Leaf::Itself, Way::MustExist, &anything)? else {
            return Err(request.bad_path("it is the root itself"));
        };
        let handle = lock(&request, &slot.parent)?;
        let meta = request.look(&slot.parent, &slot.name)?.ok_or_else(|| request.not_found())?;
        request.check_departure(&meta)?;
        let mut version = None;
        let concerns = if meta.is_file() {
            let known = version.insert(version_of(&request, &slot.parent, &slot.name, &meta)?);
            self.concerns(&request, &slot, known.clone(), meta.len())
        } else if meta.is_symlink() {
            self.guard.of_link(&slot.path, request.as_written())
        } else {
            Vec::new()
        };
        self.check(&request, &slot.path, concerns, agreed, || Deed::Remove)?;
        let recorded = self.guard.changes().begin();
        recorded.will_change(&slot.path);
        let removed = if meta.is_dir() {
            slot.parent.remove_dir(&slot.name)
        } else if meta.is_symlink() {
            slot.parent.remove_file(&slot.name)
        } else if !meta.is_file() {
            return Err(request.not_a_file(&meta));
        } else if meta.permissions().readonly() {
            return Err(request.protected());
        } else {
            slot.parent.remove_file(&slot.name)
        };
        removed.map_err(|error| match error.kind() {
            std::io::ErrorKind::DirectoryNotEmpty => request.not_empty(),
            _ => request.io("remove", error),
        })?;
        if let Some(version) = version {
            self.guard.removed().add(&slot.path, version, meta.mode());
        }
        self.guard.seen().change(&slot.path);
        let _ = handle.sync_all();
        Ok(())
    }
}
