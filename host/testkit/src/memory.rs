//! A session store in memory.

mod lineage;
mod outbox;
mod recall;
mod titles;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use hermes_conversation::{
    BlobId, Draft, Item, Message, MessageId, Model, Role, SessionId, Summary, Usage, View, ViewId,
};
use hermes_session_store::{
    AuxiliaryRecord, Delegation, Deletion, Delivery, EngineFaults, Finding, Frozen, Lease, NewSession, Parent,
    ParentKind, Passage, PassageQuery, Passed, PromptNumber, QueuedTurn, RecallQuery, RequestRecord, Session,
    SessionError, SessionStore, SessionSummary, StoreError, StoredView, Totals, ViewRecord, Words, title,
};

use self::lineage::Lineage;

/// A session store in memory, which ends with the value. It enforces the same rules as the SQLite store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    leases: Arc<Mutex<HashSet<SessionId>>>,
    deliveries: Arc<Mutex<HashSet<(SessionId, String)>>>,
}

#[derive(Debug, Default)]
struct State {
    /// In order of creation.
    sessions: Vec<Entry>,
    notes: HashMap<String, String>,
    blobs: HashMap<BlobId, Arc<[u8]>>,
    outbox: Vec<QueuedTurn>,
    last_session: u32,
    last_message: u64,
    last_view: u64,
    last_rewound: u64,
}

/// A session with everything that belongs to it.
#[derive(Debug)]
struct Entry {
    /// The session without its frozen prompt, which is the last of `prompts`.
    session: Session,
    /// The newest view and the newest rewound message, over all sessions, when this one was created.
    view_at_start: u64,
    rewound_at_start: u64,
    messages: Vec<Message>,
    rewound: Vec<Rewound>,
    views: Vec<ViewRecord>,
    summaries: Vec<KeptSummary>,
    prompts: Vec<Frozen>,
    requests: Vec<RequestRecord>,
    auxiliary: Vec<AuxiliaryRecord>,
    faults: BTreeMap<String, EngineFaults>,
    delegations: BTreeMap<u32, Delegation>,
}

/// A message that a session hides.
#[derive(Debug)]
struct Rewound {
    id: u64,
    /// The number of the session's rewind, counted from 1.
    number: u64,
    message: MessageId,
}

/// A summary, with the view that introduced it.
#[derive(Debug)]
struct KeptSummary {
    view: ViewId,
    through: Option<MessageId>,
    summary: Summary,
}

/// Releases what is leased when dropped.
struct Held<K: Eq + Hash> {
    key: K,
    leases: Arc<Mutex<HashSet<K>>>,
}

impl<K: Clone + Eq + Hash + Send + 'static> Held<K> {
    /// `None` if another lease holds it.
    fn take(key: K, leases: &Arc<Mutex<HashSet<K>>>) -> Option<Self> {
        let is_free = leases.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_free.then(|| Self { key, leases: Arc::clone(leases) })
    }
}

impl<K: Eq + Hash> Drop for Held<K> {
    fn drop(&mut self) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl State {
    fn entry(&self, id: &SessionId) -> Result<&Entry, SessionError> {
        let found = self.sessions.iter().find(|entry| entry.session.id == *id);
        found.ok_or_else(|| SessionError::UnknownSession(id.0.clone()))
    }

    fn entry_mut(&mut self, id: &SessionId) -> Result<&mut Entry, SessionError> {
        let found = self.sessions.iter_mut().find(|entry| entry.session.id == *id);
        found.ok_or_else(|| SessionError::UnknownSession(id.0.clone()))
    }

    /// Resolves the branch point of a new session.
    fn settle(&self, parent: &Parent) -> Result<Parent, SessionError> {
        let lineage = Lineage::of(self, &parent.id)?;
        let through = match (parent.kind, parent.through) {
            (ParentKind::Delegate, _) => None,
            (_, None) => lineage.messages(self).last().map(|message| message.id),
            (_, Some(message)) if lineage.messages(self).iter().any(|shown| shown.id == message) => Some(message),
            (_, Some(message)) => {
                return Err(SessionError::NoSuchMessage { session: parent.id.clone(), message });
            }
        };
        Ok(Parent { through, ..parent.clone() })
    }

    /// The title stays in the series of a branch, moves to a continuation, and is refused to all others.
    fn give_title(&mut self, id: &SessionId, title: &str) -> Result<String, SessionError> {
        let title = match titles::holder(self, title).cloned() {
            Some(holder) if holder != *id => {
                let ancestors = lineage::ancestors(self, id);
                match ancestors.iter().position(|(ancestor, _)| *ancestor == holder) {
                    Some(at) if ancestors[..=at].iter().all(|(_, kind)| *kind == ParentKind::Continuation) => {
                        self.entry_mut(&holder)?.session.title = None;
                        title.to_owned()
                    }
                    Some(_) => titles::next(self, title),
                    None => {
                        let free = titles::next(self, title);
                        return Err(SessionError::TitleTaken { title: title.to_owned(), holder, free });
                    }
                }
            }
            _ => title.to_owned(),
        };
        self.entry_mut(id)?.session.title = Some(title.clone());
        Ok(title)
    }

    fn append(&mut self, session: &SessionId, drafts: &[Draft]) -> Result<Vec<Message>, SessionError> {
        if drafts.iter().any(|draft| draft.role == Role::System) {
            return Err(SessionError::SystemMessage);
        }
        let first = self.last_message + 1;
        self.entry(session)?;
        let mut drafts = drafts.to_vec();
        for media in drafts.iter_mut().flat_map(Draft::media_mut) {
            let brought = media.blob().and_then(|blob| Some((blob.hash.clone(), Arc::clone(&blob.bytes.as_ref()?.0))));
            if let Some((hash, bytes)) = brought {
                self.blobs.insert(hash, bytes);
            }
            media.set_bytes(None);
        }
        let entry = self.entry_mut(session)?;
        let messages: Vec<Message> =
            drafts.iter().cloned().zip(first..).map(|(draft, id)| draft.numbered(MessageId(id))).collect();
        let newest = drafts.iter().map(|draft| draft.created_at).max().unwrap_or(0);
        entry.session.updated_at = entry.session.updated_at.max(newest);
        entry.messages.extend(messages.iter().cloned());
        entry.recount();
        self.last_message += messages.len() as u64;
        Ok(messages)
    }

    fn deletion(&self, named: &[SessionId], with_children: bool) -> Result<Deletion, SessionError> {
        let mut going = HashSet::new();
        for id in named {
            going.insert(self.entry(id)?.session.id.clone());
        }
        // Children are younger than their parents.
        for entry in &self.sessions {
            if let Some(parent) = &entry.session.parent
                && going.contains(&parent.id)
                && (with_children || parent.kind == ParentKind::Delegate)
            {
                going.insert(entry.session.id.clone());
            }
        }
        let ids = |keep: &dyn Fn(&Entry) -> bool| -> Vec<SessionId> {
            self.sessions.iter().rev().filter(|entry| keep(entry)).map(|entry| entry.session.id.clone()).collect()
        };
        let sessions = ids(&|entry| going.contains(&entry.session.id));
        let staying = |entry: &Entry, of: &SessionId| {
            !going.contains(&entry.session.id) && entry.session.parent.as_ref().is_some_and(|parent| parent.id == *of)
        };
        let shows = |entry: &Entry| entry.session.parent.as_ref().is_some_and(|parent| parent.through.is_some());
        let mut detached = Vec::new();
        for session in &sessions {
            let children = ids(&|entry| staying(entry, session) && shows(entry));
            if !children.is_empty() {
                return Err(SessionError::HasChildren { session: session.clone(), children });
            }
            detached.extend(ids(&|entry| staying(entry, session)));
        }
        Ok(Deletion { sessions, detached })
    }
}

impl Entry {
    fn session(&self) -> Session {
        Session { frozen: self.prompts.last().cloned(), ..self.session.clone() }
    }

    /// Adds usage and cost of a request to the totals.
    fn count(&mut self, request: &RequestRecord) {
        let usage = request.usage.unwrap_or_default();
        let totals = &mut self.session.totals;
        totals.input += u64::from(usage.input);
        totals.output += u64::from(usage.output);
        totals.cache_read += u64::from(usage.cache_read);
        totals.cache_write += u64::from(usage.cache_write);
        totals.reasoning += u64::from(usage.reasoning);
        totals.cost += request.cost.unwrap_or(0.0);
    }

    fn recount(&mut self) {
        let hidden: HashSet<MessageId> = self.rewound.iter().map(|rewound| rewound.message).collect();
        self.session.message_count =
            self.messages.iter().filter(|message| !hidden.contains(&message.id)).count() as u64;
    }

    fn freeze(&mut self, frozen: &Frozen) -> PromptNumber {
        if let Some(last) = self.prompts.last()
            && last.system_prompt == frozen.system_prompt
            && last.tools == frozen.tools
        {
            return last.number;
        }
        let number = PromptNumber(self.prompts.len() as u64 + 1);
        self.prompts.push(Frozen { number, ..frozen.clone() });
        number
    }
}

impl MemoryStore {
    /// Makes a session one that came from somebody's file, as an import does.
    ///
    /// # Panics
    ///
    /// Without such a session.
    pub fn mark_imported(&self, id: &SessionId) {
        let mut state = self.state();
        let entry = state.entry_mut(id).unwrap_or_else(|error| panic!("{error}"));
        entry.session.imported = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is checked before it is made, so a panic leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn leased<K: Eq + Hash + Send + Sync + 'static>(
    session: &SessionId,
    held: Option<Held<K>>,
) -> Result<Lease, StoreError> {
    let in_use = || SessionError::InUse { session: session.clone(), pid: Some(std::process::id()) };
    Ok(Lease::new(session.clone(), held.ok_or_else(in_use)?))
}

fn same_route(one: &RequestRecord, other: &RequestRecord) -> bool {
    (&one.provider, &one.model, &one.api_mode) == (&other.provider, &other.model, &other.api_mode)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn create_session(&self, new: NewSession) -> Result<Session, StoreError> {
        if new.workspace.to_str().is_none() {
            return Err(SessionError::WorkspaceName(new.workspace).into());
        }
        let title = new.title.as_deref().map(title::clean).transpose()?.flatten();
        let mut state = self.state();
        let parent = new.parent.as_ref().map(|parent| state.settle(parent)).transpose()?;
        let imported = match &parent {
            Some(parent) if parent.kind != ParentKind::Delegate => state.entry(&parent.id)?.session.imported,
            _ => false,
        };
        let frozen = match (new.frozen, &parent) {
            (None, Some(parent)) if parent.kind != ParentKind::Delegate => {
                state.entry(&parent.id)?.prompts.last().cloned()
            }
            (frozen, _) => frozen,
        };
        state.last_session += 1;
        let id = SessionId(format!("19700101_000000_{:06x}", state.last_session));
        let mut entry = Entry {
            session: Session {
                id: id.clone(),
                source: new.source,
                title: None,
                workspace: new.workspace,
                engine: new.engine,
                model: new.model,
                frozen: None,
                started_at: new.started_at,
                updated_at: new.started_at,
                message_count: 0,
                totals: Totals::default(),
                parent,
                imported,
            },
            view_at_start: state.last_view,
            rewound_at_start: state.last_rewound,
            messages: Vec::new(),
            rewound: Vec::new(),
            views: Vec::new(),
            summaries: Vec::new(),
            prompts: Vec::new(),
            requests: Vec::new(),
            auxiliary: Vec::new(),
            faults: BTreeMap::new(),
            delegations: BTreeMap::new(),
        };
        if let Some(frozen) = frozen {
            entry.freeze(&frozen);
        }
        state.sessions.push(entry);
        if let Some(title) = title
            && let Err(error) = state.give_title(&id, &title)
        {
            state.sessions.pop();
            return Err(error.into());
        }
        Ok(state.entry(&id)?.session())
    }

    async fn session(&self, id: &SessionId) -> Result<Session, StoreError> {
        Ok(self.state().entry(id)?.session())
    }

    async fn settle_import(&self, id: &SessionId, workspace: &Path) -> Result<(), StoreError> {
        let mut state = self.state();
        let session = &mut state.entry_mut(id)?.session;
        if std::mem::take(&mut session.imported) {
            session.workspace = workspace.to_owned();
        }
        Ok(())
    }

    async fn lease(&self, id: &SessionId) -> Result<Lease, StoreError> {
        self.state().entry(id)?;
        leased(id, Held::take(id.clone(), &self.leases))
    }

    async fn update_model(&self, id: &SessionId, model: &Model) -> Result<(), StoreError> {
        self.state().entry_mut(id)?.session.model = model.clone();
        Ok(())
    }

    async fn update_engine(&self, id: &SessionId, engine: &str) -> Result<(), StoreError> {
        self.state().entry_mut(id)?.session.engine = engine.to_owned();
        Ok(())
    }

    async fn set_title(&self, id: &SessionId, title: &str) -> Result<Option<String>, StoreError> {
        let title = title::clean(title)?;
        let mut state = self.state();
        state.entry(id)?;
        match title {
            Some(title) => Ok(Some(state.give_title(id, &title)?)),
            None => {
                state.entry_mut(id)?.session.title = None;
                Ok(None)
            }
        }
    }

    async fn delete(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, StoreError> {
        let mut state = self.state();
        let deletion = state.deletion(sessions, with_children)?;
        let leases = self.leases();
        if let Some(session) = deletion.sessions.iter().find(|session| leases.contains(*session)) {
            return Err(SessionError::InUse { session: session.clone(), pid: Some(std::process::id()) }.into());
        }
        state.sessions.retain(|entry| !deletion.sessions.contains(&entry.session.id));
        state.outbox.retain(|turn| !deletion.sessions.contains(&turn.session));
        for session in &deletion.detached {
            state.entry_mut(session)?.session.parent = None;
        }
        Ok(deletion)
    }

    async fn discard(&self, session: &SessionId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let entry = state.entry(session)?;
        let is_bare = entry.session.parent.is_none()
            && entry.messages.is_empty()
            && entry.requests.is_empty()
            && entry.auxiliary.is_empty();
        let is_parent = |entry: &Entry| entry.session.parent.as_ref().is_some_and(|parent| parent.id == *session);
        if !is_bare || state.sessions.iter().any(is_parent) {
            return Ok(false);
        }
        state.sessions.retain(|entry| entry.session.id != *session);
        Ok(true)
    }

    async fn append(&self, session: &SessionId, drafts: &[Draft]) -> Result<Vec<Message>, StoreError> {
        Ok(self.state().append(session, drafts)?)
    }

    async fn end_turn(
        &self,
        session: &SessionId,
        drafts: &[Draft],
        first: MessageId,
        providers: &[String],
    ) -> Result<Vec<Message>, StoreError> {
        let mut state = self.state();
        if !state.entry(session)?.messages.iter().any(|message| message.id == first) {
            return Err(SessionError::NoSuchMessage { session: session.clone(), message: first }.into());
        }
        let messages = state.append(session, drafts)?;
        if let Some(last) = messages.last() {
            state.queue(session, first, last, providers)?;
        }
        Ok(messages)
    }

    async fn next_turn(&self, session: &SessionId, provider: &str) -> Result<Option<QueuedTurn>, StoreError> {
        Ok(self.state().next_turn(session, provider)?)
    }

    async fn record_delivery(&self, turn: &QueuedTurn, delivery: &Delivery) -> Result<(), StoreError> {
        self.state().record_delivery(turn, delivery);
        Ok(())
    }

    async fn outbox(&self) -> Result<Vec<QueuedTurn>, StoreError> {
        Ok(self.state().shown_outbox())
    }

    async fn delivery_lease(&self, session: &SessionId, provider: &str) -> Result<Lease, StoreError> {
        self.state().entry(session)?;
        leased(session, Held::take((session.clone(), provider.to_owned()), &self.deliveries))
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.state().blobs.get(id).cloned())
    }

    async fn conversation(&self, session: &SessionId) -> Result<Vec<Message>, StoreError> {
        let state = self.state();
        Ok(Lineage::of(&state, session)?.messages(&state))
    }

    async fn rewind(&self, session: &SessionId, to: MessageId) -> Result<Vec<Message>, StoreError> {
        let mut state = self.state();
        let mut messages = Lineage::of(&state, session)?.messages(&state);
        let at = messages.iter().position(|message| message.id == to);
        let hidden =
            messages.split_off(at.ok_or(SessionError::NoSuchMessage { session: session.clone(), message: to })?);
        if hidden.first().is_none_or(|message| message.role != Role::User) {
            return Err(SessionError::NotTheUsers { session: session.clone(), message: to }.into());
        }
        let first = state.last_rewound + 1;
        state.last_rewound += hidden.len() as u64;
        let entry = state.entry_mut(session)?;
        let number = entry.rewound.iter().map(|rewound| rewound.number).max().unwrap_or(0) + 1;
        entry.rewound.extend(hidden.iter().zip(first..).map(|(message, id)| Rewound {
            id,
            number,
            message: message.id,
        }));
        entry.recount();
        Ok(hidden)
    }

    async fn restore(&self, session: &SessionId) -> Result<Vec<Message>, StoreError> {
        let mut state = self.state();
        let lineage = Lineage::of(&state, session)?;
        let entry = state.entry(session)?;
        let Some(number) = entry.rewound.iter().map(|rewound| rewound.number).max() else {
            return Err(SessionError::NothingRewound(session.clone()).into());
        };
        let last_rewind = entry.rewound.iter().filter(|rewound| rewound.number == number);
        let back: HashSet<MessageId> = last_rewind.map(|rewound| rewound.message).collect();
        if let Some(end) = lineage.messages(&state).last().map(|message| message.id)
            && back.iter().any(|message| *message < end)
        {
            return Err(SessionError::SaidSince { session: session.clone(), message: end }.into());
        }
        let entry = state.entry_mut(session)?;
        entry.rewound.retain(|rewound| rewound.number != number);
        entry.recount();
        let mut messages = Lineage::of(&state, session)?.messages(&state);
        messages.retain(|message| back.contains(&message.id));
        Ok(messages)
    }

    async fn put_view(
        &self,
        session: &SessionId,
        view: &View,
        reason: &str,
        engine: &str,
    ) -> Result<ViewId, StoreError> {
        let mut state = self.state();
        let lineage = Lineage::of(&state, session)?;
        let id = ViewId(state.last_view + 1);
        let mut new: Vec<KeptSummary> = Vec::new();
        for item in &view.items {
            let Item::Summary(summary) = item else { continue };
            let fresh = new.iter().map(|stored| &stored.summary).find(|stored| stored.key == summary.key);
            match fresh.or_else(|| lineage.summary(&state, &summary.key)) {
                Some(known) if known != summary => {
                    let key = summary.key.clone();
                    return Err(SessionError::SummaryChanged { session: session.clone(), key }.into());
                }
                Some(_) => {}
                None => new.push(KeptSummary { view: id, through: view.through, summary: summary.clone() }),
            }
        }
        state.last_view = id.0;
        let entry = state.entry_mut(session)?;
        entry.summaries.extend(new);
        entry.views.push(ViewRecord {
            id,
            number: entry.views.len() as u64 + 1,
            engine: engine.to_owned(),
            reason: reason.to_owned(),
            created_at: now(),
            view: view.clone(),
        });
        Ok(id)
    }

    async fn view_in_force(&self, session: &SessionId) -> Result<StoredView, StoreError> {
        let state = self.state();
        let newest = Lineage::of(&state, session)?.views(&state).pop();
        Ok(newest.map_or_else(StoredView::default, |ViewRecord { id, engine, view, .. }| StoredView {
            id,
            engine,
            view,
        }))
    }

    async fn views(&self, session: &SessionId) -> Result<Vec<ViewRecord>, StoreError> {
        let state = self.state();
        Ok(Lineage::of(&state, session)?.views(&state))
    }

    async fn view(&self, id: ViewId) -> Result<Option<View>, StoreError> {
        if id == ViewId::WHOLE {
            return Ok(Some(View::default()));
        }
        let state = self.state();
        let found = state.sessions.iter().flat_map(|entry| &entry.views).find(|record| record.id == id);
        Ok(found.map(|record| record.view.clone()))
    }

    async fn summaries(&self, session: &SessionId) -> Result<HashMap<String, Summary>, StoreError> {
        let state = self.state();
        let mut summaries = HashMap::new();
        for summary in Lineage::of(&state, session)?.summaries(&state) {
            summaries.entry(summary.key.clone()).or_insert_with(|| summary.clone());
        }
        Ok(summaries)
    }

    async fn summary(&self, session: &SessionId, key: &str) -> Result<Option<Summary>, StoreError> {
        let state = self.state();
        Ok(Lineage::of(&state, session)?.summary(&state, key).cloned())
    }

    async fn freeze(&self, id: &SessionId, frozen: &Frozen, _: u64) -> Result<PromptNumber, StoreError> {
        Ok(self.state().entry_mut(id)?.freeze(frozen))
    }

    async fn frozen(&self, id: &SessionId, number: PromptNumber) -> Result<Option<Frozen>, StoreError> {
        Ok(self.state().entry(id)?.prompts.iter().find(|frozen| frozen.number == number).cloned())
    }

    async fn record_request(&self, id: &SessionId, request: &RequestRecord) -> Result<u64, StoreError> {
        let mut state = self.state();
        let entry = state.entry_mut(id)?;
        let number = entry.requests.last().map_or(1, |row| row.number + 1);
        entry.count(request);
        entry.session.totals.requests += 1;
        entry.requests.push(RequestRecord { number, ..request.clone() });
        Ok(number)
    }

    async fn complete_request(&self, id: &SessionId, request: &RequestRecord) -> Result<(), StoreError> {
        let mut state = self.state();
        let entry = state.entry_mut(id)?;
        let open = |row: &&mut RequestRecord| row.number == request.number && row.usage.is_none();
        if let Some(row) = entry.requests.iter_mut().find(open) {
            row.cause.clone_from(&request.cause);
            row.culprit.clone_from(&request.culprit);
            row.answered_by.clone_from(&request.answered_by);
            (row.usage, row.cost, row.saved, row.lost) = (request.usage, request.cost, request.saved, request.lost);
            entry.count(request);
        }
        Ok(())
    }

    async fn withdraw_request(&self, id: &SessionId, number: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        let entry = state.entry_mut(id)?;
        let before = entry.requests.len();
        entry.requests.retain(|row| row.number != number || row.usage.is_some());
        entry.session.totals.requests -= (before - entry.requests.len()) as u64;
        Ok(())
    }

    async fn record_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<u64, StoreError> {
        let mut state = self.state();
        let entry = state.entry_mut(id)?;
        let number = entry.auxiliary.last().map_or(1, |row| row.number + 1);
        entry.auxiliary.push(AuxiliaryRecord { number, ..request.clone() });
        Ok(number)
    }

    async fn complete_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<(), StoreError> {
        let mut state = self.state();
        let rows = &mut state.entry_mut(id)?.auxiliary;
        if let Some(row) = rows.iter_mut().find(|row| row.number == request.number && row.usage.is_none()) {
            row.answered_by.clone_from(&request.answered_by);
            (row.usage, row.cost) = (request.usage, request.cost);
        }
        Ok(())
    }

    async fn withdraw_auxiliary(&self, id: &SessionId, number: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        state.entry_mut(id)?.auxiliary.retain(|row| row.number != number || row.usage.is_some());
        Ok(())
    }

    async fn auxiliary_since(
        &self,
        plugin: &str,
        task: &str,
        since: u64,
    ) -> Result<Vec<(SessionId, AuxiliaryRecord)>, StoreError> {
        let state = self.state();
        let is_wanted = |row: &&AuxiliaryRecord| row.plugin == plugin && row.task == task && row.sent_at >= since;
        let rows = state.sessions.iter().flat_map(|entry| {
            let rows = entry.auxiliary.iter().filter(is_wanted);
            rows.map(|row| (entry.session.id.clone(), row.clone()))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(_, row)| row.sent_at);
        Ok(rows)
    }

    async fn requests(&self, id: &SessionId) -> Result<Vec<RequestRecord>, StoreError> {
        Ok(self.state().entry(id)?.requests.clone())
    }

    async fn last_request(
        &self,
        id: &SessionId,
        through: Option<MessageId>,
    ) -> Result<Option<RequestRecord>, StoreError> {
        let fits = |request: &&RequestRecord| {
            through.is_none_or(|most| request.through.is_some_and(|through| through <= most))
        };
        Ok(self.state().entry(id)?.requests.iter().rev().find(fits).cloned())
    }

    async fn last_usage(&self, id: &SessionId, like: &RequestRecord) -> Result<Option<Usage>, StoreError> {
        let state = self.state();
        let mut requests = state.entry(id)?.requests.iter().rev().filter(|request| same_route(request, like));
        Ok(requests.find_map(|request| request.usage))
    }

    async fn cache_was_reported(&self, id: &SessionId, like: &RequestRecord) -> Result<bool, StoreError> {
        let state = self.state();
        let mut requests = state.entry(id)?.requests.iter().filter(|request| same_route(request, like));
        Ok(requests.any(|request| request.usage.is_some_and(|usage| usage.cache_read > 0 || usage.cache_write > 0)))
    }

    async fn requests_since(&self, like: &RequestRecord, since: u64, most: u32) -> Result<Vec<Passed>, StoreError> {
        let state = self.state();
        let mut passed: Vec<Passed> = Vec::new();
        for entry in &state.sessions {
            let requests = entry.requests.iter().filter(|row| same_route(row, like) && row.sent_at >= since);
            passed.extend(requests.map(|row| Passed {
                session: entry.session.id.clone(),
                sent_at: row.sent_at,
                input: row.usage.map(|usage| usage.input),
                bytes: row.bytes,
                cache_ttl: row.cache_ttl.clone(),
            }));
        }
        passed.sort_by_key(|row| row.sent_at);
        let surplus = passed.len().saturating_sub(most as usize);
        Ok(passed.split_off(surplus))
    }

    async fn engine_faults(&self, session: &SessionId) -> Result<Vec<EngineFaults>, StoreError> {
        Ok(self.state().entry(session)?.faults.values().cloned().collect())
    }

    async fn set_engine_faults(&self, session: &SessionId, faults: &EngineFaults) -> Result<(), StoreError> {
        let mut state = self.state();
        let stored = &mut state.entry_mut(session)?.faults;
        if faults.in_a_row == 0 {
            stored.remove(&faults.engine);
        } else {
            stored.insert(faults.engine.clone(), faults.clone());
        }
        Ok(())
    }

    async fn put_delegation(&self, session: &SessionId, task: &Delegation) -> Result<u32, StoreError> {
        let mut state = self.state();
        let tasks = &mut state.entry_mut(session)?.delegations;
        let number = match task.number {
            0 => tasks.last_key_value().map_or(0, |(newest, _)| *newest) + 1,
            number => number,
        };
        tasks.insert(number, Delegation { number, ..task.clone() });
        Ok(number)
    }

    async fn delegations(&self, session: &SessionId) -> Result<Vec<Delegation>, StoreError> {
        Ok(self.state().entry(session)?.delegations.values().cloned().collect())
    }

    async fn note(&self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(self.state().notes.get(name).cloned())
    }

    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), StoreError> {
        let mut state = self.state();
        match value {
            Some(value) => state.notes.insert(name.to_owned(), value.to_owned()),
            None => state.notes.remove(name),
        };
        Ok(())
    }

    async fn search(&self, session: &SessionId, query: &PassageQuery) -> Result<Vec<Passage>, StoreError> {
        const EXCERPT: usize = 600;
        let text = query.text.to_lowercase();
        let wanted: Vec<&str> = match query.words {
            Words::Phrase => Some(text.trim()).filter(|phrase| phrase.chars().count() >= 3).into_iter().collect(),
            Words::Any | Words::All => text.split_whitespace().collect(),
        };
        let state = self.state();
        let mut found = Vec::new();
        for message in Lineage::of(&state, session)?.messages(&state).into_iter().rev() {
            let mut tools = message.tool_name.iter().chain(message.tool_calls.iter().map(|call| &call.name));
            let fits = (query.roles.is_empty() || query.roles.contains(&message.role))
                && (query.tools.is_empty() || tools.any(|tool| query.tools.contains(tool)))
                && query.within.is_none_or(|within| within.contains(message.id));
            let content = message.content.to_lowercase();
            let hits = wanted.iter().filter(|word| content.contains(**word)).count();
            let enough = if query.words == Words::All { wanted.len() } else { 1 };
            if fits && hits >= enough.max(1) {
                let owner = state.sessions.iter().find(|entry| entry.messages.iter().any(|own| own.id == message.id));
                found.push(Passage {
                    message: message.id,
                    session: owner.map_or_else(|| session.clone(), |entry| entry.session.id.clone()),
                    excerpt: message.content.chars().take(EXCERPT).collect(),
                    score: hits as f64,
                });
            }
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
        Ok(found.into_iter().skip(query.offset).take(query.limit).collect())
    }

    async fn recall(&self, query: &RecallQuery) -> Result<Vec<Finding>, StoreError> {
        Ok(self.state().recall(query)?)
    }

    async fn conversations(&self, most: u64) -> Result<Vec<SessionSummary>, StoreError> {
        Ok(self.state().conversations(usize::try_from(most).unwrap_or(usize::MAX)))
    }

    async fn titled(&self, title: &str) -> Result<Option<SessionId>, StoreError> {
        let state = self.state();
        let holds = |entry: &&Entry| {
            let session = &entry.session;
            !session.imported && session.title.as_deref().is_some_and(|other| other.eq_ignore_ascii_case(title))
        };
        let newest = state.sessions.iter().filter(holds).max_by_key(|entry| entry.session.updated_at);
        Ok(newest.map(|entry| entry.session.id.clone()))
    }
}
