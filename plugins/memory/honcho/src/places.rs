//! The place of each conversation, stored when it begins. Another conversation in another folder may deliver a turn much later,
//! and a changed setting must not move the rest of a conversation to another place.

use hermes_plugin::sql::{self, Statement};
use hermes_plugin::{Error, params};

use crate::names::Place;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS place (conversation TEXT PRIMARY KEY, user TEXT NOT NULL, ai TEXT NOT NULL, \
                     session TEXT NOT NULL)";

/// Keeps the place of a conversation that has none, and returns the one that it has.
pub(crate) fn keep(conversation: &str, place: &Place) -> Result<Place, Error> {
    let values = params![conversation, place.user.as_str(), place.ai.as_str(), place.session.as_str()];
    let inserted = sql::execute(&[
        Statement::new(TABLE, params![]),
        Statement::new("INSERT OR IGNORE INTO place (conversation, user, ai, session) VALUES (?1, ?2, ?3, ?4)", values),
    ])?;
    if inserted.last() == Some(&1) {
        return Ok(place.clone());
    }
    Ok(of(conversation)?.unwrap_or_else(|| place.clone()))
}

/// The place of a conversation; none if it was never kept.
pub(crate) fn of(conversation: &str) -> Result<Option<Place>, Error> {
    let found = sql::query_one::<(String, String, String)>(
        "SELECT user, ai, session FROM place WHERE conversation = ?1",
        params![conversation],
    )?;
    Ok(found.map(|(user, ai, session)| Place { user, ai, session }))
}
