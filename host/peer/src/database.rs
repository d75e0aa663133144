//! The peer's `state.db`, read from a private copy: SQLite would create files beside the original, and a running peer may
//! write at any time.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_private_files::{TemporaryFolder, open_regular};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use crate::{PeerHome, temporary_folder};

const NAME: &str = "state.db";
/// What SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-journal"];
/// More than anyone has; a larger file would fill the temporary folder.
const LARGEST: u64 = 8 << 30;
/// How often a copy is made again because the peer wrote meanwhile.
const ATTEMPTS: u32 = 20;
/// The newest schema that this program knows: that of Hermes Agent 0.19.0.
const KNOWN: i64 = 22;
/// More than anyone has.
const MOST_SESSIONS: usize = 100_000;
/// The most characters of an id, and of other short texts.
const MOST_OF_ID: usize = 200;
const MOST_OF_TEXT: usize = 4_096;
/// The most bytes of a text that is shortened. To shorten a larger one, SQLite would read it first.
const MOST_TO_SHORTEN: usize = 1 << 20;
/// The most bytes of a message: what an import accepts.
const MOST_OF_MESSAGE: i64 = 60 << 20;

/// A private copy of the peer's database.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    sessions: BTreeSet<String>,
    messages: BTreeSet<String>,
    /// A schema that is newer than this program knows.
    pub(crate) newer: Option<i64>,
    /// Removed with the value; the connection is closed before.
    _folder: TemporaryFolder,
}

/// A row of `sessions`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) end_reason: Option<String>,
    pub(crate) is_branch: bool,
    pub(crate) is_delegate: bool,
    pub(crate) has_ended: bool,
    pub(crate) cwd: Option<String>,
    /// Unix time in seconds.
    pub(crate) started_at: f64,
    pub(crate) input: i64,
    pub(crate) output: i64,
    pub(crate) cache_read: i64,
    pub(crate) cache_write: i64,
    pub(crate) reasoning: i64,
    pub(crate) requests: i64,
    /// US dollars.
    pub(crate) cost: f64,
}

/// A row of `messages`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MessageRow {
    pub(crate) id: i64,
    pub(crate) role: String,
    pub(crate) content: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) tool_calls: Option<String>,
    pub(crate) tool_name: Option<String>,
    /// Unix time in seconds.
    pub(crate) timestamp: f64,
    pub(crate) reasoning: Option<String>,
    pub(crate) is_active: bool,
    pub(crate) is_compacted: bool,
}

impl Database {
    /// Copies the database of a home; `None` if there is none. A reason in place of the copy says why its sessions stay behind.
    pub(crate) fn copied(peer: &PeerHome) -> io::Result<Option<Result<Self, String>>> {
        let original = match peer.within(NAME) {
            Ok(None) => return Ok(None),
            Ok(Some(path)) => path,
            Err(why) => return Ok(Some(Err(why))),
        };
        let folder = temporary_folder()?;
        let copy = folder.path().join(NAME);
        match copied(&original, &copy) {
            Ok(()) => Ok(Some(Self::opened(&copy, folder).map_err(|error| described(&error)))),
            Err(Refused::Copy(error)) => Err(error),
            Err(Refused::Original(why)) => Ok(Some(Err(why))),
        }
    }

    fn opened(copy: &Path, folder: TemporaryFolder) -> Result<Self, Fault> {
        // The copy is written once: what its log contains goes into the file.
        let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cell_size_check = ON;")?;
        // Whatever a query asks for, no larger value is ever read.
        let most = i32::try_from(MOST_OF_MESSAGE).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most)?;
        let sessions = columns(&connection, "sessions", &["id", "source", "started_at"])?;
        let messages = columns(&connection, "messages", &["id", "session_id", "role", "content", "timestamp"])?;
        let version = connection.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0));
        let newer = version.ok().flatten().filter(|version: &i64| *version > KNOWN);
        Ok(Self { connection, sessions, messages, newer, _folder: folder })
    }

    /// All sessions, the oldest first.
    pub(crate) fn sessions(&self) -> Result<Vec<SessionRow>, String> {
        let column = |name: &str| shortened(&self.sessions, name, MOST_OF_TEXT);
        let number = |name: &str| or_null(&self.sessions, name);
        let sql = format!(
            "SELECT {id}, {source}, {title}, {model}, {provider}, {parent}, {end_reason}, {config}, {cwd}, started_at, \
             {ended_at}, {input}, {output}, {cache_read}, {cache_write}, {reasoning}, {requests}, {actual}, {estimated} \
             FROM sessions ORDER BY started_at, rowid LIMIT {most}",
            id = shortened(&self.sessions, "id", MOST_OF_ID + 1),
            source = column("source"),
            title = column("title"),
            model = column("model"),
            provider = column("billing_provider"),
            parent = shortened(&self.sessions, "parent_session_id", MOST_OF_ID + 1),
            end_reason = column("end_reason"),
            config = shortened(&self.sessions, "model_config", 1 << 16),
            cwd = column("cwd"),
            ended_at = number("ended_at"),
            input = number("input_tokens"),
            output = number("output_tokens"),
            cache_read = number("cache_read_tokens"),
            cache_write = number("cache_write_tokens"),
            reasoning = number("reasoning_tokens"),
            requests = number("api_call_count"),
            actual = number("actual_cost_usd"),
            estimated = number("estimated_cost_usd"),
            most = MOST_SESSIONS + 1,
        );
        let read = || -> Result<Vec<SessionRow>, Fault> {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            let mut sessions = Vec::new();
            while let Some(row) = rows.next()? {
                if sessions.len() == MOST_SESSIONS {
                    return Err(Fault::Words(format!("state.db has more than {MOST_SESSIONS} sessions")));
                }
                sessions.push(session(row)?);
            }
            Ok(sessions)
        };
        read().map_err(|fault| described(&fault))
    }

    /// The messages of a session in their order.
    pub(crate) fn messages(&self, session: &str) -> Result<Vec<MessageRow>, String> {
        /// The most bytes of a conversation, which is in memory as a whole.
        const MOST_BYTES: i64 = 512 << 20;
        let column = |name: &str| or_null(&self.messages, name);
        // The size is in the header of a row: the text itself is not read.
        let size = |name: &str| format!("coalesce(octet_length({}), 0)", column(name));
        let texts = ["content", "tool_calls", "reasoning", "reasoning_content"];
        let sum = texts.map(size).join(" + ");
        let read = || -> Result<Vec<MessageRow>, Fault> {
            let (bytes, largest): (Option<i64>, Option<i64>) = self.connection.query_row(
                &format!("SELECT sum({sum}), max({sum}) FROM messages WHERE session_id = ?1"),
                [session],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            if largest.unwrap_or(0) > MOST_OF_MESSAGE {
                return Err(Fault::Words(format!("a message is larger than {} MiB", MOST_OF_MESSAGE >> 20)));
            }
            if bytes.unwrap_or(0) > MOST_BYTES {
                return Err(Fault::Words(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
            }
            let sql = format!(
                "SELECT id, {role}, content, {call}, {calls}, {name}, timestamp, {reasoning}, {other}, {active}, {compacted} \
                 FROM messages WHERE session_id = ?1 ORDER BY id",
                role = shortened(&self.messages, "role", MOST_OF_ID),
                call = shortened(&self.messages, "tool_call_id", MOST_OF_TEXT),
                calls = column("tool_calls"),
                name = shortened(&self.messages, "tool_name", MOST_OF_TEXT),
                reasoning = column("reasoning"),
                other = column("reasoning_content"),
                active = column("active"),
                compacted = column("compacted"),
            );
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([session])?;
            let mut messages = Vec::new();
            while let Some(row) = rows.next()? {
                messages.push(message(row)?);
            }
            Ok(messages)
        };
        read().map_err(|fault| described(&fault))
    }
}

fn session(row: &Row<'_>) -> Result<SessionRow, Fault> {
    let config: serde_json::Value =
        text(row, 7)?.and_then(|config| serde_json::from_str(&config).ok()).unwrap_or_default();
    let is_marked = |name: &str| config.get(name).is_some_and(|mark| !mark.is_null());
    let cost = [real(row, 17)?, real(row, 18)?].into_iter().find(|cost| *cost > 0.0).unwrap_or(0.0);
    Ok(SessionRow {
        id: text(row, 0)?.unwrap_or_default(),
        source: text(row, 1)?.unwrap_or_default(),
        title: text(row, 2)?,
        model: text(row, 3)?,
        provider: text(row, 4)?,
        parent: text(row, 5)?,
        end_reason: text(row, 6)?,
        is_branch: is_marked("_branched_from"),
        is_delegate: is_marked("_delegate_from"),
        cwd: text(row, 8)?,
        started_at: real(row, 9)?,
        has_ended: !matches!(row.get_ref(10)?, ValueRef::Null),
        input: whole(row, 11)?,
        output: whole(row, 12)?,
        cache_read: whole(row, 13)?,
        cache_write: whole(row, 14)?,
        reasoning: whole(row, 15)?,
        requests: whole(row, 16)?,
        cost,
    })
}

fn message(row: &Row<'_>) -> Result<MessageRow, Fault> {
    let flag = |column: usize, missing: bool| -> Result<bool, Fault> {
        Ok(match row.get_ref(column)? {
            ValueRef::Integer(value) => value != 0,
            _ => missing,
        })
    };
    let reasoning = [text(row, 7)?, text(row, 8)?].into_iter().flatten().find(|text| !text.trim().is_empty());
    Ok(MessageRow {
        id: whole(row, 0)?,
        role: text(row, 1)?.unwrap_or_default(),
        content: text(row, 2)?,
        tool_call_id: text(row, 3)?,
        tool_calls: text(row, 4)?,
        tool_name: text(row, 5)?,
        timestamp: real(row, 6)?,
        reasoning,
        is_active: flag(9, true)?,
        is_compacted: flag(10, false)?,
    })
}

/// A column as text, whatever its type is: SQLite allows any.
fn text(row: &Row<'_>, column: usize) -> Result<Option<String>, Fault> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    })
}

fn whole(row: &Row<'_>, column: usize) -> Result<i64, Fault> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(value) => value,
        _ => 0,
    })
}

fn real(row: &Row<'_>, column: usize) -> Result<f64, Fault> {
    #[allow(clippy::cast_precision_loss, reason = "times and costs are far below 2^53")]
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(value) => value as f64,
        ValueRef::Real(value) => value,
        _ => 0.0,
    })
}

/// The columns of a plain table. A view or a virtual table could compute without end.
fn columns(connection: &Connection, table: &str, needed: &[&str]) -> Result<BTreeSet<String>, Fault> {
    let sql: Option<String> = connection
        .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1 AND type = 'table'", [table], |row| row.get(0))
        .map_or_else(|error| if error == rusqlite::Error::QueryReturnedNoRows { Ok(None) } else { Err(error) }, Ok)?;
    let is_plain = sql.as_deref().is_some_and(|sql| !sql.trim_start().to_uppercase().starts_with("CREATE VIRTUAL"));
    if !is_plain {
        return Err(Fault::Words(format!("state.db has no table `{table}` as Hermes Agent makes it")));
    }
    // Generated columns are not listed.
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let columns: BTreeSet<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
    match needed.iter().find(|name| !columns.contains(**name)) {
        Some(name) => Err(Fault::Words(format!("state.db has no column `{table}.{name}`: its schema is not known"))),
        None => Ok(columns),
    }
}

/// A column, or NULL where an older schema lacks it.
fn or_null(columns: &BTreeSet<String>, name: &str) -> String {
    if columns.contains(name) { name.to_owned() } else { "NULL".to_owned() }
}

/// The beginning of a column. A text that is too long even to be shortened gives nothing. For an id, the result is again too
/// long, so that the id is refused.
fn shortened(columns: &BTreeSet<String>, name: &str, most: usize) -> String {
    if !columns.contains(name) {
        return "NULL".to_owned();
    }
    let instead = if most > MOST_OF_ID + 1 { "NULL".to_owned() } else { format!("'{}'", "?".repeat(most)) };
    format!("iif(octet_length({name}) > {MOST_TO_SHORTEN}, {instead}, substr({name}, 1, {most}))")
}

/// Why the database or a part of it cannot be read.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Words(String),
}

fn described(fault: &Fault) -> String {
    match fault {
        Fault::Words(words) => words.clone(),
        Fault::Sqlite(error) => {
            let what = match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => "state.db is not a database of SQLite".to_owned(),
                Some(rusqlite::ErrorCode::TooBig) => return "a text in it is too large to be read".to_owned(),
                Some(rusqlite::ErrorCode::DatabaseCorrupt) => "state.db is damaged there".to_owned(),
                _ => format!("state.db cannot be read: {error}"),
            };
            format!("{what}; start Hermes Agent once, which repairs its database, and import again")
        }
    }
}

enum Refused {
    /// The original cannot be used.
    Original(String),
    /// The copy cannot be written.
    Copy(io::Error),
}

/// Copies a database with its log while another program may write to it: the copy counts only if no file changed meanwhile.
fn copied(original: &Path, copy: &Path) -> Result<(), Refused> {
    for attempt in 0..ATTEMPTS {
        let before = states(original);
        copy_file(original, copy)?;
        for suffix in BESIDE {
            let (from, to) = (beside(original, suffix), beside(copy, suffix));
            let _ = fs::remove_file(&to);
            if fs::symlink_metadata(&from).is_ok_and(|metadata| metadata.is_file()) {
                copy_file(&from, &to)?;
            }
        }
        if states(original) == before {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(25 * u64::from(attempt + 1)));
    }
    Err(Refused::Original("state.db changed during each of 20 attempts to copy it; pause Hermes Agent".to_owned()))
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Refused> {
    let unreadable = |error: io::Error| Refused::Original(format!("state.db cannot be read: {error}"));
    let mut source = open_regular(from).map_err(unreadable)?;
    let size = source.metadata().map_err(unreadable)?.len();
    if size > LARGEST {
        return Err(Refused::Original(format!("state.db is larger than {} GiB", LARGEST >> 30)));
    }
    let mut target = File::create(to).map_err(Refused::Copy)?;
    let mut source = io::Read::take(&mut source, LARGEST);
    io::copy(&mut source, &mut target).and_then(|_| target.flush()).map_err(Refused::Copy)
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// What changes when a program writes to a database.
fn states(original: &Path) -> Vec<Option<(u64, Option<std::time::SystemTime>)>> {
    let state = |metadata: Metadata| (metadata.len(), metadata.modified().ok());
    let files = BESIDE.iter().map(|suffix| beside(original, suffix)).chain([original.to_owned()]);
    files.map(|file| fs::symlink_metadata(file).ok().map(state)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The database of a home with these rows, read as an import reads it.
    fn read(rows: &str) -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let database = Connection::open(folder.path().join(NAME)).unwrap();
        let schema = "CREATE TABLE sessions (id TEXT, source TEXT, title TEXT, cwd TEXT, started_at REAL); \
                      CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);";
        database.execute_batch(schema).and_then(|()| database.execute_batch(rows)).unwrap();
        drop(database);
        let peer = PeerHome::find(Some(folder.path()), Path::new("/nowhere")).unwrap();
        let database = Database::copied(&peer).unwrap().unwrap().unwrap();
        (folder, database)
    }

    #[test]
    fn a_message_is_measured_before_it_is_read() {
        let (_folder, database) = read(
            "INSERT INTO sessions VALUES ('big', 'cli', 't', '/', 1), ('small', 'cli', 't', '/', 2); \
             INSERT INTO messages VALUES (1, 'small', 'user', 'hello', 1); \
             INSERT INTO messages SELECT 2, 'big', 'user', printf('%.*c', 62 << 20, 'x'), 1",
        );
        assert_eq!(database.messages("big"), Err("a message is larger than 60 MiB".to_owned()));
        assert_eq!(database.messages("small").map(|messages| messages.len()), Ok(1));
        // No other query can read the large message either.
        let content = database
            .connection
            .query_row("SELECT content FROM messages WHERE id = 2", [], |row| row.get::<_, String>(0));
        assert_eq!(content.unwrap_err().sqlite_error_code(), Some(rusqlite::ErrorCode::TooBig));
    }

    #[test]
    fn a_huge_text_of_a_session_hides_no_other_session() {
        let (_folder, database) = read(
            "INSERT INTO sessions SELECT 'a', 'cli', printf('%.*c', 62 << 20, 'x'), '/', 1; \
             INSERT INTO sessions SELECT printf('%.*c', 2 << 20, 'y'), 'cli', 't', printf('%.*c', 2 << 20, 'z'), 2; \
             INSERT INTO sessions VALUES ('b', 'cli', 't', '/x', 3)",
        );
        let sessions = database.sessions().unwrap();
        let shown: Vec<_> =
            sessions.iter().map(|row| (row.id.len(), row.title.as_deref(), row.cwd.as_deref())).collect();
        assert_eq!(shown, [(1, None, Some("/")), (201, Some("t"), None), (1, Some("t"), Some("/x"))]);
    }
}
