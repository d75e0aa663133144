//! The commit of a command. A journal is written first and then carried out; after a crash, the next process carries it out
//! again. Without a journal nothing has happened; with it, everything will.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_plugin_host::{Digest, Entry, Lock};
use hermes_private_files::{sync_folder, write_whole};
use serde::{Deserialize, Serialize};

use crate::data::DataChanges;
use crate::error::{At, InstallError};
use crate::skills::{SkillEntry, SkillsLock};
use crate::stage::{Places, Steps, Turn, has_leftovers, private_folder, sweep};

/// All changes of one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transaction {
    /// The stage of the command.
    pub(crate) stage: String,
    /// The plugin.
    pub(crate) name: String,
    /// Its new entry in the lock.
    pub(crate) entry: Option<Entry>,
    /// Moves to the stage: a path below the folder of plugins or of skills, and a name in the stage.
    pub(crate) out: Vec<(PathBuf, String)>,
    /// Moves from the stage to that folder.
    pub(crate) into: Vec<(String, PathBuf)>,
    /// A file that is replaced as a whole.
    pub(crate) rewrite: Option<Rewrite>,
    /// Folders of the home that are removed with their content.
    pub(crate) purge: Vec<PathBuf>,
    /// What happens to the data of the name. A journal of an older version has none.
    #[serde(default)]
    pub(crate) data: DataChanges,
    /// The change of `skills.lock`, if the name is that of a skill and not of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<SkillRecord>,
}

/// A change of `skills.lock`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SkillRecord {
    /// The new entry of the skill.
    pub(crate) entry: Option<SkillEntry>,
}

impl Transaction {
    /// A change of nothing but the lock.
    pub(crate) fn of_lock(stage: String, name: &str, entry: Option<Entry>) -> Self {
        Self {
            stage,
            name: name.to_owned(),
            entry,
            out: Vec::new(),
            into: Vec::new(),
            rewrite: None,
            purge: Vec::new(),
            data: DataChanges::default(),
            skill: None,
        }
    }

    /// A change of a skill.
    pub(crate) fn of_skill(stage: String, name: &str, skill: SkillRecord) -> Self {
        Self { skill: Some(skill), ..Self::of_lock(stage, name, None) }
    }
}

/// A file with new content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The file.
    pub file: PathBuf,
    /// The expected content. A file with other content was edited meanwhile, and stays.
    pub before: Digest,
    /// The new content.
    pub after: String,
}

/// Marks a stage to which all moves are done.
const TURNED: &str = "turned";

/// Writes the journal and carries it out. The caller holds the turn.
pub(crate) fn commit(
    transaction: &Transaction,
    places: &Places,
    turn: &Turn,
    steps: Steps<'_>,
) -> Result<(), InstallError> {
    steps("note");
    // A recovery knows the entry by its seal.
    let entry = transaction.entry.as_ref().map(|entry| entry.sealed(&transaction.name, &places.lock())).transpose()?;
    let transaction = &Transaction { entry, ..transaction.clone() };
    let note = serde_json::to_string(transaction).expect("names, digests and permissions are JSON");
    write_whole(&places.journal(), note.as_bytes()).at(&places.journal())?;
    carry_out(transaction, places, turn, steps)
}

/// The most bytes of the journal. It contains the new configuration.
const LARGEST_NOTE: u64 = 64 << 20;

/// The exclusive lock for changes of plugins or skills, after interrupted commands are finished.
pub(crate) fn take_turn(places: &Places) -> Result<Turn, InstallError> {
    let turn = Turn::take(places)?;
    recover(places, &turn, &|_| ())?;
    Ok(turn)
}

/// Takes the turn if an interrupted command left files, finishes that command and removes its files. Returns the name of the plugin
/// or the skill.
pub(crate) fn finish_interrupted(places: &Places, steps: Steps<'_>) -> Result<Option<String>, InstallError> {
    if !has_leftovers(places) {
        return Ok(None);
    }
    let turn = Turn::take(places)?;
    let about = recover(places, &turn, steps)?;
    turn.leave(places);
    Ok(about)
}

/// Finishes the journal of a crashed process and removes its files. Returns the name of the plugin or the skill.
fn recover(places: &Places, turn: &Turn, steps: Steps<'_>) -> Result<Option<String>, InstallError> {
    let path = places.journal();
    let note = match hermes_private_files::read_regular(&path, LARGEST_NOTE) {
        Ok(note) => Some(note),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(InstallError::File { path, source }),
    };
    let Some(note) = note else {
        sweep(places, turn, None);
        return Ok(None);
    };
    let damaged = |error: serde_json::Error| InstallError::Journal { path: path.clone(), why: error.to_string() };
    let value: serde_json::Value = serde_json::from_slice(&note).map_err(damaged)?;
    let mut transaction = Transaction::deserialize(&value).map_err(damaged)?;
    if transaction.entry.is_some() {
        transaction.entry = Some(Entry::read(&transaction.name, &value["entry"], &places.lock())?);
    }
    carry_out(&transaction, places, turn, steps)?;
    sweep(places, turn, None);
    Ok(Some(transaction.name))
}

/// Carries out the journal. A step that is done already is skipped.
fn carry_out(transaction: &Transaction, places: &Places, _: &Turn, steps: Steps<'_>) -> Result<(), InstallError> {
    let stage = places.folder.join(&transaction.stage);
    let turned = stage.join(TURNED);
    if !turned.exists() && stage.exists() {
        for (place, slot) in &transaction.out {
            steps("out");
            let (from, to) = (places.folder.join(place), stage.join(slot));
            if from.exists() && !to.exists() {
                fs::rename(&from, &to).at(&from)?;
                sync_folder(from.parent().unwrap_or(&places.folder)).at(&from)?;
            }
        }
        steps("turn");
        fs::write(&turned, "").and_then(|()| sync_folder(&stage)).at(&turned)?;
    }
    // Before the plugin is there: it never meets the data of another one.
    transaction.data.carry_out(places, steps)?;
    for (slot, place) in &transaction.into {
        steps("in");
        let (from, to) = (stage.join(slot), places.folder.join(place));
        if from.exists() {
            let folder = to.parent().unwrap_or(&places.folder);
            private_folder(folder)?;
            fs::rename(&from, &to).at(&to)?;
            sync_folder(folder).at(folder)?;
        }
    }
    steps("lock");
    match &transaction.skill {
        Some(skill) => record_skill(&transaction.name, skill, places)?,
        None => record_plugin(&transaction.name, transaction.entry.as_ref(), places)?,
    }
    if let Some(rewrite) = &transaction.rewrite {
        steps("configuration");
        let now = hermes_private_files::read_regular(&rewrite.file, LARGEST_NOTE).unwrap_or_default();
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
    // Rename the stage before removing it: half removed, it would look like a stage with open moves.
    let gone = places.folder.join(format!("{}-gone", transaction.stage));
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
    fs::remove_file(&journal).and_then(|()| sync_folder(&places.folder)).at(&journal)?;
    steps("done");
    Ok(())
}

fn record_plugin(name: &str, entry: Option<&Entry>, places: &Places) -> Result<(), InstallError> {
    let path = places.lock();
    let mut lock = Lock::read(&path)?;
    match entry {
        Some(entry) => drop(lock.plugins.insert(name.to_owned(), entry.clone())),
        None => drop(lock.plugins.remove(name)),
    }
    write_lock(&lock, &path)
}

fn record_skill(name: &str, skill: &SkillRecord, places: &Places) -> Result<(), InstallError> {
    let path = SkillsLock::path(&places.home);
    let mut lock = SkillsLock::read(&path)?;
    match &skill.entry {
        Some(entry) => drop(lock.skills.insert(name.to_owned(), entry.clone())),
        None => drop(lock.skills.remove(name)),
    }
    lock.write(&path)
}

/// Writes the lock, or removes the file if the lock is empty.
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
