//! What the turns of a stored session changed in files, and their undo from outside of the session.

use std::sync::Arc;

use hermes_checkpoints::{Places, Recorder, Store};
use hermes_conversation::SessionId;
use hermes_diagnostic::Notice;
use hermes_session_store::SessionStore;

use crate::{AppError, Setup, recovered_undos};

pub use hermes_agent::undo_report as report;
pub use hermes_checkpoints::{OnConflict, Record, Turns, Undo};

impl Setup {
    /// What the turns of a session changed in files, the oldest first.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn changes_of(&self, session: &SessionId) -> Result<Vec<Record>, AppError> {
        Ok(hermes_checkpoints::records(&Store::in_home(self.home.path()), session.as_str())?)
    }

    /// The changes of the newest turns that changed files, as a diff.
    ///
    /// # Errors
    ///
    /// When no turn has changed a file, or the saved files cannot be read.
    pub fn diff(&self, session: &SessionId, turns: usize) -> Result<String, AppError> {
        let store = Store::in_home(self.home.path());
        Ok(hermes_checkpoints::diff(&store, session.as_str(), Turns::Last(turns))?.1)
    }

    /// Restores the files that turns of a session changed. Undos that killed processes left are completed first, and `warn` gets
    /// what came of them.
    ///
    /// # Errors
    ///
    /// When a process works on the session, nothing can be undone, or a file changed since and is not to be overwritten.
    pub async fn undo(
        &self,
        store: &dyn SessionStore,
        session: &SessionId,
        (turns, on_conflict): (Turns, OnConflict),
        warn: impl Fn(&Notice),
    ) -> Result<Undo, AppError> {
        // A session that is open elsewhere changes files while they are restored.
        let _lease = store.lease(session).await?;
        recovered_undos(self).iter().for_each(warn);
        let (checkpoints, limits) = (Store::in_home(self.home.path()), self.checkpoints().limits);
        let records = hermes_checkpoints::records(&checkpoints, session.as_str()).unwrap_or_default();
        if let Some(record) = records.last() {
            let places = Places {
                workspace: record.workspace.clone(),
                hermes: self.home.path().to_owned(),
                user: std::env::home_dir(),
            };
            let quiet = Box::new(|_| ());
            let recorder = Recorder::new(checkpoints.clone(), session.as_str(), places, limits, quiet).map(Arc::new);
            recorder.inspect(|recorder| recorder.settle());
        }
        Ok(hermes_checkpoints::undo(&checkpoints, session.as_str(), turns, on_conflict, &limits)?)
    }
}
