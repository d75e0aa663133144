//! Plans an undo: the change at each path, and the conflicts.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};

use crate::apply;
use crate::error::{Cause, Conflict, UndoError};
use crate::index::{Look, present, state_of};
use crate::outcome::{Step, Undo};
use crate::path::RelPath;
use crate::record::{Change, Record, Records};
use crate::state::{State, Unsaved};
use crate::store::{Limits, Store};
use crate::tree::Tree;

/// Which turns an undo takes back. Only turns that changed files count, and none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// So many, from the newest on.
    Last(usize),
    /// The one with this number, and all after it.
    From(u32),
}

/// What happens to a file that changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// Nothing is undone at all.
    #[default]
    Refuse,
    /// It stays as it is, and the other files are restored.
    Skip,
    /// It is restored too. What it contains now is lost.
    Overwrite,
}

/// All changes of a path in a row.
pub(crate) struct Chain {
    pub(crate) before: State,
    pub(crate) after: State,
    is_broken: bool,
    is_unsure: bool,
}

/// What several turns changed, path by path.
pub(crate) fn chains<'a>(changes: impl IntoIterator<Item = &'a Change>) -> BTreeMap<RelPath, Chain> {
    let mut chains: BTreeMap<RelPath, Chain> = BTreeMap::new();
    for change in changes {
        let Change { path, before, after, unsure } = change;
        match chains.get_mut(path) {
            None => {
                let (before, after) = (before.clone(), after.clone());
                chains.insert(path.clone(), Chain { before, after, is_broken: false, is_unsure: *unsure });
            }
            Some(chain) => {
                chain.is_broken |= chain.after != *before;
                chain.is_unsure |= unsure;
                chain.after = after.clone();
            }
        }
    }
    chains
}

/// The records of these turns, the oldest first, and the ones after them.
pub(crate) fn chosen(records: &Records, turns: Turns) -> Result<(Vec<Record>, Vec<Record>), UndoError> {
    let all = records.all()?;
    let open: Vec<u32> = all.iter().filter(|record| record.is_open()).map(|record| record.number).collect();
    let first = match turns {
        Turns::Last(count) => open.iter().rev().take(count.max(1)).next_back().copied().ok_or(UndoError::Nothing)?,
        Turns::From(number) if open.contains(&number) => number,
        Turns::From(number) => return Err(UndoError::NoSuchTurn { number }),
    };
    let last = open.iter().filter(|number| **number >= first).count();
    let after =
        all.into_iter().filter(|record| record.number >= first && (record.undone.is_none() || record.is_open()));
    let (chosen, others): (Vec<Record>, Vec<Record>) = after.partition(Record::is_open);
    debug_assert_eq!(chosen.len(), last);
    Ok((chosen, others))
}

/// Undoes the changes of turns. Either all files are restored, or none.
///
/// # Errors
///
/// [`UndoError`] says why nothing was undone.
pub fn undo(
    store: &Store,
    session: &str,
    turns: Turns,
    on_conflict: OnConflict,
    limits: &Limits,
) -> Result<Undo, UndoError> {
    let records = Records::of(store, session).ok_or(UndoError::Nothing)?;
    let (chosen, others) = chosen(&records, turns)?;
    let workspace = chosen.first().map(|record| record.workspace.clone()).ok_or(UndoError::Nothing)?;
    let opened = |source| UndoError::Workspace { path: workspace.clone(), source };
    // A workspace that was replaced by a link is another one.
    if workspace.canonicalize().map_err(opened)? != workspace {
        let source = std::io::Error::other("it is a link now");
        return Err(UndoError::Workspace { path: workspace, source });
    }
    let tree = Tree::open(&workspace).map_err(opened)?;
    let _adding = store.adding().map_err(UndoError::store(store.root()))?;
    let mut undo = about(&chosen, &others);
    let chains = chains(chosen.iter().flat_map(Record::open_changes));
    let steps = plan(store, &tree, limits, chains, on_conflict, &mut undo)?;
    undo.kept_folders = apply::run(store, session, &tree, &undo, steps, limits)?;
    undo.restored.retain(|path| !undo.kept_folders.contains(path));
    Ok(undo)
}

/// What the records say beside their changes.
fn about(chosen: &[Record], others: &[Record]) -> Undo {
    let mut undo = Undo {
        turns: chosen.iter().map(|record| record.number).collect(),
        words: chosen.first().map(|record| record.words.clone()).unwrap_or_default(),
        ..Undo::default()
    };
    let mut all: Vec<&Record> = chosen.iter().chain(others).collect();
    all.sort_by_key(|record| record.number);
    let (mut programs, mut outside, mut unrecorded) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for record in all {
        let new = record.programs.iter().filter(|program| programs.insert(*program)).cloned();
        undo.programs.extend(new);
        undo.more_programs += record.more_programs;
        outside.extend(record.outside.iter().cloned());
        unrecorded.extend(record.unrecorded.iter().cloned());
        if let Some((before, after)) = &record.heads {
            let first = undo.heads.take().map_or_else(|| before.clone(), |(first, _)| first);
            undo.heads = Some((first, after.clone()));
        }
    }
    undo.heads = undo.heads.filter(|(before, after)| before != after);
    undo.outside = outside.into_iter().collect();
    undo.unrecorded = unrecorded.into_iter().collect();
    undo
}

fn plan(
    store: &Store,
    tree: &Tree,
    limits: &Limits,
    chains: BTreeMap<RelPath, Chain>,
    on_conflict: OnConflict,
    undo: &mut Undo,
) -> Result<Vec<Step>, UndoError> {
    let failed = |path: &RelPath| {
        let path = path.clone();
        move |source| UndoError::Failed { path, source }
    };
    let mut steps: Vec<Step> = Vec::new();
    let mut conflicts = Vec::new();
    // Links and files that give way to the folders that were there before, or why they do not. A folder comes before its entries.
    let mut new_folders: BTreeMap<RelPath, Option<Cause>> = BTreeMap::new();
    for (path, chain) in chains {
        let Chain { before: to, after, is_broken, is_unsure } = chain;
        let now = present(tree, limits, &path).map_err(failed(&path))?;
        if now == to {
            continue;
        }
        // The undo also replaces no content that it could not bring back.
        if let Some(why) = to.unsaved().or_else(|| now.unsaved()) {
            if to.unsaved().is_none() && on_conflict == OnConflict::Overwrite {
                undo.left.push(path.clone());
            }
            undo.unsaved.push((path, why));
            continue;
        }
        if to.digest().is_some_and(|digest| store.get(digest).is_none()) {
            undo.unsaved.push((path, Unsaved::Lost));
            continue;
        }
        let obstacle = if to == State::Absent { None } else { tree.obstacle(&path).map_err(failed(&path))? };
        let obstructed = obstacle.and_then(|path| new_folders.get(&path).copied().unwrap_or(Some(Cause::Obstructed)));
        let cause = match () {
            () if obstructed.is_some() => obstructed,
            () if now != after => Some(Cause::ChangedSince),
            () if is_broken => Some(Cause::ChangedBetween),
            () if is_unsure => Some(Cause::InBackground),
            () => None,
        };
        let cause = cause.filter(|cause| *cause == Cause::Obstructed || on_conflict != OnConflict::Overwrite);
        if to.is_folder() && now != State::Absent {
            new_folders.insert(path.clone(), cause);
        }
        match cause {
            Some(cause) => conflicts.push(Conflict { path, cause }),
            None => steps.push(Step { path, from: now, to }),
        }
    }
    // A folder that gives way to something else must not have files of its own.
    let leaving: BTreeMap<&RelPath, &Step> =
        steps.iter().filter(|step| step.to == State::Absent).map(|step| (&step.path, step)).collect();
    let mut obstructed = BTreeSet::new();
    for step in steps.iter().filter(|step| step.from.is_folder() && step.to != State::Absent) {
        if !becomes_empty(tree, &leaving, &step.path).map_err(failed(&step.path))? {
            obstructed.insert(step.path.clone());
        }
    }
    steps.retain(|step| !obstructed.contains(&step.path));
    conflicts.extend(obstructed.into_iter().map(|path| Conflict { path, cause: Cause::Obstructed }));
    if !conflicts.is_empty() && on_conflict == OnConflict::Refuse {
        return Err(UndoError::Changed { conflicts });
    }
    if on_conflict == OnConflict::Overwrite {
        undo.left.extend(conflicts.iter().map(|conflict| conflict.path.clone()));
    }
    undo.skipped = conflicts;
    undo.restored = steps.iter().map(|step| step.path.clone()).collect();
    let look = Look { tree, store, limits, hermes: store.root() };
    for step in &mut steps {
        // If the undo fails, this is what is brought back.
        let found = tree.look(&step.path).map_err(failed(&step.path))?;
        let now = state_of(&look, &step.path, found.as_ref()).map_err(failed(&step.path))?;
        if now != step.from {
            let conflicts = vec![Conflict { path: step.path.clone(), cause: Cause::ChangedSince }];
            return Err(UndoError::Changed { conflicts });
        }
    }
    Ok(steps)
}

/// Whether a folder has no entries once the steps that remove some are carried out.
fn becomes_empty(tree: &Tree, leaving: &BTreeMap<&RelPath, &Step>, folder: &RelPath) -> io::Result<bool> {
    for name in tree.entries(folder)? {
        let path = folder.join(&name);
        let Some(step) = leaving.get(&path) else { return Ok(false) };
        if step.from.is_folder() && !becomes_empty(tree, leaving, &path)? {
            return Ok(false);
        }
    }
    Ok(true)
}
