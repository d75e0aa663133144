//! Deletes sessions with everything that belongs to them. A session whose messages another session shows is not
//! deleted.

use std::collections::{HashMap, HashSet};

use hermes_conversation::SessionId;
use rusqlite::Connection;

use crate::error::Fault;
use crate::known::exists;
use crate::{Deletion, ParentKind, SessionError, Store, StoreError};

impl Store {
    /// What [`Store::delete`] would delete. Changes nothing.
    pub fn deletion(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, StoreError> {
        self.read(|connection| {
            let deletion = plan(&Family::read(connection)?, sessions, with_children)?;
            self.all_free(&deletion.sessions)?;
            Ok(deletion)
        })
    }

    /// Deletes sessions permanently, all or none: their messages, prompts, views and requests, and their delegates.
    ///
    /// Refused if another session shows their messages (unless children are deleted too), or if a process is working on
    /// one of them.
    pub fn delete(&self, sessions: &[SessionId], with_children: bool) -> Result<Deletion, StoreError> {
        self.delete_by(|family| plan(family, sessions, with_children))
    }

    /// Deletes exactly what was planned. Refused if a session has got a delegate or a child since then.
    pub fn delete_planned(&self, planned: &Deletion) -> Result<Deletion, StoreError> {
        self.delete_by(|family| {
            let deletion = plan(family, &planned.sessions, false)?;
            let new = |id: &SessionId| !planned.sessions.contains(id);
            for session in &planned.sessions {
                let children: Vec<SessionId> = family
                    .children(session)
                    .iter()
                    .map(|child| child.id.clone())
                    .filter(|id| new(id) && deletion.sessions.contains(id))
                    .collect();
                if !children.is_empty() {
                    return Err(SessionError::HasChildren { session: session.clone(), children }.into());
                }
            }
            Ok(deletion)
        })
    }

    /// Deletes a session that nothing was said in, and returns whether it did. The caller has its lease.
    ///
    /// A session that ever had a message stays, also if the message was rewound, and so does one with requests, which may have
    /// cost something, and one that continues another session or is continued.
    pub fn discard(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.write(|connection| {
            exists(connection, session)?;
            let deleted = connection
                .prepare_cached(
                    "DELETE FROM sessions WHERE id = ?1 AND parent_id IS NULL \
                     AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = ?1) \
                     AND NOT EXISTS (SELECT 1 FROM requests WHERE session_id = ?1) \
                     AND NOT EXISTS (SELECT 1 FROM auxiliary_requests WHERE session_id = ?1) \
                     AND NOT EXISTS (SELECT 1 FROM sessions AS child WHERE child.parent_id = ?1)",
                )?
                .execute([session.as_str()])?;
            Ok(deleted > 0)
        })
    }

    fn delete_by(&self, plan: impl Fn(&Family) -> Result<Deletion, Fault>) -> Result<Deletion, StoreError> {
        self.write(|connection| {
            let deletion = plan(&Family::read(connection)?)?;
            // A process that resumes one of them after this check learns with its first message that the session is
            // gone.
            self.all_free(&deletion.sessions)?;
            for session in &deletion.detached {
                connection
                    .prepare_cached(
                        "UPDATE sessions SET parent_id = NULL, parent_kind = NULL, parent_view = NULL WHERE id = ?1",
                    )?
                    .execute([session.as_str()])?;
            }
            for session in &deletion.sessions {
                connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([session.as_str()])?;
            }
            Ok(deletion)
        })
    }

    fn all_free(&self, sessions: &[SessionId]) -> Result<(), Fault> {
        for session in sessions {
            if let Some(pid) = self.holder(session)? {
                return Err(SessionError::InUse { session: session.clone(), pid }.into());
            }
        }
        Ok(())
    }
}

/// Which session continues which, for all sessions.
pub(crate) struct Family {
    order: Vec<SessionId>,
    /// The session whose messages this one may show; `None` for a session that continues no other, and for a delegate.
    known: HashMap<SessionId, Option<SessionId>>,
    children: HashMap<SessionId, Vec<Child>>,
}

pub(crate) struct Child {
    pub(crate) id: SessionId,
    pub(crate) kind: ParentKind,
    /// Whether its conversation contains messages of the parent.
    pub(crate) stands_on_it: bool,
}

impl Family {
    pub(crate) fn read(connection: &Connection) -> Result<Self, Fault> {
        let mut family = Self { order: Vec::new(), known: HashMap::new(), children: HashMap::new() };
        let mut statement = connection.prepare_cached(
            "SELECT id, parent_id, parent_kind, parent_through IS NOT NULL FROM sessions ORDER BY rowid",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = SessionId(row.get(0)?);
            family.order.push(id.clone());
            family.known.insert(id.clone(), None);
            if let Some(parent) = row.get::<_, Option<String>>(1)? {
                let kind: String = row.get(2)?;
                let kind = ParentKind::parse(&kind)
                    .ok_or_else(|| crate::log::corrupt(2, format!("unknown parent kind `{kind}`")))?;
                let parent = SessionId(parent);
                if kind != ParentKind::Delegate {
                    family.known.insert(id.clone(), Some(parent.clone()));
                }
                let child = Child { id, kind, stands_on_it: row.get(3)? };
                family.children.entry(parent).or_default().push(child);
            }
        }
        drop(rows);
        family.put_parents_first();
        Ok(family)
    }

    /// The order of creation has parents first, except in a repaired store, where a parent may follow its children.
    fn put_parents_first(&mut self) {
        let parents: HashMap<&SessionId, &SessionId> =
            self.children.iter().flat_map(|(parent, of)| of.iter().map(move |child| (&child.id, parent))).collect();
        let mut placed = HashSet::with_capacity(self.order.len());
        let mut order = Vec::with_capacity(self.order.len());
        for session in &self.order {
            let above = std::iter::successors(Some(session), |session| parents.get(*session).copied());
            // Only a damaged store has a cycle; each session of it is taken once.
            let mut seen = HashSet::new();
            let waiting: Vec<&SessionId> = above
                .take_while(|id| self.known.contains_key(*id) && !placed.contains(*id) && seen.insert((*id).clone()))
                .collect();
            for id in waiting.into_iter().rev() {
                placed.insert(id.clone());
                order.push(id.clone());
            }
        }
        self.order = order;
    }

    /// All sessions in the order of creation, parents before their children.
    pub(crate) fn order(&self) -> &[SessionId] {
        &self.order
    }

    pub(crate) fn knows(&self, session: &SessionId) -> bool {
        self.known.contains_key(session)
    }

    pub(crate) fn parent(&self, session: &SessionId) -> Option<&SessionId> {
        self.known.get(session)?.as_ref()
    }

    pub(crate) fn children(&self, of: &SessionId) -> &[Child] {
        self.children.get(of).map_or(&[], Vec::as_slice)
    }
}

fn plan(family: &Family, named: &[SessionId], with_children: bool) -> Result<Deletion, Fault> {
    if let Some(unknown) = named.iter().find(|session| !family.knows(session)) {
        return Err(SessionError::UnknownSession(unknown.0.clone()).into());
    }
    let mut deleted: HashSet<&SessionId> = named.iter().collect();
    let mut next: Vec<&SessionId> = deleted.iter().copied().collect();
    while let Some(session) = next.pop() {
        for child in family.children(session) {
            let follows = with_children || child.kind == ParentKind::Delegate;
            if follows && deleted.insert(&child.id) {
                next.push(&child.id);
            }
        }
    }
    let mut deletion = Deletion { sessions: in_order(family, named, &deleted), detached: Vec::new() };
    for session in &deletion.sessions {
        let staying = || family.children(session).iter().filter(|child| !deleted.contains(&child.id));
        let children: Vec<SessionId> =
            staying().filter(|child| child.stands_on_it).map(|child| child.id.clone()).collect();
        if !children.is_empty() {
            return Err(SessionError::HasChildren { session: session.clone(), children }.into());
        }
        deletion.detached.extend(staying().map(|child| child.id.clone()));
    }
    Ok(deletion)
}

/// Children before their parents: a parent cannot be deleted first.
fn in_order(family: &Family, named: &[SessionId], deleted: &HashSet<&SessionId>) -> Vec<SessionId> {
    enum Step<'a> {
        Enter(&'a SessionId),
        Leave(&'a SessionId),
    }
    let mut order = Vec::with_capacity(deleted.len());
    let mut entered = HashSet::new();
    let mut steps: Vec<Step<'_>> = named.iter().rev().map(Step::Enter).collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(session) if entered.insert(session) => {
                steps.push(Step::Leave(session));
                let children = family.children(session).iter().map(|child| &child.id);
                steps.extend(children.filter(|child| deleted.contains(child)).map(Step::Enter));
            }
            Step::Enter(_) => {}
            Step::Leave(session) => order.push(session.clone()),
        }
    }
    order
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Draft;
    use hermes_diagnostic::{Action, Diagnose as _};

    use super::*;
    use crate::Session;
    use crate::testing::{child, new_session, store};

    fn talk(store: &Store) -> Session {
        let session = store.create_session(new_session()).unwrap();
        store.append(&session.id, &[Draft::user("hello", 1)]).unwrap();
        session
    }

    fn left(store: &Store) -> HashSet<SessionId> {
        store.sessions().unwrap().into_iter().map(|session| session.id).collect()
    }

    #[test]
    fn delegates_are_deleted_with_their_parent_and_other_sessions_stay() {
        let (_home, store) = store();
        let root = store.create_session(new_session()).unwrap();
        let empty = child(&store, &root, ParentKind::Branch, None);
        let delegate = child(&store, &root, ParentKind::Delegate, None);
        let below = child(&store, &delegate, ParentKind::Delegate, None);
        store.append(&below.id, &[Draft::user("task", 1)]).unwrap();
        let bystander = talk(&store);
        let planned = store.deletion(std::slice::from_ref(&root.id), false).unwrap();
        assert_eq!(planned.sessions, [below.id, delegate.id, root.id.clone()]);
        assert_eq!(planned.detached, std::slice::from_ref(&empty.id));
        assert_eq!(left(&store).len(), 5, "a plan changes nothing");
        assert_eq!(store.delete(&[root.id], false).unwrap(), planned);
        assert_eq!(left(&store), HashSet::from([empty.id.clone(), bystander.id]));
        assert_eq!(store.session(&empty.id).unwrap().parent, None);
        assert_eq!(store.conversation(&empty.id).unwrap(), []);
    }

    #[test]
    fn a_session_with_children_is_deleted_only_together_with_them() {
        let (_home, store) = store();
        let root = talk(&store);
        let branch = child(&store, &root, ParentKind::Branch, None);
        let on = child(&store, &branch, ParentKind::Continuation, None);
        let other = child(&store, &root, ParentKind::Branch, None);
        let error = store.delete(std::slice::from_ref(&root.id), false).unwrap_err();
        let StoreError::Session(SessionError::HasChildren { session, children }) = &error else { panic!("{error}") };
        assert_eq!((session, children.as_slice()), (&root.id, [branch.id.clone(), other.id.clone()].as_slice()));
        assert!(error.diagnose().fix.steps().contains(&Action::DeleteWithChildren.into()), "{error}");
        assert_eq!(left(&store).len(), 4);
        // Both are named, so both are deleted, in any order.
        let all = [root.id.clone(), on.id, root.id.clone(), other.id, branch.id];
        assert_eq!(store.delete(&all, false).unwrap().sessions.len(), 4);
        assert_eq!(left(&store).len(), 0);

        let root = talk(&store);
        let branch = child(&store, &root, ParentKind::Branch, None);
        child(&store, &branch, ParentKind::Branch, None);
        assert_eq!(store.delete(&[root.id], true).unwrap().sessions.len(), 3);
        assert_eq!(left(&store).len(), 0);
    }

    #[test]
    fn sessions_created_after_the_plan_are_not_deleted() {
        let (_home, store) = store();
        let root = talk(&store);
        let branch = child(&store, &root, ParentKind::Branch, None);
        let planned = store.deletion(std::slice::from_ref(&root.id), true).unwrap();
        for kind in [ParentKind::Branch, ParentKind::Delegate] {
            let late = child(&store, &root, kind, None);
            let error = store.delete_planned(&planned).unwrap_err();
            assert!(
                matches!(error, StoreError::Session(SessionError::HasChildren { children, .. }) if children == [late.id.clone()])
            );
            store.delete(&[late.id], false).unwrap();
        }
        assert_eq!(left(&store), HashSet::from([root.id, branch.id]));
        assert_eq!(store.delete_planned(&planned).unwrap(), planned);
        assert_eq!(left(&store).len(), 0);
    }

    #[test]
    fn a_session_in_use_prevents_the_whole_deletion() {
        let (_home, store) = store();
        let (free, parent) = (talk(&store), talk(&store));
        let delegate = child(&store, &parent, ParentKind::Delegate, None);
        let lease = store.lease(&delegate.id).unwrap();
        let named = [free.id.clone(), parent.id.clone()];
        for refused in [store.deletion(&named, false), store.delete(&named, false)] {
            assert!(
                matches!(refused, Err(StoreError::Session(SessionError::InUse { session, .. })) if session == delegate.id)
            );
        }
        assert_eq!(left(&store).len(), 3);
        drop(lease);
        store.delete(&named, false).unwrap();
        assert_eq!(left(&store).len(), 0);
    }

    #[test]
    fn an_unknown_session_prevents_the_whole_deletion() {
        let (_home, store) = store();
        let session = talk(&store);
        let named = [session.id.clone(), SessionId("nobody".into())];
        assert!(
            matches!(store.delete(&named, true), Err(StoreError::Session(SessionError::UnknownSession(id))) if id == "nobody")
        );
        assert_eq!(left(&store).len(), 1);
        assert_eq!(store.delete(&[], true).unwrap(), Deletion::default());
    }
}
