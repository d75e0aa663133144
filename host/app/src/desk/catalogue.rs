//! The stored sessions of a home: lists, search, reading, export, import and usage, for every front end.

use std::io::{BufRead, Seek, Write};

use hermes_conversation::{Message, SessionId};
use hermes_store::{
    Exported, Hit, Imported, Layout, SearchQuery, Session, SessionSummary, Store, StoreError, Trust, UsageRow,
};

use super::{Desk, Tenant};
use crate::AppError;

/// The stored sessions of a tenant, or of the owner. [`Desk::stored`] gives it.
#[derive(Clone, Copy)]
pub struct Stored<'d> {
    desk: &'d Desk,
    tenant: Option<&'d Tenant>,
}

impl Desk {
    /// The stored sessions of a tenant, or of the owner.
    pub fn stored<'d>(&'d self, tenant: Option<&'d Tenant>) -> Stored<'d> {
        Stored { desk: self, tenant }
    }
}

/// Every method fails if the store cannot be opened or read.
#[allow(clippy::missing_errors_doc, reason = "stated once, above")]
impl Stored<'_> {
    /// All sessions, newest message first.
    pub async fn list(self) -> Result<Vec<SessionSummary>, AppError> {
        self.read(Store::sessions).await
    }

    /// At most this many conversations of people, newest message first: without delegates, and of a continued session only the last
    /// continuation.
    pub async fn conversations(self, most: u64) -> Result<Vec<SessionSummary>, AppError> {
        self.read(move |store| store.conversations(Some(most))).await
    }

    /// The messages that a query finds.
    pub async fn search(self, query: SearchQuery) -> Result<Vec<Hit>, AppError> {
        self.read(move |store| store.search(&query)).await
    }

    /// A session by its id.
    pub async fn session(self, id: &SessionId) -> Result<Session, AppError> {
        let id = id.clone();
        self.read(move |store| store.session(&id)).await
    }

    /// A session's conversation: the messages inherited from its ancestors, then its own, without rewound ones.
    pub async fn messages(self, session: &SessionId) -> Result<Vec<Message>, AppError> {
        let session = session.clone();
        self.read(move |store| store.conversation(&session)).await
    }

    /// Sets the title of a session and returns the stored one; an empty title removes it.
    pub async fn set_title(self, session: &SessionId, title: &str) -> Result<Option<String>, AppError> {
        let (session, title) = (session.clone(), title.to_owned());
        self.read(move |store| store.set_title(&session, &title)).await
    }

    /// Writes sessions with the sessions that they continue, or all; see `docs/use/sessions.md` for the format.
    pub async fn export(
        self,
        sessions: Option<Vec<SessionId>>,
        layout: Layout,
        mut out: impl Write + Send + 'static,
    ) -> Result<Exported, AppError> {
        self.read(move |store| store.export(sessions.as_deref(), layout, &mut out)).await
    }

    /// Adds the sessions of a file. Those that the user's own Hermes did not write wait for the user's consent when they are opened.
    pub async fn import(
        self,
        mut file: impl BufRead + Seek + Send + 'static,
        trust: Trust,
    ) -> Result<Imported, AppError> {
        let now = self.desk.setup.clock()?.now();
        self.read(move |store| store.import(&mut file, now, trust)).await
    }

    /// What requests since a moment in Unix milliseconds used and cost, of one session or of all.
    pub async fn usage(self, since: u64, session: Option<&SessionId>) -> Result<Vec<UsageRow>, AppError> {
        let session = session.cloned();
        self.read(move |store| store.usage(since, session.as_ref())).await
    }

    /// Works with the store on a thread that may block.
    async fn read<T: Send + 'static>(
        self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, AppError> {
        let store = self.desk.services(self.tenant)?.store.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(done) => Ok(done?),
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(cancelled) => Err(StoreError::Stopped(cancelled.to_string()).into()),
            },
        }
    }
}
