//! The turns that memory providers have not stored yet.

use hermes_conversation::{Message, MessageId, MessageRange, SessionId};
use hermes_session_store::{Delivery, QueueState, QueuedTurn, SessionError};

use super::State;

impl State {
    /// Queues a turn for memory providers. Rewinds of the session cannot be undone any more.
    pub(super) fn queue(
        &mut self,
        session: &SessionId,
        first: MessageId,
        last: &Message,
        providers: &[String],
    ) -> Result<(), SessionError> {
        let rewound: Vec<MessageId> = self.entry(session)?.rewound.iter().map(|rewound| rewound.message).collect();
        self.outbox.retain(|turn| turn.session != *session || !rewound.contains(&turn.messages.first));
        for provider in providers {
            let is_queued = |turn: &QueuedTurn| {
                turn.session == *session && turn.provider == *provider && turn.messages.first == first
            };
            if !self.outbox.iter().any(is_queued) {
                self.outbox.push(QueuedTurn {
                    session: session.clone(),
                    provider: provider.clone(),
                    messages: MessageRange::new(first, last.id),
                    ended_at: last.created_at,
                    attempts: 0,
                    state: QueueState::Waiting { due_at: 0 },
                    error: None,
                });
            }
        }
        Ok(())
    }

    /// The queued turns without rewound ones, in the order of the port.
    pub(super) fn shown_outbox(&self) -> Vec<QueuedTurn> {
        let is_shown = |turn: &&QueuedTurn| {
            let hides = |first| self.entry(&turn.session).is_ok_and(|e| e.rewound.iter().any(|r| r.message == first));
            !hides(turn.messages.first)
        };
        let mut turns: Vec<QueuedTurn> = self.outbox.iter().filter(is_shown).cloned().collect();
        turns.sort_by(|one, other| {
            let key = |turn: &QueuedTurn| (turn.provider.clone(), turn.session.0.clone(), turn.messages.first);
            key(one).cmp(&key(other))
        });
        turns
    }

    pub(super) fn next_turn(&self, session: &SessionId, provider: &str) -> Result<Option<QueuedTurn>, SessionError> {
        self.entry(session)?;
        let is_next = |turn: &QueuedTurn| {
            turn.session == *session && turn.provider == provider && turn.state != QueueState::SetAside
        };
        Ok(self.shown_outbox().into_iter().find(is_next))
    }

    pub(super) fn record_delivery(&mut self, turn: &QueuedTurn, delivery: &Delivery) {
        let is_it = |kept: &QueuedTurn| {
            kept.session == turn.session && kept.provider == turn.provider && kept.messages.first == turn.messages.first
        };
        let (state, error) = match delivery {
            Delivery::Stored => return self.outbox.retain(|kept| !is_it(kept)),
            Delivery::Postponed { error, due_at } => (Some(QueueState::Waiting { due_at: *due_at }), error),
            Delivery::CutOff { error } => (None, error),
            Delivery::SetAside { error } => (Some(QueueState::SetAside), error),
        };
        if let Some(kept) = self.outbox.iter_mut().find(|kept| is_it(kept)) {
            if let Some(state) = state {
                kept.attempts += 1;
                kept.state = state;
            }
            kept.error = Some(error.clone());
        }
    }
}
