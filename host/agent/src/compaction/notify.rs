//! How compaction reports to the user.

use std::sync::Arc;

/// Takes a line for the user.
pub type Notify = Arc<dyn Fn(String) + Send + Sync>;
