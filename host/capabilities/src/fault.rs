//! The error of the contract, returned by imports to plugins and by plugins to the host.

/// The kind of an error: `error-kind` of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum FaultKind {
    InvalidInput,
    Unavailable,
    Denied,
    Timeout,
    Cancelled,
    Conflict,
    Exhausted,
    Unsupported,
    Failed,
}

impl FaultKind {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid-input",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Conflict => "conflict",
            Self::Exhausted => "exhausted",
            Self::Unsupported => "unsupported",
            Self::Failed => "failed",
        }
    }
}

/// An error that one side of the contract returns to the other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// A finer code within the kind. It may be empty.
    pub code: String,
    /// One line: what failed and why.
    pub message: String,
    /// Milliseconds after which a retry may help.
    pub retry_after_ms: Option<u32>,
}

/// Codes of what only the user can put right: a secret that is not set, an address that was not granted, a key that a service
/// refuses. The host answers the first two, and a plugin passes them on.
const OF_THE_USER: [&str; 3] = ["unset", "grant", "auth"];

impl Fault {
    /// A fault without a retry time.
    pub fn new(kind: FaultKind, code: &str, message: impl Into<String>) -> Self {
        Self { kind, code: code.to_owned(), message: message.into(), retry_after_ms: None }
    }

    /// Whether the same call may succeed later.
    pub fn may_pass(&self) -> bool {
        use FaultKind::{Conflict, Exhausted, Timeout, Unavailable};
        matches!(self.kind, Unavailable | Timeout | Exhausted | Conflict) || self.is_of_the_user()
    }

    /// Whether the user can put the cause right, such as a key that is not set.
    pub fn is_of_the_user(&self) -> bool {
        OF_THE_USER.contains(&self.code.as_str())
    }

    /// The fault for a right that the manifest does not ask for.
    pub fn denied(what: &str) -> Self {
        Self::new(
            FaultKind::Denied,
            "",
            format!("the plugin has no right to `{what}`: its manifest does not ask for it"),
        )
    }
}
