//! The windows that providers name when they refuse a request as too long. The store keeps them for later sessions.

use hermes_conversation::Usage;
use hermes_models::{LEAST_WINDOW, WindowSource};
use hermes_session_store::SessionStore;
use serde::{Deserialize, Serialize};

use crate::served::ServedModel;

/// A window that a provider named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedWindow {
    /// The window in tokens.
    pub tokens: u32,
    /// When the provider named it: Unix time in milliseconds.
    pub at: u64,
}

impl LearnedWindow {
    /// The name of the note that keeps the window of a model at an address.
    pub fn note(address: &str, model: &str) -> String {
        format!("window:{address} {model}")
    }

    /// Reads such a note. A window in which nothing fits does not count.
    pub fn parse(note: &str) -> Option<Self> {
        serde_json::from_str::<Self>(note).ok().filter(|learned| learned.tokens >= LEAST_WINDOW)
    }
}

/// Forgets a window that the configuration overrides once the provider has accepted a longer request. `source` is where the
/// window of that request came from.
pub(crate) async fn accepted(
    sessions: &dyn SessionStore,
    served: &ServedModel,
    source: WindowSource,
    usage: Option<Usage>,
) {
    let overridden = served.overridden.filter(|_| source == WindowSource::Configured);
    if overridden.is_some_and(|tokens| usage.is_some_and(|usage| usage.input > tokens)) {
        store(sessions, served, None).await;
    }
}

/// Stores the window of a model for later sessions, or forgets it.
pub(crate) async fn store(sessions: &dyn SessionStore, model: &ServedModel, learned: Option<LearnedWindow>) {
    let name = LearnedWindow::note(&model.address, &model.model.name);
    let value = learned.and_then(|learned| serde_json::to_string(&learned).ok());
    if let Err(error) = sessions.set_note(&name, value.as_deref()).await {
        // The provider will name it again.
        tracing::warn!(%error, "the window of a model was not stored");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_damaged_or_too_small_does_not_count() {
        let learned = LearnedWindow { tokens: 32_768, at: 7 };
        let note = serde_json::to_string(&learned).unwrap_or_default();
        assert_eq!(LearnedWindow::parse(&note), Some(learned));
        for note in ["", "32768", r#"{"tokens":1024,"at":7}"#, r#"{"tokens":"x","at":7}"#] {
            assert_eq!(LearnedWindow::parse(note), None, "{note}");
        }
    }
}
