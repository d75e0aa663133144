//! The turns that were sent to a service, in the plugin's database, so that a turn which is delivered again is not stored twice.
//!
//! A turn is written down before it is sent. If it is delivered again and the first attempt has no known end, the service may
//! have stored it: the provider looks it up there, or reports that it cannot know.

use hermes_plugin::memory_provider::Turn;
use hermes_plugin::{Error, clock, params, sql};

/// Finished turns that are remembered. The host delivers a turn again soon or not at all.
const KEPT: u32 = 500;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS outbound (
    turn TEXT PRIMARY KEY,
    begun INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    state TEXT NOT NULL,
    note TEXT NOT NULL
) WITHOUT ROWID";

/// The name of a turn: its session and its first message.
pub(crate) fn key(turn: &Turn) -> String {
    format!("{}:{}", turn.session_id, turn.messages.first)
}

/// What is known of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// The turn was never sent.
    New,
    /// The service refused the turn: it has stored nothing.
    Refused {
        /// The number of attempts.
        attempts: u32,
    },
    /// The turn was sent, and nobody knows what became of it.
    Unknown {
        /// When the last attempt began.
        begun: u64,
        /// The number of attempts.
        attempts: u32,
    },
    /// The service has the turn.
    Stored,
}

/// Creates the table.
pub(crate) fn prepare() -> Result<(), Error> {
    sql::execute(&[sql::Statement::new(SCHEMA, params![])]).map(drop)
}

/// What is known of a turn.
pub(crate) fn state(key: &str) -> Result<State, Error> {
    let found = sql::query_one("SELECT begun, attempts, state FROM outbound WHERE turn = ?1", params![key])?;
    let Some((begun, attempts, state)): Option<(u64, u32, String)> = found else { return Ok(State::New) };
    Ok(match state.as_str() {
        "stored" => State::Stored,
        "refused" => State::Refused { attempts },
        _ => State::Unknown { begun, attempts },
    })
}

/// Writes down that the turn is sent now.
pub(crate) fn begin(key: &str) -> Result<(), Error> {
    let begin = "INSERT INTO outbound (turn, begun, attempts, state, note) VALUES (?1, ?2, 1, 'sent', '')
        ON CONFLICT (turn) DO UPDATE SET begun = ?2, attempts = attempts + 1, state = 'sent'";
    sql::execute(&[sql::Statement::new(begin, params![key, clock::now()])]).map(drop)
}

/// Writes down that the service refused the turn.
pub(crate) fn refused(key: &str) -> Result<(), Error> {
    sql::execute(&[sql::Statement::new("UPDATE outbound SET state = 'refused' WHERE turn = ?1", params![key])])
        .map(drop)
}

/// Writes down that the service has the turn, with a note such as the id of its work, and forgets the oldest of such turns.
pub(crate) fn stored(key: &str, note: &str) -> Result<(), Error> {
    let stored = "INSERT INTO outbound (turn, begun, attempts, state, note) VALUES (?1, ?2, 1, 'stored', ?3)
        ON CONFLICT (turn) DO UPDATE SET state = 'stored', note = ?3";
    let forget = "DELETE FROM outbound WHERE state = 'stored' AND turn NOT IN
        (SELECT turn FROM outbound WHERE state = 'stored' ORDER BY begun DESC LIMIT ?1)";
    let statements =
        [sql::Statement::new(stored, params![key, clock::now(), note]), sql::Statement::new(forget, params![KEPT])];
    sql::execute(&statements).map(drop)
}

/// The notes of stored turns that have one, oldest first, each with its turn.
pub(crate) fn notes(limit: u32) -> Result<Vec<(String, String)>, Error> {
    let notes = "SELECT turn, note FROM outbound WHERE state = 'stored' AND note <> '' ORDER BY begun LIMIT ?1";
    sql::query_as(notes, params![limit])
}

/// Removes the note of a turn.
pub(crate) fn clear_note(key: &str) -> Result<(), Error> {
    sql::execute(&[sql::Statement::new("UPDATE outbound SET note = '' WHERE turn = ?1", params![key])]).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::testing::Host;

    use super::*;

    #[test]
    fn a_turn_is_unknown_until_the_service_has_answered() {
        let host = Host::new().database().at(1_000);
        prepare().unwrap();
        let key = key(&Turn::new(2, "a", "b"));
        assert_eq!((key.as_str(), state(&key).unwrap()), ("session-1:3", State::New));
        begin(&key).unwrap();
        assert_eq!(state(&key).unwrap(), State::Unknown { begun: 1_000, attempts: 1 });
        refused(&key).unwrap();
        assert_eq!(state(&key).unwrap(), State::Refused { attempts: 1 });
        host.advance(500);
        begin(&key).unwrap();
        assert_eq!(state(&key).unwrap(), State::Unknown { begun: 1_500, attempts: 2 });
        stored(&key, "event-1").unwrap();
        prepare().unwrap();
        assert_eq!(state(&key).unwrap(), State::Stored);
        assert_eq!(notes(5).unwrap(), [(key.clone(), "event-1".to_owned())]);
        clear_note(&key).unwrap();
        assert_eq!((notes(5).unwrap(), state(&key).unwrap()), (vec![], State::Stored));
    }

    #[test]
    fn only_the_newest_stored_turns_are_kept_and_every_open_one() {
        let host = Host::new().database().at(1);
        prepare().unwrap();
        begin("open").unwrap();
        for number in 0..KEPT + 5 {
            host.advance(1);
            stored(&format!("s:{number}"), "").unwrap();
        }
        assert_eq!(state("s:0").unwrap(), State::New);
        assert_eq!(state("s:5").unwrap(), State::Stored);
        assert!(matches!(state("open").unwrap(), State::Unknown { .. }));
    }
}
