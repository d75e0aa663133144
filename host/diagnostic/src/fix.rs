//! What to do about a failure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Action;

/// One way out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// An instruction in words, in the imperative: `free some space and try again`.
    Words(String),
    /// Something that the front end can name or do itself.
    Action(Action),
}

impl From<&str> for Step {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<String> for Step {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Self::Action(action)
    }
}

/// What to do: the ways out, the best one first. Empty where nothing can be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Fix(Vec<Step>);

impl Fix {
    /// A fix in words.
    pub fn words(words: impl Into<String>) -> Self {
        Self(vec![Step::Words(words.into())])
    }

    /// No remedy is known.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds another way out.
    #[must_use]
    pub fn or(mut self, step: impl Into<Step>) -> Self {
        self.0.push(step.into());
        self
    }

    /// The ways out.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether nothing can be done.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, with each action worded by the front end.
    pub fn worded(&self, word: impl Fn(&Action) -> String) -> String {
        let step = |step: &Step| match step {
            Step::Words(words) => words.clone(),
            Step::Action(action) => word(action),
        };
        self.0.iter().map(step).collect::<Vec<_>>().join(", or ")
    }
}

impl<S: Into<Step>> From<S> for Fix {
    fn from(step: S) -> Self {
        Self(vec![step.into()])
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(Action::to_string))
    }
}
