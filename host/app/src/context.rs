//! What fills the window of a session, and how its conversation was compacted.

use std::path::Path;

use crate::{AppError, Setup};

pub use hermes_agent::compaction::STRIKES;
pub use hermes_agent::{Context, Step};
pub use hermes_conversation::picture::{Change, Made, Stretch, Sum};

impl Setup {
    /// The window of a stored session, which another process may run. [`Setup::session_to_read`] says which one is meant; `None` if
    /// nothing is stored yet.
    ///
    /// # Errors
    ///
    /// When no session is meant, or the store cannot be read.
    pub async fn context(&self, named: Option<&str>, folder: Option<&Path>) -> Result<Option<Context>, AppError> {
        match self.session_to_read(named, folder).await? {
            Some((store, session)) => Ok(Some(Context::read(&*store, &session).await?)),
            None => Ok(None),
        }
    }
}
