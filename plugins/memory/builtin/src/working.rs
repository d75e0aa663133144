//! The working state of conversations: what a conversation needs until it ends. It lives in a document of the plugin's own, by
//! session, and is not approved by the user, because it does not outlive its conversation.

use hermes_notes::{Notes, Rules};
use hermes_plugin::{Error, clock, documents};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::failure;
use crate::request::Request;
use crate::update;

const DOCUMENT: &str = "working.json";
/// The most characters of a conversation's state.
const LIMIT: usize = 4_000;
/// The most conversations; the state of those that were not written for longest goes first.
const CONVERSATIONS: usize = 100;

#[derive(Debug, Default, Serialize, Deserialize)]
struct States(Vec<State>);

#[derive(Debug, Serialize, Deserialize)]
struct State {
    session: String,
    /// Unix milliseconds.
    at: u64,
    text: String,
}

/// A damaged document is replaced: it holds nothing that must last.
fn states(text: &str) -> States {
    serde_json::from_str(text).unwrap_or_default()
}

/// The state of a conversation.
pub(crate) fn of(session: &str) -> Result<Option<String>, Error> {
    let Some(document) = documents::read(DOCUMENT)? else { return Ok(None) };
    let mut states = states(&document.content).0.into_iter();
    Ok(states.find(|state| state.session == session).map(|state| state.text).filter(|text| !text.is_empty()))
}

/// Changes the state of a conversation. The answer contains the whole state: it is short, and the model works with it.
pub(crate) fn write(session: &str, request: &Request) -> Result<Value, Error> {
    update(DOCUMENT, |text| {
        let mut states = states(text);
        let before = states.0.iter().position(|state| state.session == session).map(|at| states.0.remove(at));
        let before = Notes::parse(&before.map(|state| state.text).unwrap_or_default());
        let rules = Rules { limit: LIMIT, day: None };
        let (notes, _) = before.apply_all(&request.changes, &rules).map_err(|(at, refusal)| {
            let error =
                format!("operation {} on the working state is not possible: {refusal}; nothing was changed", at + 1);
            failure("not-changed", json!({ "error": error, "current_entries": before.entries() }))
        })?;
        states.0.push(State { session: session.to_owned(), at: clock::now(), text: notes.text() });
        states.0.sort_by_key(|state| state.at);
        let excess = states.0.len().saturating_sub(CONVERSATIONS);
        states.0.drain(..excess);
        let answer = json!({
            "success": true,
            "done": true,
            "target": request.place.name(),
            "message": "the working state of this conversation changed",
            "current_entries": notes.entries(),
        });
        Ok((Some(json!(states).to_string()), answer))
    })
}
