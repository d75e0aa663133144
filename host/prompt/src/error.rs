//! What can be wrong with a stored prompt.

/// A stored text and its outline do not belong together, so that its layers cannot be told apart. The text itself
/// can still be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The layers end elsewhere than the text.
    #[error(
        "the stored system prompt has {text} bytes, but its outline {outline}; rebuild the prompt to see it by layers"
    )]
    Length {
        /// Bytes of the text.
        text: usize,
        /// Bytes that the outline accounts for.
        outline: usize,
    },
    /// A layer of no length, one that ends within a character, or one without a blank line in front.
    #[error(
        "the stored system prompt has no layer `{layer}` where its outline says; rebuild the prompt to see it by layers"
    )]
    Border {
        /// The layer's name.
        layer: String,
    },
    /// A tier begins anew after another one.
    #[error(
        "the outline of the stored system prompt has its layer `{layer}` in the wrong tier; rebuild the prompt to see it by layers"
    )]
    Order {
        /// The layer's name.
        layer: String,
    },
}
