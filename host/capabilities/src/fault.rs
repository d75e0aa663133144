//! The error of the contract: what an import answers a plugin with, or a plugin the host.

/// How a call may be answered other than with a result; the contract's `error-kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FaultKind {
    InvalidInput,
    Unavailable,
    Denied,
    Timeout,
    Cancelled,
    Conflict,
    Exhausted,
    Failed,
}

/// An error that one side of the contract answers the other with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What to make of it.
    pub kind: FaultKind,
    /// Finer than the kind; may be empty.
    pub code: String,
    /// One line: what failed and why.
    pub message: String,
    /// When trying again may help, in milliseconds.
    pub retry_after_ms: Option<u32>,
}

impl Fault {
    /// A fault without a wait.
    pub fn new(kind: FaultKind, code: &str, message: impl Into<String>) -> Self {
        Self { kind, code: code.to_owned(), message: message.into(), retry_after_ms: None }
    }

    /// For what the manifest does not ask for.
    pub fn denied(what: &str) -> Self {
        Self::new(
            FaultKind::Denied,
            "",
            format!("the plugin has no right to `{what}`: its manifest does not ask for it"),
        )
    }
}
