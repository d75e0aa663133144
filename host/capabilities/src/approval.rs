//! The user's consent to what a plugin does: run a program, or change a file.

use std::sync::Arc;

use async_trait::async_trait;

use crate::fault::Fault;
use crate::files::Change;
use crate::process::order::Run;

/// Why a granted action was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user refused.
    User,
    /// The configuration forbids it.
    Configuration,
    /// There was no user to ask.
    Unattended,
    /// The user lets the model only read.
    Plan,
}

impl Refusal {
    /// The code of the error that the plugin gets.
    pub fn code(self) -> &'static str {
        match self {
            Self::User => "refused",
            Self::Configuration | Self::Plan => "forbidden",
            Self::Unattended => "unattended",
        }
    }
}

/// Decides what a plugin may do.
///
/// Both functions wait for the user's answer, if one is needed and `attended` allows a question. An error has the kind
/// `denied` and the code of a [`Refusal`]. Dropping the future withdraws the question.
#[async_trait]
pub trait Approval: Send + Sync {
    /// Whether it may run a program.
    async fn process(&self, run: &Run, attended: bool) -> Result<(), Fault>;

    /// Whether it may make a change of a file that needs approval.
    async fn file(&self, change: &Change, attended: bool) -> Result<(), Fault>;
}

/// The approval of changes, for the instances of a plugin.
#[derive(Clone)]
pub struct ChangeApproval {
    approval: Arc<dyn Approval>,
    attended: bool,
}

impl ChangeApproval {
    /// For an instance in a turn, where the user can be asked.
    pub fn new(approval: Arc<dyn Approval>) -> Self {
        Self { approval, attended: true }
    }

    /// The same for background work, where no user can be asked.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { attended: false, ..self }
    }

    /// Waits for the user's approval; asks only if `may_ask` is set.
    ///
    /// # Errors
    ///
    /// When the change is refused.
    pub async fn approve(&self, change: &Change, may_ask: bool) -> Result<(), Fault> {
        self.approval.file(change, self.attended && may_ask).await
    }
}
