//! The user's consent to run a program.

use async_trait::async_trait;

use super::Run;
use crate::fault::Fault;

/// Why a granted action was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user refused.
    User,
    /// The configuration forbids it.
    Configuration,
    /// There was no user to ask.
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

/// Decides whether a plugin may run a program.
#[async_trait]
pub trait Approval: Send + Sync {
    /// Waits for the user's answer, if one is needed and `attended` allows a question. An error has the kind `denied` and the
    /// code of a [`Refusal`]. Dropping the future withdraws the question.
    async fn process(&self, run: &Run, attended: bool) -> Result<(), Fault>;
}
