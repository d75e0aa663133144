//! The ports of the session store with SQLite.
//!
//! A call of [`Store`] blocks: it waits for the disk, and up to nine seconds for writers of other processes. So calls run on
//! tokio's blocking pool, except those that read a few rows: readers do not wait for writers. A semaphore admits one call at
//! a time in order of arrival, because there is one connection: waiting calls occupy no thread.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::{BlobId, Draft, Message, MessageId, Model, SessionId, Summary, Usage, View, ViewId};
use hermes_session_store::{
    AdapterError, AuxiliaryRecord, Catalogue, Delegation, Deletion, Delivery, Depth, EngineFaults, Exported, Finding,
    FinishedTurn, Frozen, Health, Hit, ImportFile, Imported, Layout, Lease, Ledger, NewSession, Passage, PassageQuery,
    Passed, PromptNumber, PruneFilter, Pruning, QueuedTurn, RecallQuery, RequestRecord, Session, SessionLog,
    SessionSummary, Stats, StoreError as PortError, StoredView, Totals, Trust, UsageRow, ViewRecord, Words,
};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use crate::{Matching, SearchQuery, Store, StoreError, search};

/// The sessions of one `state.db`. Cloning is cheap; clones share the connection and its queue.
#[derive(Clone)]
pub struct SqliteSessions {
    store: Arc<Store>,
    turn: Arc<Semaphore>,
}

impl SqliteSessions {
    /// Wraps an open store. The store can still be used directly where blocking is acceptable.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Reads a few rows. If no other call is under way, it does so at once: moving the work to another thread and back takes
    /// longer than the reading.
    async fn glance<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, PortError> {
        match self.turn.try_acquire() {
            Ok(_turn) => Ok(work(&self.store)?),
            Err(_) => self.run(work).await,
        }
    }

    /// Runs blocking work outside the async threads.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, PortError> {
        let (turn, store) = (Arc::clone(&self.turn), Arc::clone(&self.store));
        // A task waits for its turn: a caller that is not polled when its turn comes would hold up all others. The set ends the
        // task if the caller goes away before the work began.
        let mut waiting = JoinSet::new();
        waiting.spawn(async move {
            let turn = turn.acquire_owned().await.map_err(|closed| StoreError::Stopped(closed.to_string()))?;
            let work = move || {
                let done = work(&store);
                drop(turn);
                done
            };
            settled(tokio::task::spawn_blocking(work).await)
        });
        match waiting.join_next().await {
            Some(done) => Ok(settled(done)?),
            None => Err(StoreError::Stopped("no work was started".to_owned()).into()),
        }
    }
}

/// The result of a task. A panic of the task continues in the caller.
fn settled<T>(ended: Result<Result<T, StoreError>, JoinError>) -> Result<T, StoreError> {
    match ended {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(cancelled) => Err(StoreError::Stopped(cancelled.to_string())),
        },
    }
}

impl fmt::Debug for SqliteSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteSessions").field(&self.store.path()).finish()
    }
}

impl From<StoreError> for PortError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Session(error) => Self::Session(error),
            StoreError::Transfer(error) => Self::Transfer(error),
            StoreError::Home { .. }
            | StoreError::Foreign { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::NotADatabase { .. }
            | StoreError::Orphan { .. }
            | StoreError::Corrupt { .. } => Self::Unusable(AdapterError::new(error)),
            _ => Self::Failed(AdapterError::new(error)),
        }
    }
}

#[async_trait]
impl SessionLog for SqliteSessions {
    async fn create_session(&self, new: NewSession) -> Result<Session, PortError> {
        self.run(move |store| store.create_session(new)).await
    }

    async fn session(&self, id: &SessionId) -> Result<Session, PortError> {
        let id = id.clone();
        self.glance(move |store| store.session(&id)).await
    }

    async fn settle_import(&self, id: &SessionId, workspace: &Path) -> Result<(), PortError> {
        let (id, workspace) = (id.clone(), workspace.to_owned());
        self.run(move |store| store.settle_import(&id, &workspace)).await
    }

    async fn lease(&self, id: &SessionId) -> Result<Lease, PortError> {
        let id = id.clone();
        self.run(move |store| Ok(Lease::new(id.clone(), store.lease(&id)?))).await
    }

    async fn update_model(&self, id: &SessionId, model: &Model) -> Result<(), PortError> {
        let (id, model) = (id.clone(), model.clone());
        self.run(move |store| store.update_model(&id, &model)).await
    }

    async fn update_engine(&self, id: &SessionId, engine: &str) -> Result<(), PortError> {
        let (id, engine) = (id.clone(), engine.to_owned());
        self.run(move |store| store.update_engine(&id, &engine)).await
    }

    async fn discard(&self, session: &SessionId) -> Result<bool, PortError> {
        let session = session.clone();
        self.run(move |store| store.discard(&session)).await
    }

    async fn append(&self, session: &SessionId, drafts: &[Draft]) -> Result<Vec<Message>, PortError> {
        let (session, drafts) = (session.clone(), drafts.to_vec());
        self.run(move |store| store.append(&session, &drafts)).await
    }

    async fn end_turn(
        &self,
        session: &SessionId,
        drafts: &[Draft],
        first: MessageId,
        providers: &[String],
    ) -> Result<Vec<Message>, PortError> {
        let (session, drafts, providers) = (session.clone(), drafts.to_vec(), providers.to_vec());
        self.run(move |store| store.end_turn(&session, &drafts, first, &providers)).await
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Arc<[u8]>>, PortError> {
        let id = id.clone();
        self.run(move |store| store.blob(&id)).await
    }

    async fn conversation(&self, session: &SessionId) -> Result<Vec<Message>, PortError> {
        let session = session.clone();
        self.run(move |store| store.conversation(&session)).await
    }

    async fn rewind(&self, session: &SessionId, to: MessageId) -> Result<Vec<Message>, PortError> {
        let session = session.clone();
        self.run(move |store| store.rewind(&session, to)).await
    }

    async fn restore(&self, session: &SessionId) -> Result<Vec<Message>, PortError> {
        let session = session.clone();
        self.run(move |store| store.restore(&session)).await
    }

    async fn put_view(
        &self,
        session: &SessionId,
        view: &View,
        reason: &str,
        engine: &str,
    ) -> Result<ViewId, PortError> {
        let (session, view) = (session.clone(), view.clone());
        let (reason, engine) = (reason.to_owned(), engine.to_owned());
        self.run(move |store| store.put_view(&session, &view, &reason, &engine)).await
    }

    async fn view_in_force(&self, session: &SessionId) -> Result<StoredView, PortError> {
        let session = session.clone();
        self.run(move |store| store.view_in_force(&session)).await
    }

    async fn views(&self, session: &SessionId) -> Result<Vec<ViewRecord>, PortError> {
        let session = session.clone();
        self.run(move |store| store.views(&session)).await
    }

    async fn view(&self, id: ViewId) -> Result<Option<View>, PortError> {
        self.run(move |store| store.view_by_id(id)).await
    }

    async fn summaries(&self, session: &SessionId) -> Result<HashMap<String, Summary>, PortError> {
        let session = session.clone();
        self.run(move |store| store.summaries(&session)).await
    }

    async fn summary(&self, session: &SessionId, key: &str) -> Result<Option<Summary>, PortError> {
        let (session, key) = (session.clone(), key.to_owned());
        self.run(move |store| store.summary(&session, &key)).await
    }

    async fn freeze(&self, id: &SessionId, frozen: &Frozen, now: u64) -> Result<PromptNumber, PortError> {
        let (id, frozen) = (id.clone(), frozen.clone());
        self.run(move |store| store.freeze(&id, &frozen, now)).await
    }

    async fn frozen(&self, id: &SessionId, number: PromptNumber) -> Result<Option<Frozen>, PortError> {
        let id = id.clone();
        self.glance(move |store| store.frozen(&id, number)).await
    }

    async fn engine_faults(&self, session: &SessionId) -> Result<Vec<EngineFaults>, PortError> {
        let session = session.clone();
        self.glance(move |store| store.engine_faults(&session)).await
    }

    async fn set_engine_faults(&self, session: &SessionId, faults: &EngineFaults) -> Result<(), PortError> {
        let (session, faults) = (session.clone(), faults.clone());
        self.run(move |store| store.set_engine_faults(&session, &faults)).await
    }

    async fn origin(&self, session: &SessionId) -> Result<SessionId, PortError> {
        let session = session.clone();
        self.glance(move |store| store.origin(&session)).await
    }
}

#[async_trait]
impl Ledger for SqliteSessions {
    async fn next_turn(&self, session: &SessionId, provider: &str) -> Result<Option<QueuedTurn>, PortError> {
        let (session, provider) = (session.clone(), provider.to_owned());
        self.glance(move |store| store.next_turn(&session, &provider)).await
    }

    async fn record_delivery(&self, turn: &QueuedTurn, delivery: &Delivery) -> Result<(), PortError> {
        let (turn, delivery) = (turn.clone(), delivery.clone());
        self.run(move |store| store.record_delivery(&turn, &delivery)).await
    }

    async fn outbox(&self) -> Result<Vec<QueuedTurn>, PortError> {
        self.run(Store::outbox).await
    }

    async fn delivery_lease(&self, session: &SessionId, provider: &str) -> Result<Lease, PortError> {
        let (session, provider) = (session.clone(), provider.to_owned());
        self.run(move |store| Ok(Lease::new(session.clone(), store.delivery_lease(&session, &provider)?))).await
    }

    async fn retry_turns(&self, provider: Option<&str>) -> Result<usize, PortError> {
        let provider = provider.map(str::to_owned);
        self.run(move |store| store.retry_turns(provider.as_deref())).await
    }

    async fn finished_turns(&self, since: u64) -> Result<Vec<FinishedTurn>, PortError> {
        self.run(move |store| store.finished_turns(since)).await
    }

    async fn queue_turns(&self, provider: &str, turns: &[FinishedTurn]) -> Result<usize, PortError> {
        let (provider, turns) = (provider.to_owned(), turns.to_vec());
        self.run(move |store| store.queue_turns(&provider, &turns)).await
    }

    async fn record_request(&self, id: &SessionId, request: &RequestRecord) -> Result<u64, PortError> {
        let (id, request) = (id.clone(), request.clone());
        self.run(move |store| store.record_request(&id, &request)).await
    }

    async fn complete_request(&self, id: &SessionId, request: &RequestRecord) -> Result<(), PortError> {
        let (id, request) = (id.clone(), request.clone());
        self.run(move |store| store.complete_request(&id, &request)).await
    }

    async fn withdraw_request(&self, id: &SessionId, number: u64) -> Result<(), PortError> {
        let id = id.clone();
        self.run(move |store| store.withdraw_request(&id, number)).await
    }

    async fn record_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<u64, PortError> {
        let (id, request) = (id.clone(), request.clone());
        self.run(move |store| store.record_auxiliary(&id, &request)).await
    }

    async fn complete_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<(), PortError> {
        let (id, request) = (id.clone(), request.clone());
        self.run(move |store| store.complete_auxiliary(&id, &request)).await
    }

    async fn withdraw_auxiliary(&self, id: &SessionId, number: u64) -> Result<(), PortError> {
        let id = id.clone();
        self.run(move |store| store.withdraw_auxiliary(&id, number)).await
    }

    async fn auxiliary_since(
        &self,
        plugin: &str,
        task: &str,
        since: u64,
    ) -> Result<Vec<(SessionId, AuxiliaryRecord)>, PortError> {
        let (plugin, task) = (plugin.to_owned(), task.to_owned());
        self.glance(move |store| store.auxiliary_since(&plugin, &task, since)).await
    }

    async fn usage(&self, since: u64, session: Option<&SessionId>) -> Result<Vec<UsageRow>, PortError> {
        let session = session.cloned();
        self.run(move |store| store.usage(since, session.as_ref())).await
    }

    async fn set_totals(&self, id: &SessionId, totals: &Totals) -> Result<(), PortError> {
        let (id, totals) = (id.clone(), *totals);
        self.run(move |store| store.set_totals(&id, &totals)).await
    }

    async fn requests(&self, id: &SessionId) -> Result<Vec<RequestRecord>, PortError> {
        let id = id.clone();
        self.run(move |store| store.requests(&id)).await
    }

    async fn last_request(
        &self,
        id: &SessionId,
        through: Option<MessageId>,
    ) -> Result<Option<RequestRecord>, PortError> {
        let id = id.clone();
        self.glance(move |store| store.last_request(&id, through)).await
    }

    async fn last_usage(&self, id: &SessionId, like: &RequestRecord) -> Result<Option<Usage>, PortError> {
        let (id, like) = (id.clone(), like.clone());
        self.glance(move |store| store.last_usage(&id, &like)).await
    }

    async fn cache_was_reported(&self, id: &SessionId, like: &RequestRecord) -> Result<bool, PortError> {
        let (id, like) = (id.clone(), like.clone());
        self.glance(move |store| store.cache_was_reported(&id, &like)).await
    }

    async fn requests_since(&self, like: &RequestRecord, since: u64, most: u32) -> Result<Vec<Passed>, PortError> {
        let like = like.clone();
        self.glance(move |store| store.requests_since(&like, since, most)).await
    }

    async fn put_delegation(&self, session: &SessionId, task: &Delegation) -> Result<u32, PortError> {
        let (session, task) = (session.clone(), task.clone());
        self.run(move |store| store.put_delegation(&session, &task)).await
    }

    async fn delegations(&self, session: &SessionId) -> Result<Vec<Delegation>, PortError> {
        let session = session.clone();
        self.glance(move |store| store.delegations(&session)).await
    }

    async fn note(&self, name: &str) -> Result<Option<String>, PortError> {
        let name = name.to_owned();
        self.glance(move |store| store.note(&name)).await
    }

    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), PortError> {
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        self.run(move |store| store.set_note(&name, value.as_deref())).await
    }
}

#[async_trait]
impl Catalogue for SqliteSessions {
    fn place(&self) -> String {
        self.store.path().display().to_string()
    }

    async fn resolve_session(&self, text: &str) -> Result<SessionId, PortError> {
        let text = text.to_owned();
        self.run(move |store| store.resolve_session(&text)).await
    }

    async fn titled(&self, title: &str) -> Result<Option<SessionId>, PortError> {
        let title = title.to_owned();
        self.run(move |store| store.titled(&title)).await
    }

    async fn newest_session(&self, workspace: &Path) -> Result<Option<SessionId>, PortError> {
        let workspace = workspace.to_owned();
        self.glance(move |store| store.newest_session(&workspace)).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, PortError> {
        self.run(Store::sessions).await
    }

    async fn conversations(&self, most: Option<u64>) -> Result<Vec<SessionSummary>, PortError> {
        self.run(move |store| store.conversations(most)).await
    }

    async fn chain(&self, session: &SessionId) -> Result<Vec<SessionId>, PortError> {
        let session = session.clone();
        self.run(move |store| store.chain(&session)).await
    }

    async fn set_title(&self, id: &SessionId, title: &str) -> Result<Option<String>, PortError> {
        let (id, title) = (id.clone(), title.to_owned());
        self.run(move |store| store.set_title(&id, &title)).await
    }

    async fn search(&self, session: &SessionId, query: &PassageQuery) -> Result<Vec<Passage>, PortError> {
        let session = session.clone();
        let query = SearchQuery {
            matching: match query.words {
                Words::Any => Matching::Any,
                Words::All => Matching::All,
                Words::Phrase => Matching::Phrase,
            },
            roles: (!query.roles.is_empty()).then(|| query.roles.clone()),
            tools: (!query.tools.is_empty()).then(|| query.tools.clone()),
            within: query.within,
            offset: query.offset,
            limit: query.limit,
            ..SearchQuery::new(query.text.as_str())
        };
        self.run(move |store| store.search_conversation(&session, &query)).await
    }

    async fn recall(&self, query: &RecallQuery) -> Result<Vec<Finding>, PortError> {
        let query = query.clone();
        self.run(move |store| store.recall(&query)).await
    }

    async fn search_all(&self, query: &SearchQuery) -> Result<Vec<Hit>, PortError> {
        let query = query.clone();
        self.run(move |store| store.search(&query)).await
    }

    fn may_be_question(&self, query: &SearchQuery) -> bool {
        search::may_be_question(query)
    }

    async fn missing_in_search(&self) -> Result<u64, PortError> {
        self.run(Store::missing_in_search).await
    }

    async fn deletion(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, PortError> {
        let sessions = sessions.to_vec();
        self.run(move |store| store.deletion(&sessions, with_children)).await
    }

    async fn delete(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, PortError> {
        let sessions = sessions.to_vec();
        self.run(move |store| store.delete(&sessions, with_children)).await
    }

    async fn delete_planned(&self, planned: &Deletion) -> Result<Deletion, PortError> {
        let planned = planned.clone();
        self.run(move |store| store.delete_planned(&planned)).await
    }

    async fn pruning(&self, filter: &PruneFilter) -> Result<Pruning, PortError> {
        let filter = filter.clone();
        self.run(move |store| store.pruning(&filter)).await
    }

    async fn prune(&self, filter: &PruneFilter, agreed: &[SessionId]) -> Result<Pruning, PortError> {
        let (filter, agreed) = (filter.clone(), agreed.to_vec());
        self.run(move |store| store.prune(&filter, &agreed)).await
    }

    async fn export(
        &self,
        sessions: Option<&[SessionId]>,
        layout: Layout,
        mut out: Box<dyn Write + Send>,
    ) -> Result<Exported, PortError> {
        let sessions = sessions.map(<[SessionId]>::to_vec);
        self.run(move |store| store.export(sessions.as_deref(), layout, &mut *out)).await
    }

    async fn examine_import(&self, mut file: Box<dyn ImportFile>) -> Result<Imported, PortError> {
        self.run(move |store| store.examine_import(&mut file)).await
    }

    async fn import(&self, mut file: Box<dyn ImportFile>, now: u64, trust: Trust) -> Result<Imported, PortError> {
        self.run(move |store| store.import(&mut file, now, trust)).await
    }

    async fn stats(&self) -> Result<Stats, PortError> {
        self.run(Store::stats).await
    }

    async fn check(&self, depth: Depth) -> Result<Health, PortError> {
        self.run(move |store| store.check(depth)).await
    }
}
