//! Looks through a workspace: which files it has, and whether they may have changed.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use ignore::{WalkBuilder, WalkState};

use crate::ignored::Ignored;
use crate::path::RelPath;
use crate::store::Limits;
use crate::tree::{Found, Kind, Tree, is_draft, look_in};

/// Why no checkpoint of a workspace is possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwatched {
    /// It is the root of the file system, or contains the user's home folder.
    #[error("{} is {what}; start Hermes in the folder of a project", path.display())]
    TooWide {
        /// The workspace.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It has too many files.
    #[error("the folder has more than {most} files that git does not ignore")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// Its files are too large together.
    #[error("the files of the folder have more than half of checkpoints.max_size ({max_mib} MiB)")]
    TooLarge {
        /// The limit of the store in MiB.
        max_mib: u64,
    },
    /// It took too long.
    #[error("looking through the folder took longer than {seconds} s")]
    TooSlow {
        /// The limit.
        seconds: u64,
    },
    /// The system refused.
    #[error("{why}")]
    Failed {
        /// The cause.
        why: String,
    },
}

impl Unwatched {
    /// Whether the next look would take as long, and find the same.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self, Self::TooMany { .. } | Self::TooLarge { .. } | Self::TooSlow { .. })
    }
}

/// Folders of version control, which have a history of their own.
const CLOSED: &[&str] = &[".git", ".hg", ".svn", ".jj", ".bzr", ".pijul", "CVS"];

/// Whether a workspace is more than a project.
pub(crate) fn check_width(workspace: &Path, user_home: Option<&Path>) -> Result<(), Unwatched> {
    let too_wide = |what| Err(Unwatched::TooWide { path: workspace.to_owned(), what });
    if workspace.parent().is_none() {
        return too_wide("the root of the file system");
    }
    match user_home.and_then(|home| home.canonicalize().ok()) {
        Some(home) if home == workspace => too_wide("your home folder"),
        Some(home) if home.starts_with(workspace) => too_wide("a folder that contains your home folder"),
        _ => Ok(()),
    }
}

/// Whether a path is inside a folder of version control.
pub(crate) fn is_closed(path: &RelPath) -> bool {
    path.names().any(is_closed_name)
}

fn is_closed_name(name: &OsStr) -> bool {
    CLOSED.iter().any(|closed| name.eq_ignore_ascii_case(closed))
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The entries that are not as they were known, in no order.
    pub(crate) changed: Vec<(RelPath, Found)>,
    /// The size of all files whose contents are saved.
    pub(crate) bytes: u64,
}

/// Walks through all entries of a workspace that git does not ignore. `is_known` says that an entry is as it was; it is called for each
/// entry once, by several threads. `hermes` is the home folder of Hermes, which is left out.
pub(crate) fn walk(
    tree: &Tree,
    hermes: &Path,
    limits: &Limits,
    is_known: impl Fn(&OsStr, &Found) -> bool + Sync,
) -> Result<Walked, Unwatched> {
    let root = tree.root();
    let until = Instant::now() + limits.max_time;
    let (walked, count) = (Mutex::new(Walked::default()), AtomicUsize::new(0));
    let (too_many, too_slow) = (AtomicBool::new(false), AtomicBool::new(false));
    let hermes = hermes.to_owned();
    let ignored = Ignored::below(root);
    let walker = WalkBuilder::new(root)
        .standard_filters(false)
        .same_file_system(true)
        .threads(std::thread::available_parallelism().map_or(2, usize::from).min(4))
        .filter_entry(move |entry| {
            let (name, is_folder) = (entry.file_name(), entry.file_type().is_some_and(|kind| kind.is_dir()));
            let is_left_out = is_closed_name(name) || is_draft(name) || entry.path() == hermes;
            !is_left_out && !ignored.is_ignored(entry.path(), is_folder)
        })
        .build_parallel();
    walker.run(|| {
        let mut own = Collected { walked: Walked::default(), all: &walked };
        let mut folder = None;
        let is_known = &is_known;
        let (count, too_many, too_slow) = (&count, &too_many, &too_slow);
        Box::new(move |entry| {
            // A folder that cannot be listed is left out: programs of this user cannot change it either.
            let Ok(entry) = entry else { return WalkState::Continue };
            let Some(path) = RelPath::text_below(root, entry.path()) else { return WalkState::Continue };
            let at = count.fetch_add(1, Ordering::Relaxed);
            if at >= limits.max_files {
                too_many.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            if at.is_multiple_of(256) && Instant::now() > until {
                too_slow.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            if let Some(found) = look(tree, &mut folder, Path::new(path)) {
                let size = if found.kind == Kind::File { found.stamp.size } else { 0 };
                own.walked.bytes += if size <= limits.max_file { size } else { 0 };
                if !is_known(path, &found)
                    && let Some(path) = RelPath::new(path)
                {
                    own.walked.changed.push((path, found));
                }
            }
            WalkState::Continue
        })
    });
    if too_many.into_inner() {
        return Err(Unwatched::TooMany { most: limits.max_files });
    }
    if too_slow.into_inner() {
        return Err(Unwatched::TooSlow { seconds: limits.max_time.as_secs() });
    }
    Ok(walked.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Looks at an entry from its folder, which stays open for the next one: that takes half the time of a look from the root.
fn look(tree: &Tree, folder: &mut Option<(PathBuf, OwnedFd)>, path: &Path) -> Option<Found> {
    let parent = path.parent()?;
    if folder.as_ref().is_none_or(|(open, _)| open.as_os_str() != parent.as_os_str()) {
        *folder = Some((parent.to_owned(), tree.folder(parent).ok()?));
    }
    let (_, folder) = folder.as_ref()?;
    look_in(folder, path.file_name()?).ok()
}

/// What a thread found; it is added to that of the others at the end.
struct Collected<'a> {
    walked: Walked,
    all: &'a Mutex<Walked>,
}

impl Drop for Collected<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.changed.append(&mut self.walked.changed);
        all.bytes = all.bytes.saturating_add(self.walked.bytes);
    }
}
