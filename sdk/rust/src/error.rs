use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::bindings::types::ErrorKind;

/// Why a call could not be served; what imports answer, and what a plugin answers to the host.
///
/// The kind decides what the host does: an [`invalid`](Error::invalid) call is the caller's fault and goes back to the
/// model, an [`unavailable`](Error::unavailable) dependency may be tried again, [`failed`](Error::failed) counts
/// against the plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// What the host should make of it.
    pub kind: ErrorKind,
    /// Finer than the kind, such as `no-model` or `too-long`; may be empty.
    pub code: String,
    /// One line: what failed and why.
    pub message: String,
    /// When trying again may help.
    pub retry_after_ms: Option<u32>,
}

impl Error {
    /// An error of any kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, code: String::new(), message: message.into(), retry_after_ms: None }
    }

    /// The caller's fault: never tried again, and no failure of the plugin.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Something it depends on is away: the host may try again.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// No right to it.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// Somebody else wrote meanwhile.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// A limit or a budget is used up.
    pub fn exhausted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Exhausted, message)
    }

    /// The plugin's own failure.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Says more than the kind.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// Says when trying again may help.
    #[must_use]
    pub fn with_retry_after(mut self, milliseconds: u32) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// Puts what was attempted before the cause; kind and code stay.
    #[must_use]
    pub fn context(mut self, attempt: impl fmt::Display) -> Self {
        self.message = format!("{attempt}: {}", self.message);
        self
    }

    /// Whether this is the kind.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.kind == kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// JSON reaches a plugin from outside, as configuration, arguments or a reply: it is the giver's fault.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid(format!("invalid JSON: {error}"))
    }
}

/// What `?` takes as it is: mistakes in what came from outside are the giver's fault, the rest is the plugin's own.
macro_rules! from {
    ($($other:ty => $make:ident, $what:literal;)+) => {
        $(impl From<$other> for Error {
            fn from(error: $other) -> Self {
                Self::$make(format!(concat!($what, ": {}"), error))
            }
        })+
    };
}

from! {
    std::str::Utf8Error => invalid, "invalid UTF-8";
    std::string::FromUtf8Error => invalid, "invalid UTF-8";
    std::num::ParseIntError => invalid, "no whole number";
    std::num::ParseFloatError => invalid, "no number";
    std::num::TryFromIntError => invalid, "number out of range";
    std::fmt::Error => failed, "formatting failed";
    std::io::Error => failed, "reading or writing failed";
    Box<dyn std::error::Error> => failed, "failed";
    Box<dyn std::error::Error + Send + Sync> => failed, "failed";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_keeps_kind_and_code() {
        let error =
            Error::unavailable("no route").with_code("network").with_retry_after(50).context("asking the model");
        assert_eq!(error.to_string(), "asking the model: no route");
        assert_eq!(
            (error.kind, error.code.as_str(), error.retry_after_ms),
            (ErrorKind::Unavailable, "network", Some(50))
        );
    }

    #[test]
    fn broken_json_is_the_callers_fault() {
        let parse = || -> Result<serde_json::Value, Error> { Ok(serde_json::from_str("{")?) };
        assert!(parse().is_err_and(|error| error.is(ErrorKind::InvalidInput)));
    }
    #[test]
    fn mistakes_of_std_are_taken_by_the_question_mark() {
        let number = |text: &str| -> Result<u32, Error> { Ok(text.parse::<u32>()?) };
        assert!(number("many").is_err_and(|error| error.is(ErrorKind::InvalidInput)));
        let other = || -> Result<(), Error> { Err(Box::<dyn std::error::Error>::from("no oil"))? };
        assert!(other().is_err_and(|error| error.is(ErrorKind::Failed) && error.message.contains("no oil")));
    }
}
