//! What differs between runs: times, and the sizes of files.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// Times of calls, and bytes on the disk.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// How long each turn took to write.
    pub writes: Vec<Duration>,
    /// How long each question took, with the `k` hits that were asked for.
    pub questions: Vec<Duration>,
    /// The bytes of all files of the memory, over all dialogues, after it was closed.
    pub bytes_on_disk: u64,
}

impl Measured {
    /// The time that this share of the calls did not exceed; `None` without calls.
    pub(super) fn within(times: &[Duration], share: usize) -> Option<Duration> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        sorted.get((sorted.len() * share / 100).min(sorted.len().saturating_sub(1))).copied()
    }
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let micros = |times: &[Duration], share| Self::within(times, share).map(|time| time.as_micros() as u64);
        let mut fields = serializer.serialize_struct("Measured", 7)?;
        fields.serialize_field("writes", &self.writes.len())?;
        fields.serialize_field("write_median_us", &micros(&self.writes, 50))?;
        fields.serialize_field("write_p99_us", &micros(&self.writes, 99))?;
        fields.serialize_field("questions", &self.questions.len())?;
        fields.serialize_field("question_median_us", &micros(&self.questions, 50))?;
        fields.serialize_field("question_p99_us", &micros(&self.questions, 99))?;
        fields.serialize_field("bytes_on_disk", &self.bytes_on_disk)?;
        fields.end()
    }
}

/// The bytes of all files below a folder.
pub(super) fn size_of(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
