//! The tool `session_search` of a model, in a store in which each session of a dialogue is a session.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use hermes_agent::Clock;
use hermes_agent::session_search::{self, Discover};
use hermes_conversation::{Draft, MessageId, Model, Role, SessionId};
use hermes_store::{NewSession, SqliteSessions, Store, StoreError};
use tokio::runtime::Runtime;

use super::{Answer, Contender, Dialogue, Memory, Turn, Utterance};

/// The tool, called from a session of its own.
#[derive(Debug, Clone, Copy)]
pub struct SessionSearch;

impl SessionSearch {
    /// The name of its column.
    pub const NAME: &str = "session-search";
}

impl Contender for SessionSearch {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn begin<'a>(&'a self, dialogue: &'a Dialogue, folder: &Path) -> Result<Box<dyn Memory + 'a>, String> {
        let store = Arc::new(Store::open(folder).map_err(|error| error.to_string())?);
        let sessions = Arc::new(SqliteSessions::new(Arc::clone(&store)));
        // What the scan leaves out is left out of an answer too; nobody reads the notice.
        let search = session_search::SessionSearch::new(sessions, None, Clock::default(), Arc::new(|_| {}));
        let runtime =
            hermes_runtime::executor::single().map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Box::new(Sessions {
            dialogue,
            store,
            search,
            runtime,
            current: None,
            sessions: Vec::new(),
            positions: HashMap::new(),
        }))
    }
}

struct Sessions<'a> {
    dialogue: &'a Dialogue,
    store: Arc<Store>,
    search: session_search::SessionSearch,
    runtime: Runtime,
    /// The session that is written, and its number in the dialogue.
    current: Option<(usize, SessionId)>,
    /// All sessions.
    sessions: Vec<SessionId>,
    positions: HashMap<MessageId, usize>,
}

/// A message as the store keeps it.
pub(super) fn draft(message: &Utterance) -> Draft {
    match message.role {
        Role::User => Draft::user(message.text.as_str(), message.said_at),
        _ => Draft::assistant(message.text.as_str(), Vec::new(), message.said_at),
    }
}

impl Sessions<'_> {
    fn append(&mut self, turn: &Turn) -> Result<(), StoreError> {
        let first = &self.dialogue.messages[turn.messages.start];
        let id = match &self.current {
            Some((number, id)) if *number == first.session => id.clone(),
            _ => {
                let session = self.store.create_session(NewSession {
                    source: "lab".to_owned(),
                    workspace: self.store.path().parent().unwrap_or(Path::new("/")).to_owned(),
                    engine: String::new(),
                    model: Model { provider: "lab".to_owned(), name: "none".to_owned(), context_length: 0 },
                    title: None,
                    frozen: None,
                    started_at: first.said_at,
                    parent: None,
                })?;
                self.current = Some((first.session, session.id.clone()));
                self.sessions.push(session.id.clone());
                session.id
            }
        };
        let drafts: Vec<Draft> = self.dialogue.messages[turn.messages.clone()].iter().map(draft).collect();
        let stored = self.store.append(&id, &drafts)?;
        self.positions.extend(stored.iter().zip(turn.messages.clone()).map(|(message, at)| (message.id, at)));
        Ok(())
    }
}

impl Memory for Sessions<'_> {
    fn write(&mut self, turn: &Turn) -> Result<(), String> {
        self.append(turn).map_err(|error| error.to_string())
    }

    fn ask(&mut self, question: &str, hits: usize) -> Result<Answer, String> {
        let wanted = Discover { limit: hits.min(Discover::MOST), ..Discover::new(question) };
        let found = self.runtime.block_on(self.search.discover(&wanted)).map_err(|error| error.to_string())?;
        // Ids differ between runs, and with them the tokens of an answer.
        let text = self.search.answer(&found, &wanted).text;
        let text =
            self.sessions.iter().fold(text, |text, id| text.replace(id.as_str(), &"0".repeat(id.as_str().len())));
        let hits = found.hits().filter_map(|hit| self.positions.get(&hit.message));
        Ok(Answer { hits: hits.map(|at| BTreeSet::from([*at])).collect(), text })
    }
}
