//! Errors in the input of the lab. `Display` gives the cause; `diagnosis.rs` has the remedies.

use std::path::PathBuf;

use hermes_recordings::RecordingError;

/// An unusable input. An error inside of a column is a [`ColumnError`](crate::ColumnError).
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file cannot be read, or is no recording.
    #[error(transparent)]
    File(#[from] RecordingError),
    /// A file or folder without dialogues that can be used.
    #[error("{}: {why}", path.display())]
    Dialogues {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Prices that cannot be used.
    #[error("prices in {}: {why}", path.display())]
    Prices {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The window leaves too little room beside system prompt and tools.
    #[error("a window of {window} tokens is too small: system prompt and tools alone take {fixed}")]
    Terms {
        /// The window as given.
        window: u32,
        /// Tokens of system prompt and tools.
        fixed: u32,
        /// The smallest window that is allowed.
        least: u32,
    },
    /// Two columns have the same name.
    #[error("two columns are named `{name}`")]
    SameColumn {
        /// The name.
        name: String,
    },
    /// A command line that cannot be parsed.
    #[error("the command of `{name}` is empty or has an open quote: {command}")]
    Command {
        /// The column.
        name: String,
        /// The command as written.
        command: String,
    },
}
