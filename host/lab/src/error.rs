//! Errors in the input of the lab. `Display` gives the cause; `diagnosis.rs` has the remedies.

use std::io;
use std::path::PathBuf;

/// An unusable input. An error inside of a column is a [`ColumnError`](crate::ColumnError).
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder in place of a file.
    #[error("{} is a folder", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// A recording in it.
        session: Option<PathBuf>,
    },
    /// A file of another program that has no recording in a known format.
    #[error("{}: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// A file is larger than a recording may be.
    #[error("{}: {bytes} bytes are more than the {most} that a recording may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The largest allowed size in bytes.
        most: u64,
    },
    /// A line of a recording does not follow the format.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A recording without a reply.
    #[error("{}: it contains no reply of a model, so there is nothing to replay", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
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
