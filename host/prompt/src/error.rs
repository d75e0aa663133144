//! Errors of a stored prompt.

/// A stored text and its outline do not match, so its layers cannot be identified. The text itself can still be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The layers do not end with the text.
    #[error(
        "the stored system prompt has {text} bytes, but its outline {outline}; rebuild the prompt to see it by layers"
    )]
    Length {
        /// Bytes of the text.
        text: usize,
        /// Bytes according to the outline.
        outline: usize,
    },
    /// A layer is empty, ends inside a character, or has no blank line before it.
    #[error(
        "the stored system prompt has no layer `{layer}` where its outline says; rebuild the prompt to see it by layers"
    )]
    Border {
        /// The layer's name.
        layer: String,
    },
    /// A tier continues after a later tier.
    #[error(
        "the outline of the stored system prompt has its layer `{layer}` in the wrong tier; rebuild the prompt to see it by layers"
    )]
    Order {
        /// The layer's name.
        layer: String,
    },
}
