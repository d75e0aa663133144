//! The serialisable form of an error: a stable code, what failed, why, and what to do.

use hermes_diagnostic::{Category, Diagnose, Diagnostic, Fix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error that a front end shows: the owned form of a [`Diagnostic`]. The code is stable; the texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Problem {
    /// Names the error for programs; `docs/use/errors.md` lists all codes.
    pub code: String,
    /// The kind of error.
    pub category: Category,
    /// What failed.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do.
    #[serde(default)]
    pub fix: Fix,
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        let Diagnostic { code, what, why, fix } = diagnostic;
        Self { code: code.name().to_owned(), category: code.category(), what, why, fix }
    }
}

impl<E: Diagnose> From<&E> for Problem {
    fn from(error: &E) -> Self {
        error.diagnose().into()
    }
}
