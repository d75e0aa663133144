//! Files that a front end reads and writes for its user.
//!
//! Inputs are plain files of a limited size. An output has the readers that its content allows, and a pipe may be waited for. Files of
//! the home that a front end keeps itself, such as the history of its lines, are only for their owner.

use std::path::Path;

pub use hermes_private_files::{
    Patience, Place, Readers, append_file, open_regular, read_regular, read_text, write_output,
};

/// Which other agent wrote a file, in words that go on a sentence: `it is a session of Codex`. None for an export of Hermes, and for
/// a form that is not known.
pub fn recognised(path: &Path) -> Option<String> {
    hermes_recordings::Recording::recognised(path)
}
