//! Questions to the user, and the reasons for which they are closed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::question::Question;

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "query", rename_all = "kebab-case")]
pub enum Query {
    /// Whether a plugin may do something. [`crate::Command::Decide`] answers.
    Approval {
        /// The details.
        question: Box<Question>,
        /// The subagent that wants to act; `None` for the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A question with a text answer. [`crate::Command::Answer`] answers.
    Text {
        /// The question.
        text: String,
        /// The offered answers; if empty, any text is valid.
        choices: Vec<String>,
        /// Whether any other text is valid beside the choices.
        #[serde(default)]
        open: bool,
        /// Whether Hermes itself asks.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_host: bool,
        /// The MCP server that asks, which the text names; none if Hermes, the model or a front end asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// The subagent whose call it is about; `None` for the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Whether other text is a value of the form. A typed number is then that value, not the number of a choice.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takes_values: bool,
    },
}

/// Why a question is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionEnd {
    /// A command answered it.
    Answered,
    /// The call that needed the answer has ended.
    Withdrawn,
}
