//! The callback for notices of compaction.

use std::sync::Arc;

use hermes_diagnostic::Notice;

/// Receives a notice for the user.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;
