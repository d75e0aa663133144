//! Stored sessions: how their store is opened, which session is meant, and what a deletion removes beside them.
//!
//! The store is a port: a front end lists, searches, reads, names, exports and imports sessions with the methods of
//! [`SessionStore`]. Nothing here prints or asks.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_conversation::SessionId;
use tempfile::TempDir;

use crate::store;
use crate::{AppError, Setup};

pub use hermes_session_store::{
    AuxiliaryRecord, Deletion, Depth, Exported, Fragment, Frozen, Health, Hit, Imported, Kept, Layout, Matching,
    Messages, OfFile, Parent, ParentKind, PruneFilter, Pruning, QueuedTurn, RequestRecord, SearchQuery, Session,
    SessionError, SessionStore, SessionSummary, Sizes, Sort, Stats, StoreError, Totals, TransferError, Trust, UsageRow,
    ViewRecord,
};

pub use crate::store::{Outcome, Repair};

/// A store for an import that is only tried.
pub struct TrialStore {
    /// The stored sessions, or none.
    pub store: Arc<dyn SessionStore>,
    _folder: Option<TempDir>,
}

/// A store to search.
pub struct Searchable {
    /// The store.
    pub store: Arc<dyn SessionStore>,
    /// The number of messages that a search does not find because they cannot be indexed, and why.
    pub uncovered: Option<(u64, StoreError)>,
}

/// The messages that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The messages.
    pub hits: Vec<Hit>,
    /// Whether no message has all of the words, and these have some of them.
    pub is_loose: bool,
}

/// Files of deleted sessions that are still there.
#[derive(Debug)]
pub enum Leftover {
    /// The whole texts of long results.
    Results {
        /// The folder that has them.
        folder: PathBuf,
        /// Why they were not removed.
        source: io::Error,
    },
    /// Files of workspaces as they were before changes.
    SavedFiles {
        /// The folder that has them.
        folder: PathBuf,
        /// Why they were not removed.
        source: io::Error,
    },
}

/// Every method fails if the home belongs to another program, or the store cannot be used.
#[allow(clippy::missing_errors_doc, reason = "stated once, above")]
impl Setup {
    /// Opens the store of sessions, and creates it if it is missing.
    pub fn store(&self) -> Result<Arc<dyn SessionStore>, AppError> {
        Ok(store::open(self.home.path())?)
    }

    /// Opens the store of sessions to read it; `None` if nothing is stored yet.
    pub fn store_to_read(&self) -> Result<Option<Arc<dyn SessionStore>>, AppError> {
        Ok(store::open_to_read(self.home.path())?)
    }

    /// Opens the store of sessions to change stored ones; `None` if nothing is stored yet, so that no store is created.
    pub fn store_to_change(&self) -> Result<Option<Arc<dyn SessionStore>>, AppError> {
        self.store_to_read()?.map(|_| self.store()).transpose()
    }

    /// Opens the store of sessions to look for damage; `None` if nothing is stored yet. It is opened for writing where that is
    /// possible, so that problems with that are found too.
    pub fn store_to_check(&self) -> Result<Option<Arc<dyn SessionStore>>, AppError> {
        Ok(store::open_to_check(self.home.path())?)
    }

    /// Opens the store of sessions for an import that is only tried. Neither a home nor a store is created: without a store, this
    /// is an empty one in a temporary folder.
    pub fn store_to_try(&self) -> Result<TrialStore, AppError> {
        if let Some(store) = self.store_to_read()? {
            return Ok(TrialStore { store, _folder: None });
        }
        let folder = tempfile::tempdir().map_err(|source| AppError::Temporary { source })?;
        Ok(TrialStore { store: store::open(folder.path())?, _folder: Some(folder) })
    }

    /// Opens the store of sessions to search it; `None` if nothing is stored yet. Messages that an earlier version stored are
    /// indexed if the store can be written; `indexing` gets their number before that.
    pub async fn store_to_search(&self, indexing: impl FnOnce(u64)) -> Result<Option<Searchable>, AppError> {
        let Some(reader) = self.store_to_read()? else { return Ok(None) };
        let missing = reader.missing_in_search().await?;
        if missing == 0 {
            return Ok(Some(Searchable { store: reader, uncovered: None }));
        }
        indexing(missing);
        Ok(Some(match store::open(self.home.path()) {
            Ok(store) => Searchable { store, uncovered: None },
            // The search still covers the other messages.
            Err(error) => Searchable { store: reader, uncovered: Some((missing, error)) },
        }))
    }

    /// Repairs the store of sessions if it is damaged. It is copied first, and no other process may use it.
    pub fn repair_store(&self) -> Result<Repair, AppError> {
        Ok(store::repair(self.home.path())?)
    }

    /// Finds the session that is meant, with the store to read it: by its id, the beginning of its id, or its title. Without a
    /// name it is the newest one of the folder, else the newest of all. `None` if nothing is stored yet.
    pub async fn session_to_read(
        &self,
        named: Option<&str>,
        folder: Option<&Path>,
    ) -> Result<Option<(Arc<dyn SessionStore>, Session)>, AppError> {
        let store = match (self.store_to_read()?, named) {
            (Some(store), _) => store,
            (None, Some(named)) => return Err(StoreError::from(SessionError::UnknownSession(named.to_owned())).into()),
            (None, None) => return Ok(None),
        };
        let id = match (named, folder) {
            (Some(named), _) => Some(store.resolve_session(named).await?),
            (None, Some(folder)) => store.newest_session(folder).await?,
            (None, None) => None,
        };
        let id = match id {
            Some(id) => id,
            None => match store.sessions().await?.into_iter().next() {
                Some(newest) => newest.id,
                None => return Ok(None),
            },
        };
        let session = store.session(&id).await?;
        Ok(Some((store, session)))
    }

    /// Removes the files of deleted sessions, also those of delegates and of deletions that were interrupted. Returns what is left.
    pub async fn forget_files(&self, store: &dyn SessionStore) -> Vec<Leftover> {
        let home = self.home.path();
        let results = |is_gone: &dyn Fn(&str) -> bool| {
            hermes_agent::remove_kept_results(home, |session| is_gone(session.as_str()))
        };
        let results = remove_of_gone(store, results).await.err();
        let results = results.map(|source| Leftover::Results { folder: home.join("results"), source });
        let (checkpoints, limits) = (hermes_checkpoints::Store::in_home(home), self.checkpoints().limits);
        let saved =
            |is_gone: &dyn Fn(&str) -> bool| hermes_checkpoints::forget_sessions(&checkpoints, &limits, is_gone);
        let saved = remove_of_gone(store, saved).await.err();
        let saved = saved.map(|source| Leftover::SavedFiles { folder: home.join("checkpoints"), source });
        results.into_iter().chain(saved).collect()
    }
}

/// Calls a function that removes the files of the sessions for which its argument is true.
async fn remove_of_gone(
    store: &dyn SessionStore,
    remove: impl Fn(&dyn Fn(&str) -> bool) -> io::Result<()>,
) -> io::Result<()> {
    // The first call removes nothing: it collects the sessions that have files. A session that is gone never comes back.
    let found = RefCell::new(Vec::new());
    remove(&|id| {
        found.borrow_mut().push(SessionId(id.to_owned()));
        false
    })?;
    let mut gone = HashSet::new();
    for id in found.into_inner() {
        if matches!(store.session(&id).await, Err(StoreError::Session(SessionError::UnknownSession(_)))) {
            gone.insert(id.0);
        }
    }
    if gone.is_empty() { Ok(()) } else { remove(&|id| gone.contains(id)) }
}

/// Searches the messages of all sessions. With `may_be_loose`, several words that no message has together are read as a question:
/// messages with some of them are found.
///
/// # Errors
///
/// When the store cannot be read.
pub async fn search(store: &dyn SessionStore, query: SearchQuery, may_be_loose: bool) -> Result<Found, AppError> {
    let hits = store.search_all(&query).await?;
    if !hits.is_empty() || !may_be_loose || !store.may_be_question(&query) {
        return Ok(Found { hits, is_loose: false });
    }
    let hits = store.search_all(&SearchQuery { matching: Matching::Any, ..query }).await?;
    Ok(Found { is_loose: !hits.is_empty(), hits })
}
