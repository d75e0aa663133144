//! The conversation in memory and in the store. Messages are stored before they appear in memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use async_trait::async_trait;
use hermes_conversation::{BlobId, Conversation, Draft, Header, Message, MessageId, MessageRange, Part, Summary, View};
use hermes_plugin_host::services::{History, HistoryHit, HistoryQuery, Matching};
use hermes_plugin_host::{Fault, FaultKind};
use hermes_session_store::{PassageQuery, Session, SessionStore, StoreError, StoredView, Words};

use crate::stop::Steps;

/// The messages of one session, its current view, and the summaries of all its views.
pub(crate) struct Journal {
    store: Arc<dyn SessionStore>,
    session: hermes_conversation::SessionId,
    conversation: Arc<RwLock<Conversation>>,
    steps: Steps,
    view: StoredView,
    summaries: HashMap<String, Summary>,
}

impl Journal {
    pub(crate) async fn open(store: &Arc<dyn SessionStore>, session: &Session) -> Result<Self, StoreError> {
        Ok(Self {
            conversation: Arc::new(RwLock::new(Conversation::new(store.conversation(&session.id).await?))),
            view: store.view_in_force(&session.id).await?,
            summaries: store.summaries(&session.id).await?,
            session: session.id.clone(),
            steps: Steps::default(),
            store: Arc::clone(store),
        })
    }

    /// Reloads everything from the store after a rewind.
    pub(crate) async fn reload(&mut self) -> Result<(), StoreError> {
        let conversation = Conversation::new(self.store.conversation(&self.session).await?);
        self.view = self.store.view_in_force(&self.session).await?;
        self.summaries = self.store.summaries(&self.session).await?;
        *self.conversation.write().unwrap_or_else(PoisonError::into_inner) = conversation;
        Ok(())
    }

    /// An empty journal without a session, for plugins that only list what they offer.
    pub(crate) fn empty(store: &Arc<dyn SessionStore>) -> Self {
        Self {
            conversation: Arc::default(),
            steps: Steps::default(),
            view: StoredView::default(),
            summaries: HashMap::new(),
            session: hermes_conversation::SessionId(String::new()),
            store: Arc::clone(store),
        }
    }

    /// Stores messages, then adds them to the conversation in memory.
    pub(crate) async fn append(&self, drafts: &[Draft]) -> Result<Vec<Message>, StoreError> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        let _step = self.steps.begin();
        let messages = self.store.append(&self.session, drafts).await?;
        self.push(&messages);
        Ok(messages)
    }

    /// Stores the last messages of a turn, and queues the turn for memory providers in the same write.
    pub(crate) async fn end_turn(
        &self,
        drafts: &[Draft],
        first: MessageId,
        providers: &[String],
    ) -> Result<Vec<Message>, StoreError> {
        let _step = self.steps.begin();
        let messages = self.store.end_turn(&self.session, drafts, first, providers).await?;
        self.push(&messages);
        Ok(messages)
    }

    fn push(&self, messages: &[Message]) {
        let mut conversation = self.conversation.write().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            conversation.push(message.clone());
        }
    }

    /// Stores a verified view and makes it the current one.
    pub(crate) async fn adopt(&mut self, view: View, reason: &str, engine: &str) -> Result<(), StoreError> {
        let _step = self.steps.begin();
        let id = self.store.put_view(&self.session, &view, reason, engine).await?;
        for summary in view.summaries() {
            self.summaries.insert(summary.key.clone(), summary.clone());
        }
        self.view = StoredView { id, engine: engine.to_owned(), view };
        Ok(())
    }

    pub(crate) fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.conversation.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view(&self) -> &View {
        &self.view.view
    }

    /// The current view with its id in the store and its author.
    pub(crate) fn stored_view(&self) -> &StoredView {
        &self.view
    }

    pub(crate) fn summaries(&self) -> &HashMap<String, Summary> {
        &self.summaries
    }

    /// The steps that a stop must not interrupt: a write, and the matching change in memory.
    pub(crate) fn steps(&self) -> &Steps {
        &self.steps
    }

    pub(crate) fn store(&self) -> &dyn SessionStore {
        self.store.as_ref()
    }

    /// The read-only access of plugins to the conversation.
    pub(crate) fn history(&self) -> Arc<dyn History> {
        reader(&self.store, &self.session, &self.conversation)
    }
}

/// The read-only access of plugins to a conversation in memory, and to its session in the store.
pub(crate) fn reader(
    store: &Arc<dyn SessionStore>,
    session: &hermes_conversation::SessionId,
    conversation: &Arc<RwLock<Conversation>>,
) -> Arc<dyn History> {
    Arc::new(Reader { conversation: Arc::clone(conversation), store: Arc::clone(store), session: session.clone() })
}

struct Reader {
    conversation: Arc<RwLock<Conversation>>,
    store: Arc<dyn SessionStore>,
    session: hermes_conversation::SessionId,
}

impl Reader {
    fn conversation(&self) -> RwLockReadGuard<'_, Conversation> {
        self.conversation.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl History for Reader {
    fn whole(&self) -> Option<MessageRange> {
        self.conversation().whole()
    }

    fn headers_after(&self, after: Option<MessageId>) -> Vec<Header> {
        self.conversation().headers_after(after).to_vec()
    }

    fn headers(&self, range: MessageRange) -> Vec<Header> {
        self.conversation().headers_in(range).to_vec()
    }

    fn read(&self, range: MessageRange, bytes: usize) -> (Vec<(Message, u32)>, Option<MessageId>) {
        self.conversation().read(range, bytes)
    }

    async fn summary(&self, key: &str) -> Result<Option<String>, Fault> {
        let found = self.store.summary(&self.session, key).await;
        found
            .map(|summary| summary.map(|summary| summary.content))
            .map_err(|error| Fault::new(FaultKind::Unavailable, "store", error.to_string()))
    }

    async fn search(&self, query: &HistoryQuery) -> Result<Vec<HistoryHit>, Fault> {
        if self.session.as_str().is_empty() {
            return Ok(Vec::new());
        }
        let passages = PassageQuery {
            text: query.text.clone(),
            words: match query.matching {
                Matching::Any => Words::Any,
                Matching::All => Words::All,
                Matching::Phrase => Words::Phrase,
            },
            roles: query.roles.clone(),
            tools: query.tools.clone(),
            within: query.within,
            offset: query.offset,
            limit: query.limit,
        };
        let found = self.store.search(&self.session, &passages).await;
        let found = found.map_err(|error| Fault::new(FaultKind::Unavailable, "store", error.to_string()))?.into_iter();
        Ok(found
            .map(|passage| HistoryHit {
                id: passage.message,
                session: passage.session.0,
                excerpt: passage.excerpt,
                score: passage.score,
            })
            .collect())
    }

    async fn picture(&self, hash: &str) -> Result<Option<Vec<u8>>, Fault> {
        // The store keeps the pictures of all sessions. A plugin may see those of this conversation only.
        let holds = |message: &Message| has_picture(&message.draft.parts, hash);
        let is_here = self.conversation().messages().iter().any(holds);
        if !is_here {
            return Ok(None);
        }
        let found = self.store.blob(&BlobId(hash.to_owned())).await;
        let found = found.map_err(|error| Fault::new(FaultKind::Unavailable, "store", error.to_string()))?;
        Ok(found.map(|bytes| bytes.to_vec()))
    }
}

/// Whether these parts, or results in them, contain the picture with this hash.
fn has_picture(parts: &[Part], hash: &str) -> bool {
    parts.iter().any(|part| match part {
        Part::Image(image) => image.blob().is_some_and(|blob| blob.hash.as_str() == hash),
        Part::ToolResult(result) => has_picture(&result.parts, hash),
        _ => false,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Model;
    use hermes_session_store::NewSession;
    use hermes_store::{SqliteSessions, Store};

    use super::*;

    #[tokio::test]
    async fn plugins_find_current_messages_and_no_rewound_ones() {
        let home = tempfile::tempdir().unwrap();
        let store: Arc<dyn SessionStore> = Arc::new(SqliteSessions::new(Arc::new(Store::open(home.path()).unwrap())));
        let session = store
            .create_session(NewSession {
                source: "cli".into(),
                workspace: home.path().to_owned(),
                engine: "compressor".into(),
                model: Model { provider: "offline".into(), name: "small".into(), context_length: 32_000 },
                title: None,
                frozen: None,
                started_at: 1,
                parent: None,
            })
            .await
            .unwrap();
        let journal = Journal::open(&store, &session).await.unwrap();
        let said = journal
            .append(&[Draft::user("where is the needle?", 1), Draft::user("the other needle", 2)])
            .await
            .unwrap();
        let history = journal.history();
        let found = async |text: &str, matching| {
            let query = HistoryQuery {
                text: text.into(),
                matching,
                roles: Vec::new(),
                tools: Vec::new(),
                within: None,
                offset: 0,
                limit: 10,
            };
            history.search(&query).await.unwrap().into_iter().map(|hit| hit.id).collect::<Vec<_>>()
        };
        assert_eq!(found("needles anywhere", Matching::Any).await.len(), 2);
        assert_eq!(found("he other nee", Matching::Phrase).await, [said[1].id]);
        assert_eq!(found("where needle", Matching::All).await, [said[0].id]);
        store.rewind(&session.id, said[1].id).await.unwrap();
        assert_eq!(found("needle", Matching::Any).await, [said[0].id]);
        let empty = Journal::empty(&store).history();
        let nothing = HistoryQuery {
            text: "needle".into(),
            matching: Matching::Any,
            roles: Vec::new(),
            tools: Vec::new(),
            within: None,
            offset: 0,
            limit: 1,
        };
        assert_eq!(empty.search(&nothing).await.unwrap(), []);
    }
}
