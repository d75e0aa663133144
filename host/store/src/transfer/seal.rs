//! The seal of an export: a keyed digest of its lines, which only the home that wrote the file can compute. An import with
//! the seal of its own home needs no agreement of the user: nobody changed the file since the user exported it.

use std::io::{self, Write as _};
use std::path::Path;

use hermes_private_files as private;

/// The key of a home's exports.
const NAME: &str = "export.key";
const KEY_BYTES: usize = 32;

/// Computes the seal of a file, line by line.
#[derive(Debug, Clone)]
pub(super) struct Sealer(blake3::Hasher);

impl Sealer {
    /// With the key of a home, which is created if it is missing.
    pub(super) fn to_write(home: &Path) -> io::Result<Self> {
        if let Some(known) = Self::to_check(home) {
            return Ok(known);
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        match private::create_file(&home.join(NAME)) {
            Ok(mut file) => file.write_all(&key).and_then(|()| file.sync_all())?,
            // Another process was faster. If it has not written the key yet, this export has no seal.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Self::to_check(home).ok_or_else(|| io::Error::other(format!("{NAME} is not a key")))
    }

    /// `None` if the home has no key: it never exported anything.
    pub(super) fn to_check(home: &Path) -> Option<Self> {
        let key = private::read_regular(&home.join(NAME), KEY_BYTES as u64).ok()?;
        Some(Self(blake3::Hasher::new_keyed(&key.try_into().ok()?)))
    }

    /// Adds a line, without the syntax of an array around it.
    pub(super) fn line(&mut self, line: &[u8]) {
        // The length keeps two lines apart from one that contains both.
        self.0.update(&(line.len() as u64).to_le_bytes());
        self.0.update(line);
    }

    /// The seal of all lines so far, in hexadecimal digits.
    pub(super) fn seal(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }

    /// Whether a file's seal is the one of all lines so far. Takes the same time wherever the two differ.
    pub(super) fn fits(&self, seal: &str) -> bool {
        blake3::Hash::from_hex(seal).is_ok_and(|seal| seal == self.0.finalize())
    }
}
