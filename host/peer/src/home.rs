//! The peer's home folder, and which of its files may be read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_app::is_own_database;

use crate::PeerError;
use crate::agents::Agent;

/// Entries that only a home of the peer contains.
const OWN: [&str; 3] = ["state.db", "SOUL.md", "skills/.bundled_manifest"];
/// Entries that mark a home of the peer, unless another agent's home is recognised. Skills alone are not a mark, because every
/// agent has some.
const MARKS: [&str; 2] = ["config.yaml", "memories"];

/// A home of Hermes Agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerHome {
    /// With all links resolved.
    root: PathBuf,
}

impl PeerHome {
    /// The named folder, or `~/.hermes`. `own` is the home of this program.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read, belongs to this program, or does not belong to the peer.
    pub fn find(named: Option<&Path>, own: &Path) -> Result<Self, PeerError> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => std::env::home_dir().ok_or(PeerError::NoHome)?.join(".hermes"),
        };
        let root = fs::canonicalize(&path).map_err(|source| PeerError::Unreadable { path: path.clone(), source })?;
        if fs::canonicalize(own).is_ok_and(|own| own == root) {
            return Err(PeerError::SameHome { path, named: named.is_some() });
        }
        fs::read_dir(&root).map_err(|source| PeerError::Unreadable { path: path.clone(), source })?;
        let has = |names: &[&str]| names.iter().any(|name| root.join(name).symlink_metadata().is_ok());
        if !has(&OWN) {
            if let Some(agent) = Agent::of_home(&path).or_else(|| Agent::of_home(&root)) {
                return Err(PeerError::OtherAgent(agent.usable(Some(&path))));
            }
            if !has(&MARKS) {
                return Err(PeerError::NoPeer { path });
            }
        }
        if is_own_database(&root.join("state.db")) {
            return Err(PeerError::OwnKind { path });
        }
        Ok(Self { root })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The real path of a file or folder of the home; `None` if it is missing.
    ///
    /// A link is followed within the home only: what a link to elsewhere shows was not written by the peer, and would be
    /// copied and sent to a model.
    pub(crate) fn within(&self, name: &str) -> Result<Option<PathBuf>, String> {
        match fs::canonicalize(self.root.join(name)) {
            Ok(real) if real.starts_with(&self.root) => Ok(Some(real)),
            Ok(_) => Err(format!("{name} is a link that leads out of the home")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{name} cannot be read: {error}")),
        }
    }
}
