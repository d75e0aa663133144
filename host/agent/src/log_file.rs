//! A plugin's log: a file to which several processes append lines, and one rotated predecessor.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The size at which a log is rotated, in bytes. A rotation replaces the older log.
pub(crate) const MAX_SIZE: u64 = 8 << 20;

/// The path of the rotated log.
pub fn older_log(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

/// Appends lines to a log. The first line creates the file.
pub(crate) struct LogFile {
    path: PathBuf,
    max_size: u64,
    file: Option<File>,
}

impl LogFile {
    pub(crate) fn new(path: PathBuf, max_size: u64) -> Self {
        Self { path, max_size, file: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, which must end with a line feed.
    pub(crate) fn append(&mut self, line: &str) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        // This also covers a file that another process has just rotated: it is full too.
        if self.is_full(&file.metadata()?, line) {
            self.rotate(line)?;
            file = open(&self.path)?;
        }
        // One write for each line, because several processes append to the file.
        file.write_all(line.as_bytes())?;
        self.file = Some(file);
        Ok(())
    }

    fn is_full(&self, found: &fs::Metadata, line: &str) -> bool {
        found.len() > 0 && found.len() + line.len() as u64 > self.max_size
    }

    /// Rotates the log unless another process has already rotated it.
    fn rotate(&self, line: &str) -> io::Result<()> {
        let lock = hermes_private_files::open_file(&self.path.with_file_name("rotation.lock"))?;
        lock.lock()?;
        match fs::metadata(&self.path) {
            Ok(found) if self.is_full(&found, line) => hermes_private_files::rotate(&self.path, &older_log(&self.path)),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        hermes_private_files::create_folder(folder)?;
    }
    hermes_private_files::append_file(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn size(path: &Path) -> u64 {
        fs::metadata(path).map_or(0, |found| found.len())
    }

    #[test]
    fn a_log_is_rotated_before_it_is_too_large_and_one_older_log_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/mine.jsonl");
        let mut log = LogFile::new(path.clone(), 100);
        for number in 0..50 {
            log.append(&format!("line number {number:02}\n")).unwrap();
            assert!(size(&path) <= 100 && size(&older_log(&path)) <= 100);
        }
        let both = fs::read_to_string(older_log(&path)).unwrap() + &fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = both.lines().collect();
        assert!(kept.len() > 6 && kept.last() == Some(&"line number 49"), "{kept:?}");
        assert!(kept.is_sorted(), "{kept:?}");
        log.append(&"x".repeat(300)).unwrap();
        assert_eq!(size(&path), 300, "an oversized line gets its own log");
    }

    #[test]
    fn concurrent_writers_rotate_once_and_lose_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.jsonl");
        // All lines together fill less than two files.
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let mut log = LogFile::new(path.clone(), 12_000);
                scope.spawn(move || {
                    for number in 0..200 {
                        log.append(&format!("{writer} wrote a line {number:04}\n")).unwrap();
                    }
                });
            }
        });
        let both = fs::read_to_string(older_log(&path)).unwrap() + &fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = both.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 800);
    }
}
