//! The rows of the ledger: the prefix of each request, and the usage that the provider reported for it.

use hermes_conversation::{MessageId, SessionId, Usage, ViewId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::Fault;
use crate::known::{exists, known};
use crate::{Passed, PromptNumber, RequestRecord, Store, StoreError, Totals};

/// The columns for writing. Reading replaces the number of the ephemeral layers by their text.
const COLUMNS: &str = "number, sent_at, provider, model, api_mode, prompt, view, through, bytes, fingerprint, prefix_bytes, \
     cause, culprit, ephemeral, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, saved, lost, \
     payloads_replayed, payloads_dropped, answered_by, cache_ttl";

const READ: &str = "SELECT number, sent_at, provider, model, api_mode, prompt, view, through, bytes, fingerprint, prefix_bytes, cause, \
     culprit, layers, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, saved, lost, \
     payloads_replayed, payloads_dropped, answered_by, cache_ttl FROM requests LEFT JOIN ephemeral_layers ON ephemeral_layers.id = requests.ephemeral WHERE requests.session_id = ?1";

impl Store {
    /// Adds a request to the ledger and to the session's totals. Returns its number; the given number is ignored.
    pub fn record_request(&self, id: &SessionId, request: &RequestRecord) -> Result<u64, StoreError> {
        self.write_unsynced(|connection| {
            count(connection, id, request, 1)?;
            let number: i64 = connection
                .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM requests WHERE session_id = ?1")?
                .query_row([id.as_str()], |row| row.get(0))?;
            put(connection, id, number, request)?;
            Ok(number.cast_unsigned())
        })
    }

    /// Sets the totals of a session.
    pub fn set_totals(&self, id: &SessionId, totals: &Totals) -> Result<(), StoreError> {
        self.write_unsynced(|connection| {
            let changed = connection
                .prepare_cached(
                    "UPDATE sessions SET input_tokens = ?2, output_tokens = ?3, cache_read_tokens = ?4, \
                     cache_write_tokens = ?5, reasoning_tokens = ?6, request_count = ?7, cost = ?8 WHERE id = ?1",
                )?
                .execute(params![
                    id.as_str(),
                    totals.input.cast_signed(),
                    totals.output.cast_signed(),
                    totals.cache_read.cast_signed(),
                    totals.cache_write.cast_signed(),
                    totals.reasoning.cast_signed(),
                    totals.requests.cast_signed(),
                    totals.cost,
                ])?;
            known(changed, id)
        })
    }

    /// Adds what came of a recorded request, and its usage and cost to the session's totals. A second completion changes nothing.
    pub fn complete_request(&self, id: &SessionId, request: &RequestRecord) -> Result<(), StoreError> {
        let usage = request.usage;
        self.write_unsynced(|connection| {
            exists(connection, id)?;
            let changed = connection
                .prepare_cached(
                    "UPDATE requests SET cause = ?3, culprit = ?4, input_tokens = ?5, output_tokens = ?6, \
                     cache_read_tokens = ?7, cache_write_tokens = ?8, cost = ?9, saved = ?10, lost = ?11, answered_by = ?12 \
                     WHERE session_id = ?1 AND number = ?2 AND input_tokens IS NULL",
                )?
                .execute(params![
                    id.as_str(),
                    request.number.cast_signed(),
                    request.cause,
                    request.culprit,
                    usage.map(|usage| usage.input),
                    usage.map(|usage| usage.output),
                    usage.map(|usage| usage.cache_read),
                    usage.map(|usage| usage.cache_write),
                    request.cost,
                    request.saved,
                    request.lost,
                    request.answered_by,
                ])?;
            if changed > 0 { count(connection, id, request, 0) } else { Ok(()) }
        })
    }

    /// Removes a recorded request that no provider took. One with a report stays.
    pub fn withdraw_request(&self, id: &SessionId, number: u64) -> Result<(), StoreError> {
        self.write_unsynced(|connection| {
            exists(connection, id)?;
            let changed = connection
                .prepare_cached("DELETE FROM requests WHERE session_id = ?1 AND number = ?2 AND input_tokens IS NULL")?
                .execute(params![id.as_str(), number.cast_signed()])?;
            if changed > 0 { count(connection, id, &RequestRecord::default(), -1) } else { Ok(()) }
        })
    }

    /// All requests of a session, oldest first, without those of a parent.
    pub fn requests(&self, id: &SessionId) -> Result<Vec<RequestRecord>, StoreError> {
        self.read(|connection| {
            exists(connection, id)?;
            let mut requests = Vec::new();
            each(connection, id, |request| {
                requests.push(request);
                Ok(())
            })?;
            Ok(requests)
        })
    }

    /// Whether the provider ever reported cache use for a request of this session to the same model.
    pub fn cache_was_reported(&self, id: &SessionId, like: &RequestRecord) -> Result<bool, StoreError> {
        self.read(|connection| {
            exists(connection, id)?;
            let sql = "SELECT EXISTS (SELECT 1 FROM requests WHERE session_id = ?1 AND provider = ?2 AND model = ?3 \
                       AND api_mode = ?4 AND (cache_read_tokens > 0 OR cache_write_tokens > 0))";
            let route = params![id.as_str(), like.provider, like.model, like.api_mode];
            Ok(connection.prepare_cached(sql)?.query_row(route, |row| row.get(0))?)
        })
    }

    /// What the provider reported for the newest request of this session to the same model for which it reported
    /// anything.
    pub fn last_usage(&self, id: &SessionId, like: &RequestRecord) -> Result<Option<Usage>, StoreError> {
        self.read(|connection| {
            exists(connection, id)?;
            let sql = format!(
                "{READ} AND provider = ?2 AND model = ?3 AND api_mode = ?4 AND input_tokens IS NOT NULL \
                 ORDER BY number DESC LIMIT 1"
            );
            let route = params![id.as_str(), like.provider, like.model, like.api_mode];
            let found = connection.prepare_cached(&sql)?.query_row(route, from_row).optional()?;
            Ok(found.and_then(|request| request.usage))
        })
    }

    /// The requests of all sessions to the same model since a moment, oldest first: at most the newest `most`.
    pub fn requests_since(&self, like: &RequestRecord, since: u64, most: u32) -> Result<Vec<Passed>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT session_id, sent_at, input_tokens, bytes, cache_ttl FROM requests INDEXED BY requests_by_time \
                       WHERE sent_at >= ?1 AND provider = ?2 AND model = ?3 AND api_mode = ?4 \
                       ORDER BY sent_at DESC LIMIT ?5";
            let mut statement = connection.prepare_cached(sql)?;
            let given = params![since.cast_signed(), like.provider, like.model, like.api_mode, most];
            let rows = statement.query_map(given, |row| {
                Ok(Passed {
                    session: SessionId(row.get(0)?),
                    sent_at: row.get::<_, i64>(1)?.cast_unsigned(),
                    input: row.get(2)?,
                    bytes: row.get::<_, i64>(3)?.cast_unsigned(),
                    cache_ttl: row.get(4)?,
                })
            })?;
            let mut passed = rows.collect::<Result<Vec<_>, _>>()?;
            passed.reverse();
            Ok(passed)
        })
    }

    /// The newest request of a session that contains nothing after a message. Without a message, the newest request.
    pub fn last_request(
        &self,
        id: &SessionId,
        through: Option<MessageId>,
    ) -> Result<Option<RequestRecord>, StoreError> {
        self.read(|connection| {
            exists(connection, id)?;
            let sql = format!("{READ} AND (?2 IS NULL OR through <= ?2) ORDER BY number DESC LIMIT 1");
            let through = through.map(|id| id.0.cast_signed());
            Ok(connection.prepare_cached(&sql)?.query_row(params![id.as_str(), through], from_row).optional()?)
        })
    }
}

/// Visits the requests one by one, oldest first.
pub(crate) fn each(
    connection: &Connection,
    id: &SessionId,
    mut take: impl FnMut(RequestRecord) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let sql = format!("{READ} ORDER BY number");
    let mut statement = connection.prepare_cached(&sql)?;
    for request in statement.query_map([id.as_str()], from_row)? {
        take(request?)?;
    }
    Ok(())
}

/// Adds usage and cost of a request, and so many requests, to the session's totals.
fn count(connection: &Connection, id: &SessionId, request: &RequestRecord, requests: i64) -> Result<(), Fault> {
    let usage = request.usage.unwrap_or_default();
    let changed = connection
        .prepare_cached(
            "UPDATE sessions SET input_tokens = input_tokens + ?2, output_tokens = output_tokens + ?3, \
             cache_read_tokens = cache_read_tokens + ?4, cache_write_tokens = cache_write_tokens + ?5, \
             reasoning_tokens = reasoning_tokens + ?6, request_count = request_count + ?8, cost = cost + ?7 WHERE id = ?1",
        )?
        .execute(params![
            id.as_str(),
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            usage.reasoning,
            request.cost.unwrap_or(0.0),
            requests
        ])?;
    known(changed, id)
}

pub(crate) fn put(connection: &Connection, id: &SessionId, number: i64, request: &RequestRecord) -> Result<(), Fault> {
    let usage = request.usage;
    let ephemeral = request.ephemeral.as_ref().map(|layers| ephemeral_row(connection, id, layers)).transpose()?;
    connection
        .prepare_cached(&format!(
            "INSERT INTO requests (session_id, {COLUMNS}) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)"
        ))?
        .execute(params![
            id.as_str(),
            number,
            request.sent_at.cast_signed(),
            request.provider,
            request.model,
            request.api_mode,
            request.prompt.0.cast_signed(),
            request.view.0.cast_signed(),
            request.through.map(|id| id.0.cast_signed()),
            request.bytes.cast_signed(),
            request.fingerprint,
            request.prefix_bytes.cast_signed(),
            request.cause,
            request.culprit,
            ephemeral,
            usage.map(|usage| usage.input),
            usage.map(|usage| usage.output),
            usage.map(|usage| usage.cache_read),
            usage.map(|usage| usage.cache_write),
            request.cost,
            request.saved,
            request.lost,
            request.payloads_replayed,
            request.payloads_dropped,
            request.answered_by,
            request.cache_ttl,
        ])?;
    Ok(())
}

/// The row of the ephemeral layers, which many consecutive requests share.
fn ephemeral_row(connection: &Connection, id: &SessionId, layers: &str) -> Result<i64, Fault> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO ephemeral_layers (session_id, layers) VALUES (?1, ?2)")?
        .execute(params![id.as_str(), layers])?;
    let mut row = connection.prepare_cached("SELECT id FROM ephemeral_layers WHERE session_id = ?1 AND layers = ?2")?;
    Ok(row.query_row(params![id.as_str(), layers], |row| row.get(0))?)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<RequestRecord> {
    let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let usage = match row.get::<_, Option<u32>>(14)? {
        None => None,
        Some(input) => Some(Usage {
            input,
            output: row.get(15)?,
            cache_read: row.get(16)?,
            cache_write: row.get(17)?,
            ..Usage::default()
        }),
    };
    Ok(RequestRecord {
        number: number(0)?,
        sent_at: number(1)?,
        provider: row.get(2)?,
        model: row.get(3)?,
        api_mode: row.get(4)?,
        prompt: PromptNumber(number(5)?),
        view: ViewId(number(6)?),
        through: row.get::<_, Option<i64>>(7)?.map(|id| MessageId(id.cast_unsigned())),
        bytes: number(8)?,
        fingerprint: row.get(9)?,
        prefix_bytes: number(10)?,
        cause: row.get(11)?,
        culprit: row.get(12)?,
        ephemeral: row.get(13)?,
        usage,
        cost: row.get(18)?,
        saved: row.get(19)?,
        lost: row.get(20)?,
        payloads_replayed: row.get(21)?,
        payloads_dropped: row.get(22)?,
        answered_by: row.get(23)?,
        cache_ttl: row.get(24)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::SessionError;
    use crate::testing::{new_session, store};

    #[test]
    fn requests_are_numbered_in_order_and_summed_up() {
        let (_home, store) = store();
        let id = store.create_session(new_session()).unwrap().id;
        let usage = Usage { input: u32::MAX, output: 2, cache_read: 3, cache_write: 4, reasoning: 0 };
        let priced = RequestRecord {
            sent_at: 5,
            provider: "p".into(),
            model: "m".into(),
            answered_by: Some("vendor/m-1".into()),
            api_mode: "chat_completions".into(),
            prompt: PromptNumber(1),
            view: ViewId(2),
            through: Some(MessageId(7)),
            bytes: 1_000,
            fingerprint: "cafe".into(),
            prefix_bytes: 900,
            cause: Some("compaction".into()),
            culprit: Some("compressor".into()),
            ephemeral: Some("{}".into()),
            usage: Some(usage),
            cost: Some(0.5),
            saved: Some(0.25),
            lost: Some(0.125),
            cache_ttl: Some("1h".into()),
            ..RequestRecord::default()
        };
        assert_eq!(store.record_request(&id, &priced).unwrap(), 1);
        assert!(store.cache_was_reported(&id, &priced).unwrap());
        let other = RequestRecord { model: "n".into(), ..priced.clone() };
        assert!(!store.cache_was_reported(&id, &other).unwrap());
        assert_eq!(store.record_request(&id, &RequestRecord::default()).unwrap(), 2);
        assert_eq!(store.record_request(&id, &priced).unwrap(), 3);

        let third = RequestRecord { number: 3, ..priced.clone() };
        assert_eq!(store.last_request(&id, None).unwrap(), Some(third.clone()));
        assert_eq!(store.last_request(&id, Some(MessageId(7))).unwrap(), Some(third.clone()));
        assert_eq!(store.last_request(&id, Some(MessageId(6))).unwrap(), None);
        let stopped = RequestRecord { usage: None, ..priced.clone() };
        assert_eq!(store.last_usage(&id, &stopped).unwrap(), Some(usage));
        assert_eq!(store.last_usage(&id, &other).unwrap(), None);
        let first = RequestRecord { number: 1, ..priced };
        let second = RequestRecord { number: 2, ..RequestRecord::default() };
        assert_eq!(store.requests(&id).unwrap(), [first, second, third]);
        let totals = Totals {
            input: 2 * u64::from(u32::MAX),
            output: 4,
            cache_read: 6,
            cache_write: 8,
            reasoning: 0,
            requests: 3,
            cost: 1.0,
        };
        assert_eq!(store.session(&id).unwrap().totals, totals);
    }

    #[test]
    fn totals_of_another_program_replace_those_of_the_session() {
        let (_home, store) = store();
        let id = store.create_session(new_session()).unwrap().id;
        store.record_request(&id, &RequestRecord { cost: Some(0.5), ..RequestRecord::default() }).unwrap();
        let elsewhere = Totals { input: 100, reasoning: 7, requests: 3, cost: 1.0, ..Totals::default() };
        store.set_totals(&id, &elsewhere).unwrap();
        assert_eq!(store.session(&id).unwrap().totals, elsewhere);
        let unknown = store.set_totals(&SessionId("none".into()), &elsewhere).unwrap_err();
        assert!(matches!(unknown, StoreError::Session(SessionError::UnknownSession(_))), "{unknown}");
    }
}
