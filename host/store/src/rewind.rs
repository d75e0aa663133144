//! Rewinds: messages leave the conversation and stay in the log, so that a rewind can be undone.

use hermes_conversation::{Message, MessageId, Role, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::Fault;
use crate::lineage::{self, Lineage};
use crate::{SessionError, Store, StoreError, log};

impl Store {
    /// Hides a message of the user and everything after it, and returns the hidden messages.
    ///
    /// A branch may rewind into its parent's messages; the parent still shows them. A view that refers to a hidden
    /// message is no longer in force.
    pub fn rewind(&self, session: &SessionId, to: MessageId) -> Result<Vec<Message>, StoreError> {
        let now = Timestamp::now().as_millisecond();
        self.write(|connection| {
            let lineage = lineage::of(connection, session)?;
            if !log::contains(connection, &lineage, to)? {
                return Err(SessionError::NoSuchMessage { session: session.clone(), message: to }.into());
            }
            let messages = log::since(connection, &lineage, to)?;
            if messages.first().is_none_or(|message| message.role != Role::User) {
                return Err(SessionError::NotTheUsers { session: session.clone(), message: to }.into());
            }
            let number = last_number(connection, session)?.unwrap_or(0) + 1;
            let mut insert = connection.prepare_cached(
                "INSERT INTO rewound (session_id, message_id, rewound_at, number) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for message in &messages {
                insert.execute(params![session.as_str(), message.id.0.cast_signed(), now, number])?;
            }
            recount(connection, session)?;
            Ok(messages)
        })
    }

    /// Undoes the last rewind of a session and returns the restored messages.
    ///
    /// Refused once the conversation has continued: the restored messages would come before the new ones.
    pub fn restore(&self, session: &SessionId) -> Result<Vec<Message>, StoreError> {
        self.write(|connection| {
            let mut lineage = lineage::of(connection, session)?;
            let Some(number) = last_number(connection, session)? else {
                return Err(SessionError::NothingRewound(session.clone()).into());
            };
            let back = of_number(connection, session, number)?;
            if let Some(end) = log::end_of(connection, &lineage)?
                && back.iter().any(|message| *message < end.0.cast_signed())
            {
                return Err(SessionError::SaidSince { session: session.clone(), message: end }.into());
            }
            connection
                .prepare_cached("DELETE FROM rewound WHERE session_id = ?1 AND number = ?2")?
                .execute(params![session.as_str(), number])?;
            recount(connection, session)?;
            restored(connection, &mut lineage, &back)
        })
    }
}

fn last_number(connection: &Connection, session: &SessionId) -> Result<Option<i64>, Fault> {
    let mut statement = connection.prepare_cached("SELECT max(number) FROM rewound WHERE session_id = ?1")?;
    Ok(statement.query_row([session.as_str()], |row| row.get(0)).optional()?.flatten())
}

fn of_number(connection: &Connection, session: &SessionId, number: i64) -> Result<Vec<i64>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT message_id FROM rewound WHERE session_id = ?1 AND number = ?2")?;
    let messages = statement.query_map(params![session.as_str(), number], |row| row.get(0))?;
    Ok(messages.collect::<Result<_, _>>()?)
}

fn restored(connection: &Connection, lineage: &mut Lineage, back: &[i64]) -> Result<Vec<Message>, Fault> {
    for message in back {
        lineage.rewound.remove(message);
    }
    let first = back.iter().copied().min().unwrap_or(i64::MAX);
    log::since(connection, lineage, MessageId(first.cast_unsigned()))
}

/// Sets a session's message count to the number of its visible messages.
pub(crate) fn recount(connection: &Connection, session: &SessionId) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "UPDATE sessions SET message_count = (SELECT count(*) FROM messages WHERE session_id = ?1) \
             - (SELECT count(*) FROM rewound JOIN messages ON messages.id = message_id \
             WHERE rewound.session_id = ?1 AND messages.session_id = ?1) WHERE id = ?1",
        )?
        .execute([session.as_str()])?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, Item, MessageRange, Summary, View};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{ParentKind, Session};

    /// Each text is the user's, or the model's if it is in lower case. Returns the ids.
    fn say(store: &Store, session: &Session, texts: &str) -> Vec<u64> {
        let drafts: Vec<Draft> = texts
            .chars()
            .map(|c| if c.is_uppercase() { Draft::user(c, 1) } else { Draft::assistant(c, Vec::new(), 1) })
            .collect();
        store.append(&session.id, &drafts).unwrap().iter().map(|message| message.id.0).collect()
    }

    fn text(messages: &[Message]) -> String {
        messages.iter().map(|message| message.content.as_str()).collect()
    }

    fn said(store: &Store, session: &Session) -> String {
        text(&store.conversation(&session.id).unwrap())
    }

    fn view(through: u64, key: &str) -> View {
        let covers = vec![MessageRange::one(MessageId(1))];
        let summary = Summary { key: key.into(), content: key.into(), covers };
        View { items: vec![Item::Summary(summary)], through: Some(MessageId(through)) }
    }

    #[test]
    fn a_rewind_hides_the_message_and_its_successors_and_can_be_undone() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let ids = say(&store, &session, "AabBcCd");
        let taken = store.rewind(&session.id, MessageId(ids[3])).unwrap();
        assert_eq!((text(&taken).as_str(), said(&store, &session).as_str()), ("BcCd", "Aab"));
        assert_eq!(store.session(&session.id).unwrap().message_count, 3);
        assert_eq!(store.restore(&session.id).unwrap(), taken);
        assert_eq!(said(&store, &session), "AabBcCd");
        assert_eq!(store.session(&session.id).unwrap().message_count, 7);
        assert!(
            matches!(store.restore(&session.id), Err(StoreError::Session(SessionError::NothingRewound(id))) if id == session.id)
        );
    }

    #[test]
    fn rewinds_are_undone_one_by_one_unless_messages_followed() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let ids = say(&store, &session, "AaBbCc");
        store.rewind(&session.id, MessageId(ids[4])).unwrap();
        let later = say(&store, &session, "Dd");
        store.rewind(&session.id, MessageId(ids[2])).unwrap();
        assert_eq!(said(&store, &session), "Aa");
        assert_eq!(text(&store.restore(&session.id).unwrap()), "BbDd");
        let Err(StoreError::Session(SessionError::SaidSince { message, .. })) = store.restore(&session.id) else {
            panic!("`Dd` follows")
        };
        assert_eq!(message.0, later[1]);
        assert_eq!(said(&store, &session), "AaBbDd");
        store.rewind(&session.id, MessageId(ids[0])).unwrap();
        assert_eq!(said(&store, &session), "");
        assert_eq!(store.session(&session.id).unwrap().message_count, 0);
        assert_eq!(store.sessions().unwrap()[0].preview, "");
    }

    #[test]
    fn only_messages_of_the_user_in_this_conversation_can_be_rewound() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let other = store.create_session(new_session()).unwrap();
        let ids = say(&store, &session, "AaBb");
        let elsewhere = say(&store, &other, "X")[0];
        assert!(matches!(
            store.rewind(&session.id, MessageId(ids[1])),
            Err(StoreError::Session(SessionError::NotTheUsers { message, .. })) if message.0 == ids[1]
        ));
        store.rewind(&session.id, MessageId(ids[2])).unwrap();
        for gone in [ids[2], elsewhere, 99, 0, u64::MAX] {
            let error = store.rewind(&session.id, MessageId(gone)).unwrap_err();
            assert!(matches!(error, StoreError::Session(SessionError::NoSuchMessage { .. })), "{gone}: {error}");
        }
        assert_eq!(said(&store, &session), "Aa");
        assert_eq!(said(&store, &other), "X");
    }

    #[test]
    fn parent_and_branch_rewind_independently() {
        let (_home, store) = store();
        let root = store.create_session(new_session()).unwrap();
        let ids = say(&store, &root, "AaBbCc");
        store.rewind(&root.id, MessageId(ids[4])).unwrap();
        let ends = say(&store, &root, "Dd");
        let branch = child(&store, &root, ParentKind::Branch, None);
        say(&store, &branch, "Ee");
        let nested = child(&store, &branch, ParentKind::Branch, None);
        // Messages that the parent rewinds later stay in the branch. Messages that it rewound before stay hidden.
        store.rewind(&root.id, MessageId(ids[0])).unwrap();
        assert_eq!(said(&store, &root), "");
        assert_eq!(said(&store, &branch), "AaBbDdEe");
        // A branch may rewind its parent's messages.
        store.rewind(&branch.id, MessageId(ids[2])).unwrap();
        assert_eq!(said(&store, &branch), "Aa");
        assert_eq!(store.session(&branch.id).unwrap().message_count, 0);
        assert_eq!(said(&store, &nested), "AaBbDdEe");
        let late = child(&store, &branch, ParentKind::Branch, None);
        assert_eq!(said(&store, &late), "Aa");
        assert_eq!(text(&store.restore(&branch.id).unwrap()), "BbDdEe");
        assert_eq!((said(&store, &branch).as_str(), said(&store, &late).as_str()), ("AaBbDdEe", "Aa"));
        assert_eq!(text(&store.restore(&root.id).unwrap()), "AaBbDd");
        // No branch can start at a message that is hidden.
        let parent = |through: u64| crate::Parent {
            id: root.id.clone(),
            kind: ParentKind::Branch,
            through: Some(MessageId(through)),
        };
        for (through, there) in [(ids[5], false), (ends[0], true)] {
            let new = crate::NewSession { parent: Some(parent(through)), ..new_session() };
            assert_eq!(store.create_session(new).is_ok(), there);
        }
    }

    #[test]
    fn a_view_beyond_the_end_of_the_conversation_is_not_in_force() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        let ids = say(&store, &session, "AaBbCc");
        let (early, late) = (view(ids[1], "early"), view(ids[5], "late"));
        store.put_view(&session.id, &early, "", "e").unwrap();
        store.put_view(&session.id, &late, "", "e").unwrap();
        store.rewind(&session.id, MessageId(ids[4])).unwrap();
        assert_eq!(store.view(&session.id).unwrap(), early);
        assert_eq!(store.summary(&session.id, "late").unwrap(), None);
        assert_eq!(store.summaries(&session.id).unwrap().len(), 1);

        // Later messages have higher numbers, so the view must not come back with them.
        let more = say(&store, &session, "Dd");
        assert_eq!(store.view(&session.id).unwrap(), early);
        let branch = child(&store, &session, ParentKind::Branch, None);
        assert_eq!(store.view(&branch.id).unwrap(), early);

        // The key of such a view can be used for another text.
        let mut again = view(more[1], "late");
        let Item::Summary(summary) = &mut again.items[0] else { unreachable!() };
        summary.content = "another".into();
        store.put_view(&session.id, &again, "", "e").unwrap();
        assert_eq!(store.view(&session.id).unwrap(), again);
        assert_eq!(store.summary(&session.id, "late").unwrap().unwrap().content, "another");
        store.rewind(&session.id, MessageId(ids[0])).unwrap();
        assert_eq!(store.view(&session.id).unwrap(), View::default());
        store.restore(&session.id).unwrap();
        assert_eq!(store.view(&session.id).unwrap(), again);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Say(usize),
        Rewind(usize, usize),
        Restore(usize),
        Branch(usize, Option<usize>),
        View(usize),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<usize>().prop_map(Step::Say),
            3 => any::<(usize, usize)>().prop_map(|(session, at)| Step::Rewind(session, at)),
            2 => any::<usize>().prop_map(Step::Restore),
            2 => any::<(usize, Option<usize>)>().prop_map(|(session, at)| Step::Branch(session, at)),
            2 => any::<usize>().prop_map(Step::View),
        ]
    }

    /// The expected state of a session: its conversation, what it rewound, and its views with their conversations.
    #[derive(Clone, Default)]
    struct Model {
        conversation: Vec<u64>,
        taken: Vec<Vec<u64>>,
        views: Vec<Vec<u64>>,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn sessions_do_not_change_each_other(steps in prop::collection::vec(any_step(), 1..40)) {
            let (_home, store) = store();
            let mut sessions = vec![store.create_session(new_session()).unwrap()];
            let mut models = vec![Model::default()];
            for step in steps {
                match step {
                    Step::Say(at) => {
                        let at = at % sessions.len();
                        models[at].conversation.extend(say(&store, &sessions[at], "A"));
                    }
                    Step::Rewind(at, to) => {
                        let at = at % sessions.len();
                        let Model { conversation, taken, .. } = &mut models[at];
                        if !conversation.is_empty() {
                            let to = to % conversation.len();
                            store.rewind(&sessions[at].id, MessageId(conversation[to])).unwrap();
                            taken.push(conversation.split_off(to));
                        }
                    }
                    Step::Restore(at) => {
                        let at = at % sessions.len();
                        let Model { conversation, taken, .. } = &mut models[at];
                        let fits = taken.last().is_some_and(|taken| conversation.last() < taken.first());
                        prop_assert_eq!(store.restore(&sessions[at].id).is_ok(), fits);
                        if fits {
                            conversation.extend(taken.pop().unwrap());
                        }
                    }
                    Step::Branch(at, through) => {
                        let at = at % sessions.len();
                        let mut model = models[at].clone();
                        model.taken.clear();
                        let through = through.filter(|_| !model.conversation.is_empty());
                        let through = through.map(|through| through % model.conversation.len());
                        if let Some(through) = through {
                            model.conversation.truncate(through + 1);
                        }
                        let through = through.map(|through| model.conversation[through]);
                        sessions.push(child(&store, &sessions[at], ParentKind::Branch, through));
                        models.push(model);
                    }
                    Step::View(at) => {
                        let at = at % sessions.len();
                        if let Some(last) = models[at].conversation.last() {
                            let view = View { items: Vec::new(), through: Some(MessageId(*last)) };
                            store.put_view(&sessions[at].id, &view, "", "e").unwrap();
                            let conversation = models[at].conversation.clone();
                            models[at].views.push(conversation);
                        }
                    }
                }
            }
            for (session, model) in sessions.iter().zip(&models) {
                let conversation = store.conversation(&session.id).unwrap();
                let ids: Vec<u64> = conversation.iter().map(|message| message.id.0).collect();
                prop_assert_eq!(&ids, &model.conversation);
                let own: Vec<_> = ids.iter().filter(|id| owner(&store, **id) == session.id.0).collect();
                prop_assert_eq!(store.session(&session.id).unwrap().message_count, own.len() as u64);
                // The view in force is the newest one that refers only to visible messages.
                let fitting = model.views.iter().rev().find(|seen| ids.starts_with(seen));
                let through = store.view(&session.id).unwrap().through.map(|id| id.0);
                prop_assert_eq!(through, fitting.and_then(|seen| seen.last().copied()));
            }
        }
    }

    fn owner(store: &Store, message: u64) -> String {
        let sql = "SELECT session_id FROM messages WHERE id = ?1";
        store.read(|connection| Ok(connection.query_row(sql, [message.cast_signed()], |row| row.get(0))?)).unwrap()
    }
}
