//! The tables of the mode `local`.

use hermes_plugin::sql::{self, Statement};
use hermes_plugin::{Error, params};

/// Full-text indexes have the porter stemmer: of the ways without a model it finds most.
const TABLES: [&str; 8] = [
    "CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, session TEXT NOT NULL, conversation TEXT NOT NULL, \
     first INTEGER NOT NULL, part INTEGER NOT NULL, peer TEXT NOT NULL, is_ai INTEGER NOT NULL, text TEXT NOT NULL, \
     at INTEGER NOT NULL, is_indexed INTEGER NOT NULL DEFAULT 0, UNIQUE (conversation, first, part))",
    "CREATE INDEX IF NOT EXISTS message_of_session ON message (session, id)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS message_words USING fts5(text, content='message', content_rowid='id', \
     tokenize='porter unicode61')",
    "CREATE TABLE IF NOT EXISTS member (peer TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (peer, session))",
    "CREATE TABLE IF NOT EXISTS fact (id INTEGER PRIMARY KEY, observer TEXT NOT NULL, observed TEXT NOT NULL, \
     text TEXT NOT NULL, words TEXT NOT NULL, times INTEGER NOT NULL DEFAULT 1, session TEXT NOT NULL, at INTEGER NOT NULL, \
     is_indexed INTEGER NOT NULL DEFAULT 0, UNIQUE (observer, observed, words))",
    "CREATE VIRTUAL TABLE IF NOT EXISTS fact_words USING fts5(text, content='fact', content_rowid='id', \
     tokenize='porter unicode61')",
    "CREATE TABLE IF NOT EXISTS card (observer TEXT NOT NULL, observed TEXT NOT NULL, lines TEXT NOT NULL, \
     PRIMARY KEY (observer, observed))",
    "CREATE TABLE IF NOT EXISTS progress (session TEXT PRIMARY KEY, derived INTEGER NOT NULL DEFAULT 0, \
     summarised INTEGER NOT NULL DEFAULT 0, summary TEXT NOT NULL DEFAULT '')",
];

pub(crate) fn create() -> Result<(), Error> {
    let statements: Vec<Statement> = TABLES.iter().map(|table| Statement::new(*table, params![])).collect();
    sql::execute(&statements).map(|_| ())
}

/// Words that say nothing about what is meant.
const STOP: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "is", "it",
    "its", "just", "me", "my", "no", "not", "of", "on", "or", "our", "she", "should", "so", "some", "that", "the",
    "their", "them", "then", "there", "they", "this", "to", "us", "was", "we", "were", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
];
/// Words of a query that count.
const WORDS: usize = 32;

/// The words of a text in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// A query for any of the words of a text. Every text gives a valid query; none if no word is left.
pub(crate) fn matching(text: &str) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words(text).filter(|word| !STOP.contains(&word.as_str())) {
        let word = format!("\"{word}\"");
        if found.len() < WORDS && !found.contains(&word) {
            found.push(word);
        }
    }
    (!found.is_empty()).then(|| found.join(" OR "))
}
