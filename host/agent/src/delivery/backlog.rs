//! The turns of other sessions that earlier processes could not deliver. The next session that opens delivers them.
//!
//! A turn is delivered by a memory provider that was started for the turn's own session, with the history of that session.
//! So the provider sees what it would see if the session had been opened again.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use hermes_conversation::{Conversation, SessionId};
use hermes_plugin_host::MemoryProvider;
use hermes_plugin_host::services::History;
use hermes_session_store::{QueueState, Session, SessionStore, StoreError};

use super::Deliverer;
use super::courier::Courier;
use crate::journal;

/// The most other sessions whose turns one opening delivers, the oldest turns first.
const MOST_SESSIONS: usize = 32;
/// After this many sessions in a row with a failed delivery, a provider is left alone until the next opening.
const STRIKES: u32 = 3;

/// Another session with turns that wait for a memory provider.
pub(crate) struct Waiting {
    session: SessionId,
    history: Arc<dyn History>,
    /// What the history shows, loaded when the turns are delivered.
    conversation: Arc<RwLock<Conversation>>,
    memory: Arc<dyn MemoryProvider>,
}

impl Waiting {
    pub(super) fn provider(&self) -> &str {
        self.memory.name()
    }
}

/// Starts memory providers for other sessions with turns that wait for them. None of their code runs yet.
pub(crate) async fn open(
    store: &Arc<dyn SessionStore>,
    own: &SessionId,
    providers: &[String],
    start: impl Fn(&Session, Arc<dyn History>) -> Vec<Arc<dyn MemoryProvider>>,
) -> Result<Vec<Waiting>, StoreError> {
    /// When the oldest turn of a session ended, and the providers for which turns wait.
    type Since = (u64, Vec<String>);
    let mut sessions: BTreeMap<SessionId, Since> = BTreeMap::new();
    for turn in store.outbox().await? {
        if turn.session != *own && turn.state != QueueState::SetAside && providers.contains(&turn.provider) {
            let (since, names) = sessions.entry(turn.session).or_insert((turn.ended_at, Vec::new()));
            *since = turn.ended_at.min(*since);
            names.push(turn.provider);
        }
    }
    let mut sessions: Vec<(SessionId, Since)> = sessions.into_iter().collect();
    sessions.sort_by_key(|(_, (since, _))| *since);
    let mut waiting = Vec::new();
    for (id, (_, names)) in sessions.into_iter().take(MOST_SESSIONS) {
        // A session that was deleted meanwhile has no turns any more.
        let Ok(session) = store.session(&id).await else { continue };
        let conversation = Arc::default();
        let history = journal::reader(store, &id, &conversation);
        let memories = start(&session, Arc::clone(&history));
        let awaited = memories.into_iter().filter(|memory| names.iter().any(|name| name == memory.name()));
        waiting.extend(awaited.map(|memory| Waiting {
            session: id.clone(),
            history: Arc::clone(&history),
            conversation: Arc::clone(&conversation),
            memory,
        }));
    }
    Ok(waiting)
}

/// Delivers the turns of other sessions to one provider, one session after the other.
pub(super) async fn deliver(deliverer: Deliverer, waiting: Vec<Waiting>) {
    let mut strikes = 0;
    for Waiting { session, history, conversation, memory } in waiting {
        let delivered = async {
            let messages = deliverer.store.conversation(&session).await?;
            *conversation.write().unwrap_or_else(PoisonError::into_inner) = Conversation::new(messages);
            let deliverer = Deliverer { session: session.clone(), history, ..deliverer.clone() };
            Courier::new(deliverer, memory, None).deliver_now().await
        };
        match delivered.await {
            Ok(true) => strikes = 0,
            Ok(false) => strikes += 1,
            Err(error) => {
                tracing::warn!(%error, %session, "the turns of another session were not delivered");
                strikes += 1;
            }
        }
        if strikes >= STRIKES {
            return;
        }
    }
}
