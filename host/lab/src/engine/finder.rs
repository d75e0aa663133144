//! Search as the host does it: the conversation in a store of its own, made when something is first looked for.

use std::path::Path;

use hermes_conversation::{Conversation, Message, MessageId, Model};
use hermes_plugins::services::{HistoryHit, HistoryQuery, Matching};
use hermes_store::{NewSession, SearchQuery, Session, Store, StoreError};

/// A store with one session.
pub(super) struct Finder {
    store: Store,
    session: Session,
    /// The conversation's numbers, by those of the store.
    ids: Vec<(MessageId, MessageId)>,
}

impl Finder {
    pub(super) fn open(home: &Path) -> Result<Self, String> {
        // One after the other when the conversation was rewound: a store never forgets.
        let folder = tempfile::Builder::new().prefix("search-").tempdir_in(home).map_err(|error| error.to_string())?;
        Self::begin(&folder.keep()).map_err(|error| error.to_string())
    }

    fn begin(home: &Path) -> Result<Self, StoreError> {
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
        Ok(Self { store, session, ids: Vec::new() })
    }

    pub(super) fn search(
        &mut self,
        conversation: &Conversation,
        query: &HistoryQuery,
    ) -> Result<Vec<HistoryHit>, String> {
        self.catch_up(conversation.messages()).map_err(|error| error.to_string())?;
        let asked = SearchQuery {
            roles: (!query.roles.is_empty()).then(|| query.roles.clone()),
            tools: (!query.tools.is_empty()).then(|| query.tools.clone()),
            session: Some(self.session.id.clone()),
            limit: query.limit,
            offset: query.offset,
            ..SearchQuery::new(text(query))
        };
        let hits = self.store.search(&asked).map_err(|error| error.to_string())?;
        let hits = hits.into_iter().enumerate().filter_map(|(at, hit)| {
            let own = self.ids.binary_search_by_key(&hit.message, |(stored, _)| *stored).ok()?;
            let excerpt = hit.snippet.into_iter().map(|fragment| fragment.text).collect();
            let id = self.ids[own].1;
            Some(HistoryHit { id, session: hit.session.0, excerpt, score: -(at as f64) })
        });
        let within = |hit: &HistoryHit| query.within.is_none_or(|within| within.contains(hit.id));
        Ok(hits.filter(within).collect())
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

/// In the language of the store's search, in which no word of the query is an operator.
fn text(query: &HistoryQuery) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', " "));
    let words: Vec<String> = query.text.split_whitespace().map(quoted).collect();
    match query.matching {
        Matching::Phrase => quoted(&query.text),
        Matching::All => words.join(" "),
        Matching::Any => words.join(" OR "),
    }
}
