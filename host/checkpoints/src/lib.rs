//! Checkpoints: what the files of a workspace were before Hermes changed them, so that a turn can be undone.
//!
//! A [`Recorder`] belongs to a session. It saves the states of paths before and after each change, in a [`Store`] below
//! `$HERMES_HOME` that knows nothing of git. [`undo`] restores files, all or none; [`diff`] shows what changed. This crate knows neither
//! plugins nor sessions: the agent says what changes when.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod apply;
mod diff;
mod error;
mod git;
mod ignored;
mod index;
mod outcome;
mod path;
mod record;
mod recorder;
mod room;
mod scan;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod tree;
mod undo;

pub use apply::{Recovered, recover};
pub use diff::diff;
pub use error::{Cause, Conflict, UndoError, codes};
pub use git::Head;
pub use ignored::Ignored;
pub use outcome::Undo;
pub use path::RelPath;
pub use record::{Change, Record, Undone};
pub use recorder::{Changing, Notify, Places, Recorder, Window};
pub use room::forget_sessions;
pub use scan::Unwatched;
pub use state::{Content, Digest, Stamp, State, Unsaved};
pub use store::{Limits, Store};
pub use undo::{OnConflict, Turns, undo};

use record::Records;

/// The records of a session, the oldest first.
///
/// # Errors
///
/// When the store cannot be read.
pub fn records(store: &Store, session: &str) -> Result<Vec<Record>, UndoError> {
    Records::of(store, session).map_or(Ok(Vec::new()), |records| records.all())
}

/// The undone records that the model does not know of.
pub fn untold(store: &Store, session: &str) -> Vec<Record> {
    if !Records::of(store, session).is_some_and(|records| records.is_untold()) {
        return Vec::new();
    }
    let records = records(store, session).unwrap_or_default();
    records.into_iter().filter(|record| record.undone.as_ref().is_some_and(|undone| !undone.told)).collect()
}

/// The model knows of these undos now, from this message.
pub fn set_told(store: &Store, session: &str, told: Vec<Record>, message: u64) {
    let Some(records) = Records::of(store, session) else { return };
    if told.is_empty() {
        return;
    }
    for mut record in told {
        if let Some(undone) = &mut record.undone {
            (undone.told, undone.told_in) = (true, Some(message));
        }
        // If this fails, the model is only told twice.
        let _ = records.save(&record);
    }
    let _ = records.set_untold(false);
}

/// A message and all later ones were removed: the model does not know of the undos that they told it of, if it still knows of
/// the changes.
///
/// # Errors
///
/// When the store cannot be read or written.
pub fn rewound(store: &Store, session: &str, to: u64) -> Result<(), UndoError> {
    let Some(records) = Records::of(store, session) else { return Ok(()) };
    for mut record in records.all()?.into_iter().filter(|record| record.message < to) {
        let Some(undone) = record.undone.as_mut().filter(|undone| undone.told_in.is_some_and(|told| told >= to)) else {
            continue;
        };
        (undone.told, undone.told_in) = (false, None);
        // First, so that no untold undo is forgotten.
        records.set_untold(true).map_err(UndoError::store(store.root()))?;
        records.save(&record).map_err(UndoError::store(store.root()))?;
    }
    Ok(())
}
