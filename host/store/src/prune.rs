//! Deletes old sessions, chosen by filters. Sessions that the user would miss at once are kept.

use std::collections::{HashMap, HashSet};

use hermes_conversation::SessionId;
use rusqlite::Connection;

use crate::catalog::{newest_of_each_folder, summaries};
use crate::deletion::Family;
use crate::error::Fault;
use crate::{Kept, ParentKind, PruneFilter, Pruning, SessionError, SessionSummary, Store, StoreError};

/// Whether a session matches every filter. `logged` is the number of the session's own messages in the log: rewound messages can
/// still be restored.
fn fits(filter: &PruneFilter, session: &SessionSummary, logged: u64) -> bool {
    let empty_handed = session.parent.as_ref().is_none_or(|parent| parent.through.is_none());
    session.updated_at < filter.silent_since
        && filter.source.as_ref().is_none_or(|source| session.source == *source)
        && filter.workspace.as_ref().is_none_or(|workspace| session.workspace.starts_with(workspace))
        && filter.model.as_ref().is_none_or(|model| session.model.name.contains(model))
        && filter.title.as_ref().is_none_or(|part| session.title.as_ref().is_some_and(|title| title.contains(part)))
        && filter.min_messages.is_none_or(|least| session.message_count >= least)
        && filter.max_messages.is_none_or(|most| logged <= most && (most > 0 || empty_handed))
        && filter.started_after.is_none_or(|time| session.started_at >= time)
        && filter.started_before.is_none_or(|time| session.started_at < time)
}

impl Store {
    /// What [`Store::prune`] would delete. Changes nothing.
    pub fn pruning(&self, filter: &PruneFilter) -> Result<Pruning, StoreError> {
        self.read(|connection| self.plan(connection, filter))
    }

    /// Deletes those of the agreed sessions that still match, one session per transaction, so that other writers never
    /// wait for all of them.
    ///
    /// Returns the deleted and the kept sessions. Sessions that match only since the agreement are kept, and so are those
    /// that were continued since then.
    pub fn prune(&self, filter: &PruneFilter, agreed: &[SessionId]) -> Result<Pruning, StoreError> {
        let mut pruning = self.pruning(filter)?;
        let agreed: HashSet<&SessionId> = agreed.iter().collect();
        pruning.sessions.retain(|session| agreed.contains(&session.id));
        let mut gone = Vec::with_capacity(pruning.sessions.len());
        // Newest first: a child started later than its parent and has to be deleted before it.
        for session in pruning.sessions {
            match self.delete(std::slice::from_ref(&session.id), false) {
                Ok(_) => gone.push(session),
                Err(StoreError::Session(SessionError::UnknownSession(_))) => {}
                Err(StoreError::Session(SessionError::InUse { .. })) => pruning.kept.push((session.id, Kept::InUse)),
                Err(StoreError::Session(SessionError::HasChildren { children, .. })) => {
                    let by = children.into_iter().next().unwrap_or_else(|| session.id.clone());
                    pruning.kept.push((session.id, Kept::Needed { by }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Pruning { sessions: gone, kept: pruning.kept })
    }

    fn plan(&self, connection: &Connection, filter: &PruneFilter) -> Result<Pruning, Fault> {
        // A delegate is deleted with its parent only.
        let mut all = summaries(connection, "parent_kind IS NOT 'delegate'", -1)?;
        let family = Family::read(connection)?;
        let newest = newest_of_each_folder(connection)?;
        let logged = messages_in_the_log(connection)?;
        all.retain(|session| fits(filter, session, logged.get(&session.id).copied().unwrap_or(0)));
        let mut kept = Vec::new();
        let mut candidates = Vec::new();
        for session in all {
            if newest.contains(&session.id) {
                kept.push((session.id, Kept::Newest));
            } else if self.in_use(&family, &session.id)? {
                kept.push((session.id, Kept::InUse));
            } else {
                candidates.push(session);
            }
        }
        keep_ancestors(&family, &mut candidates, &mut kept);
        let order: HashMap<&SessionId, usize> = family.order().iter().zip(0..).collect();
        candidates.sort_by_key(|session| std::cmp::Reverse(order.get(&session.id).copied()));
        Ok(Pruning { sessions: candidates, kept })
    }

    /// Whether a process is working on the session or on a delegate below it.
    fn in_use(&self, family: &Family, session: &SessionId) -> Result<bool, StoreError> {
        for id in with_delegates(family, session) {
            if self.holder(id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn with_delegates<'a>(family: &'a Family, session: &'a SessionId) -> HashSet<&'a SessionId> {
    let mut found = HashSet::from([session]);
    let mut next = vec![session];
    while let Some(session) = next.pop() {
        let delegates = family.children(session).iter().filter(|child| child.kind == ParentKind::Delegate);
        next.extend(delegates.map(|child| &child.id).filter(|id| found.insert(id)));
    }
    found
}

/// Keeping a session also keeps its ancestors: repeats until nothing changes.
fn keep_ancestors(family: &Family, candidates: &mut Vec<SessionSummary>, kept: &mut Vec<(SessionId, Kept)>) {
    loop {
        let ids: HashSet<SessionId> = candidates.iter().map(|session| session.id.clone()).collect();
        let before = candidates.len();
        candidates.retain(|session| {
            let all = with_delegates(family, &session.id);
            let needed_by = all
                .iter()
                .flat_map(|id| family.children(id))
                .find(|child| child.stands_on_it && child.kind != ParentKind::Delegate && !ids.contains(&child.id));
            if let Some(child) = needed_by {
                kept.push((session.id.clone(), Kept::Needed { by: child.id.clone() }));
            }
            needed_by.is_none()
        });
        if candidates.len() == before {
            return;
        }
    }
}

fn messages_in_the_log(connection: &Connection) -> Result<HashMap<SessionId, u64>, Fault> {
    let mut statement = connection.prepare("SELECT session_id, count(*) FROM messages GROUP BY session_id")?;
    let rows = statement.query_map([], |row| Ok((SessionId(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, Model};

    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{NewSession, Session};

    const DAY: u64 = 86_400_000;
    const NOW: u64 = 1_795_300_000_000;

    fn talk(store: &Store, days_ago: u64, new: NewSession) -> Session {
        let started_at = NOW - days_ago * DAY;
        let session = store.create_session(NewSession { started_at, ..new }).unwrap();
        store.append(&session.id, &[Draft::user("hello", started_at)]).unwrap();
        session
    }

    fn older_than(days: u64) -> PruneFilter {
        PruneFilter::silent_since(NOW - days * DAY)
    }

    fn ids(pruning: &Pruning) -> Vec<SessionId> {
        pruning.sessions.iter().map(|session| session.id.clone()).collect()
    }

    /// Prunes everything that is planned.
    fn prune(store: &Store, filter: &PruneFilter) -> Result<Pruning, StoreError> {
        store.prune(filter, &ids(&store.pruning(filter)?))
    }

    #[test]
    fn only_agreed_sessions_are_deleted() {
        let (_home, store) = store();
        let [agreed, taken_up, other] = [0; 3].map(|_| talk(&store, 100, new_session()));
        talk(&store, 1, new_session());
        let planned = ids(&store.pruning(&older_than(90)).unwrap());
        assert_eq!(planned, [other.id.clone(), taken_up.id.clone(), agreed.id.clone()]);
        store.append(&taken_up.id, &[Draft::user("again", NOW)]).unwrap();
        let done = store.prune(&older_than(90), &planned[1..]).unwrap();
        assert_eq!(ids(&done), [agreed.id]);
        store.session(&other.id).unwrap();
    }

    #[test]
    fn old_sessions_are_deleted_unless_they_are_in_use_or_would_be_continued() {
        let (_home, store) = store();
        let old = talk(&store, 100, new_session());
        let used = talk(&store, 100, new_session());
        let young = talk(&store, 10, new_session());
        let elsewhere = talk(&store, 200, NewSession { workspace: "/elsewhere".into(), ..new_session() });
        let delegate = child(&store, &old, ParentKind::Delegate, None);
        let lease = store.lease(&used.id).unwrap();

        let planned = store.pruning(&older_than(90)).unwrap();
        assert_eq!(ids(&planned), std::slice::from_ref(&old.id));
        assert_eq!(planned.kept, [(used.id.clone(), Kept::InUse), (elsewhere.id.clone(), Kept::Newest)]);
        assert_eq!(store.sessions().unwrap().len(), 5, "a plan changes nothing");
        assert_eq!(prune(&store, &older_than(90)).unwrap(), planned);
        assert!(matches!(store.session(&delegate.id), Err(StoreError::Session(SessionError::UnknownSession(_)))));

        // A subagent may work on after the session that started it has fallen silent.
        drop(lease);
        let task = child(&store, &used, ParentKind::Delegate, None);
        let lease = store.lease(&task.id).unwrap();
        assert!(store.pruning(&older_than(90)).unwrap().kept.contains(&(used.id.clone(), Kept::InUse)));
        drop(lease);
        assert_eq!(ids(&prune(&store, &older_than(90)).unwrap()), std::slice::from_ref(&used.id));
        assert_eq!(ids(&prune(&store, &older_than(5)).unwrap()), []);
        store.session(&young.id).unwrap();
    }

    #[test]
    fn a_session_is_kept_as_long_as_its_children() {
        let (_home, store) = store();
        let root = talk(&store, 100, new_session());
        let middle = child(&store, &root, ParentKind::Branch, None);
        let delegate = child(&store, &middle, ParentKind::Delegate, None);
        store.append(&delegate.id, &[Draft::user("task", NOW - 100 * DAY)]).unwrap();
        let last = child(&store, &delegate, ParentKind::Branch, None);
        store.append(&last.id, &[Draft::user("new", NOW)]).unwrap();
        let filter = PruneFilter::silent_since(NOW);
        let planned = store.pruning(&filter).unwrap();
        assert_eq!(planned.sessions, []);
        // `middle` has no message, so the time of its creation counts.
        assert!(planned.kept.contains(&(root.id.clone(), Kept::Needed { by: middle.id.clone() })), "{planned:?}");

        talk(&store, 0, new_session());
        let filter = PruneFilter::silent_since(NOW + 1);
        assert_eq!(ids(&prune(&store, &filter).unwrap()), [last.id, middle.id, root.id]);
        assert!(matches!(store.session(&delegate.id), Err(StoreError::Session(SessionError::UnknownSession(_)))));
    }

    #[test]
    fn the_session_to_continue_is_kept_in_each_folder() {
        let (_home, store) = store();
        let spoken = talk(&store, 100, new_session());
        let root = talk(&store, 90, new_session());
        talk(&store, 50, NewSession { source: "serve".into(), ..new_session() });
        // A new branch has no messages of its own.
        let parent = crate::Parent { id: root.id.clone(), kind: ParentKind::Branch, through: None };
        let new = NewSession { parent: Some(parent), started_at: NOW - 80 * DAY, ..new_session() };
        let branch = store.create_session(new).unwrap();
        let folder = std::path::Path::new("/home/ada/engine");
        assert_eq!(store.newest_session(folder).unwrap(), Some(branch.id.clone()));
        let done = prune(&store, &PruneFilter::silent_since(NOW)).unwrap();
        assert_eq!((ids(&done).len(), done.sessions.iter().any(|gone| gone.id == spoken.id)), (2, true));
        assert!(done.kept.contains(&(branch.id.clone(), Kept::Newest)), "{done:?}");
        assert_eq!(store.newest_session(folder).unwrap(), Some(branch.id));
    }

    #[test]
    fn an_empty_session_has_neither_rewound_nor_inherited_messages() {
        let (_home, store) = store();
        talk(&store, 1, new_session());
        let empty = store.create_session(NewSession { started_at: NOW - 100 * DAY, ..new_session() }).unwrap();
        let rewound = talk(&store, 100, new_session());
        let first = store.conversation(&rewound.id).unwrap()[0].id;
        let parent = crate::Parent { id: rewound.id.clone(), kind: ParentKind::Branch, through: None };
        let new = NewSession { parent: Some(parent), started_at: NOW - 100 * DAY, ..new_session() };
        store.create_session(new).unwrap();
        store.rewind(&rewound.id, first).unwrap();
        assert_eq!(store.session(&rewound.id).unwrap().message_count, 0);
        let filter = PruneFilter { max_messages: Some(0), ..older_than(90) };
        assert_eq!(ids(&prune(&store, &filter).unwrap()), [empty.id]);
        assert_eq!(store.restore(&rewound.id).unwrap().len(), 1);
    }

    #[test]
    fn every_field_of_a_filter_is_applied() {
        let (_home, store) = store();
        let model = Model { provider: "p".into(), name: "big-model".into(), context_length: 1 };
        let session = talk(
            &store,
            100,
            NewSession {
                title: Some("An engine".into()),
                source: "serve".into(),
                workspace: "/home/ada/work/deep".into(),
                model,
                ..new_session()
            },
        );
        let spoken = store.append(&session.id, &[Draft::user("again", NOW - 99 * DAY)]).unwrap();
        let session = store.sessions().unwrap().remove(0);
        assert_eq!((session.message_count, spoken.len()), (2, 1));
        let all = older_than(90);
        let set = |change: fn(&mut PruneFilter)| {
            let mut filter = all.clone();
            change(&mut filter);
            fits(&filter, &session, session.message_count)
        };
        assert!(set(|_| {}));
        assert!(
            set(|filter| filter.source = Some("serve".into())) && !set(|filter| filter.source = Some("cli".into()))
        );
        assert!(set(|filter| filter.workspace = Some("/home/ada/work".into())));
        assert!(!set(|filter| filter.workspace = Some("/home/ada/wor".into())));
        assert!(set(|filter| filter.model = Some("big".into())) && !set(|filter| filter.model = Some("small".into())));
        assert!(set(|filter| filter.title = Some("engine".into())) && !set(|filter| filter.title = Some("%".into())));
        assert!(set(|filter| filter.min_messages = Some(2)) && !set(|filter| filter.min_messages = Some(3)));
        assert!(set(|filter| filter.max_messages = Some(2)) && !set(|filter| filter.max_messages = Some(1)));
        assert!(set(|filter| filter.started_after = Some(NOW - 100 * DAY)));
        assert!(!set(|filter| filter.started_after = Some(NOW - 99 * DAY)));
        assert!(!set(|filter| filter.started_before = Some(NOW - 100 * DAY)));
        assert!(set(|filter| filter.started_before = Some(NOW - 99 * DAY)));
        assert!(!set(|filter| filter.silent_since = NOW - 99 * DAY));
    }
}
