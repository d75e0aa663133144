//! Tasks that a session's agent delegated.

use hermes_conversation::{MessageId, SessionId};
use rusqlite::params;

use crate::known::exists;
use crate::log::corrupt;
use crate::{Delegation, DelegationState, Store, StoreError};

impl Store {
    /// Stores a task and returns its number. A task without a number, which is 0, gets the next one of the session; one with a
    /// number replaces the stored task.
    pub fn put_delegation(&self, parent: &SessionId, task: &Delegation) -> Result<u32, StoreError> {
        self.write(|connection| {
            exists(connection, parent)?;
            let number = match task.number {
                0 => connection
                    .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM delegations WHERE parent_id = ?1")?
                    .query_row([parent.as_str()], |row| row.get(0))?,
                number => number,
            };
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO delegations (parent_id, number, child_id, call, goal, background, state, \
                     report, delivered_in, started_at, ended_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                )?
                .execute(params![
                    parent.as_str(),
                    number,
                    task.child.as_ref().map(SessionId::as_str),
                    task.call,
                    task.goal,
                    task.background,
                    task.state.as_str(),
                    task.report,
                    task.delivered_in.map(|message| message.0.cast_signed()),
                    task.started_at.cast_signed(),
                    task.ended_at.map(u64::cast_signed),
                ])?;
            Ok(number)
        })
    }

    /// The tasks that the session's agent delegated, by number.
    pub fn delegations(&self, parent: &SessionId) -> Result<Vec<Delegation>, StoreError> {
        self.read(|connection| {
            exists(connection, parent)?;
            let mut statement = connection.prepare_cached(
                "SELECT number, child_id, call, goal, background, state, report, delivered_in, started_at, ended_at \
                 FROM delegations WHERE parent_id = ?1 ORDER BY number",
            )?;
            let tasks = statement.query_map([parent.as_str()], |row| {
                let state: String = row.get(5)?;
                Ok(Delegation {
                    number: row.get(0)?,
                    child: row.get::<_, Option<String>>(1)?.map(SessionId),
                    call: row.get(2)?,
                    goal: row.get(3)?,
                    background: row.get(4)?,
                    state: DelegationState::parse(&state)
                        .ok_or_else(|| corrupt(5, format!("unknown state `{state}` of a task")))?,
                    report: row.get(6)?,
                    delivered_in: row.get::<_, Option<i64>>(7)?.map(|id| MessageId(id.cast_unsigned())),
                    started_at: row.get::<_, i64>(8)?.cast_unsigned(),
                    ended_at: row.get::<_, Option<i64>>(9)?.map(i64::cast_unsigned),
                })
            })?;
            Ok(tasks.collect::<Result<_, _>>()?)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ParentKind;
    use crate::testing::{child, new_session, store};

    #[test]
    fn a_task_goes_with_its_parent_or_its_child() {
        let (_home, store) = store();
        let parent = store.create_session(new_session()).unwrap();
        let [one, two] = [(); 2].map(|()| child(&store, &parent, ParentKind::Delegate, None).id);
        let task = |child: &SessionId| Delegation {
            number: 0,
            child: Some(child.clone()),
            call: "7.0".into(),
            goal: "count".into(),
            background: true,
            state: DelegationState::Running,
            report: None,
            delivered_in: None,
            started_at: 1,
            ended_at: None,
        };
        for child in [&one, &two] {
            store.put_delegation(&parent.id, &task(child)).unwrap();
        }
        store.delete(std::slice::from_ref(&one), false).unwrap();
        let left = store.delegations(&parent.id).unwrap();
        assert_eq!(left, [Delegation { number: 2, ..task(&two) }]);
        store.delete(std::slice::from_ref(&parent.id), false).unwrap();
        let rows = |connection: &rusqlite::Connection| {
            Ok(connection.query_row("SELECT count(*) FROM delegations", [], |row| row.get::<_, u32>(0))?)
        };
        assert_eq!(store.read(rows).unwrap(), 0);
    }
}
