//! Carries out an undo: all of it or nothing, also if Hermes is killed meanwhile.
//!
//! The steps are written to a journal before the first file changes. Each step can be repeated, so that the next start completes
//! what a killed process left. If a step fails, those before it are taken back.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::UndoError;
use crate::index::present;
use crate::outcome::{Step, Undo};
use crate::path::RelPath;
use crate::record::{Records, Undone, unix_ms};
use crate::state::State;
use crate::store::{Limits, MAX_JSON, Store};
use crate::tree::{Tree, is_draft};

/// More files than this are written to the disk together: that waits for the other files of the disk, too.
const SYNCED_EACH: usize = 200;

/// An undo that is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Journal {
    session: String,
    workspace: PathBuf,
    turns: Vec<u32>,
    steps: Vec<Step>,
    /// The paths that stay to be undone.
    #[serde(default)]
    left: Vec<RelPath>,
    /// Whether the steps are taken back, because one of them failed.
    #[serde(default)]
    backward: bool,
}

/// An undo that a killed process left, and that is complete now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The session.
    pub session: String,
    /// The paths that it restored.
    pub restored: Vec<RelPath>,
    /// The paths that have changed meanwhile, and were left.
    pub left: Vec<RelPath>,
    /// Whether it was taken back instead.
    pub backward: bool,
}

/// What became of the steps.
#[derive(Default)]
struct Done {
    kept_folders: Vec<RelPath>,
    left: Vec<RelPath>,
}

fn journal_path(store: &Store, session: &str) -> PathBuf {
    store.undos().join(format!("{session}.json"))
}

/// Held while an undo of the session is under way; `None` if another process holds it.
fn lock(store: &Store, session: &str) -> Result<Option<File>, UndoError> {
    let folder = store.undos();
    let path = folder.join(format!("{session}.lock"));
    let opened = hermes_private_files::create_folder(&folder).and_then(|()| hermes_private_files::open_file(&path));
    let file = opened.map_err(UndoError::store(path))?;
    Ok(file.try_lock().is_ok().then_some(file))
}

/// Carries out the steps. Returns the folders that stay because they have other files.
pub(crate) fn run(
    store: &Store,
    session: &str,
    tree: &Tree,
    undo: &Undo,
    steps: Vec<Step>,
    limits: &Limits,
) -> Result<Vec<RelPath>, UndoError> {
    let _lock = lock(store, session)?.ok_or(UndoError::Busy)?;
    let path = journal_path(store, session);
    if path.exists() {
        return Err(UndoError::Busy);
    }
    let mut journal = Journal {
        session: session.to_owned(),
        workspace: tree.root().to_owned(),
        turns: undo.turns.clone(),
        steps,
        left: undo.left.clone(),
        backward: false,
    };
    write(&path, &journal)?;
    let done = match carry_out(store, tree, limits, &journal.steps, false) {
        Ok(done) if done.left.is_empty() => done,
        failed => {
            let error = match failed {
                Ok(done) => changed_meanwhile(done.left),
                Err((path, source)) => UndoError::Failed { path, source },
            };
            journal.backward = true;
            write(&path, &journal)?;
            let back: Vec<Step> = reversed(&journal.steps);
            if let Err((path, source)) = carry_out(store, tree, limits, &back, true) {
                return Err(UndoError::Torn { path, source });
            }
            synced(tree, &back);
            remove(&path)?;
            return Err(error);
        }
    };
    synced(tree, &journal.steps);
    finish(store, &journal)?;
    remove(&path)?;
    Ok(done.kept_folders)
}

fn synced(tree: &Tree, steps: &[Step]) {
    if steps.len() > SYNCED_EACH {
        tree.sync();
    }
}

fn changed_meanwhile(left: Vec<RelPath>) -> UndoError {
    let cause = crate::error::Cause::ChangedSince;
    UndoError::Changed { conflicts: left.into_iter().map(|path| crate::error::Conflict { path, cause }).collect() }
}

fn reversed(steps: &[Step]) -> Vec<Step> {
    let reverse = |step: &Step| Step { path: step.path.clone(), from: step.to.clone(), to: step.from.clone() };
    steps.iter().map(reverse).collect()
}

fn write(path: &std::path::Path, journal: &Journal) -> Result<(), UndoError> {
    let text = serde_json::to_vec(journal).map_err(io::Error::from);
    text.and_then(|text| hermes_private_files::write_whole(path, &text)).map_err(UndoError::store(path))
}

fn remove(path: &std::path::Path) -> Result<(), UndoError> {
    fs::remove_file(path).map_err(UndoError::store(path))
}

/// Marks the turns as undone, but for what was left.
fn finish(store: &Store, journal: &Journal) -> Result<(), UndoError> {
    let Some(records) = Records::of(store, &journal.session) else { return Ok(()) };
    let mut undone = records.all()?;
    undone.retain(|record| journal.turns.contains(&record.number) && record.is_open());
    // After a kill, the records may have made room or gone with their session. Then nobody has to be told.
    if undone.is_empty() {
        return Ok(());
    }
    records.set_untold(true).map_err(UndoError::store(store.root()))?;
    for mut record in undone {
        let own: std::collections::BTreeSet<&RelPath> = record.open_changes().map(|change| &change.path).collect();
        let restored = journal.steps.iter().map(|step| &step.path).filter(|path| own.contains(path));
        let left = journal.left.iter().filter(|path| own.contains(path)).cloned().collect();
        // What an earlier undo restored, if the model does not know of it yet.
        let untold = record.undone.iter().filter(|undone| !undone.told).flat_map(|undone| &undone.restored);
        let restored = untold.chain(restored).cloned().collect();
        record.undone = Some(Undone { at: unix_ms(), restored, told: false, told_in: None, left });
        records.save(&record).map_err(UndoError::store(store.root()))?;
    }
    Ok(())
}

/// Completes the undos that killed processes left. Those of other processes that are under way are left to them.
///
/// # Errors
///
/// Those of an undo that cannot be completed; the next call tries again.
pub fn recover(store: &Store, limits: &Limits) -> Vec<Result<Recovered, UndoError>> {
    let Ok(entries) = fs::read_dir(store.undos()) else { return Vec::new() };
    let journals = entries.flatten().map(|entry| entry.path());
    journals
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .filter_map(|path| {
            let text = hermes_private_files::read_regular(&path, MAX_JSON).ok()?;
            let journal: Journal = serde_json::from_slice(&text).ok()?;
            recover_one(store, limits, &path, &journal).transpose()
        })
        .collect()
}

fn recover_one(
    store: &Store,
    limits: &Limits,
    path: &std::path::Path,
    journal: &Journal,
) -> Result<Option<Recovered>, UndoError> {
    let Some(_lock) = lock(store, &journal.session)? else { return Ok(None) };
    // The other process may have ended between the two looks.
    if !path.exists() {
        return Ok(None);
    }
    let opened = |source| UndoError::Workspace { path: journal.workspace.clone(), source };
    let tree = Tree::open(&journal.workspace).map_err(opened)?;
    remove_drafts(&tree, &journal.steps);
    let steps = if journal.backward { reversed(&journal.steps) } else { journal.steps.clone() };
    let done = carry_out(store, &tree, limits, &steps, true);
    let done = done.map_err(|(path, source)| UndoError::Torn { path, source })?;
    synced(&tree, &steps);
    if !journal.backward {
        finish(store, journal)?;
    }
    remove(path)?;
    let restored = steps.iter().map(|step| step.path.clone()).filter(|path| !done.left.contains(path)).collect();
    let (session, backward) = (journal.session.clone(), journal.backward);
    Ok(Some(Recovered { session, restored, left: done.left, backward }))
}

/// Removes the files that a killed process was writing.
fn remove_drafts(tree: &Tree, steps: &[Step]) {
    let folders: std::collections::BTreeSet<Option<RelPath>> = steps.iter().map(|step| step.path.parent()).collect();
    for folder in folders {
        let names = match &folder {
            Some(folder) => tree.entries(folder),
            None => tree.root_entries(),
        };
        for name in names.into_iter().flatten().filter(|name| is_draft(name)) {
            let path = folder.as_ref().map_or_else(|| RelPath::new(&name), |folder| Some(folder.join(&name)));
            if let Some(path) = path {
                let _ = tree.remove_file(&path);
            }
        }
    }
}

/// Carries out steps in an order in which each is possible. With `repeated`, a part of them may be done already, and a path that has
/// something else is left. Otherwise the first path that has something else ends the work.
fn carry_out(
    store: &Store,
    tree: &Tree,
    limits: &Limits,
    steps: &[Step],
    repeated: bool,
) -> Result<Done, (RelPath, io::Error)> {
    let mut done = Done::default();
    let options = Options { repeated, sync: steps.len() <= SYNCED_EACH };
    let leaves = |step: &&Step| step.to == State::Absent || step.to.is_folder() != step.from.is_folder();
    let files = steps.iter().filter(leaves).filter(|step| !step.from.is_folder() && step.from != State::Absent);
    // What is in a folder goes before the folder.
    let folders = steps.iter().rev().filter(|step| step.from.is_folder() && !step.to.is_folder());
    let new_folders = steps.iter().filter(|step| step.to.is_folder() && !step.from.is_folder());
    let contents = steps.iter().filter(|step| !step.to.is_folder() && step.to != State::Absent);
    let phases = files.map(|step| (step, Phase::RemoveFile)).chain(folders.map(|step| (step, Phase::RemoveFolder)));
    let phases = phases.chain(new_folders.map(|step| (step, Phase::MakeFolder)));
    for (step, phase) in phases.chain(contents.map(|step| (step, Phase::Fill))) {
        if done.left.contains(&step.path) {
            continue;
        }
        match one(store, tree, limits, step, phase, options) {
            Ok(Outcome::Done) => {}
            Ok(Outcome::FolderStays) => done.kept_folders.push(step.path.clone()),
            Ok(Outcome::Other) => {
                done.left.push(step.path.clone());
                if !repeated {
                    return Ok(done);
                }
            }
            Err(error) => return Err((step.path.clone(), error)),
        }
    }
    Ok(done)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    RemoveFile,
    RemoveFolder,
    MakeFolder,
    Fill,
}

#[derive(Clone, Copy)]
struct Options {
    /// A part of the steps may be done already.
    repeated: bool,
    /// Each file is written to the disk by itself.
    sync: bool,
}

enum Outcome {
    Done,
    /// The folder has other entries.
    FolderStays,
    /// Something else is there.
    Other,
}

fn one(
    store: &Store,
    tree: &Tree,
    limits: &Limits,
    step: &Step,
    phase: Phase,
    options: Options,
) -> io::Result<Outcome> {
    let Step { path, from, to } = step;
    let now = present(tree, limits, path)?;
    if now == *to {
        return Ok(Outcome::Done);
    }
    // An earlier phase has removed what was there.
    let is_between = now == State::Absent && matches!(phase, Phase::MakeFolder | Phase::Fill);
    if now != *from && !is_between {
        let is_behind = options.repeated && now == State::Absent;
        return Ok(if is_behind { Outcome::Done } else { Outcome::Other });
    }
    match phase {
        Phase::RemoveFile => tree.remove_file(path)?,
        Phase::RemoveFolder if !tree.remove_folder(path)? => return Ok(Outcome::FolderStays),
        Phase::RemoveFolder => {}
        Phase::MakeFolder => {
            tree.make_folders_above(path)?;
            if let State::Folder { mode } = to {
                tree.make_folder(path, *mode)?;
            }
        }
        Phase::Fill => {
            tree.make_folders_above(path)?;
            match to {
                State::Link { target } => tree.link(path, target)?,
                State::File { mode, .. } => {
                    let content = to.digest().and_then(|digest| store.get(digest));
                    let gone = || io::Error::other("its content is no longer in the store of checkpoints");
                    tree.write(path, &content.ok_or_else(gone)?, *mode, options.sync)?;
                }
                State::Absent | State::Folder { .. } | State::Other => {}
            }
        }
    }
    Ok(Outcome::Done)
}

/// The contents that a journal needs.
pub(crate) fn names(path: &std::path::Path) -> std::collections::HashSet<crate::state::Digest> {
    let journal = hermes_private_files::read_regular(path, MAX_JSON).ok();
    let journal = journal.and_then(|text| serde_json::from_slice::<Journal>(&text).ok());
    let steps = journal.into_iter().flat_map(|journal| journal.steps);
    steps.flat_map(|step| [step.from, step.to]).filter_map(|state| state.digest().cloned()).collect()
}
