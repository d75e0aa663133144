//! Files that cannot be read as recordings.

use std::io;
use std::path::PathBuf;

use hermes_diagnostic::{Diagnose, Fix, Parts};

hermes_diagnostic::codes! {
    /// The codes of recordings.
    pub mod codes {
        READ = "lab.read", Category::General, "a file cannot be read";
        RECORDING = "lab.recording", Category::General, "a file is not a recording that can be replayed";
    }
}

/// A file that cannot be read, or that is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
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
}

/// What can be replayed.
const KNOWN: &str = "give an exported session, bodies of requests as JSON lines, or a session of pi, Claude Code, Codex, \
                     opencode, Gemini CLI, Qwen Code, Continue or Cline";

impl Diagnose for RecordingError {
    fn parts(&self) -> Parts {
        let (code, fix) = match self {
            Self::Read { .. } => (codes::READ, Fix::words("check that the file exists and can be read")),
            Self::Folder { session, .. } => (
                codes::READ,
                match session {
                    Some(session) => Fix::words(format!("give one of its files, such as {}", session.display())),
                    None => Fix::words("give a file"),
                },
            ),
            Self::Foreign { .. } => (codes::RECORDING, Fix::words(KNOWN)),
            Self::TooLarge { .. } => (codes::RECORDING, Fix::words("split it by session")),
            Self::Line { .. } => (codes::RECORDING, Fix::words("correct the line").or(KNOWN)),
            Self::Empty { .. } => (codes::RECORDING, Fix::words("choose a session in which a model has replied")),
        };
        (code, "the lab cannot start".into(), fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let path = || "recording.jsonl".into();
        let errors = [
            RecordingError::Read { path: path(), source: io::Error::other("refused") },
            RecordingError::Folder { path: path(), session: Some(path()) },
            RecordingError::Foreign { path: path(), why: "it is a session of Copilot CLI".into() },
            RecordingError::TooLarge { path: path(), bytes: 2, most: 1 },
            RecordingError::Line { path: path(), line: 1, why: "it is not JSON".into() },
            RecordingError::Empty { path: path() },
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
