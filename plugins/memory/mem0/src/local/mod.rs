//! mem0's pipeline without a server: a model extracts facts from each turn, and they are only added, never rewritten by the pipeline.
//! The tools and a rewind update and delete; `history` records each change with its reason.

mod extract;
mod rank;
mod words;

use hermes_plugin::memory_provider::Turn;
use hermes_plugin::sql::Statement;
use hermes_plugin::{Error, MessageId, Progress, clock, embeddings, log, params, random, sql};

use crate::delivery::sides;
use crate::memory::{Added, Memory, Store};
use crate::outbound::key;

/// The memories that the model sees beside a turn.
const NEAREST: u32 = 10;
/// The messages before a turn that the model sees, and that are kept for it.
const RECENT: u32 = 10;
/// The texts that are embedded in a step.
const BATCH: u32 = 64;

const SCHEMA: [&str; 7] = [
    "CREATE TABLE IF NOT EXISTS memory (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        user TEXT NOT NULL,
        session TEXT,
        first INTEGER,
        text TEXT NOT NULL,
        plain TEXT NOT NULL,
        attributed_to TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        UNIQUE (user, plain)
    )",
    "CREATE INDEX IF NOT EXISTS memory_turn ON memory (session, first)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS memory_words USING fts5 (text, tokenize = 'porter unicode61')",
    "CREATE TABLE IF NOT EXISTS vector (
        number INTEGER PRIMARY KEY REFERENCES memory (number) ON DELETE CASCADE,
        model TEXT NOT NULL,
        vector BLOB NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS history (
        number INTEGER PRIMARY KEY,
        memory TEXT NOT NULL,
        event TEXT NOT NULL,
        before TEXT,
        after TEXT,
        reason TEXT NOT NULL,
        at INTEGER NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS learned (turn TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS recent (number INTEGER PRIMARY KEY, user TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL)",
];

/// The memories of a user in the plugin's database.
#[derive(Debug)]
pub(crate) struct Local {
    user: String,
}

/// Where a memory comes from.
struct Source<'a> {
    turn: Option<&'a Turn>,
    attributed_to: &'a str,
    reason: &'a str,
}

impl Local {
    /// Creates the tables.
    pub(crate) fn open(user: String) -> Result<Self, Error> {
        sql::execute(&SCHEMA.map(|table| Statement::new(table, params![])))?;
        Ok(Self { user })
    }

    /// Extracts facts from a turn and stores them, all together with the note that the turn is done.
    pub(crate) fn learn(&self, turn: &Turn) -> Result<(), Error> {
        let (user, assistant) = sides(turn);
        let key = key(turn);
        let is_known = "SELECT at FROM learned WHERE turn = ?1";
        if user.is_empty() || sql::query_one::<(u64,)>(is_known, params![&key])?.is_some() {
            return Ok(());
        }
        let nearest = self.search(&format!("{user}\n{assistant}"), NEAREST, false, 0)?;
        let recent = "SELECT role, text FROM recent WHERE user = ?1 ORDER BY number DESC LIMIT ?2";
        let mut recent: Vec<(String, String)> = sql::query_as(recent, params![&self.user, RECENT])?;
        recent.reverse();
        let facts = extract::facts(&extract::Input {
            recent: &recent,
            nearest: &nearest,
            user: &user,
            assistant: &assistant,
            said: turn.ended_at,
        });
        let facts = match facts {
            // Nothing is stored by itself; the tools work.
            Err(error) if error.code == "no-model" => {
                log::info("no model extracts memories; mem0_add stores them");
                return Ok(());
            }
            facts => facts?,
        };
        let mut statements = Vec::new();
        for fact in &facts {
            let source =
                Source { turn: Some(turn), attributed_to: &fact.attributed_to, reason: "extracted from a turn" };
            statements.extend(self.insert(&new_id(), &fact.text, &source));
        }
        for (role, text) in [("user", &user), ("assistant", &assistant)] {
            let text = hermes_guest_backend::cut(text, extract::MESSAGE);
            let remember = "INSERT INTO recent (user, role, text) VALUES (?1, ?2, ?3)";
            statements.push(Statement::new(remember, params![&self.user, role, text]));
        }
        let forget = "DELETE FROM recent WHERE user = ?1 AND number NOT IN
            (SELECT number FROM recent WHERE user = ?1 ORDER BY number DESC LIMIT ?2)";
        statements.push(Statement::new(forget, params![&self.user, RECENT]));
        statements.push(Statement::new("INSERT INTO learned (turn, at) VALUES (?1, ?2)", params![key, clock::now()]));
        sql::execute(&statements)?;
        // A failure leaves the texts to `upkeep`: they are found by words until then.
        if !facts.is_empty()
            && let Err(error) = self.index()
        {
            log::debug(format!("new memories have no vectors yet: {error}"));
        }
        Ok(())
    }

    /// Statements that store a text unless the user has it already.
    fn insert(&self, id: &str, text: &str, source: &Source<'_>) -> Vec<Statement> {
        let (session, first) =
            (source.turn.map(|turn| turn.session_id.as_str()), source.turn.map(|turn| turn.messages.first));
        let now = source.turn.map_or_else(clock::now, |turn| turn.ended_at);
        let memory =
            "INSERT OR IGNORE INTO memory (id, user, session, first, text, plain, attributed_to, created, updated)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)";
        let words = "INSERT INTO memory_words (rowid, text) SELECT number, text FROM memory WHERE id = ?1";
        let history = "INSERT INTO history (memory, event, before, after, reason, at)
            SELECT id, 'ADD', NULL, text, ?2, ?3 FROM memory WHERE id = ?1";
        let plain = words::plain(text);
        vec![
            Statement::new(memory, params![id, &self.user, session, first, text, plain, source.attributed_to, now]),
            Statement::new(words, params![id]),
            Statement::new(history, params![id, source.reason, clock::now()]),
        ]
    }

    /// Removes the memories that come from taken back turns.
    pub(crate) fn forget_turns(&self, session: &str, first: MessageId) -> Result<(), Error> {
        let taken = "SELECT id FROM memory WHERE session = ?1 AND first >= ?2";
        let taken: Vec<(String,)> = sql::query_as(taken, params![session, first])?;
        let removals = taken.iter().flat_map(|(id,)| removal(id, "the user took the turn back"));
        sql::execute(&removals.collect::<Vec<_>>()).map(drop)
    }

    /// Embeds memories without a vector of the present model, some at a time.
    pub(crate) fn index(&self) -> Result<Progress, Error> {
        let model = match embeddings::resolve() {
            Ok(model) => model.name,
            Err(_) => return Ok(Progress::Done),
        };
        let lacking = "SELECT m.number, m.text FROM memory m LEFT JOIN vector v ON v.number = m.number AND v.model = ?1
            WHERE v.number IS NULL ORDER BY m.number DESC LIMIT ?2";
        let lacking: Vec<(i64, String)> = sql::query_as(lacking, params![&model, BATCH])?;
        if lacking.is_empty() {
            return Ok(Progress::Done);
        }
        let reply = embeddings::documents(lacking.iter().map(|(_, text)| text.clone()))?;
        if reply.vectors.len() != lacking.len() {
            return Err(Error::failed("the model of embeddings returned another number of vectors"));
        }
        // The text can have changed meanwhile.
        let store = "INSERT OR REPLACE INTO vector (number, model, vector)
            SELECT number, ?2, ?3 FROM memory WHERE number = ?1 AND text = ?4";
        let statements: Vec<Statement> = lacking
            .iter()
            .zip(&reply.vectors)
            .map(|((number, text), vector)| {
                Statement::new(store, params![*number, &reply.model, rank::bytes(vector), text])
            })
            .collect();
        sql::execute(&statements)?;
        // Another name than that of the resolved model would never fill the gap.
        let is_rest = lacking.len() == BATCH as usize && reply.model == model;
        Ok(if is_rest { Progress::More } else { Progress::Done })
    }
}

impl Store for Local {
    fn search(&self, query: &str, most: u32, _: bool, _: u32) -> Result<Vec<Memory>, Error> {
        rank::search(&self.user, query, most)
    }

    fn add(&self, fact: &str) -> Result<Added, Error> {
        let id = new_id();
        let source = Source { turn: None, attributed_to: "user", reason: "mem0_add" };
        let changed = sql::execute(&self.insert(&id, fact, &source))?;
        Ok(if changed.first() == Some(&0) { Added::Known } else { Added::Stored(Some(id)) })
    }

    fn get(&self, id: &str) -> Result<Option<Memory>, Error> {
        let memory = "SELECT id, text, session FROM memory WHERE id = ?1 AND user = ?2";
        let found: Option<(String, String, Option<String>)> = sql::query_one(memory, params![id, &self.user])?;
        Ok(found.map(|(id, text, session)| Memory { id, text, score: 1.0, session }))
    }

    fn update(&self, id: &str, text: &str) -> Result<(), Error> {
        let plain = words::plain(text);
        let same = "SELECT id FROM memory WHERE user = ?1 AND plain = ?2 AND id <> ?3";
        if let Some((other,)) = sql::query_one::<(String,)>(same, params![&self.user, &plain, id])? {
            return Err(Error::invalid(format!("the memory {other} says the same already: delete one of the two")));
        }
        let history = "INSERT INTO history (memory, event, before, after, reason, at)
            SELECT id, 'UPDATE', text, ?2, 'mem0_update', ?3 FROM memory WHERE id = ?1";
        let memory = "UPDATE memory SET text = ?2, plain = ?3, updated = ?4 WHERE id = ?1";
        let words = "UPDATE memory_words SET text = ?2 WHERE rowid = (SELECT number FROM memory WHERE id = ?1)";
        let vector = "DELETE FROM vector WHERE number = (SELECT number FROM memory WHERE id = ?1)";
        let statements = [
            Statement::new(history, params![id, text, clock::now()]),
            Statement::new(memory, params![id, text, plain, clock::now()]),
            Statement::new(words, params![id, text]),
            Statement::new(vector, params![id]),
        ];
        sql::execute(&statements).map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        sql::execute(&removal(id, "mem0_delete")).map(drop)
    }
}

/// Statements that delete a memory and record why.
fn removal(id: &str, reason: &str) -> Vec<Statement> {
    let history = "INSERT INTO history (memory, event, before, after, reason, at)
        SELECT id, 'DELETE', text, NULL, ?2, ?3 FROM memory WHERE id = ?1";
    let words = "DELETE FROM memory_words WHERE rowid = (SELECT number FROM memory WHERE id = ?1)";
    let vector = "DELETE FROM vector WHERE number = (SELECT number FROM memory WHERE id = ?1)";
    vec![
        Statement::new(history, params![id, reason, clock::now()]),
        Statement::new(words, params![id]),
        Statement::new(vector, params![id]),
        Statement::new("DELETE FROM memory WHERE id = ?1", params![id]),
    ]
}

/// A random UUID (version 4).
fn new_id() -> String {
    let mut bytes = random::bytes(16);
    bytes.resize(16, 0);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
