//! The host's search over a conversation, in a store that is created at the first search.

use std::path::Path;

use hermes_conversation::{Conversation, Message, MessageId, MessageRange, Model};
use hermes_plugin_host::services::{HistoryHit, HistoryQuery, Matching};
use hermes_store::{NewSession, SearchQuery, Session, Store, StoreError};
use tempfile::TempDir;

/// A store with one session.
pub(crate) struct Finder {
    store: Store,
    session: Session,
    /// The store's folder. After a rewind a new store is created, because a store forgets nothing.
    _folder: TempDir,
    /// Pairs of a message id in the store and its id in the conversation.
    ids: Vec<(MessageId, MessageId)>,
}

impl Finder {
    pub(crate) fn open(home: &Path) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("search-").tempdir_in(home).map_err(|error| error.to_string())?;
        Self::begin(folder).map_err(|error| error.to_string())
    }

    fn begin(folder: TempDir) -> Result<Self, StoreError> {
        let home = folder.path();
        let store = Store::open(home)?;
        let session = store.create_session(NewSession {
            source: "lab".to_owned(),
            workspace: home.to_owned(),
            engine: String::new(),
            model: Model { provider: "lab".to_owned(), name: "stand-in".to_owned(), context_length: 0 },
            title: None,
            frozen: None,
            started_at: 0,
            parent: None,
        })?;
        Ok(Self { store, session, _folder: folder, ids: Vec::new() })
    }

    pub(crate) fn search(
        &mut self,
        conversation: &Conversation,
        query: &HistoryQuery,
    ) -> Result<Vec<HistoryHit>, String> {
        self.catch_up(conversation.messages()).map_err(|error| error.to_string())?;
        let stored = |id: MessageId| self.ids.partition_point(|(_, own)| *own < id);
        let within = query.within.map(|within| {
            let ids = &self.ids[stored(within.first)..stored(MessageId(within.last.0.saturating_add(1)))];
            ids.first().zip(ids.last()).map(|(first, last)| MessageRange::new(first.0, last.0))
        });
        if within == Some(None) {
            return Ok(Vec::new());
        }
        let store_query = SearchQuery {
            matching: match query.matching {
                Matching::Any => hermes_store::Matching::Any,
                Matching::All => hermes_store::Matching::All,
                Matching::Phrase => hermes_store::Matching::Phrase,
            },
            roles: (!query.roles.is_empty()).then(|| query.roles.clone()),
            tools: (!query.tools.is_empty()).then(|| query.tools.clone()),
            within: within.flatten(),
            limit: query.limit,
            offset: query.offset,
            ..SearchQuery::new(query.text.as_str())
        };
        let found =
            self.store.search_conversation(&self.session.id, &store_query).map_err(|error| error.to_string())?;
        let hits = found.into_iter().filter_map(|passage| {
            let at = self.ids.binary_search_by_key(&passage.message, |(stored, _)| *stored).ok()?;
            let session = passage.session.0;
            Some(HistoryHit { id: self.ids[at].1, session, excerpt: passage.excerpt, score: passage.score })
        });
        Ok(hits.collect())
    }

    fn catch_up(&mut self, messages: &[Message]) -> Result<(), StoreError> {
        let new = &messages[self.ids.len()..];
        if new.is_empty() {
            return Ok(());
        }
        let drafts: Vec<_> = new.iter().map(|message| message.draft.clone()).collect();
        let stored = self.store.append(&self.session.id, &drafts)?;
        self.ids.extend(stored.iter().zip(new).map(|(stored, message)| (stored.id, message.id)));
        Ok(())
    }
}
