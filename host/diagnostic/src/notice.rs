//! Something that the user should know although the operation went on.

use std::fmt;

use crate::{Diagnose, Fix};

/// What happened, and what to do about it where something can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What happened and why.
    pub text: String,
    /// What to do; often nothing.
    pub fix: Fix,
}

impl Notice {
    /// A notice with a remedy.
    pub fn new(text: impl Into<String>, fix: impl Into<Fix>) -> Self {
        Self { text: text.into(), fix: fix.into() }
    }

    /// The cause and the remedy of an error that ended nothing.
    pub fn of(error: &impl Diagnose) -> Self {
        Self::new(error.to_string(), error.parts().2)
    }
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { text, fix: Fix::none() }
    }
}

impl From<&str> for Notice {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fix.is_empty() { f.write_str(&self.text) } else { write!(f, "{}; {}", self.text, self.fix) }
    }
}
