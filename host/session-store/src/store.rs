//! The ports of a session store, one for each subject.
//!
//! Every write is stored as a whole or not at all, and survives the end of the process when the call returns. It also survives a
//! power failure, unless a conversation continues without it: a new session without words, a prompt, a request of the ledger and
//! a turn that leaves the outbox survive it once a later message is stored.
//! Dropping the future of a write does not undo the write: it may be stored or not. No call blocks the calling thread.
//! A call about a session that does not exist fails with [`crate::SessionError::UnknownSession`].

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::media::MOST_BYTES;
use hermes_conversation::{BlobId, Draft, Message, MessageId, Model, SessionId, Summary, Usage, View, ViewId};

use crate::{
    AuxiliaryRecord, Delegation, Deletion, Delivery, Depth, EngineFaults, Exported, Finding, FinishedTurn, Frozen,
    Health, Hit, ImportFile, Imported, Layout, Lease, NewSession, Passage, PassageQuery, Passed, PromptNumber,
    PruneFilter, Pruning, QueuedTurn, RecallQuery, RequestRecord, SearchQuery, Session, SessionSummary, Stats,
    StoreError, StoredView, Totals, Trust, UsageRow, ViewRecord,
};

/// The most bytes of the pictures and files of one message: an import must be able to read them on one line.
pub const MOST_IN_A_MESSAGE: u64 = 2 * MOST_BYTES as u64;

/// Sessions with their append-only logs, views, frozen prompts and leases.
#[async_trait]
pub trait SessionLog: Send + Sync {
    /// Creates a session under a new id.
    async fn create_session(&self, new: NewSession) -> Result<Session, StoreError>;

    /// Branches a session: same folder, engine and model, and its conversation up to a message or to the end. Without a
    /// title, the branch gets the next number of its parent's title.
    async fn branch(
        &self,
        of: &SessionId,
        at: Option<MessageId>,
        title: Option<&str>,
        now: u64,
    ) -> Result<Session, StoreError> {
        self.create_session(NewSession::branch_of(self.session(of).await?, at, title, now)).await
    }

    /// A session by its id.
    async fn session(&self, id: &SessionId) -> Result<Session, StoreError>;

    /// Ends the wait of an imported session for the user's decision: it works in this folder from now on. Changes nothing if
    /// the session does not wait. A prompt that the user did not accept must be replaced before.
    async fn settle_import(&self, id: &SessionId, workspace: &Path) -> Result<(), StoreError>;

    /// Takes the exclusive right to work on a session, or fails with [`crate::SessionError::InUse`]. Two leases within
    /// one process exclude each other too.
    async fn lease(&self, id: &SessionId) -> Result<Lease, StoreError>;

    /// Records that another model answers from now on.
    async fn update_model(&self, id: &SessionId, model: &Model) -> Result<(), StoreError>;

    /// Records that another context engine decides from now on.
    async fn update_engine(&self, id: &SessionId, engine: &str) -> Result<(), StoreError>;

    /// Deletes a session that nothing was said in, and returns whether it did. One that ever had a message or a request stays, and
    /// so does one that continues another or is continued. The caller has its lease.
    async fn discard(&self, session: &SessionId) -> Result<bool, StoreError>;

    /// Appends messages to a session, all or none, and returns them with their ids. Ids grow in the order of the drafts.
    ///
    /// The bytes of pictures and files are stored once by their hash; the returned messages name them without bytes.
    async fn append(&self, session: &SessionId, drafts: &[Draft]) -> Result<Vec<Message>, StoreError>;

    /// Appends the last messages of a turn like [`SessionLog::append`], and queues the turn for memory providers in the
    /// same write. `first` is the turn's first message, which the session already has; `drafts` must not be empty.
    ///
    /// A turn that is already queued for a provider stays queued once.
    async fn end_turn(
        &self,
        session: &SessionId,
        drafts: &[Draft],
        first: MessageId,
        providers: &[String],
    ) -> Result<Vec<Message>, StoreError>;

    /// The bytes of a picture or file that a message of any session has; `None` if no message has it.
    async fn blob(&self, id: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// A session's conversation: the messages inherited from its ancestors, then its own, without rewound ones.
    async fn conversation(&self, session: &SessionId) -> Result<Vec<Message>, StoreError>;

    /// Hides a message of the user and everything after it, and returns the hidden messages. The log keeps them.
    ///
    /// A branch may rewind into its parent's messages; the parent still shows them. A view that refers to a hidden
    /// message is no longer in force.
    async fn rewind(&self, session: &SessionId, to: MessageId) -> Result<Vec<Message>, StoreError>;

    /// Undoes the last rewind of a session and returns the restored messages. Fails once the conversation has continued.
    async fn restore(&self, session: &SessionId) -> Result<Vec<Message>, StoreError>;

    /// Stores a view and its new summaries, and puts the view in force.
    async fn put_view(
        &self,
        session: &SessionId,
        view: &View,
        reason: &str,
        engine: &str,
    ) -> Result<ViewId, StoreError>;

    /// The newest view that fits the conversation.
    ///
    /// A branch without a view of its own inherits the newest one that its parent had when it branched and that reaches
    /// no further than the branch. Without any, the default: the whole conversation.
    async fn view_in_force(&self, session: &SessionId) -> Result<StoredView, StoreError>;

    /// All views that fit the conversation, oldest first; the last one is in force.
    async fn views(&self, session: &SessionId) -> Result<Vec<ViewRecord>, StoreError>;

    /// A view by its id; `None` if no session has it.
    async fn view(&self, id: ViewId) -> Result<Option<View>, StoreError>;

    /// Every summary that is or was in a view of the conversation, by its key.
    async fn summaries(&self, session: &SessionId) -> Result<HashMap<String, Summary>, StoreError>;

    /// One of those summaries.
    async fn summary(&self, session: &SessionId, key: &str) -> Result<Option<Summary>, StoreError>;

    /// Stores the prompt with which the session's requests begin from now on. The same prompt as before keeps its number.
    ///
    /// The store assigns the number and ignores the given one.
    async fn freeze(&self, id: &SessionId, frozen: &Frozen, now: u64) -> Result<PromptNumber, StoreError>;

    /// One of the prompts of a session.
    async fn frozen(&self, id: &SessionId, number: PromptNumber) -> Result<Option<Frozen>, StoreError>;

    /// The consecutive failures of all engines in a session, ordered by engine.
    async fn engine_faults(&self, session: &SessionId) -> Result<Vec<EngineFaults>, StoreError>;

    /// Stores the consecutive failures of an engine; zero forgets them.
    async fn set_engine_faults(&self, session: &SessionId, faults: &EngineFaults) -> Result<(), StoreError>;

    /// The oldest session from which this one continues, in whatever way.
    async fn origin(&self, session: &SessionId) -> Result<SessionId, StoreError> {
        let mut seen = HashSet::new();
        let mut at = self.session(session).await?;
        // A parent is older than its child, so only a damaged store has a cycle.
        while let Some(parent) = &at.parent
            && seen.insert(at.id.clone())
        {
            at = self.session(&parent.id).await?;
        }
        Ok(at.id)
    }
}

/// What happened beside the logs: requests and their costs, the outbox of memory providers, delegated tasks, notes of the host.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// The oldest turn of a session that waits for a memory provider. Turns that were set aside or rewound are passed over;
    /// a restored turn waits again.
    async fn next_turn(&self, session: &SessionId, provider: &str) -> Result<Option<QueuedTurn>, StoreError>;

    /// Records what happened to a queued turn. Changes nothing if the turn has left the outbox meanwhile.
    async fn record_delivery(&self, turn: &QueuedTurn, delivery: &Delivery) -> Result<(), StoreError>;

    /// The turns of all sessions that memory providers have not stored, ordered by provider, session and message. Rewound
    /// turns are left out.
    async fn outbox(&self) -> Result<Vec<QueuedTurn>, StoreError>;

    /// Takes the exclusive right to deliver the turns of a session to a memory provider, or fails with
    /// [`crate::SessionError::InUse`]. It is independent of the session's own lease.
    async fn delivery_lease(&self, session: &SessionId, provider: &str) -> Result<Lease, StoreError>;

    /// Makes turns of the outbox due now, also those that were set aside, and returns how many. Without a provider, all that wait.
    async fn retry_turns(&self, provider: Option<&str>) -> Result<usize, StoreError>;

    /// The finished turns of all sessions since a moment in Unix milliseconds, oldest first: without those of subagents, and of
    /// imported sessions about which the user has not decided.
    async fn finished_turns(&self, since: u64) -> Result<Vec<FinishedTurn>, StoreError>;

    /// Queues finished turns for a memory provider, and returns how many did not wait for it already.
    async fn queue_turns(&self, provider: &str, turns: &[FinishedTurn]) -> Result<usize, StoreError>;

    /// Adds a request to the ledger and to the session's totals, and returns its number. The given number is ignored.
    async fn record_request(&self, id: &SessionId, request: &RequestRecord) -> Result<u64, StoreError>;

    /// Adds to a recorded request what came of it, by its number: cause, model, usage and costs. Its usage and cost are added to
    /// the session's totals. A request is completed at most once.
    async fn complete_request(&self, id: &SessionId, request: &RequestRecord) -> Result<(), StoreError>;

    /// Removes a recorded request that no provider took.
    async fn withdraw_request(&self, id: &SessionId, number: u64) -> Result<(), StoreError>;

    /// Adds a request beside the conversation, and returns its number. The session's totals do not count it.
    async fn record_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<u64, StoreError>;

    /// Adds to such a request what came of it, by its number: model, usage and cost.
    async fn complete_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<(), StoreError>;

    /// Removes such a request that no provider took.
    async fn withdraw_auxiliary(&self, id: &SessionId, number: u64) -> Result<(), StoreError>;

    /// The requests of all sessions that a plugin made for a task since a moment, oldest first.
    async fn auxiliary_since(
        &self,
        plugin: &str,
        task: &str,
        since: u64,
    ) -> Result<Vec<(SessionId, AuxiliaryRecord)>, StoreError>;

    /// What requests used since a moment in Unix milliseconds, oldest first: those of all sessions, or of one with the sessions
    /// that its agent delegated to.
    async fn usage(&self, since: u64, session: Option<&SessionId>) -> Result<Vec<UsageRow>, StoreError>;

    /// Sets the totals of a session that another program counted.
    async fn set_totals(&self, id: &SessionId, totals: &Totals) -> Result<(), StoreError>;

    /// All requests of a session, oldest first, without those of a parent.
    async fn requests(&self, id: &SessionId) -> Result<Vec<RequestRecord>, StoreError>;

    /// The newest request of a session that contains nothing after a message. Without a message, the newest request.
    async fn last_request(
        &self,
        id: &SessionId,
        through: Option<MessageId>,
    ) -> Result<Option<RequestRecord>, StoreError>;

    /// What the provider reported for the session's newest request with the same provider, model and wire format as
    /// `like` for which it reported anything.
    async fn last_usage(&self, id: &SessionId, like: &RequestRecord) -> Result<Option<Usage>, StoreError>;

    /// Whether the provider ever reported cache use for a request of this session with the same provider, model and wire
    /// format as `like`.
    async fn cache_was_reported(&self, id: &SessionId, like: &RequestRecord) -> Result<bool, StoreError>;

    /// The requests of all sessions with the same provider, model and wire format as `like` since a moment, oldest first: at
    /// most the newest `most`.
    async fn requests_since(&self, like: &RequestRecord, since: u64, most: u32) -> Result<Vec<Passed>, StoreError>;

    /// Stores a task that the session's agent delegated, and returns its number. A task without a number, which is 0, gets the
    /// next one of the session; one with a number replaces the stored task.
    async fn put_delegation(&self, session: &SessionId, task: &Delegation) -> Result<u32, StoreError>;

    /// The tasks that the session's agent delegated, by number.
    async fn delegations(&self, session: &SessionId) -> Result<Vec<Delegation>, StoreError>;

    /// A note that the host keeps for itself, by name.
    async fn note(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Replaces a note; `None` removes it.
    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), StoreError>;
}

/// All sessions together: names, lists, search, deletion, export and import, and the state of the store itself.
#[async_trait]
pub trait Catalogue: Send + Sync {
    /// Where the sessions are, for people: the path of a file, or an address.
    fn place(&self) -> String;

    /// Finds the session that a person named by id, by a unique beginning of its id, or by title. If only numbered sessions have
    /// that title, the newest of them. Last come the end of an id and a title in other upper and lower case.
    ///
    /// A stranger's file chooses ids and titles. So an imported session that waits for the user's decision never comes in the
    /// place of an own one: an own title wins, and otherwise a text that fits both is ambiguous.
    async fn resolve_session(&self, text: &str) -> Result<SessionId, StoreError>;

    /// The session with this title, ignoring the case of ASCII letters. An imported session that waits for the user's decision
    /// is not found.
    async fn titled(&self, title: &str) -> Result<Option<SessionId>, StoreError>;

    /// The session of a folder to continue: the newest one of the command line. Skips sessions without messages, except branches.
    async fn newest_session(&self, workspace: &Path) -> Result<Option<SessionId>, StoreError>;

    /// All sessions, newest message first.
    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError>;

    /// The sessions of people, newest message first; with a number, at most as many. Delegates are left out, and of a continued
    /// session only the last continuation is listed.
    async fn conversations(&self, most: Option<u64>) -> Result<Vec<SessionSummary>, StoreError>;

    /// The sessions of one conversation, oldest first; each is continued by the next. The last one is the one to resume.
    ///
    /// Of several continuations, one with messages comes first, then one that was itself continued, then the newest. After a
    /// session with messages, the chain ends before continuations without any. A session that is not on the chain of its oldest
    /// session has a chain of its own.
    async fn chain(&self, session: &SessionId) -> Result<Vec<SessionId>, StoreError>;

    /// Sets a session's title and returns the stored one; an empty title removes it.
    ///
    /// Whitespace is collapsed and control characters are dropped. A title of an ancestor moves to a continuation, and
    /// becomes the next number in a branch. A title of any other session is refused.
    async fn set_title(&self, id: &SessionId, title: &str) -> Result<Option<String>, StoreError>;

    /// Searches the conversation that a session shows.
    async fn search(&self, session: &SessionId, query: &PassageQuery) -> Result<Vec<Passage>, StoreError>;

    /// Searches the messages of all sessions that some conversation shows.
    async fn recall(&self, query: &RecallQuery) -> Result<Vec<Finding>, StoreError>;

    /// Searches the messages of all sessions, with snippets of what was found. Every text is a valid query; a text without search
    /// terms finds nothing.
    async fn search_all(&self, query: &SearchQuery) -> Result<Vec<Hit>, StoreError>;

    /// Whether the text of a query is several words without operators, so that it can also be read as a question:
    /// [`crate::Matching::Any`].
    fn may_be_question(&self, query: &SearchQuery) -> bool;

    /// Messages that searches do not find yet: an earlier version stored them, and this store was opened to be read.
    async fn missing_in_search(&self) -> Result<u64, StoreError>;

    /// What a deletion would remove. Changes nothing.
    async fn deletion(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, StoreError>;

    /// Deletes sessions and their delegates, all or none.
    ///
    /// Fails where another session shows their messages (unless `with_children`), or where one is leased.
    async fn delete(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, StoreError>;

    /// Deletes what the user agreed to, and nothing else: sessions that continue one of these since then make it fail.
    async fn delete_planned(&self, planned: &Deletion) -> Result<Deletion, StoreError>;

    /// What pruning would delete. Changes nothing.
    async fn pruning(&self, filter: &PruneFilter) -> Result<Pruning, StoreError>;

    /// Deletes those of the agreed sessions that still match, one after the other, so that other writers never wait for all of
    /// them.
    ///
    /// Returns the deleted and the kept sessions. Sessions that match only since the agreement are kept, and so are those that
    /// were continued since then.
    async fn prune(&self, filter: &PruneFilter, agreed: &[SessionId]) -> Result<Pruning, StoreError>;

    /// Exports all sessions, or the given ones with the sessions that they continue and their delegates, and flushes the writer.
    ///
    /// Each session is exported in its state of one moment. Writers do not have to wait.
    async fn export(
        &self,
        sessions: Option<&[SessionId]>,
        layout: Layout,
        out: Box<dyn Write + Send>,
    ) -> Result<Exported, StoreError>;

    /// What an import would store, except titles. Changes nothing.
    async fn examine_import(&self, file: Box<dyn ImportFile>) -> Result<Imported, StoreError>;

    /// Stores the sessions of an export that do not exist yet, under their ids and with new message ids.
    ///
    /// A file with an error is refused as a whole. Nobody sees a session before it is complete. A session that claims messages
    /// later than `now` (Unix milliseconds) gets that time instead: otherwise it would be listed first until that time has come.
    ///
    /// Folder and prompt of a session from a stranger's file wait for the user's decision, as `trust` says: see
    /// [`Session::imported`].
    async fn import(&self, file: Box<dyn ImportFile>, now: u64, trust: Trust) -> Result<Imported, StoreError>;

    /// Counts and measures. Reads the whole store.
    async fn stats(&self) -> Result<Stats, StoreError>;

    /// Looks for damage. Changes nothing.
    async fn check(&self, depth: Depth) -> Result<Health, StoreError>;
}

/// A whole store: what a process opens once, and hands on port by port.
pub trait SessionStore: SessionLog + Ledger + Catalogue {}

impl<T: SessionLog + Ledger + Catalogue> SessionStore for T {}
