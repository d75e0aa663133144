//! The opening of a session's requests: the system prompt with its layers, and the tools.

use hermes_conversation::tokens;
use hermes_prompt::{Layer, Outline, SystemPrompt};
use hermes_session_store::{Frozen, PromptNumber};

/// A prompt and the tools that go with it, before they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The system prompt by tier and layer.
    pub prompt: SystemPrompt,
    /// The tools, sorted by name, as they are sent.
    pub tools: String,
}

impl Opening {
    pub(crate) fn freeze(&self, reason: &str) -> Frozen {
        Frozen {
            number: PromptNumber::default(),
            system_prompt: self.prompt.text(),
            layers: serde_json::to_string(&self.prompt.outline()).unwrap_or_default(),
            tools: self.tools.clone(),
            reason: reason.to_owned(),
        }
    }

    /// What was stored, by tier and layer.
    pub(crate) fn restore(frozen: &Frozen) -> Self {
        Self { prompt: prompt_of(frozen), tools: frozen.tools.clone() }
    }

    /// What differs in another one, in the words of a notice; none where nothing does. Date and model are no drift.
    pub(crate) fn drift(&self, now: &Self) -> Option<String> {
        let changes = hermes_prompt::drift(&self.prompt, &now.prompt);
        let tools = (self.tools != now.tools).then(|| "the tool list".to_owned());
        let layers = (!changes.is_empty()).then(|| hermes_prompt::described(&changes));
        let changed: Vec<String> = layers.into_iter().chain(tools).collect();
        (!changed.is_empty()).then(|| changed.join(", "))
    }
}

/// A prompt whose layers cannot be told apart any more is one layer.
fn prompt_of(frozen: &Frozen) -> SystemPrompt {
    let outline: Result<Outline, _> = serde_json::from_str(&frozen.layers);
    let prompt = outline.ok().and_then(|outline| SystemPrompt::restore(&frozen.system_prompt, &outline).ok());
    prompt.unwrap_or_else(|| {
        tracing::warn!(number = frozen.number.0, "the layers of a stored prompt cannot be told apart");
        let whole = Layer { name: "prompt".to_owned(), text: frozen.system_prompt.clone() };
        SystemPrompt { context: vec![whole], ..SystemPrompt::default() }
    })
}

/// How many bytes of a stored prompt its first tier takes.
pub(crate) fn stable_len(frozen: &Frozen) -> usize {
    prompt_of(frozen).stable_len()
}

/// Estimate for system prompt and tools.
pub(crate) fn fixed_tokens(frozen: &Frozen) -> u32 {
    tokens::of_text(&frozen.system_prompt) + tokens::of_text(&frozen.tools)
}
