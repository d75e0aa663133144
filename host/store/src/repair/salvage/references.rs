//! Removes references to lost messages and views. The schema allows them, but an import would refuse them.

use hermes_conversation::{Excerpt, MessageRange, SessionId};
use rusqlite::{Connection, params};

use crate::error::Fault;
use crate::lineage::{self, Lineage};
use crate::log::from_json;

/// Removes references to lost messages and views. A session continues from the nearest message before the lost one.
pub(super) fn mend(new: &Connection, lost: &mut Vec<String>) -> Result<(), Fault> {
    let mut tell = |count: usize, one: &str, many: &str, effect: &str| {
        if count > 0 {
            lost.push(format!("{count} {}{effect}", if count == 1 { one } else { many }));
        }
    };
    let effect = ": a branch continues from the message before";
    tell(origins(new)?, "message at which a branch begins", "messages at which branches begin", effect);
    let effect = " of lost messages: the whole conversation is shown to the model again";
    tell(views(new)?, "compaction", "compactions", effect);
    tell(requests(new)?, "reference", "references", " from the records of requests to lost messages or compactions");
    Ok(())
}

/// The newest message of a conversation between these two ids.
fn newest(connection: &Connection, lineage: &Lineage, first: i64, last: i64) -> Result<Option<i64>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT max(id) FROM messages WHERE session_id = ?1 AND id BETWEEN ?2 AND ?3")?;
    for stretch in &lineage.stretches {
        let found: Option<i64> =
            statement.query_row(params![stretch.session, first, last.min(stretch.last_message)], |row| row.get(0))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn origins(new: &Connection) -> Result<usize, Fault> {
    let mut statement =
        new.prepare("SELECT id, parent_id, parent_through FROM sessions WHERE parent_through IS NOT NULL")?;
    let origins: Vec<(String, String, i64)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    let mut changed = 0;
    for (session, parent, through) in origins {
        let found = newest(new, &lineage::of(new, &SessionId(parent))?, 0, through)?;
        if found != Some(through) {
            changed += new
                .prepare_cached("UPDATE sessions SET parent_through = ?2 WHERE id = ?1")?
                .execute(params![session, found])?;
        }
    }
    Ok(changed)
}

/// A view is removed as a whole, with those that show one of its summaries: with a part missing it would leave out
/// messages.
fn views(new: &Connection) -> Result<usize, Fault> {
    let mut gone = 0;
    loop {
        let mut statement = new.prepare("SELECT id, session_id, through FROM views")?;
        let all: Vec<(i64, String, Option<i64>)> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
        let mut broken = Vec::new();
        for (view, session, through) in all {
            let known = new.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?.exists([&session])?;
            if !known || !is_whole(new, &lineage::of(new, &SessionId(session))?, view, through)? {
                broken.push(view);
            }
        }
        for view in &broken {
            for sql in [
                "DELETE FROM view_items WHERE view_id = ?1",
                "DELETE FROM summaries WHERE view_id = ?1",
                "DELETE FROM views WHERE id = ?1",
            ] {
                new.prepare_cached(sql)?.execute([view])?;
            }
        }
        gone += broken.len();
        if broken.is_empty() {
            return Ok(gone);
        }
    }
}

fn is_whole(new: &Connection, lineage: &Lineage, view: i64, through: Option<i64>) -> Result<bool, Fault> {
    let has = |first: i64, last: i64| Ok::<bool, Fault>(newest(new, lineage, first, last)?.is_some());
    if let Some(through) = through
        && !has(through, through)?
    {
        return Ok(false);
    }
    let mut covers = new.prepare_cached("SELECT covers FROM summaries WHERE view_id = ?1")?;
    let mut rows = covers.query([view])?;
    while let Some(row) = rows.next()? {
        for range in from_json::<Vec<MessageRange>>(0, &row.get::<_, String>(0)?)? {
            if !has(range.first.0.cast_signed(), range.last.0.cast_signed())? {
                return Ok(false);
            }
        }
    }
    let mut items = new.prepare_cached(
        "SELECT first_id, last_id, excerpt, summary_id IS NULL OR summary_id IN (SELECT id FROM summaries) \
         FROM view_items WHERE view_id = ?1",
    )?;
    let mut rows = items.query([view])?;
    while let Some(row) = rows.next()? {
        let mut shown: Option<(i64, i64)> = row.get::<_, Option<i64>>(0)?.zip(row.get(1)?);
        if let Some(excerpt) = row.get::<_, Option<String>>(2)? {
            let id = from_json::<Excerpt>(2, &excerpt)?.id.0.cast_signed();
            shown = Some((id, id));
        }
        if !row.get::<_, bool>(3)? {
            return Ok(false);
        }
        if let Some((first, last)) = shown
            && !has(first, last)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn requests(new: &Connection) -> Result<usize, Fault> {
    let messages =
        new.execute("UPDATE requests SET through = NULL WHERE through NOT IN (SELECT id FROM messages)", [])?;
    let views =
        new.execute("UPDATE requests SET view = 0 WHERE view <> 0 AND view NOT IN (SELECT id FROM views)", [])?;
    Ok(messages + views)
}
