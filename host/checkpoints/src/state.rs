//! What is at a path: a file with its content and its mode, a link, a folder, or nothing.

use serde::{Deserialize, Serialize};

/// The digest of a file's content, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub(crate) String);

impl Digest {
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content).to_hex().to_string())
    }

    /// Whether it names a file of the store and nothing else.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.len() == 64 && self.0.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// What the system says of a file. A file with the same stamp has the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// In nanoseconds since 1970. A program can set a file's time of modification, but not this one.
    pub(crate) changed: i64,
    pub(crate) modified: i64,
}

/// Why the content of a file is not in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsaved {
    /// It is larger than `checkpoints.max_file_size`.
    TooLarge,
    /// Its name is that of a file with secrets, such as `.env`.
    Secret,
    /// The system refused.
    Unreadable,
    /// It was removed from the store, or damaged there.
    Lost,
}

impl Unsaved {
    /// In words, after "its content was not saved: ".
    pub fn why(self) -> &'static str {
        match self {
            Self::TooLarge => "it is larger than checkpoints.max_file_size",
            Self::Secret => "files with this name hold secrets",
            Self::Unreadable => "it could not be read",
            Self::Lost => "the store no longer has it",
        }
    }
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// It is in the store.
    Stored(Digest),
    /// It is not. Another stamp means another content.
    Unsaved(Unsaved, Stamp),
}

/// What is at a path.
#[derive(Debug, Clone, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its permissions.
        mode: u32,
        /// Its size in bytes.
        size: u64,
        /// Its content.
        content: Content,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
    /// A folder. Its entries have states of their own.
    Folder {
        /// Its permissions.
        mode: u32,
    },
    /// A pipe, a socket or a device.
    Other,
}

/// Two folders are the same whatever their permissions are.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { mode, content, .. }, Self::File { mode: other_mode, content: other, .. }) => {
                mode == other_mode && content == other
            }
            (Self::Link { target }, Self::Link { target: other }) => target == other,
            (Self::Absent, Self::Absent) | (Self::Folder { .. }, Self::Folder { .. }) | (Self::Other, Self::Other) => {
                true
            }
            _ => false,
        }
    }
}

impl State {
    /// Why it cannot be brought back; `None` if it can.
    pub(crate) fn unsaved(&self) -> Option<Unsaved> {
        match self {
            Self::File { content: Content::Unsaved(why, _), .. } => Some(*why),
            Self::Other => Some(Unsaved::Unreadable),
            _ => None,
        }
    }

    pub(crate) fn digest(&self) -> Option<&Digest> {
        match self {
            Self::File { content: Content::Stored(digest), .. } => Some(digest),
            _ => None,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }
}
