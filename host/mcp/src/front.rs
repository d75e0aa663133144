//! What a server may want of its session.

use std::path::PathBuf;

/// The session of a server. Its texts come from the server and are untrusted.
pub trait Front: Send + Sync + 'static {
    /// A line for the user.
    fn notice(&self, text: String);
    /// A line about a call that runs.
    fn progress(&self, text: &str);
    /// A line for the log.
    fn log(&self, is_warning: bool, text: &str);
    /// The folders that the server should work in.
    fn roots(&self) -> Vec<PathBuf>;
}
