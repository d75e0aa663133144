//! What can be wrong with what the laboratory is given.

use std::io;
use std::path::PathBuf;

/// An input that cannot be used. What goes wrong inside of a column is a [`ColumnError`](crate::ColumnError).
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than a recording may be.
    #[error("{}: {bytes} bytes are more than the {most} that a recording may have; split it by session", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What is read at most.
        most: u64,
    },
    /// A line of a recording is not what its format says.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// A file with no conversation in it.
    #[error("{}: no reply of a model is in it, so there is nothing to replay", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Prices that cannot be used.
    #[error("prices in {}: {why}", path.display())]
    Prices {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A figure on which everything rests is out of range.
    #[error("{what} of {given}: {remedy}")]
    Terms {
        /// Its name.
        what: &'static str,
        /// As given.
        given: String,
        /// What would do.
        remedy: &'static str,
    },
    /// Two columns cannot be told apart.
    #[error("two columns are named `{name}`; name the engine once, or give the command another name")]
    SameColumn {
        /// The name.
        name: String,
    },
    /// A command line that cannot be taken apart.
    #[error("the command of `{name}` is empty or has an open quote: {command}")]
    Command {
        /// The column.
        name: String,
        /// As written.
        command: String,
    },
}
