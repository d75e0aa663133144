//! The opening of a session's requests: the system prompt and the tools.

use hermes_conversation::tokens;
use hermes_prompt::{Layer, Outline, SystemPrompt};
use hermes_session_store::{Frozen, PromptNumber};

/// A system prompt with its layers, and the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The system prompt by tier and layer.
    pub prompt: SystemPrompt,
    /// The serialised tools, sorted by name, deferred ones last.
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

    /// The estimated tokens of the prompt and the tools.
    pub(crate) fn tokens(&self) -> u32 {
        tokens::of_text(&self.prompt.text()).saturating_add(tool_tokens(&self.tools))
    }

    /// Restores a stored opening by tier and layer.
    pub(crate) fn restore(frozen: &Frozen) -> Self {
        Self { prompt: prompt_of(frozen), tools: frozen.tools.clone() }
    }

    /// Describes the differences to another opening, for a notice; `None` if there are none. Date and model are ignored.
    pub(crate) fn drift(&self, now: &Self) -> Option<String> {
        let changes = hermes_prompt::drift(&self.prompt, &now.prompt);
        let tools = (self.tools != now.tools).then(|| "the tool list".to_owned());
        let layers = (!changes.is_empty()).then(|| hermes_prompt::described(&changes));
        let changed: Vec<String> = layers.into_iter().chain(tools).collect();
        (!changed.is_empty()).then(|| changed.join(", "))
    }
}

/// Restores a stored prompt. If its layers cannot be restored, the whole prompt becomes one layer.
fn prompt_of(frozen: &Frozen) -> SystemPrompt {
    let outline: Result<Outline, _> = serde_json::from_str(&frozen.layers);
    let prompt = outline.ok().and_then(|outline| SystemPrompt::restore(&frozen.system_prompt, &outline).ok());
    prompt.unwrap_or_else(|| {
        tracing::warn!(number = frozen.number.0, "the layers of a stored prompt cannot be restored");
        let whole = Layer { name: "prompt".to_owned(), text: frozen.system_prompt.clone() };
        SystemPrompt { context: vec![whole], ..SystemPrompt::default() }
    })
}

/// The length of a stored prompt's first tier in bytes.
pub(crate) fn stable_len(frozen: &Frozen) -> usize {
    prompt_of(frozen).stable_len()
}

/// The estimated tokens of the system prompt and the tools.
pub(crate) fn fixed_tokens(frozen: &Frozen) -> u32 {
    tokens::of_text(&frozen.system_prompt) + tool_tokens(&frozen.tools)
}

/// The estimated tokens of a frozen tool list. The model reads a deferred tool only in the result that names it.
pub(crate) fn tool_tokens(list: &str) -> u32 {
    tokens::of_text(&hermes_models::shown_tools(list))
}
