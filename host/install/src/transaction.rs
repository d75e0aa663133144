//! The one step in which everything changes: written down first, then carried out, and carried out again from the note
//! by whoever finds it after a crash. Before the note is there, nothing has happened; once it is, everything will.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_plugin_host::{Digest, Entry, Lock};
use hermes_private_files::{sync_folder, write_whole};
use serde::{Deserialize, Serialize};

use crate::error::{At, InstallError};
use crate::stage::{Places, Turn, private_folder, sweep};

/// Told of each step before it is taken, by its name: so that tests can end the process at any of them.
pub type Steps<'a> = &'a (dyn Fn(&str) + Sync);

/// Everything that one command changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transaction {
    /// The stage that belongs to it.
    pub(crate) stage: String,
    /// The plugin.
    pub(crate) name: String,
    /// Its entry in the lock from now on.
    pub(crate) entry: Option<Entry>,
    /// What leaves its place for the stage: below the folder of plugins, and its name in the stage.
    pub(crate) out: Vec<(PathBuf, String)>,
    /// What comes out of the stage into its place.
    pub(crate) into: Vec<(String, PathBuf)>,
    /// A file that is replaced as a whole.
    pub(crate) rewrite: Option<Rewrite>,
    /// Folders of the home that are removed with what is in them.
    pub(crate) purge: Vec<PathBuf>,
}

/// A file with other content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The file.
    pub file: PathBuf,
    /// What it must hold, or it is left alone: somebody has edited it in the meantime.
    pub before: Digest,
    /// What it holds from now on.
    pub after: String,
}

/// Marks a stage whose out-going moves are all done.
const TURNED: &str = "turned";

/// Writes the note and carries it out. The caller has the turn.
pub(crate) fn commit(
    transaction: &Transaction,
    places: &Places,
    turn: &Turn,
    steps: Steps<'_>,
) -> Result<(), InstallError> {
    steps("note");
    let note = serde_json::to_string(transaction).expect("names, digests and rights are JSON");
    write_whole(&places.journal(), note.as_bytes()).at(&places.journal())?;
    carry_out(transaction, places, turn, steps)
}

/// Finishes what a crash has left, and removes what nobody needs. The answer names the plugin that it was about.
pub(crate) fn recover(places: &Places, turn: &Turn, steps: Steps<'_>) -> Result<Option<String>, InstallError> {
    let path = places.journal();
    let note = match fs::read(&path) {
        Ok(note) => Some(note),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(InstallError::File { path, source }),
    };
    let Some(note) = note else {
        sweep(places, turn, None);
        return Ok(None);
    };
    let transaction: Transaction = serde_json::from_slice(&note).map_err(|error| InstallError::File {
        path: path.clone(),
        source: io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the note of an interrupted command is damaged ({error}), and the file has to be removed by hand"),
        ),
    })?;
    carry_out(&transaction, places, turn, steps)?;
    sweep(places, turn, None);
    Ok(Some(transaction.name))
}

/// Every step may be done already, and is then passed over.
fn carry_out(transaction: &Transaction, places: &Places, _: &Turn, steps: Steps<'_>) -> Result<(), InstallError> {
    let stage = places.plugins.join(&transaction.stage);
    let turned = stage.join(TURNED);
    if !turned.exists() && stage.exists() {
        for (place, slot) in &transaction.out {
            steps("out");
            let (from, to) = (places.plugins.join(place), stage.join(slot));
            if from.exists() && !to.exists() {
                fs::rename(&from, &to).at(&from)?;
                sync_folder(from.parent().unwrap_or(&places.plugins)).at(&from)?;
            }
        }
        steps("turn");
        fs::write(&turned, "").and_then(|()| sync_folder(&stage)).at(&turned)?;
    }
    for (slot, place) in &transaction.into {
        steps("in");
        let (from, to) = (stage.join(slot), places.plugins.join(place));
        if from.exists() {
            let folder = to.parent().unwrap_or(&places.plugins);
            private_folder(folder)?;
            fs::rename(&from, &to).at(&to)?;
            sync_folder(folder).at(folder)?;
        }
    }
    steps("lock");
    let path = places.lock();
    let mut lock = Lock::read(&path)?;
    match &transaction.entry {
        Some(entry) => drop(lock.plugins.insert(transaction.name.clone(), entry.clone())),
        None => drop(lock.plugins.remove(&transaction.name)),
    }
    write_lock(&lock, &path)?;
    if let Some(rewrite) = &transaction.rewrite {
        steps("configuration");
        let now = fs::read(&rewrite.file).unwrap_or_default();
        if Digest::of(&now) == rewrite.before {
            write_whole(&rewrite.file, rewrite.after.as_bytes()).at(&rewrite.file)?;
        }
    }
    for folder in &transaction.purge {
        steps("data");
        let folder = places.home.join(folder);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(InstallError::File { path: folder, source: error });
            }
            _ => {}
        }
    }
    steps("sweep");
    // The stage goes at once, by a rename: half removed, it would look like one whose moves are still to be made.
    let gone = places.plugins.join(format!("{}-gone", transaction.stage));
    if stage.exists() {
        fs::rename(&stage, &gone).at(&stage)?;
    }
    match fs::remove_dir_all(&gone) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(InstallError::File { path: gone, source: error });
        }
        _ => {}
    }
    steps("end");
    let journal = places.journal();
    fs::remove_file(&journal).and_then(|()| sync_folder(&places.plugins)).at(&journal)?;
    steps("done");
    Ok(())
}

/// A lock that pins nothing is no file.
pub(crate) fn write_lock(lock: &Lock, path: &Path) -> Result<(), InstallError> {
    if !lock.plugins.is_empty() {
        return Ok(lock.write(path)?);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(InstallError::File { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
