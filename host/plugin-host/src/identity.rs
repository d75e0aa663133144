//! The identity of a plugin's code.

/// Identifies a plugin in approvals: other code means another plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its code, in hexadecimal digits.
    pub digest: String,
    /// Whether it is part of Hermes.
    pub is_bundled: bool,
}
