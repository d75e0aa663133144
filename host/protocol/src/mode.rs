//! The modes: what the user wants to be asked about.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every change and every program.
    #[default]
    Ask,
    /// Programs, but no ordinary change of a file in the workspace.
    AcceptEdits,
    /// Nothing: what changes something is refused.
    Plan,
    /// What the sandbox does not cover.
    Auto,
}

/// A name that is no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode `{0}`; the modes are ask, accept-edits, plan and auto")]
pub struct NoMode(String);

impl Mode {
    /// All modes, in the order in which a key switches them.
    pub const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Auto];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
        }
    }

    /// What it means, in a few words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ask => "Hermes asks before it changes files and runs programs",
            Self::AcceptEdits => "files of the workspace change without a question, programs ask",
            Self::Plan => "the model can only read",
            Self::Auto => "files of the workspace change and programs run in the sandbox without a question",
        }
    }

    /// The one that follows.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|mode| *mode == self).unwrap_or_default();
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = NoMode;

    fn from_str(name: &str) -> Result<Self, NoMode> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| NoMode(name.to_owned()))
    }
}
