//! A store with conversations, and a session that asks.

use std::sync::{Arc, Mutex};

use hermes_agent::Clock;
use hermes_agent::session_search::{Answer, SessionSearch};
use hermes_conversation::{Draft, MessageId, Model, SessionId};
use hermes_session_store::{NewSession, Parent, ParentKind, Session, SessionStore};
use hermes_store::{SqliteSessions, Store};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const BEGUN: u64 = 1_795_300_000_000;

pub(crate) struct Archive {
    _home: TempDir,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) notices: Arc<Mutex<Vec<String>>>,
    time: u64,
}

impl Archive {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteSessions::new(Arc::new(Store::open(home.path()).unwrap())));
        Self { _home: home, store, notices: Arc::default(), time: BEGUN }
    }

    pub(crate) async fn session(&mut self, source: &str, parent: Option<(&Session, ParentKind)>) -> Session {
        self.time += 1_000;
        let parent = parent.map(|(of, kind)| Parent { id: of.id.clone(), kind, through: None });
        let new = NewSession {
            source: source.into(),
            workspace: "/home/ada".into(),
            engine: "compressor".into(),
            model: Model { provider: "offline".into(), name: "m".into(), context_length: 32_000 },
            title: None,
            frozen: None,
            started_at: self.time,
            parent,
        };
        self.store.create_session(new).await.unwrap()
    }

    /// A session of the command line in which the user and the model speak in turn.
    pub(crate) async fn said(&mut self, texts: &[&str]) -> (Session, Vec<MessageId>) {
        let session = self.session("cli", None).await;
        let ids = self.say(&session, texts).await;
        (session, ids)
    }

    pub(crate) async fn say(&mut self, session: &Session, texts: &[&str]) -> Vec<MessageId> {
        let drafts = texts.iter().enumerate().map(|(at, text)| {
            self.time += 1_000;
            if at % 2 == 0 { Draft::user(*text, self.time) } else { Draft::assistant(*text, Vec::new(), self.time) }
        });
        let drafts: Vec<Draft> = drafts.collect();
        self.store.append(&session.id, &drafts).await.unwrap().iter().map(|message| message.id).collect()
    }

    pub(crate) fn search(&self, asking: Option<&SessionId>) -> SessionSearch {
        let notices = Arc::clone(&self.notices);
        let notify = Arc::new(move |notice: hermes_diagnostic::Notice| notices.lock().unwrap().push(notice.text));
        SessionSearch::new(Arc::clone(&self.store), asking.cloned(), Clock::default(), notify)
    }

    /// Calls the tool from nowhere.
    pub(crate) async fn call(&self, arguments: Value) -> Answer {
        self.search(None).call(&arguments.to_string()).await.unwrap()
    }
}
