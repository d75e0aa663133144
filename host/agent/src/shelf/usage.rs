//! Which tools of servers and installed plugins are used in a folder: those have room in the prompts of its new sessions.

use std::collections::BTreeMap;
use std::path::Path;

use hermes_session_store::SessionStore;

/// The most tools that are remembered for a folder.
const MOST: usize = 64;

fn note(workspace: &Path) -> String {
    format!("tools used {}", blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex())
}

async fn counts(store: &dyn SessionStore, workspace: &Path) -> BTreeMap<String, u64> {
    let note = store.note(&note(workspace)).await.ok().flatten();
    note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default()
}

/// Counts a call of each of these tools. A count that cannot be stored is no reason to fail.
pub(crate) async fn count(store: &dyn SessionStore, workspace: &Path, tools: impl Iterator<Item = &str>) {
    let mut counts = counts(store, workspace).await;
    for tool in tools {
        *counts.entry(tool.to_owned()).or_default() += 1;
    }
    let counts: BTreeMap<String, u64> = ordered(counts).into_iter().take(MOST).collect();
    let note_text = serde_json::to_string(&counts).unwrap_or_default();
    if let Err(error) = store.set_note(&note(workspace), Some(&note_text)).await {
        tracing::warn!(%error, "the tools that were used are not counted");
    }
}

/// The tools that were used, those used most first.
pub(crate) async fn most_used(store: &dyn SessionStore, workspace: &Path) -> Vec<String> {
    ordered(counts(store, workspace).await).into_iter().map(|(tool, _)| tool).collect()
}

fn ordered(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut ordered: Vec<(String, u64)> = counts.into_iter().collect();
    ordered.sort_by(|(a, times_a), (b, times_b)| times_b.cmp(times_a).then(a.cmp(b)));
    ordered
}
