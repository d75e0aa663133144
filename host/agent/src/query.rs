//! What a session asks the user, and why a question is closed.

use serde::{Deserialize, Serialize};

use crate::approval::question::Question;

/// What the user is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "kebab-case")]
pub enum Query {
    /// Whether a plugin may do something. [`crate::Command::Decide`] answers.
    Approval {
        /// The details.
        question: Box<Question>,
    },
    /// Something in words. [`crate::Command::Answer`] answers.
    Text {
        /// The question.
        text: String,
        /// The answers that are possible; any text if there are none.
        choices: Vec<String>,
    },
}

/// Why a question is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionEnd {
    /// A command answered it.
    Answered,
    /// The call that needed the answer is over.
    Withdrawn,
}
