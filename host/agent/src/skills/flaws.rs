//! What plugins say about skills that they cannot offer as they are. The user reads about each flaw once, not at every start;
//! `hermes doctor` names all of them.

use std::collections::{BTreeMap, BTreeSet};

use hermes_diagnostic::{Action, Notice};
use hermes_session_store::SessionStore;

/// The name of the store's note that lists the flaws which the user has seen.
fn note_of(plugin: &str) -> String {
    format!("skill flaws {plugin}")
}

/// A notice for each plugin with flaws that the user has not seen yet, which are stored as seen. `all` says whether every plugin
/// has listed its skills. Only then does a flaw that is missing now count as mended, and is shown again if it comes back.
pub(crate) async fn untold(
    store: &dyn SessionStore,
    found: BTreeMap<String, BTreeSet<String>>,
    all: bool,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    for (plugin, flaws) in found {
        let name = note_of(&plugin);
        let note = store.note(&name).await.ok().flatten();
        let told: BTreeSet<String> = note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default();
        let mut new = flaws.difference(&told);
        if let Some(first) = new.next() {
            notices.push(notice(&plugin, first, new.count()));
        }
        let known: BTreeSet<&String> = if all { flaws.iter().collect() } else { flaws.union(&told).collect() };
        if known.iter().copied().eq(&told) {
            continue;
        }
        let note = (!known.is_empty()).then(|| serde_json::json!(known).to_string());
        if let Err(error) = store.set_note(&name, note.as_deref()).await {
            tracing::warn!(%error, plugin, "the user will be told again of flaws of skills");
        }
    }
    notices
}

fn notice(plugin: &str, first: &str, more: usize) -> Notice {
    let text = format!("plugin `{plugin}`: {first}");
    match more {
        0 => text.into(),
        more => Notice::new(format!("{text}, and {more} more"), Action::Diagnose),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use hermes_session_store::Ledger as _;
    use hermes_store::{SqliteSessions, Store};

    use super::*;

    #[tokio::test]
    async fn a_flaw_is_told_once_and_again_after_it_was_mended() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteSessions::new(Arc::new(Store::open(home.path()).unwrap()));
        let told = async |flaws: &[&str], all| {
            let flaws = flaws.iter().map(|flaw| (*flaw).to_owned()).collect();
            let notices = untold(&store, BTreeMap::from([("local".to_owned(), flaws)]), all).await;
            notices.into_iter().map(|notice| notice.text).collect::<Vec<_>>()
        };
        assert_eq!(told(&["a", "b", "c"], true).await, ["plugin `local`: a, and 2 more"]);
        assert_eq!(told(&["c", "b", "a"], true).await, [""; 0]);
        assert_eq!(told(&["a", "d"], true).await, ["plugin `local`: d"]);
        assert_eq!(told(&[], false).await, [""; 0], "a plugin that failed has mended nothing");
        assert_eq!(told(&["a", "d"], true).await, [""; 0]);
        assert_eq!(told(&["a", "b", "d"], true).await, ["plugin `local`: b"], "it was mended and is back");
        assert_eq!(told(&[], true).await, [""; 0]);
        assert_eq!(store.note(&note_of("local")).await.unwrap(), None);
    }
}
