//! Statistics of the store.

use std::fs;

use crate::header::beside;
use crate::{Messages, Sizes, Stats, Store, StoreError, Totals};

impl Store {
    /// Counts and measures. Reads every page of the file.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = self.read(|connection| {
            let number = |sql: &str| -> rusqlite::Result<u64> {
                connection
                    .query_row(sql, [], |row| row.get::<_, Option<i64>>(0))
                    .map(|n| n.unwrap_or(0).cast_unsigned())
            };
            let mut messages =
                Messages { rewound: number("SELECT count(DISTINCT message_id) FROM rewound")?, ..Messages::default() };
            let mut by_role = connection.prepare("SELECT role, count(*) FROM messages GROUP BY role")?;
            let mut rows = by_role.query([])?;
            while let Some(row) = rows.next()? {
                let count = row.get::<_, i64>(1)?.cast_unsigned();
                match row.get::<_, String>(0)?.as_str() {
                    "user" => messages.user = count,
                    "assistant" => messages.assistant = count,
                    _ => messages.tool = count,
                }
            }
            let (totals, oldest, newest) = connection.query_row(
                "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), \
                 coalesce(sum(cache_read_tokens), 0), coalesce(sum(cache_write_tokens), 0), \
                 coalesce(sum(reasoning_tokens), 0), coalesce(sum(request_count), 0), coalesce(sum(cost), 0.0), \
                 min(started_at), max(updated_at) FROM sessions",
                [],
                |row| {
                    let total = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
                    let time =
                        |column: usize| row.get::<_, Option<i64>>(column).map(|time| time.map(i64::cast_unsigned));
                    let totals = Totals {
                        input: total(0)?,
                        output: total(1)?,
                        cache_read: total(2)?,
                        cache_write: total(3)?,
                        reasoning: total(4)?,
                        requests: total(5)?,
                        cost: row.get(6)?,
                    };
                    Ok((totals, time(7)?, time(8)?))
                },
            )?;
            let page: u64 = number("SELECT page_size FROM pragma_page_size")?;
            let mut parts = connection.prepare(
                "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name ORDER BY 2 DESC, 1",
            )?;
            let parts = parts.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
            Ok(Stats {
                sessions: number("SELECT count(*) FROM sessions")?,
                delegates: number("SELECT count(*) FROM sessions WHERE parent_kind = 'delegate'")?,
                messages,
                totals,
                oldest,
                newest,
                sizes: Sizes {
                    free: page * number("SELECT freelist_count FROM pragma_freelist_count")?,
                    parts: parts.collect::<Result<_, _>>()?,
                    ..Sizes::default()
                },
            })
        })?;
        let length = |suffix: &str| fs::metadata(beside(self.path(), suffix)).map_or(0, |metadata| metadata.len());
        (stats.sizes.file, stats.sizes.log) = (length(""), length("-wal"));
        Ok(stats)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::{Draft, ToolCall, Usage};

    use super::*;
    use crate::testing::{child, new_session, store};
    use crate::{NewSession, ParentKind, RequestRecord};

    #[test]
    fn an_empty_store_has_statistics() {
        let (_home, store) = store();
        let stats = store.stats().unwrap();
        assert_eq!((stats.sessions, stats.messages, stats.oldest), (0, Messages::default(), None));
        assert_eq!(stats.totals, Totals::default());
        assert!(stats.sizes.file > 0 && stats.sizes.parts.iter().any(|(name, _)| name == "messages"));
    }

    #[test]
    fn everything_is_counted() {
        let (_home, store) = store();
        let one = store.create_session(NewSession { started_at: 5, ..new_session() }).unwrap();
        let two = store.create_session(NewSession { started_at: 9, ..new_session() }).unwrap();
        child(&store, &one, ParentKind::Delegate, None);
        let call = ToolCall { id: "c".into(), name: "t".into(), arguments: "{}".into() };
        let drafts = [
            Draft::user("a", 10),
            Draft::assistant("b", vec![call.clone()], 11),
            Draft::result(&call, "c", 12),
            Draft::user("d", 13),
        ];
        let said = store.append(&one.id, &drafts).unwrap();
        store.append(&two.id, &[Draft::user("x".repeat(100_000), 1_900_000_000_000)]).unwrap();
        store.rewind(&one.id, said[3].id).unwrap();
        let usage = Usage { input: 7, output: 3, ..Usage::default() };
        let request = RequestRecord { usage: Some(usage), cost: Some(0.5), ..RequestRecord::default() };
        store.record_request(&one.id, &request).unwrap();
        store.record_request(&two.id, &request).unwrap();

        let stats = store.stats().unwrap();
        assert_eq!((stats.sessions, stats.delegates), (3, 1));
        assert_eq!(stats.messages, Messages { user: 3, assistant: 1, tool: 1, rewound: 1 });
        assert_eq!((stats.totals.input, stats.totals.requests, stats.totals.cost), (14, 2, 1.0));
        assert_eq!((stats.oldest, stats.newest), (Some(5), Some(1_900_000_000_000)));
        assert_eq!(stats.sizes.parts[0].0, "messages");
        assert!(stats.sizes.parts[0].1 > 100_000 && stats.sizes.log > 100_000);
    }
}
