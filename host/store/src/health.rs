//! Checks the store: what SQLite says about the file, and whether the content is what this program writes.

use rusqlite::Connection;

use crate::blobs::references;
use crate::error::Fault;
use crate::session::UNFINISHED;
use crate::{Depth, Health, Store, StoreError, log, migration};

/// The most lines of problems.
const MAX_PROBLEMS: usize = 20;

impl Store {
    /// Looks for damage. Changes nothing: a trial write is rolled back.
    pub fn check(&self, depth: Depth) -> Result<Health, StoreError> {
        let mut health = self.read(|connection| {
            let mut problems = file(connection, depth)?;
            // Rows on damaged pages cannot be counted.
            let counted = contents(connection, depth);
            let (sessions, messages) = match counted {
                Ok((sessions, messages, more)) => {
                    problems.extend(more);
                    (sessions, messages)
                }
                Err(fault) if problems.is_empty() || fault.is_busy() => return Err(fault),
                Err(_) => (0, 0),
            };
            Ok(Health { schema: migration::version(connection)?, sessions, messages, problems })
        })?;
        if health.problems.is_empty() && !self.is_read_only()? {
            // SQLite only looks into indexes when something is written.
            match self.rehearse(trial) {
                Err(error @ (StoreError::Corrupt { .. } | StoreError::Sqlite { .. })) => {
                    health.problems.push(format!("nothing can be written: {error}"));
                }
                tried => tried?,
            }
        }
        health.problems.truncate(MAX_PROBLEMS);
        Ok(health)
    }
}

fn file(connection: &Connection, depth: Depth) -> Result<Vec<String>, Fault> {
    let check = match depth {
        Depth::Quick => "quick_check",
        Depth::Full => "integrity_check",
    };
    let mut problems = Vec::new();
    let mut statement = connection.prepare(&format!("PRAGMA {check}({MAX_PROBLEMS})"))?;
    let mut rows = statement.query([])?;
    loop {
        match rows.next() {
            Ok(Some(row)) => problems.extend(Some(row.get::<_, String>(0)?).filter(|line| line != "ok")),
            Ok(None) => return Ok(problems),
            Err(error) => match Fault::from(error) {
                busy if busy.is_busy() => return Err(busy),
                Fault::Sqlite(error) => {
                    problems.push(error.to_string());
                    return Ok(problems);
                }
                other => return Err(other),
            },
        }
    }
}

/// The numbers of sessions and messages, and the problems of both.
fn contents(connection: &Connection, depth: Depth) -> Result<(u64, u64, Vec<String>), Fault> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned);
    let mut problems = Vec::new();
    let mut list = |sql: &str, what: &str| -> Result<(), Fault> {
        let mut statement = connection.prepare(sql)?;
        for found in statement.query_map([], |row| row.get::<_, String>(0))?.take(MAX_PROBLEMS) {
            problems.push(format!("{what} {}", found?));
        }
        Ok(())
    };
    list(
        "SELECT DISTINCT \"table\" || ' refers to rows of ' || parent FROM pragma_foreign_key_check",
        "missing rows:",
    )?;
    list(
        // The messages of a session that is being imported are counted at its end.
        &format!(
            "SELECT id FROM sessions WHERE source <> '{UNFINISHED}' AND message_count <> (SELECT count(*) FROM messages WHERE session_id = sessions.id) \
         - (SELECT count(*) FROM rewound JOIN messages ON messages.id = message_id \
         WHERE rewound.session_id = sessions.id AND messages.session_id = sessions.id)"
        ),
        "the count of messages is wrong in session",
    )?;
    if depth == Depth::Full {
        // During an upgrade of the search index, older messages are still missing.
        for table in ["messages_fts", "messages_fts_trigram"] {
            let sql = format!(
                "SELECT '{table}' WHERE NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'search_pending') AND ( \
                 EXISTS (SELECT id FROM messages WHERE origin = 'said' EXCEPT SELECT id FROM {table}_docsize) \
                 OR EXISTS (SELECT id FROM {table}_docsize EXCEPT SELECT id FROM messages WHERE origin = 'said'))"
            );
            list(&sql, "the search index lacks messages or contains others:")?;
        }
        let mut statement = connection.prepare(&format!("SELECT {} FROM messages", log::COLUMNS))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Err(error) = log::from_row(row) {
                problems.push(format!("message {}: {error}", row.get::<_, i64>(0)?));
            }
        }
        problems.extend(references::problems(connection)?);
    }
    Ok((count("SELECT count(*) FROM sessions")?, count("SELECT count(*) FROM messages")?, problems))
}

fn trial(connection: &Connection) -> Result<(), Fault> {
    const ID: &str = "trial of a check";
    connection.execute(
        "INSERT INTO sessions (id, source, workspace, engine, provider, model, context_length, started_at, updated_at) \
         VALUES (?1, '', '', '', '', '', 1, 0, 0)",
        [ID],
    )?;
    let draft = hermes_conversation::Draft::user("a trial", 0);
    log::insert(connection, &hermes_conversation::SessionId(ID.into()), &draft)?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_conversation::Draft;

    use super::*;
    use crate::testing::{new_session, store};

    fn full(store: &Store) -> Health {
        assert_eq!(store.check(Depth::Quick).unwrap().sessions, store.sessions().unwrap().len() as u64);
        store.check(Depth::Full).unwrap()
    }

    #[test]
    fn a_check_does_not_change_a_sound_store() {
        let (home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        store.append(&session.id, &[Draft::user("a", 1), Draft::user("b", 2)]).unwrap();
        let health = full(&store);
        assert_eq!(health, Health { schema: crate::SCHEMA_VERSION, sessions: 1, messages: 2, problems: Vec::new() });
        assert_eq!(full(&store), health);
        let next = store.append(&session.id, &[Draft::user("c", 3)]).unwrap();
        assert_eq!(next[0].id.0, 3, "a trial takes no number");
        drop(store);
        let store = Store::open_read_only(home.path()).unwrap().unwrap();
        assert_eq!(full(&store).problems, Vec::<String>::new());
    }

    #[test]
    fn invalid_content_is_found() {
        let (_home, store) = store();
        let session = store.create_session(new_session()).unwrap();
        store.append(&session.id, &[Draft::user("a", 1)]).unwrap();
        let other = crate::connection::connect(store.path()).unwrap();
        other.pragma_update(None, "foreign_keys", false).unwrap();
        other
            .execute_batch(
                "UPDATE sessions SET message_count = 5;
                 INSERT INTO views (session_id, number, engine, reason, created_at) VALUES ('nobody', 1, '', '', 1);
                 INSERT INTO messages (session_id, role, content, tool_calls, origin, created_at) \
                 VALUES ('nobody', 'assistant', '', 'no json', 'said', 1);
                 DELETE FROM messages_fts WHERE rowid = 1;",
            )
            .unwrap();
        let problems = full(&store).problems;
        assert_eq!(problems.len(), 5, "{problems:?}");
        let text = problems.join("\n");
        for part in [
            "messages refers to rows of sessions",
            "views refers",
            session.id.as_str(),
            "message 2: ",
            "contains others: messages_fts",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
