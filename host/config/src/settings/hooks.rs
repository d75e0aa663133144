//! The section `hooks`: programs that run at moments of the agent loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Whole;

/// An entry of `hooks.<moment>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HookSection {
    /// The tools that it is about: a regular expression for their whole names, such as `write_file|patch`. All, if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The program with its arguments: a name that is looked up in `PATH`, an absolute path or `~/…`. No shell reads it.
    pub command: String,
    /// Seconds after which the program is ended.
    pub timeout: Whole<1, 300>,
}

impl Default for HookSection {
    fn default() -> Self {
        Self { matcher: None, command: String::new(), timeout: const { Whole::new(60) } }
    }
}
