//! What the files of a workspace were when Hermes last looked, so that a later look reads only what may have changed.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::path::RelPath;
use crate::scan::{self, Unwatched};
use crate::state::{Content, Digest, Stamp, State, Unsaved};
use crate::store::{Limits, MAX_JSON, Store};
use crate::tree::{Found, Kind, Tree};

/// The clock of files is coarser than that of processes: a file that changed this shortly before a look may change again without
/// another stamp.
const COARSE: i64 = 20_000_000;
/// Small files cost the most for their number, so several are read at once.
const READERS: usize = 4;

/// An entry at the last look.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    /// Whether the same stamp may hide another content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    racy: bool,
    state: State,
    /// The number of the walk that saw it last.
    #[serde(skip)]
    seen: AtomicU32,
}

impl Known {
    fn new(stamp: Stamp, racy: bool, state: State) -> Self {
        Self { stamp, racy, state, seen: AtomicU32::new(0) }
    }
}

/// The entries of a workspace at the last look.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: HashMap<RelPath, Known>,
    /// The number of the last walk.
    walk: u32,
    /// When the last look began, in nanoseconds since 1970; zero before the first.
    looked_at: i64,
    /// The generation of the store whose contents it names.
    generation: String,
    /// The session that looked last.
    pub(crate) session: String,
    /// Whether the file has something else.
    is_unsaved: bool,
}

#[derive(Deserialize)]
struct Saved {
    workspace: PathBuf,
    session: String,
    looked_at: i64,
    generation: String,
    entries: Vec<(RelPath, Known)>,
}

/// The same as [`Saved`], borrowed.
#[derive(Serialize)]
struct Saving<'a> {
    workspace: &'a Path,
    session: &'a str,
    looked_at: i64,
    generation: &'a str,
    entries: Vec<(&'a RelPath, &'a Known)>,
}

/// What changed at a path between two looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) path: RelPath,
    pub(crate) before: State,
    pub(crate) after: State,
}

/// Where and how to look.
pub(crate) struct Look<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) store: &'a Store,
    pub(crate) limits: &'a Limits,
    /// The home folder of Hermes.
    pub(crate) hermes: &'a Path,
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Index {
    /// The index that was saved for a workspace, or an empty one.
    pub(crate) fn load(store: &Store, workspace: &Path) -> Self {
        let saved = hermes_private_files::read_regular(&store.index(workspace), MAX_JSON).ok();
        let saved = saved.and_then(|text| serde_json::from_slice::<Saved>(&text).ok());
        let Some(saved) = saved.filter(|saved| saved.workspace == workspace) else { return Self::default() };
        let Saved { session, looked_at, generation, entries, .. } = saved;
        Self { entries: entries.into_iter().collect(), walk: 0, looked_at, generation, session, is_unsaved: false }
    }

    /// The contents that a saved index names.
    pub(crate) fn names(path: &Path) -> std::collections::HashSet<Digest> {
        let saved = hermes_private_files::read_regular(path, MAX_JSON).ok();
        let saved = saved.and_then(|text| serde_json::from_slice::<Saved>(&text).ok());
        let entries = saved.into_iter().flat_map(|saved| saved.entries);
        entries.filter_map(|(_, known)| known.state.digest().cloned()).collect()
    }

    /// Saves it, if it changed.
    pub(crate) fn save(&mut self, store: &Store, workspace: &Path, session: &str) -> io::Result<()> {
        if !self.is_unsaved && self.session == session {
            return Ok(());
        }
        session.clone_into(&mut self.session);
        let saved = Saving {
            workspace,
            session,
            looked_at: self.looked_at,
            generation: &self.generation,
            entries: self.entries.iter().collect(),
        };
        let saved = serde_json::to_vec(&saved)?;
        hermes_private_files::create_folder(&store.workspaces())?;
        hermes_private_files::write_atomically(&store.index(workspace), &saved)?;
        self.is_unsaved = false;
        Ok(())
    }

    /// Whether it has looked at the workspace before.
    pub(crate) fn has_looked(&self) -> bool {
        self.looked_at != 0
    }

    /// Reads the entries again whose contents were removed from the store.
    fn follow_generation(&mut self, store: &Store) {
        let generation = store.generation();
        if self.generation != generation {
            for known in self.entries.values_mut() {
                known.racy |= known.state.digest().is_some_and(|digest| !store.has(digest));
            }
            self.generation = generation;
            self.is_unsaved = true;
        }
    }

    /// Looks at the whole workspace. Returns what changed since the last look, and saves contents that are new.
    pub(crate) fn look(&mut self, look: &Look<'_>) -> Result<Vec<Difference>, Unwatched> {
        self.follow_generation(look.store);
        let (before, begun) = (self.looked_at, now());
        self.walk = self.walk.wrapping_add(1);
        let (entries, walk) = (&self.entries, self.walk);
        let walked = scan::walk(look.tree, look.hermes, look.limits, |path, found| {
            entries.get(path).is_some_and(|known| {
                known.seen.store(walk, Ordering::Relaxed);
                known.stamp == found.stamp && !known.racy
            })
        })?;
        // The contents must leave room for what they will change to.
        if walked.bytes > look.limits.max_bytes / 2 {
            return Err(Unwatched::TooLarge { max_mib: look.limits.max_bytes >> 20 });
        }
        let mut differences = Vec::new();
        for (path, entry, state) in read_all(look, &walked.changed)? {
            let known = Known::new(entry.stamp, entry.stamp.changed >= begun - COARSE, state.clone());
            known.seen.store(walk, Ordering::Relaxed);
            // Files that git no longer ignores were there before, though the last look left them out.
            let is_old = entry.stamp.changed < before - COARSE;
            let earlier = self.entries.insert(path.clone(), known);
            // A file that was read again without a change of its stamp does not make the index outdated.
            self.is_unsaved |= earlier.as_ref().is_none_or(|earlier| earlier.stamp != entry.stamp);
            match earlier {
                Some(earlier) if earlier.state == state => {}
                Some(earlier) => {
                    self.is_unsaved = true;
                    differences.push(Difference { path, before: earlier.state, after: state });
                }
                None if is_old || before == 0 => {}
                None => differences.push(Difference { path, before: State::Absent, after: state }),
            }
        }
        let unseen = self.entries.iter().filter(|(_, known)| known.seen.load(Ordering::Relaxed) != walk);
        let gone: Vec<RelPath> = unseen.map(|(path, _)| path.clone()).collect();
        for path in gone {
            match look.tree.look(&path) {
                // A folder that cannot be entered at the moment.
                Err(_) => {}
                // It is still there, and git ignores it now.
                Ok(Some(_)) => drop(self.entries.remove(&path)),
                Ok(None) => {
                    self.is_unsaved = true;
                    if let Some(known) = self.entries.remove(&path) {
                        differences.push(Difference { path, before: known.state, after: State::Absent });
                    }
                }
            }
        }
        differences.sort_by(|one, other| one.path.cmp(&other.path));
        self.looked_at = begun;
        Ok(differences)
    }

    /// Takes over what a tool of the host has just made of a path.
    pub(crate) fn update(&mut self, tree: &Tree, path: &RelPath, state: &State) {
        // A path that the last scan left out stays out.
        let was_known = self.entries.remove(path).is_some();
        if *state == State::Absent || !self.has_looked() || (!was_known && scan::is_closed(path)) {
            return;
        }
        if let Ok(Some(found)) = tree.look(path) {
            self.is_unsaved = true;
            self.entries.insert(path.clone(), Known::new(found.stamp, true, state.clone()));
        }
    }

    /// What the last look found at a path.
    pub(crate) fn state(&self, path: &RelPath) -> Option<&State> {
        self.entries.get(path).map(|known| &known.state)
    }
}

/// Reads and saves entries, several at once.
fn read_all(look: &Look<'_>, entries: &[(RelPath, Found)]) -> Result<Vec<(RelPath, Found, State)>, Unwatched> {
    let (next, read) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(entries.len())));
    let failure = Mutex::new(None);
    let until = std::time::Instant::now() + look.limits.max_time;
    let reader = || {
        let mut own = Vec::new();
        while let Some((path, found)) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
            if std::time::Instant::now() > until {
                let slow = Unwatched::TooSlow { seconds: look.limits.max_time.as_secs() };
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(slow);
                break;
            }
            match state_of(look, path, Some(found)) {
                Ok(state) => own.push((path.clone(), *found, state)),
                Err(error) => {
                    let failed =
                        Unwatched::Failed { why: format!("the store of checkpoints cannot be written: {error}") };
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failed);
                    break;
                }
            }
        }
        read.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
    };
    if entries.len() < READERS * 8 {
        reader();
    } else {
        std::thread::scope(|scope| {
            // If the system refuses a thread, fewer readers do the work.
            (1..READERS).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, reader)));
            reader();
        });
    }
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(read.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// What is at a path; a file's content is saved. Fails only if the store cannot be written.
pub(crate) fn state_of(look: &Look<'_>, path: &RelPath, found: Option<&Found>) -> io::Result<State> {
    describe(look.tree, look.limits, path, found, |content| look.store.put(content))
}

/// What is at a path now, without saving anything.
pub(crate) fn present(tree: &Tree, limits: &Limits, path: &RelPath) -> io::Result<State> {
    let found = tree.look(path)?;
    describe(tree, limits, path, found.as_ref(), |content| Ok(Digest::of(content)))
}

fn describe(
    tree: &Tree,
    limits: &Limits,
    path: &RelPath,
    found: Option<&Found>,
    digest: impl FnOnce(&[u8]) -> io::Result<Digest>,
) -> io::Result<State> {
    // It may change or disappear while it is read: the next look sees another stamp.
    let Some(found) = found else { return Ok(State::Absent) };
    if found.kind != Kind::File {
        return Ok(tree.plain_state(path, Some(found)).ok().flatten().unwrap_or(State::Absent));
    }
    let unsaved = |why| Content::Unsaved(why, found.stamp);
    let content = if hermes_private_files::holds_secrets(path.name()) {
        unsaved(Unsaved::Secret)
    } else if found.stamp.size > limits.max_file {
        unsaved(Unsaved::TooLarge)
    } else {
        match tree.read(path, limits.max_file) {
            Ok(Some(content)) => Content::Stored(digest(&content)?),
            Ok(None) => unsaved(Unsaved::TooLarge),
            Err(_) => unsaved(Unsaved::Unreadable),
        }
    };
    Ok(State::File { mode: found.mode, size: found.stamp.size, content })
}
