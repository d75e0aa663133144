//! Parts of a request that are sent with every call and never stored.

use hermes_conversation::{Role, Shown};
use serde::{Deserialize, Serialize};

/// Layers of a single call: they are sent with every request and stored in none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ephemeral {
    /// Stands behind the system prompt; empty for none.
    pub system: String,
    /// Stands in front of the conversation, the user's first, in turn, the model's last.
    pub prefill: Vec<(Role, String)>,
}

impl Ephemeral {
    pub(crate) fn as_text(&self) -> Option<String> {
        let nothing = self.system.is_empty() && self.prefill.is_empty();
        (!nothing).then(|| serde_json::to_string(self).unwrap_or_default())
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = Shown> {
        self.prefill.iter().map(|(role, content)| Shown::words(*role, content.clone()))
    }
}
