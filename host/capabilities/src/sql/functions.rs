//! Functions that take the place of SQLite's own, whose time grows with the product of their arguments' lengths. With
//! arguments of [`MAX_VALUE`] one such call takes hours, and SQLite checks no deadline within a function.
//!
//! Why every other step of a statement is bounded (SQLite 3.54, with the options of `libsqlite3-sys`); `n` is the length of a
//! value, at most [`MAX_VALUE`]:
//!
//! | functions and operators | bound |
//! |---|---|
//! | `trim`, `ltrim`, `rtrim` with a set, `instr`, `replace`, `unhex` with a set | here: linear |
//! | `json_patch`, `jsonb_patch` | here: the product of the lengths is capped |
//! | `length`, `octet_length`, `substr`, `upper`, `lower`, `hex`, `unhex(x)`, `quote`, `unistr`, `unistr_quote`, `soundex`, `unicode`, `char`, `concat`, `concat_ws`, `printf`, `format`, `zeroblob`, `randomblob`, `\|\|`, `CAST`, collations | linear in arguments (100 at most) and result, which is limited to `n` before it is made |
//! | `abs`, `round`, `sign`, `random`, `min`, `max`, `coalesce`, `nullif`, `iif`, `typeof`, the functions of math, arithmetic, comparisons | constant, or linear to compare |
//! | `date`, `time`, `datetime`, `julianday`, `unixepoch`, `strftime`, `timediff` | linear in the format and the modifiers; years are limited to 9999 |
//! | `LIKE`, `GLOB` | pattern (1,000 bytes at most) times `n` |
//! | `json`, `json_array`, `json_object`, `json_extract`, `->`, `json_set`, `json_remove`, `json_type`, `json_valid`, … | linear for each of at most 100 paths; depth is limited to 1,000 |
//! | `json_pretty` | result not limited before it is made: `sql_memory`, worker |
//! | `json_each`, `json_tree`, `fts5vocab`, `dbstat` | a step for each row, with a check |
//! | `count`, `sum`, `avg`, `total`, `group_concat`, `string_agg`, `json_group_array`, window functions | a step for each row; a result of at most `n` |
//! | sorts, `DISTINCT`, `GROUP BY`, `UNION`, temporary indexes, recursion | a step for each row; `sql_memory`, in this process the growth in `watch` |
//! | the parser and the planner | limits in `connection`; else the worker |
//! | `MATCH` with many words, prefixes or `NEAR`, `bm25`, `snippet`, `rank` set to `highlight(…)` | no limit within one step: `sql_memory`, worker |
//! | `load_extension`, `fts3_tokenizer`, `highlight` by name | refused in `guard` |
//!
//! "Worker" means that the process that runs the statement is ended after its deadline: see `worker`. Nothing else bounds
//! FTS5, whose functions can be replaced only from C.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;

use memchr::memmem;
use rusqlite::functions::{Context, FunctionFlags, SubType};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result, ffi};

use super::{MAX_VALUE, Value};

/// The most that the product of the lengths of `json_patch` may be, which takes less than a second.
const PATCH: usize = 1 << 30;
/// The subtype of SQLite by which a function knows a text as JSON.
const JSON: SubType = Some(b'J' as _);

/// Replaces the functions of one connection.
pub(super) fn replace_in(connection: &Connection) -> Result<()> {
    // Indexes, generated columns, views and triggers may use them as they may use SQLite's own.
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for (name, left, right) in [("trim", true, true), ("ltrim", true, false), ("rtrim", false, true)] {
        connection.create_scalar_function(name, 2, flags, move |context| trim(context, left, right))?;
    }
    connection.create_scalar_function("instr", 2, flags, instr)?;
    connection.create_scalar_function("replace", 3, flags, replace)?;
    connection.create_scalar_function("unhex", 2, flags, unhex)?;
    let json = flags | FunctionFlags::SQLITE_RESULT_SUBTYPE;
    connection.create_scalar_function("json_patch", 2, json, |context| {
        let patched = patch(context, "SELECT json_patch(?1, ?2)")?;
        let subtype = if patched == Value::Null { None } else { JSON };
        Ok((patched, subtype))
    })?;
    connection.create_scalar_function("jsonb_patch", 2, flags, |context| patch(context, "SELECT jsonb_patch(?1, ?2)"))
}

/// The characters of `?2` removed from the ends of `?1`.
fn trim(context: &Context<'_>, left: bool, right: bool) -> Result<Value> {
    let (Some(text), Some(set)) = (text(context, 0)?, text(context, 1)?) else { return Ok(Value::Null) };
    // SQLite ends the set at a NUL.
    let set = set.split(|byte| *byte == 0).next().unwrap_or_default();
    let set: HashSet<&[u8]> = characters(set).collect();
    let mut kept: &[u8] = &text;
    while left
        && let Some(first) = characters(kept).next()
        && set.contains(first)
    {
        kept = &kept[first.len()..];
    }
    while right
        && let Some(start) = last_character(kept)
        && set.contains(&kept[start..])
    {
        kept = &kept[..start];
    }
    Ok(into_text(kept))
}

/// The first position of `?2` in `?1`, from 1: in bytes between blobs, otherwise in characters.
fn instr(context: &Context<'_>) -> Result<Option<i64>> {
    let is_blob = |at| matches!(context.get_raw(at), ValueRef::Blob(_));
    let in_bytes = is_blob(0) && is_blob(1);
    let (Some(text), Some(part)) = (text(context, 0)?, text(context, 1)?) else { return Ok(None) };
    let position = memmem::find(&text, &part).map_or(0, |at| {
        let before = &text[..at];
        1 + if in_bytes { before.len() } else { before.iter().filter(|byte| !is_inner(**byte)).count() }
    });
    Ok(Some(i64::try_from(position).unwrap_or(i64::MAX)))
}

/// `?1` with every `?2` replaced by `?3`.
fn replace(context: &Context<'_>) -> Result<Value> {
    let (Some(text), Some(part)) = (text(context, 0)?, text(context, 1)?) else { return Ok(Value::Null) };
    if part.first().is_none_or(|first| *first == 0) {
        return Ok(into_text(&text));
    }
    let Some(other) = self::text(context, 2)? else { return Ok(Value::Null) };
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = 0;
    for at in memmem::find_iter(&text, &*part) {
        replaced.extend_from_slice(&text[rest..at]);
        replaced.extend_from_slice(&other);
        rest = at + part.len();
        if replaced.len() > MAX_VALUE {
            return Err(failure(ffi::SQLITE_TOOBIG));
        }
    }
    replaced.extend_from_slice(&text[rest..]);
    Ok(into_text(&replaced))
}

/// The bytes that the digits of `?1` stand for; the characters of `?2` may separate them.
fn unhex(context: &Context<'_>) -> Result<Option<Vec<u8>>> {
    let (Some(digits), Some(set)) = (text(context, 0)?, text(context, 1)?) else { return Ok(None) };
    let set: HashSet<&[u8]> = characters(&set).collect();
    let value = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut rest = digits.split(|byte| *byte == 0).next().unwrap_or_default();
    while let Some(first) = rest.first() {
        if let Some(high) = value(*first) {
            let Some(low) = rest.get(1).and_then(|byte| value(*byte)) else { return Ok(None) };
            bytes.push(high << 4 | low);
            rest = &rest[2..];
        } else {
            let Some(separator) = characters(rest).next().filter(|one| set.contains(one)) else { return Ok(None) };
            rest = &rest[separator.len()..];
        }
    }
    Ok(Some(bytes))
}

/// SQLite's own function, on another connection, if the arguments are small enough.
fn patch(context: &Context<'_>, sql: &str) -> Result<Value> {
    let length = |at| match context.get_raw(at) {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
    };
    if length(0).saturating_mul(length(1)) > PATCH {
        return Err(failure(ffi::SQLITE_TOOBIG));
    }
    let arguments = (context.get::<Value>(0)?, context.get::<Value>(1)?);
    with_own(|own| own.prepare_cached(sql)?.query_row(arguments, |row| row.get(0)))
}

/// An argument as SQLite reads it where it wants a text.
fn text<'a>(context: &'a Context<'_>, at: usize) -> Result<Option<Cow<'a, [u8]>>> {
    Ok(match context.get_raw(at) {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(Cow::Borrowed(bytes)),
        ValueRef::Integer(number) => Some(Cow::Owned(number.to_string().into_bytes())),
        ValueRef::Real(number) => {
            let cast = |own: &Connection| -> Result<String> {
                own.prepare_cached("SELECT CAST(?1 AS TEXT)")?.query_row([number], |row| row.get(0))
            };
            Some(Cow::Owned(with_own(cast)?.into_bytes()))
        }
    })
}

/// Runs work on a connection without any data, one for each thread.
fn with_own<T>(work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    thread_local! {
        static OWN: OnceCell<Connection> = const { OnceCell::new() };
    }
    OWN.with(|own| {
        if own.get().is_none() {
            let _ = own.set(Connection::open_in_memory()?);
        }
        own.get().map_or_else(|| Err(failure(ffi::SQLITE_ERROR)), work)
    })
}

fn failure(code: i32) -> Error {
    Error::SqliteFailure(ffi::Error::new(code), None)
}

fn into_text(bytes: &[u8]) -> Value {
    Value::Text(String::from_utf8_lossy(bytes).into_owned())
}

/// Whether a byte continues a character.
fn is_inner(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The characters as SQLite divides bytes: one begins at every byte that does not continue another.
fn characters(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let inner = rest.get(1..)?.iter().take_while(|byte| is_inner(**byte)).count();
        let (first, others) = rest.split_at(1 + inner);
        rest = others;
        Some(first)
    })
}

/// Where the last character begins.
fn last_character(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(1)?;
    Some(bytes.iter().rposition(|byte| !is_inner(*byte)).unwrap_or(last))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const EXPRESSIONS: &[&str] = &[
        "trim('  a b ', ' ')",
        "trim('xxaxbxx', 'x')",
        "ltrim('xyxaxy', 'yx')",
        "rtrim('xyxaxy', 'yx')",
        "trim('☕é tea é☕', 'é☕ ')",
        "trim('tea', '')",
        "trim('', 'x')",
        "trim('aaa', 'a')",
        "trim(NULL, 'x')",
        "trim('x', NULL)",
        "trim(11511, 1)",
        "trim(1.50, 0)",
        "trim(x'2041', ' ')",
        "trim('aXa', 'a' || char(0) || 'X')",
        "instr('teapot', 'pot')",
        "instr('☕☕tea', 'tea')",
        "instr('tea', '')",
        "instr('', 'a')",
        "instr('', '')",
        "instr('tea', 'teapot')",
        "instr(x'e29895746561', x'746561')",
        "instr(x'e29895746561', 'tea')",
        "instr(3.25, '.')",
        "instr(NULL, 'a')",
        "instr('a', NULL)",
        "replace('aaaa', 'aa', 'b')",
        "replace('tea ☕', '☕', 'cup')",
        "replace('tea', '', 'x')",
        "replace('tea', 'x', NULL)",
        "replace('tea', '', NULL)",
        "replace(NULL, 'a', 'b')",
        "replace('a', NULL, 'b')",
        "replace(1.5, '.', ',')",
        "replace(1000, 0, 12)",
        "replace(1e300, '+', '')",
        "unhex('74-65 61', ' -')",
        "unhex('7-4', '-')",
        "unhex('746', '-')",
        "unhex('74☕65', '☕')",
        "unhex('74x65', '-')",
        "unhex(7465, '')",
        "unhex(NULL, '')",
        "json_patch('{\"a\":1,\"b\":2}', '{\"a\":null,\"c\":[1.0]}')",
        "json_object('x', json_patch('{}', '{\"a\":1}'))",
        "json_patch('{}', NULL)",
        "typeof(jsonb_patch('{}', '{\"a\":1}'))",
        "json(jsonb_patch('{}', '{\"a\":1}'))",
        "hex(replace('a', 'a', 'é'))",
    ];

    #[test]
    fn the_functions_answer_as_those_of_sqlite() {
        let (theirs, ours) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        replace_in(&ours).unwrap();
        let ask = |connection: &Connection, expression: &str| -> (Value, String) {
            let sql = format!("SELECT {expression}, typeof({expression})");
            connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
        };
        for expression in EXPRESSIONS {
            assert_eq!(ask(&ours, expression), ask(&theirs, expression), "{expression}");
        }
        for connection in [&theirs, &ours] {
            assert!(connection.query_row("SELECT json_patch('{', '{}')", [], |_| Ok(())).is_err());
        }
    }

    #[test]
    fn an_index_a_view_and_a_trigger_may_use_them() {
        let ours = Connection::open_in_memory().unwrap();
        replace_in(&ours).unwrap();
        ours.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).unwrap();
        ours.execute_batch(
            "CREATE TABLE a (x, y AS (replace(x, 'a', 'b')));
             CREATE INDEX i ON a (trim(x, '-'));
             CREATE VIEW v AS SELECT instr(x, 'e') AS at, y FROM a;
             CREATE TRIGGER t AFTER INSERT ON a WHEN instr(NEW.x, '!') BEGIN DELETE FROM a; END;
             INSERT INTO a VALUES ('-tea-');",
        )
        .unwrap();
        let found = ours.query_row("SELECT at, y FROM v", [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(found.unwrap(), (3_i64, "-teb-".to_owned()));
    }
}
