//! The titles of sessions.

use hermes_conversation::SessionId;
use hermes_session_store::title;

use super::State;

pub(super) fn holder<'a>(state: &'a State, wanted: &str) -> Option<&'a SessionId> {
    let sessions = state.sessions.iter().map(|entry| &entry.session);
    sessions.filter(|session| session.title.as_deref() == Some(wanted)).map(|session| &session.id).next()
}

/// The next free title of a series.
pub(super) fn next(state: &State, wanted: &str) -> String {
    let base = title::split(wanted).0;
    let titles = state.sessions.iter().filter_map(|entry| entry.session.title.as_deref());
    let numbers = titles.filter_map(|title| match title::split(title) {
        (found, number) if found == base => Some(number.unwrap_or(1)),
        _ => None,
    });
    let Some(highest) = numbers.max() else { return base.to_owned() };
    let mut candidates = (highest.saturating_add(1)..).map(|number| title::numbered(base, number));
    candidates.find(|free| holder(state, free).is_none()).unwrap_or_else(|| base.to_owned())
}
