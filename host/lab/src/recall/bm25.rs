//! The baseline: a full-text index of SQLite with one row for each message.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;

use super::{Answer, Contender, Dialogue, Memory, Turn};

/// SQLite's FTS5 with Porter stems, and the words of the question joined by OR.
#[derive(Debug, Clone, Copy)]
pub struct Bm25;

impl Bm25 {
    /// The name of its column.
    pub const NAME: &str = "bm25";
}

impl Contender for Bm25 {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn begin<'a>(&'a self, dialogue: &'a Dialogue, folder: &Path) -> Result<Box<dyn Memory + 'a>, String> {
        let index = Index::create(dialogue, &folder.join("bm25.db"));
        index.map(|index| Box::new(index) as Box<dyn Memory>).map_err(|error| error.to_string())
    }
}

struct Index<'a> {
    dialogue: &'a Dialogue,
    connection: Connection,
}

impl<'a> Index<'a> {
    fn create(dialogue: &'a Dialogue, path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch("CREATE VIRTUAL TABLE messages USING fts5 (text, tokenize = 'porter unicode61')")?;
        Ok(Self { dialogue, connection })
    }

    fn insert(&mut self, turn: &Turn) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for at in turn.messages.clone() {
            transaction
                .prepare_cached("INSERT INTO messages (rowid, text) VALUES (?1, ?2)")?
                .execute((row(at), &self.dialogue.messages[at].text))?;
        }
        transaction.commit()
    }

    fn find(&self, query: &str, limit: usize) -> rusqlite::Result<Vec<usize>> {
        // Equal ranks come in the order of the messages.
        let mut statement = self
            .connection
            .prepare_cached("SELECT rowid FROM messages WHERE messages MATCH ?1 ORDER BY rank, rowid LIMIT ?2")?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map((query, limit), |row| row.get::<_, i64>(0))?;
        rows.map(|row| Ok(usize::try_from(row? - 1).unwrap_or_default())).collect()
    }
}

fn row(at: usize) -> i64 {
    i64::try_from(at + 1).unwrap_or(i64::MAX)
}

/// The words of a question, joined by OR.
fn query(question: &str) -> String {
    let words = question.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ")
}

impl Memory for Index<'_> {
    fn write(&mut self, turn: &Turn) -> Result<(), String> {
        self.insert(turn).map_err(|error| error.to_string())
    }

    fn ask(&mut self, question: &str, hits: usize) -> Result<Answer, String> {
        let query = query(question);
        if query.is_empty() {
            return Ok(Answer::default());
        }
        let found = self.find(&query, hits).map_err(|error| error.to_string())?;
        let texts: Vec<&str> = found.iter().map(|at| self.dialogue.messages[*at].text.as_str()).collect();
        Ok(Answer { text: texts.join("\n"), hits: found.into_iter().map(|at| BTreeSet::from([at])).collect() })
    }
}
