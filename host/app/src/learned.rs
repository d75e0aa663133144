//! Windows that providers named: in earlier sessions when they refused a request, and in their lists of models.

use std::collections::BTreeMap;

use hermes_agent::{LearnedWindow, ServedModel};
use hermes_config::Auxiliary;
use hermes_diagnostic::{Fix, Notice};
use hermes_models::{LEAST_WINDOW, ListedModel, Route, WindowSource};
use hermes_session_store::Ledger;
use jiff::Timestamp;

/// The window that the provider of a model named, if it is smaller than the known one.
async fn smaller(store: &dyn Ledger, address: &str, model: &str, window: u32) -> Option<LearnedWindow> {
    let note = store.note(&LearnedWindow::note(address, model)).await.ok().flatten()?;
    LearnedWindow::parse(&note).filter(|learned| learned.tokens < window)
}

/// The name of the note with the windows of a provider's list.
fn listed_note(address: &str) -> String {
    format!("windows:{address}")
}

/// Keeps the windows of a provider's list that no table knows, for sessions with these models.
pub(crate) async fn keep_listed(store: &dyn Ledger, address: &str, models: &[ListedModel]) {
    let windows: BTreeMap<&str, u32> =
        models.iter().filter_map(|model| Some((model.name.as_str(), model.unknown_window()?))).collect();
    let (name, value) = (listed_note(address), serde_json::to_string(&windows).unwrap_or_default());
    let before = store.note(&name).await.ok().flatten();
    if before.as_deref() == Some(value.as_str()) || (before.is_none() && windows.is_empty()) {
        return;
    }
    if let Err(error) = store.set_note(&name, Some(&value)).await {
        tracing::warn!(%error, "the windows of a provider's models were not stored");
    }
}

/// The window of a model in its provider's list, if the list was read and no table knows it.
async fn listed(store: &dyn Ledger, address: &str, model: &str) -> Option<u32> {
    let note = store.note(&listed_note(address)).await.ok().flatten()?;
    let windows: BTreeMap<String, u32> = serde_json::from_str(&note).ok()?;
    windows.get(model).copied().filter(|window| *window >= LEAST_WINDOW)
}

/// Gives a route the window that its provider named. A configured window stays; then this is the smaller one.
pub(crate) async fn apply(store: &dyn Ledger, route: &mut Route) -> Option<LearnedWindow> {
    if matches!(route.window_source, WindowSource::Family | WindowSource::Assumed)
        && let Some(window) = listed(store, &route.address(), &route.model.name).await
    {
        (route.model.context_length, route.window_source) = (window, WindowSource::Learned);
    }
    let learned = smaller(store, &route.address(), &route.model.name, route.model.context_length).await?;
    if route.window_source == WindowSource::Configured {
        return Some(learned);
    }
    (route.model.context_length, route.window_source) = (learned.tokens, WindowSource::Learned);
    None
}

/// Gives the models of plugins' tasks the windows that their providers named. Returns the models whose configured window is
/// larger, each with the key of the setting.
pub(crate) async fn apply_to_tasks<'a>(
    store: &dyn Ledger,
    auxiliary: &'a mut Auxiliary,
) -> Vec<(LearnedWindow, String, &'a Route)> {
    let mut larger = Vec::new();
    let candidates = auxiliary.tasks.iter_mut().flat_map(|task| &mut task.candidates);
    // The session's model has the window that it has in the session.
    for candidate in candidates.filter(|candidate| !candidate.is_session) {
        if let Some(learned) = apply(store, &mut candidate.route).await {
            larger.push((learned, format!("{}.context_length", candidate.section), &candidate.route));
        }
    }
    larger
}

/// The same for a model whose provider named a window while this process runs.
pub(crate) async fn refresh(store: &dyn Ledger, served: &mut ServedModel) {
    let learned = smaller(store, &served.address, &served.model.name, served.model.context_length).await;
    let Some(learned) = learned else { return };
    if served.window_source == WindowSource::Configured {
        served.overridden = Some(learned.tokens);
    } else {
        (served.model.context_length, served.window_source) = (learned.tokens, WindowSource::Learned);
    }
}

/// The line for the user about a configured window that is larger than the one that the provider named. `key` is the key of the
/// setting.
pub(crate) fn overridden(route: &Route, learned: LearnedWindow, key: &str) -> String {
    let at = i64::try_from(learned.at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let when = at.map(|at| format!(" on {}", at.strftime("%Y-%m-%d"))).unwrap_or_default();
    format!(
        "`{key}` is {}, but the provider of `{}` said{when} that it takes {} tokens",
        route.model.context_length, route.model.name, learned.tokens
    )
}

/// Both for the user.
pub(crate) fn notice(route: &Route, learned: LearnedWindow, key: &str) -> Notice {
    Notice::new(overridden(route, learned, key), Fix::words(remedy(learned, key)))
}

/// What to do about that.
pub(crate) fn remedy(learned: LearnedWindow, key: &str) -> String {
    format!("set `{key}` to {}, or remove it", learned.tokens)
}
