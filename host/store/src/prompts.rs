//! The rows of the table `prompts`: the prompts with which the requests of sessions begin.

use hermes_conversation::SessionId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::Fault;
use crate::{Frozen, PromptNumber};

pub(crate) const COLUMNS: &str = "number, system_prompt, layers, tools, reason";

pub(crate) fn newest(connection: &Connection, id: &SessionId) -> Result<Option<Frozen>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM prompts WHERE session_id = ?1 ORDER BY number DESC LIMIT 1");
    Ok(connection.prepare_cached(&sql)?.query_row([id.as_str()], from_row).optional()?)
}

pub(crate) fn put(connection: &Connection, id: &SessionId, frozen: &Frozen, now: u64) -> Result<PromptNumber, Fault> {
    let last = newest(connection, id)?;
    let number = match last {
        Some(last) if last.system_prompt == frozen.system_prompt && last.tools == frozen.tools => {
            return Ok(last.number);
        }
        Some(last) => PromptNumber(last.number.0 + 1),
        None => PromptNumber(1),
    };
    insert(connection, id, &Frozen { number, ..frozen.clone() }, now)?;
    Ok(number)
}

/// Inserts a prompt under its own number.
pub(crate) fn insert(connection: &Connection, id: &SessionId, frozen: &Frozen, created_at: u64) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO prompts (session_id, number, system_prompt, layers, tools, reason, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            id.as_str(),
            frozen.number.0.cast_signed(),
            frozen.system_prompt,
            frozen.layers,
            frozen.tools,
            frozen.reason,
            created_at.cast_signed()
        ])?;
    Ok(())
}

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Frozen> {
    Ok(Frozen {
        number: PromptNumber(row.get::<_, i64>(0)?.cast_unsigned()),
        system_prompt: row.get(1)?,
        layers: row.get(2)?,
        tools: row.get(3)?,
        reason: row.get(4)?,
    })
}
