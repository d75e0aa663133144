use std::fmt;

pub use crate::bindings::types::ErrorKind;
use crate::bindings::types::Extra;

/// The error of imports and of the plugin's own functions.
///
/// The kind tells the host how to react: an [`invalid`](Error::invalid) call is the caller's mistake and is reported to the
/// model. After [`unavailable`](Error::unavailable), `timeout`, [`exhausted`](Error::exhausted) or
/// [`conflict`](Error::conflict), a finished turn is delivered to a memory provider again; after
/// [`failed`](Error::failed) it is not. No error that a plugin returns suspends the plugin: only crashes, exceeded limits and
/// missed deadlines do.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Error {
    /// How the host should react.
    pub kind: ErrorKind,
    /// More specific than the kind, such as `no-model` or `too-long`; can be empty.
    pub code: String,
    /// One line: what failed and why.
    pub message: String,
    /// How long to wait before a retry can help.
    pub retry_after_ms: Option<u32>,
    /// Room for later versions of the contract.
    pub extra: Extra,
}

impl Error {
    /// An error of any kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, code: String::new(), message: message.into(), retry_after_ms: None, extra: Extra::new() }
    }

    /// The caller made a mistake. Never retried; does not count as a failure of the plugin.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// A dependency is unreachable. The host may retry.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A permission is missing.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// Another writer was faster.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// A limit or budget is exceeded.
    pub fn exhausted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Exhausted, message)
    }

    /// The function or feature does not exist here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The plugin itself failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Sets the code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// Sets how long to wait before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, milliseconds: u32) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// Prepends what was attempted. Kind and code stay.
    #[must_use]
    pub fn context(mut self, attempt: impl fmt::Display) -> Self {
        self.message = format!("{attempt}: {}", self.message);
        self
    }

    /// Whether the error is of this kind.
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

/// JSON comes from outside, as configuration, arguments or a reply, so broken JSON is the sender's mistake.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid(format!("invalid JSON: {error}"))
    }
}

/// Conversions for `?`: broken input is the sender's mistake, anything else the plugin's own failure.
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
    std::num::ParseIntError => invalid, "not a whole number";
    std::num::ParseFloatError => invalid, "not a number";
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
    fn broken_json_is_the_callers_mistake() {
        let parse = || -> Result<serde_json::Value, Error> { Ok(serde_json::from_str("{")?) };
        assert!(parse().is_err_and(|error| error.is(ErrorKind::InvalidInput)));
    }
    #[test]
    fn std_errors_convert_with_the_question_mark() {
        let number = |text: &str| -> Result<u32, Error> { Ok(text.parse::<u32>()?) };
        assert!(number("many").is_err_and(|error| error.is(ErrorKind::InvalidInput)));
        let other = || -> Result<(), Error> { Err(Box::<dyn std::error::Error>::from("no oil"))? };
        assert!(other().is_err_and(|error| error.is(ErrorKind::Failed) && error.message.contains("no oil")));
    }
}
