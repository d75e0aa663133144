//! Parts of a request that are sent with every request and never stored.

use hermes_conversation::{Role, Shown};
use serde::{Deserialize, Serialize};

/// Text that is added to every request and not stored in the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ephemeral {
    /// Appended to the system prompt; may be empty.
    pub system: String,
    /// Messages before the conversation. They alternate, beginning with the user and ending with the model.
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
