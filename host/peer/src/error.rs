//! Why nothing can be imported. What concerns one part or one item is a line of the report instead.

use std::io;
use std::path::PathBuf;

use hermes_app::AppError;
use hermes_session_store::StoreError;

use crate::agents::Usable;

/// Why an import cannot begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The two programs would share a home.
    #[error("{} is the home of this program", path.display())]
    SameHome {
        /// The folder.
        path: PathBuf,
        /// Whether the user named it, as opposed to the place where the peer usually keeps its home.
        named: bool,
    },
    /// The folder belongs to this program, although it is not the home in use.
    #[error("{} is another home of this program", path.display())]
    OwnKind {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has nothing that a home of the peer has.
    #[error("{} contains no state.db, config.yaml, SOUL.md or memories", path.display())]
    NoPeer {
        /// The folder.
        path: PathBuf,
    },
    /// The home of another agent, of which only parts can be used.
    #[error(
        "{} belongs to {}; only a home of Hermes Agent is imported as a whole",
        .0.folder.display(),
        .0.agent
    )]
    OtherAgent(Usable),
    /// The folder cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the own home cannot be written.
    #[error("{}: {source}", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No variable says where the peer's home is.
    #[error("HOME is not set")]
    NoHome,
    /// There is no room or no right for a copy.
    #[error("{source}")]
    Temporary {
        /// Why.
        source: io::Error,
    },
    /// The own store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The own home.
    #[error(transparent)]
    App(Box<AppError>),
}

impl From<AppError> for PeerError {
    fn from(error: AppError) -> Self {
        Self::App(Box::new(error))
    }
}
