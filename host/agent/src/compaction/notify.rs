//! How compaction reports to the user.

use std::sync::Arc;

use hermes_diagnostic::Notice;

/// Takes a notice for the user.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;
