//! The outcome of a tool call.

use hermes_conversation::Part;
use hermes_protocol::{FileDiff, RefusedBy};

/// The outcome of a call.
pub(crate) struct Answer {
    pub(crate) content: String,
    /// Images of the result.
    pub(crate) images: Vec<Part>,
    /// The result as JSON.
    pub(crate) structured: Option<String>,
    /// What the model still has to know when its view no longer shows the result.
    pub(crate) reminder: Option<String>,
    /// More than the content, for a file that the model can read in parts.
    pub(crate) whole: Option<String>,
    /// Whether the content comes from strangers, such as a web page.
    pub(crate) is_untrusted: bool,
    pub(crate) failed: bool,
    /// Who did not let the call do what it was to do.
    pub(crate) refused: Option<RefusedBy>,
    /// What it changed in files.
    pub(crate) changes: Vec<FileDiff>,
    pub(crate) elapsed_ms: u64,
}

impl Answer {
    /// The answer to an identical call, which does not run.
    pub(crate) fn copy(&self) -> Self {
        let Self { content, images, structured, reminder, whole, is_untrusted, failed, refused, .. } = self;
        Self {
            content: content.clone(),
            images: images.clone(),
            structured: structured.clone(),
            reminder: reminder.clone(),
            whole: whole.clone(),
            is_untrusted: *is_untrusted,
            failed: *failed,
            refused: *refused,
            changes: Vec::new(),
            elapsed_ms: 0,
        }
    }
}
