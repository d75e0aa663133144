//! The user's consent to run a program.

use async_trait::async_trait;

use super::Run;
use crate::fault::Fault;

/// Why an action that was granted was nevertheless refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user said no.
    User,
    /// The configuration says no.
    Configuration,
    /// No user could be asked.
    Unattended,
}

impl Refusal {
    /// The code of the error that the plugin gets.
    pub fn code(self) -> &'static str {
        match self {
            Self::User => "refused",
            Self::Configuration => "forbidden",
            Self::Unattended => "unattended",
        }
    }
}

/// Asks whether a plugin may run a program.
#[async_trait]
pub trait Approval: Send + Sync {
    /// Waits for the user where that is needed and, with `attended`, possible. An error has the kind `denied` and the
    /// code of a [`Refusal`]; dropping the future withdraws the question.
    async fn process(&self, run: &Run, attended: bool) -> Result<(), Fault>;
}
