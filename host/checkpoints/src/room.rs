//! Keeps the store within its limits: old records go first, then the indexes of workspaces that nobody used, and with them the contents
//! that only they name.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::index::Index;
use crate::record;
use crate::state::Digest;
use crate::store::{Limits, Store};

/// How often the age of records is looked at.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// A file that names contents: a record or an index.
struct Holder {
    path: PathBuf,
    at: SystemTime,
    names: HashSet<Digest>,
}

/// Makes room if that was not done for a day, or much was added since. A failure costs nothing but room.
pub(crate) fn make_if_due(store: &Store, limits: &Limits) {
    let last = fs::metadata(store.root().join("generation")).and_then(|meta| meta.modified());
    let is_due = last.is_ok_and(|last| last.elapsed().is_ok_and(|age| age >= INTERVAL));
    // The first one begins the interval.
    let is_new = !store.root().join("generation").exists();
    if is_due || is_new || store.added() > limits.max_bytes / 8 {
        store.reset_added();
        let _ = make(store, limits, SystemTime::now());
    }
}

/// Removes what is too old, and then the oldest, until the contents fit. False if another process uses the store at the moment.
pub(crate) fn make(store: &Store, limits: &Limits, now: SystemTime) -> io::Result<bool> {
    let Some(_removing) = store.removing()? else { return Ok(false) };
    let blobs = blobs(store)?;
    let mut holders = holders(store)?;
    holders.sort_by_key(|holder| holder.at);
    // The sum of what the kept holders name, from the newest on.
    let (mut kept, mut bytes, mut gone) = (HashSet::new(), 0_u64, Vec::new());
    for holder in holders.iter().rev() {
        let is_old = now.duration_since(holder.at).is_ok_and(|age| age > limits.max_age);
        let new: Vec<&Digest> = holder.names.iter().filter(|digest| !kept.contains(*digest)).collect();
        let more =
            new.iter().filter_map(|digest| blobs.get(*digest)).fold(0, |sum: u64, size| sum.saturating_add(*size));
        if is_old || bytes.saturating_add(more) > limits.max_bytes {
            gone.push(&holder.path);
        } else {
            bytes += more;
            kept.extend(new);
        }
    }
    // First those who look for contents, then the contents.
    store.next_generation()?;
    for path in gone {
        let _ = fs::remove_file(path);
        // A folder with other records stays.
        let _ = path.parent().filter(|folder| **folder != store.workspaces()).map(fs::remove_dir);
    }
    for digest in blobs.keys().filter(|digest| !kept.contains(*digest)) {
        let _ = fs::remove_file(store.blob(digest));
    }
    Ok(true)
}

/// Removes the records of sessions that are gone, and the contents that only they name.
///
/// # Errors
///
/// When the system refuses.
pub fn forget_sessions(store: &Store, limits: &Limits, is_gone: impl Fn(&str) -> bool) -> io::Result<()> {
    if !store.exists() {
        return Ok(());
    }
    let mut removed = false;
    for folder in list(&store.sessions())? {
        if folder.file_name().and_then(|name| name.to_str()).is_some_and(&is_gone) {
            fs::remove_dir_all(&folder)?;
            removed = true;
        }
    }
    if removed {
        make(store, limits, SystemTime::now())?;
    }
    Ok(())
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| entry.map(|entry| entry.path())).collect(),
    }
}

fn blobs(store: &Store) -> io::Result<HashMap<Digest, u64>> {
    let mut blobs = HashMap::new();
    for folder in list(&store.blobs())? {
        for path in list(&folder)? {
            let digest = Digest(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            // The lock is held, so no other process writes contents: this unfinished file is from a killed process.
            match digest.is_sound() {
                true => drop(blobs.insert(digest, fs::metadata(&path)?.len())),
                false => drop(fs::remove_file(&path)),
            }
        }
    }
    Ok(blobs)
}

fn holders(store: &Store) -> io::Result<Vec<Holder>> {
    let mut holders = Vec::new();
    for folder in list(&store.sessions())? {
        for path in list(&folder)? {
            let Some(record) = record::read(&path) else { continue };
            let states = record.changes.iter().flat_map(|change| [&change.before, &change.after]);
            let names = states.filter_map(|state| state.digest().cloned()).collect();
            holders.push(Holder { at: fs::metadata(&path)?.modified()?, path, names });
        }
    }
    for path in list(&store.workspaces())? {
        let names = Index::names(&path);
        holders.push(Holder { at: fs::metadata(&path)?.modified()?, path, names });
    }
    // An undo that is under way needs its contents.
    let until = SystemTime::now() + Duration::from_secs(1 << 20);
    for path in list(&store.undos())? {
        holders.push(Holder { at: until, names: crate::apply::names(&path), path });
    }
    Ok(holders)
}
