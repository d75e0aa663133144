//! Usage: the requests beside the conversation, and what all requests used.

use hermes_conversation::{SessionId, Usage};
use rusqlite::{Row, params};

use crate::known::exists;
use crate::{AuxiliaryRecord, Store, StoreError, UsageRow};

impl Store {
    /// Adds a request beside the conversation. Returns its number; the given number is ignored.
    pub fn record_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<u64, StoreError> {
        let usage = request.usage;
        self.write_unsynced(|connection| {
            exists(connection, id)?;
            connection
                .prepare_cached(
                    "INSERT INTO auxiliary_requests (session_id, plugin, task, sent_at, provider, model, answered_by, \
                     input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                )?
                .execute(params![
                    id.as_str(),
                    request.plugin,
                    request.task,
                    request.sent_at.cast_signed(),
                    request.provider,
                    request.model,
                    request.answered_by,
                    usage.map(|usage| usage.input),
                    usage.map(|usage| usage.output),
                    usage.map(|usage| usage.cache_read),
                    usage.map(|usage| usage.cache_write),
                    request.cost,
                ])?;
            Ok(connection.last_insert_rowid().cast_unsigned())
        })
    }

    /// Adds what came of such a request. A second completion changes nothing.
    pub fn complete_auxiliary(&self, id: &SessionId, request: &AuxiliaryRecord) -> Result<(), StoreError> {
        let usage = request.usage;
        self.write_unsynced(|connection| {
            exists(connection, id)?;
            connection
                .prepare_cached(
                    "UPDATE auxiliary_requests SET answered_by = ?3, input_tokens = ?4, output_tokens = ?5, \
                     cache_read_tokens = ?6, cache_write_tokens = ?7, cost = ?8 \
                     WHERE session_id = ?1 AND id = ?2 AND input_tokens IS NULL",
                )?
                .execute(params![
                    id.as_str(),
                    request.number.cast_signed(),
                    request.answered_by,
                    usage.map(|usage| usage.input),
                    usage.map(|usage| usage.output),
                    usage.map(|usage| usage.cache_read),
                    usage.map(|usage| usage.cache_write),
                    request.cost,
                ])?;
            Ok(())
        })
    }

    /// Removes such a request that no provider took. One with a report stays.
    pub fn withdraw_auxiliary(&self, id: &SessionId, number: u64) -> Result<(), StoreError> {
        self.write_unsynced(|connection| {
            exists(connection, id)?;
            connection
                .prepare_cached(
                    "DELETE FROM auxiliary_requests WHERE session_id = ?1 AND id = ?2 AND input_tokens IS NULL",
                )?
                .execute(params![id.as_str(), number.cast_signed()])?;
            Ok(())
        })
    }

    /// The requests of all sessions that a plugin made for a task since a moment, oldest first.
    pub fn auxiliary_since(
        &self,
        plugin: &str,
        task: &str,
        since: u64,
    ) -> Result<Vec<(SessionId, AuxiliaryRecord)>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT session_id, plugin, task, sent_at, provider, model, input_tokens, output_tokens, \
                       cache_read_tokens, cache_write_tokens, cost, id, answered_by FROM auxiliary_requests \
                       WHERE sent_at >= ?1 AND plugin = ?2 AND task = ?3 ORDER BY sent_at";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![since.cast_signed(), plugin, task], |row| {
                let UsageRow { session, plugin, task, sent_at, provider, model, usage, cost, .. } = from_row(row)?;
                let record = AuxiliaryRecord {
                    number: row.get::<_, i64>(11)?.cast_unsigned(),
                    plugin: plugin.unwrap_or_default(),
                    task: task.unwrap_or_default(),
                    sent_at,
                    provider,
                    model,
                    answered_by: row.get(12)?,
                    usage,
                    cost,
                };
                Ok((session, record))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// What requests used since a moment, oldest first: those of all sessions, or of one with the sessions that its agent
    /// delegated to.
    pub fn usage(&self, since: u64, session: Option<&SessionId>) -> Result<Vec<UsageRow>, StoreError> {
        let session = session.map(SessionId::as_str);
        self.read(|connection| {
            let own = |table: &str, asked: &str| {
                format!(
                    "SELECT session_id, {asked}, sent_at, provider, coalesce(answered_by, model), input_tokens, \
                     output_tokens, cache_read_tokens, cache_write_tokens, cost, nullif(root, session_id) \
                     FROM {table} JOIN family ON family.id = session_id WHERE sent_at >= ?1"
                )
            };
            // `UNION` drops rows that were found before, so a cycle in a damaged file ends.
            let sql = format!(
                "WITH RECURSIVE family(id, root) AS (SELECT id, id FROM sessions \
                 WHERE CASE WHEN ?2 IS NULL THEN parent_kind IS NOT 'delegate' ELSE id = ?2 END \
                 UNION SELECT sessions.id, root FROM sessions JOIN family ON sessions.parent_id = family.id \
                 WHERE sessions.parent_kind = 'delegate') {} UNION ALL {} ORDER BY sent_at",
                own("requests", "NULL AS plugin, NULL AS task"),
                own("auxiliary_requests", "plugin, task"),
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![since.cast_signed(), session], |row| {
                Ok(UsageRow { delegated_by: row.get::<_, Option<String>>(11)?.map(SessionId), ..from_row(row)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    let usage = match row.get::<_, Option<u32>>(6)? {
        None => None,
        Some(input) => Some(Usage {
            input,
            output: row.get(7)?,
            cache_read: row.get(8)?,
            cache_write: row.get(9)?,
            ..Usage::default()
        }),
    };
    Ok(UsageRow {
        session: SessionId(row.get(0)?),
        delegated_by: None,
        plugin: row.get(1)?,
        task: row.get(2)?,
        sent_at: row.get::<_, i64>(3)?.cast_unsigned(),
        provider: row.get(4)?,
        model: row.get(5)?,
        usage,
        cost: row.get(10)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{ParentKind, RequestRecord};

    fn usage(input: u32) -> Option<Usage> {
        Some(Usage { input, output: 1, ..Usage::default() })
    }

    #[test]
    fn requests_of_conversations_and_of_plugins_are_listed_by_time_and_session() {
        let (_home, store) = store();
        let [one, two] = [(); 2].map(|()| store.create_session(new_session()).unwrap().id);
        let said = |sent_at, answered_by: Option<&str>| RequestRecord {
            sent_at,
            provider: "p".into(),
            model: "m".into(),
            answered_by: answered_by.map(str::to_owned),
            usage: usage(10),
            cost: Some(0.5),
            ..RequestRecord::default()
        };
        let asked = AuxiliaryRecord {
            plugin: "compressor".into(),
            task: "compression".into(),
            sent_at: 6,
            provider: "q".into(),
            model: "small".into(),
            ..AuxiliaryRecord::default()
        };
        store.record_request(&one, &said(5, None)).unwrap();
        let number = store.record_auxiliary(&one, &asked).unwrap();
        store.record_request(&two, &said(7, Some("other"))).unwrap();
        let rows = store.usage(0, None).unwrap();
        let shown: Vec<_> = rows.iter().map(|row| (row.sent_at, row.plugin.as_deref(), row.model.as_str())).collect();
        assert_eq!(shown, [(5, None, "m"), (6, Some("compressor"), "small"), (7, None, "other")]);
        assert_eq!((rows[1].usage, rows[1].cost), (None, None));
        assert_eq!(store.usage(6, None).unwrap().len(), 2);
        assert_eq!(store.usage(0, Some(&two)).unwrap(), rows[2..]);

        let done = AuxiliaryRecord { number, usage: usage(3), cost: Some(0.1), ..asked.clone() };
        store.complete_auxiliary(&one, &done).unwrap();
        store.complete_auxiliary(&one, &AuxiliaryRecord { usage: usage(4), ..done }).unwrap();
        store.withdraw_auxiliary(&one, number).unwrap();
        let refused = store.record_auxiliary(&one, &asked).unwrap();
        store.withdraw_auxiliary(&one, refused).unwrap();
        let rows = store.usage(0, Some(&one)).unwrap();
        assert_eq!((rows.len(), rows[1].usage, rows[1].cost), (2, usage(3), Some(0.1)));
        let of = |task: &str, since| store.auxiliary_since("compressor", task, since).unwrap();
        let expected = AuxiliaryRecord { number, usage: usage(3), cost: Some(0.1), ..asked };
        assert_eq!(of("compression", 6), [(one.clone(), expected)]);
        assert_eq!((of("compression", 7), of("other", 0)), (Vec::new(), Vec::new()));
        store.delete(&[one], false).unwrap();
        assert_eq!(store.usage(0, None).unwrap().len(), 1);
    }

    #[test]
    fn delegated_requests_belong_to_the_session_of_a_person_and_count_once() {
        let (_home, store) = store();
        let root = store.create_session(new_session()).unwrap();
        let task = child(&store, &root, ParentKind::Delegate, None);
        let below = child(&store, &task, ParentKind::Delegate, None);
        let branch = child(&store, &root, ParentKind::Branch, None);
        for (sent_at, session) in (1..).zip([&root, &task, &below, &branch]) {
            let request = RequestRecord { sent_at, usage: usage(10), cost: Some(0.5), ..RequestRecord::default() };
            store.record_request(&session.id, &request).unwrap();
        }
        let asked = AuxiliaryRecord { plugin: "compressor".into(), sent_at: 9, ..AuxiliaryRecord::default() };
        store.record_auxiliary(&below.id, &asked).unwrap();
        let rows = |session| {
            let rows = store.usage(0, session).unwrap().into_iter();
            rows.map(|row| (row.sent_at, row.delegated_by)).collect::<Vec<_>>()
        };
        let by = |session: &crate::Session| Some(session.id.clone());
        let of_root = [(1, None), (2, by(&root)), (3, by(&root)), (9, by(&root))];
        assert_eq!(rows(Some(&root.id)), of_root);
        assert_eq!(rows(Some(&task.id)), [(2, None), (3, by(&task)), (9, by(&task))]);
        assert_eq!(rows(Some(&branch.id)), [(4, None)]);
        assert_eq!(rows(None).len(), 5);
        assert_eq!(rows(None)[..3], of_root[..3]);
    }
}
