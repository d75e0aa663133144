//! The search over all sessions of the store, in which each session of a dialogue is a session.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use hermes_conversation::{Draft, MessageId, Model, Role, SessionId};
use hermes_store::{Hit, Matching, NewSession, SearchQuery, Store, StoreError};

use super::{Answer, Contender, Dialogue, Memory, Turn, Utterance};

/// The store's search for any of the question's words.
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
        let store = Store::open(folder).map_err(|error| error.to_string())?;
        Ok(Box::new(Sessions { dialogue, store, current: None, positions: HashMap::new() }))
    }
}

struct Sessions<'a> {
    dialogue: &'a Dialogue,
    store: Store,
    /// The session that is written, and its number in the dialogue.
    current: Option<(usize, SessionId)>,
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
        let query = SearchQuery { matching: Matching::Any, limit: hits, ..SearchQuery::new(question) };
        let found = self.store.search(&query).map_err(|error| error.to_string())?;
        let text: String = found.iter().map(shown).collect();
        let hits = found.iter().filter_map(|hit| self.positions.get(&hit.message));
        Ok(Answer { hits: hits.map(|at| BTreeSet::from([*at])).collect(), text })
    }
}

/// A hit with the beginnings of its neighbours, a line for each.
fn shown(hit: &Hit) -> String {
    let mut text = format!("#{} {}: ", hit.message, hit.role.as_str());
    text.extend(hit.snippet.iter().map(|fragment| fragment.text.as_str()));
    for (place, neighbour) in [("before", &hit.before), ("after", &hit.after)] {
        if let Some(neighbour) = neighbour {
            text.push_str(&format!("\n  {place}: {}: {}", neighbour.role.as_str(), neighbour.text));
        }
    }
    text.push('\n');
    text
}
