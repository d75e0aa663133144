//! The outbox: finished turns that memory providers have not stored yet.

use std::collections::HashSet;

use hermes_conversation::{Conversation, Draft, Message, MessageId, MessageRange, Role, SessionId};
use hermes_session_store::{ParentKind, SessionSummary};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::Fault;
use crate::known::exists;
use crate::{Delivery, FinishedTurn, QueueState, QueuedTurn, SessionError, Store, StoreError, blobs, log};

const COLUMNS: &str = "session_id, provider, first_id, last_id, ended_at, attempts, due_at, error";
/// Rewound turns stay in the table, so that a restored turn waits again.
const IS_SHOWN: &str = "NOT EXISTS (SELECT 1 FROM rewound WHERE rewound.session_id = outbox.session_id \
                        AND rewound.message_id = outbox.first_id)";

impl Store {
    /// Appends the last messages of a turn, and queues the turn for memory providers in the same transaction.
    pub fn end_turn(
        &self,
        session: &SessionId,
        drafts: &[Draft],
        first: MessageId,
        providers: &[String],
    ) -> Result<Vec<Message>, StoreError> {
        log::check(drafts)?;
        let ids = self.write(|connection| {
            let ids = log::append(connection, session, drafts)?;
            if let Some(last) = ids.last() {
                let ended_at = drafts.last().map_or(0, |draft| draft.created_at);
                queue(connection, session, MessageRange::new(first, *last), ended_at, providers)?;
            }
            Ok(ids)
        })?;
        Ok(drafts.iter().map(blobs::stripped).zip(ids).map(|(draft, id)| draft.numbered(id)).collect())
    }

    /// The oldest turn of a session that waits for a memory provider, without turns that were set aside or rewound.
    pub fn next_turn(&self, session: &SessionId, provider: &str) -> Result<Option<QueuedTurn>, StoreError> {
        self.read(|connection| {
            exists(connection, session)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM outbox WHERE provider = ?1 AND session_id = ?2 AND due_at IS NOT NULL \
                 AND {IS_SHOWN} ORDER BY first_id LIMIT 1"
            );
            Ok(connection.prepare_cached(&sql)?.query_row(params![provider, session.as_str()], from_row).optional()?)
        })
    }

    /// Records what happened to a queued turn. Changes nothing if the turn has left the outbox meanwhile.
    pub fn record_delivery(&self, turn: &QueuedTurn, delivery: &Delivery) -> Result<(), StoreError> {
        const IS_IT: &str = "provider = ?1 AND session_id = ?2 AND first_id = ?3";
        let (provider, session) = (turn.provider.as_str(), turn.session.as_str());
        let first = turn.messages.first.0.cast_signed();
        let (due_at, error) = match delivery {
            Delivery::Stored => {
                // The provider gets the turn again if a power failure undoes this, as it may after any failure.
                return self.write_unsynced(|connection| {
                    let sql = format!("DELETE FROM outbox WHERE {IS_IT}");
                    connection.prepare_cached(&sql)?.execute(params![provider, session, first])?;
                    Ok(())
                });
            }
            Delivery::CutOff { error } => {
                return self.write(|connection| {
                    let sql = format!("UPDATE outbox SET error = ?4 WHERE {IS_IT}");
                    connection.prepare_cached(&sql)?.execute(params![provider, session, first, error])?;
                    Ok(())
                });
            }
            Delivery::Postponed { error, due_at } => (Some(due_at.cast_signed()), error),
            Delivery::SetAside { error } => (None, error),
        };
        self.write(|connection| {
            let sql = format!("UPDATE outbox SET attempts = attempts + 1, due_at = ?4, error = ?5 WHERE {IS_IT}");
            connection.prepare_cached(&sql)?.execute(params![provider, session, first, due_at, error])?;
            Ok(())
        })
    }

    /// Makes turns due now, also those that were set aside, and returns how many. Without a provider, all that wait.
    pub fn retry_turns(&self, provider: Option<&str>) -> Result<usize, StoreError> {
        self.write(|connection| {
            let sql = format!("UPDATE outbox SET due_at = 0 WHERE provider = coalesce(?1, provider) AND {IS_SHOWN}");
            Ok(connection.prepare_cached(&sql)?.execute([provider])?)
        })
    }

    /// The finished turns of all sessions since a time, oldest first: without those of subagents, and of imported sessions about
    /// which the user has not decided.
    pub fn finished_turns(&self, since: u64) -> Result<Vec<FinishedTurn>, StoreError> {
        let is_held = |session: &SessionSummary| {
            !session.imported && session.parent.as_ref().is_none_or(|parent| parent.kind != ParentKind::Delegate)
        };
        let mut turns = Vec::new();
        for session in self.sessions()?.into_iter().filter(is_held).filter(|session| session.updated_at >= since) {
            let own = self.read(|connection| {
                let mut ids = connection.prepare_cached("SELECT id FROM messages WHERE session_id = ?1")?;
                let ids = ids.query_map([session.id.as_str()], |row| row.get::<_, i64>(0))?;
                Ok(ids.map(|id| id.map(i64::cast_unsigned)).collect::<Result<HashSet<u64>, _>>()?)
            })?;
            let conversation = Conversation::new(self.conversation(&session.id)?);
            // A branch shows the messages of its parent, too.
            let of_session = conversation.messages().iter().zip(conversation.headers());
            let of_session: Vec<_> = of_session.filter(|(message, _)| own.contains(&message.id.0)).collect();
            for turn in of_session.chunk_by(|(_, one), (_, other)| one.turn == other.turn) {
                let ([(first, _), ..], Some((last, _))) = (turn, turn.last()) else { continue };
                let is_finished = last.role == Role::Assistant && last.tool_calls.is_empty();
                if first.role == Role::User && is_finished && last.created_at >= since {
                    let messages = MessageRange::new(first.id, last.id);
                    turns.push(FinishedTurn { session: session.id.clone(), messages, ended_at: last.created_at });
                }
            }
        }
        turns.sort_by_key(|turn| (turn.ended_at, turn.messages.first));
        Ok(turns)
    }

    /// Queues finished turns for a provider, and returns how many did not wait for it already.
    pub fn queue_turns(&self, provider: &str, turns: &[FinishedTurn]) -> Result<usize, StoreError> {
        self.write(|connection| {
            // A session that was deleted or rewound meanwhile keeps none of its turns.
            let mut insert = connection.prepare_cached(
                "INSERT OR IGNORE INTO outbox (provider, session_id, first_id, last_id, ended_at) \
                 SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?4 AND session_id = ?2)",
            )?;
            let mut queued = 0;
            for FinishedTurn { session, messages, ended_at } in turns {
                let (first, last) = (messages.first.0.cast_signed(), messages.last.0.cast_signed());
                queued += insert.execute(params![provider, session.as_str(), first, last, ended_at.cast_signed()])?;
            }
            Ok(queued)
        })
    }

    /// The turns of all sessions that memory providers have not stored, without rewound ones.
    pub fn outbox(&self) -> Result<Vec<QueuedTurn>, StoreError> {
        self.read(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM outbox WHERE {IS_SHOWN} ORDER BY provider, session_id, first_id");
            let mut statement = connection.prepare_cached(&sql)?;
            let turns = statement.query_map([], from_row)?;
            Ok(turns.collect::<Result<_, _>>()?)
        })
    }
}

fn queue(
    connection: &Connection,
    session: &SessionId,
    messages: MessageRange,
    ended_at: u64,
    providers: &[String],
) -> Result<(), Fault> {
    let (first, last) = (messages.first.0.cast_signed(), messages.last.0.cast_signed());
    let is_known: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND session_id = ?2)")?
        .query_row(params![first, session.as_str()], |row| row.get(0))?;
    if !is_known {
        return Err(SessionError::NoSuchMessage { session: session.clone(), message: messages.first }.into());
    }
    // The conversation continues, so its rewinds cannot be undone any more.
    connection
        .prepare_cached(
            "DELETE FROM outbox WHERE session_id = ?1 \
             AND first_id IN (SELECT message_id FROM rewound WHERE session_id = ?1)",
        )?
        .execute([session.as_str()])?;
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO outbox (provider, session_id, first_id, last_id, ended_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for provider in providers {
        insert.execute(params![provider, session.as_str(), first, last, ended_at.cast_signed()])?;
    }
    Ok(())
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<QueuedTurn> {
    let id = |column: usize| row.get::<_, i64>(column).map(|id| MessageId(id.cast_unsigned()));
    Ok(QueuedTurn {
        session: SessionId(row.get(0)?),
        provider: row.get(1)?,
        messages: MessageRange::new(id(2)?, id(3)?),
        ended_at: row.get::<_, i64>(4)?.cast_unsigned(),
        attempts: row.get(5)?,
        state: match row.get::<_, Option<i64>>(6)? {
            Some(due_at) => QueueState::Waiting { due_at: due_at.cast_unsigned() },
            None => QueueState::SetAside,
        },
        error: row.get(7)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_session_store::NewSession;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{child, new_session, store};

    /// Stores a turn of two messages for a provider.
    fn turn(store: &Store, session: &SessionId) -> MessageId {
        let first = store.append(session, &[Draft::user("hello", 1)]).unwrap()[0].id;
        store.end_turn(session, &[Draft::assistant("hi", Vec::new(), 2)], first, &["mem".to_owned()]).unwrap();
        first
    }

    #[test]
    fn a_queued_turn_survives_the_process_and_leaves_with_its_session() {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let first = turn(&store, &session);
        drop(store);
        let store = Store::open(home.path()).unwrap();
        let queued = store.next_turn(&session, "mem").unwrap().unwrap();
        assert_eq!((queued.messages.first, queued.ended_at, queued.attempts), (first, 2, 0));
        store.delete(&[session], false).unwrap();
        assert_eq!(store.outbox().unwrap(), []);
    }

    #[test]
    fn finished_turns_are_queued_once_without_those_of_subagents_and_of_unfinished_ones() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let told = turn(&store, &session);
        let alone = store.append(&session, &[Draft::user("again", 5), Draft::assistant("yes", Vec::new(), 6)]).unwrap();
        let branch = store.branch(&session, None, None, 6).unwrap().id;
        let own = store.append(&branch, &[Draft::user("here", 7), Draft::assistant("there", Vec::new(), 8)]).unwrap();
        store.append(&session, &[Draft::user("unanswered", 9)]).unwrap();
        // A subagent's turn is not a turn of the user.
        let parent = store.session(&session).unwrap();
        let task = child(&store, &parent, ParentKind::Delegate, None).id;
        store.append(&task, &[Draft::user("look", 10), Draft::assistant("seen", Vec::new(), 11)]).unwrap();
        // Nor is what somebody else's file says, before the user has decided about it.
        let source = "imported: cli".to_owned();
        let imported = store.create_session(NewSession { source, ..new_session() }).unwrap().id;
        store.append(&imported, &[Draft::user("trust me", 12), Draft::assistant("yes", Vec::new(), 13)]).unwrap();
        let turns = store.finished_turns(0).unwrap();
        let firsts: Vec<_> = turns.iter().map(|turn| (turn.messages.first, turn.ended_at)).collect();
        assert_eq!(firsts, [(told, 2), (alone[0].id, 6), (own[0].id, 8)]);
        assert_eq!(store.finished_turns(7).unwrap(), turns[2..]);
        // The first one waits already.
        assert_eq!(store.queue_turns("mem", &turns).unwrap(), 2);
        assert_eq!(store.queue_turns("mem", &turns).unwrap(), 0);
        assert_eq!(store.queue_turns("other", &turns).unwrap(), 3);
        assert_eq!(store.next_turn(&branch, "mem").unwrap().unwrap().messages, turns[2].messages);
    }

    #[test]
    fn a_retried_turn_waits_again_without_those_of_other_providers_and_rewound_ones() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let (first, rewound) = (turn(&store, &session), turn(&store, &session));
        let aside = Delivery::SetAside { error: "no".to_owned() };
        for queued in store.outbox().unwrap() {
            store.record_delivery(&queued, &aside).unwrap();
        }
        store.rewind(&session, rewound).unwrap();
        assert_eq!(store.retry_turns(Some("other")).unwrap(), 0);
        assert_eq!(store.next_turn(&session, "mem").unwrap(), None);
        assert_eq!(store.retry_turns(Some("mem")).unwrap(), 1);
        let next = store.next_turn(&session, "mem").unwrap().unwrap();
        assert_eq!((next.messages.first, next.state), (first, QueueState::Waiting { due_at: 0 }));
    }

    #[test]
    fn a_turn_is_not_stored_without_its_place_in_the_outbox() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let other = store.create_session(new_session()).unwrap().id;
        let elsewhere = store.append(&other, &[Draft::user("hello", 1)]).unwrap()[0].id;
        let ended = store.end_turn(&session, &[Draft::user("hi", 1)], elsewhere, &["mem".to_owned()]);
        assert!(matches!(ended, Err(StoreError::Session(SessionError::NoSuchMessage { .. }))), "{ended:?}");
        assert_eq!((store.conversation(&session).unwrap(), store.outbox().unwrap()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_restored_turn_waits_again_until_the_conversation_has_continued() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let (kept, rewound) = (turn(&store, &session), turn(&store, &session));
        let queued = || store.outbox().unwrap().into_iter().map(|turn| turn.messages.first).collect::<Vec<_>>();
        store.rewind(&session, rewound).unwrap();
        assert_eq!(queued(), [kept]);
        store.restore(&session).unwrap();
        assert_eq!(queued(), [kept, rewound]);
        store.rewind(&session, rewound).unwrap();
        let next = turn(&store, &session);
        assert_eq!(queued(), [kept, next]);
        let all: i64 = store.read(|c| Ok(c.query_row("SELECT count(*) FROM outbox", [], |row| row.get(0))?)).unwrap();
        assert_eq!(all, 2);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Turn,
        Deliver(Delivery),
        Rewind(usize),
        Restore,
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let error = || "no".to_owned();
        prop_oneof![
            4 => Just(Step::Turn),
            3 => Just(Step::Deliver(Delivery::Stored)),
            2 => any::<u32>().prop_map(move |due_at| Step::Deliver(Delivery::Postponed { error: error(), due_at: due_at.into() })),
            1 => Just(Step::Deliver(Delivery::SetAside { error: "no".to_owned() })),
            1 => Just(Step::Deliver(Delivery::CutOff { error: "the end".to_owned() })),
            2 => any::<usize>().prop_map(Step::Rewind),
            1 => Just(Step::Restore),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever happens, every turn that the conversation shows was stored, waits, or was set aside, and turns are stored in
        /// order.
        #[test]
        fn no_turn_is_lost_and_none_overtakes_another(steps in prop::collection::vec(any_step(), 1..40)) {
            let (_home, store) = store();
            let session = store.create_session(new_session()).unwrap().id;
            let (mut stored, mut aside) = (Vec::new(), Vec::new());
            for step in steps {
                let shown: Vec<MessageId> = store
                    .conversation(&session).unwrap().iter().step_by(2).map(|message| message.id).collect();
                match step {
                    Step::Turn => drop(turn(&store, &session)),
                    Step::Rewind(at) if !shown.is_empty() => drop(store.rewind(&session, shown[at % shown.len()]).unwrap()),
                    Step::Rewind(_) => {}
                    Step::Restore => drop(store.restore(&session)),
                    Step::Deliver(delivery) => {
                        let next = store.next_turn(&session, "mem").unwrap();
                        let waits = |turn: &&MessageId| !stored.contains(*turn) && !aside.contains(*turn);
                        prop_assert_eq!(next.as_ref().map(|turn| turn.messages.first), shown.iter().find(waits).copied());
                        let Some(next) = next else { continue };
                        store.record_delivery(&next, &delivery).unwrap();
                        match delivery {
                            Delivery::Stored => stored.push(next.messages.first),
                            Delivery::SetAside { .. } => aside.push(next.messages.first),
                            Delivery::Postponed { .. } | Delivery::CutOff { .. } => {}
                        }
                    }
                }
            }
            let kept = store.outbox().unwrap();
            let shown = store.conversation(&session).unwrap();
            for first in shown.iter().step_by(2).map(|message| message.id) {
                let rows: Vec<&QueuedTurn> = kept.iter().filter(|turn| turn.messages.first == first).collect();
                let is_aside = rows.iter().any(|turn| turn.state == QueueState::SetAside);
                prop_assert_eq!((rows.len(), is_aside), (usize::from(!stored.contains(&first)), aside.contains(&first)));
            }
        }
    }

    #[test]
    fn only_one_task_delivers_the_turns_of_a_session_to_a_provider() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap().id;
        let lease = store.delivery_lease(&session, "mem").unwrap();
        let second = store.delivery_lease(&session, "mem");
        assert!(matches!(second, Err(StoreError::Session(SessionError::InUse { .. }))), "{second:?}");
        let _other = store.delivery_lease(&session, "another").unwrap();
        let _session = store.lease(&session).unwrap();
        drop(lease);
        drop(store.delivery_lease(&session, "mem").unwrap());
    }
}
