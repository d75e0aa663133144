//! A value in a request of a plugin: a text, or a secret of the host.

/// Most bytes before a secret.
const PREFIX: usize = 64;

/// The value of a header, a parameter or a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Plain(String),
    /// A secret of the host, after a text.
    Secret {
        /// The name of the secret.
        name: String,
        /// The text before it.
        prefix: String,
    },
}

impl Value {
    /// The name of its secret.
    pub(super) fn secret(&self) -> Option<&str> {
        match self {
            Self::Plain(_) => None,
            Self::Secret { name, .. } => Some(name),
        }
    }

    /// The length of the text that the plugin gives.
    pub(super) fn len(&self) -> usize {
        let (Self::Plain(text) | Self::Secret { prefix: text, .. }) = self;
        text.len()
    }

    /// What is wrong with the text before its secret.
    pub(super) fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Secret { prefix, .. } if !is_prefix(prefix) => Some(BAD_PREFIX),
            _ => None,
        }
    }
}

/// What is wrong with such a text.
pub(super) const BAD_PREFIX: &str =
    "the text before its secret has more than 64 bytes, or other characters than printable ASCII";

/// Whether a text may be before a secret.
pub(super) fn is_prefix(text: &str) -> bool {
    text.len() <= PREFIX && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}
