//! The actions that the user approved permanently.

use hermes_agent::approval::Kept;

use crate::{AppError, Home};

pub use hermes_agent::approval::KeptApproval;

impl Home {
    /// All of them.
    ///
    /// # Errors
    ///
    /// When the list cannot be read.
    pub fn approvals(&self) -> Result<Vec<KeptApproval>, AppError> {
        Ok(Kept::new(self.documents()).all()?)
    }

    /// Forgets those of a plugin, and returns how many there were.
    ///
    /// # Errors
    ///
    /// When the list cannot be read or written.
    pub fn forget_approvals(&self, plugin: &str) -> Result<usize, AppError> {
        Ok(Kept::new(self.documents()).forget(plugin)?)
    }
}
