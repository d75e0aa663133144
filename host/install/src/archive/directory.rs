//! Bounds the central directory of a zip archive before the zip reader parses it.
//!
//! The reader keeps the whole directory in memory. Its size and its number of entries come from the archive, so a file of
//! 256 MiB that is all directory would take several times as much memory.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use super::{Caps, MOST_NAME, refuse, unreadable};
use crate::error::InstallError;

/// The record at the end of an archive, without its comment.
const END: usize = 22;
const END_MAGIC: &[u8; 4] = b"PK\x05\x06";
/// Most bytes of the comment behind it.
const MOST_COMMENT: usize = u16::MAX as usize;
/// Bytes of a directory entry, with a name, and with as many bytes of other fields.
const MOST_ENTRY: u64 = 46 + 2 * MOST_NAME as u64;

/// Refuses a directory with more entries or bytes than the caps allow, and archives in parts or with 64-bit sizes, which no
/// plugin needs. Leaves the file at its beginning.
pub(super) fn check(file: &mut (impl Read + Seek), caps: Caps) -> Result<(), InstallError> {
    let size = file.seek(SeekFrom::End(0)).map_err(|error| unreadable(&error))?;
    let begin = size.saturating_sub((END + MOST_COMMENT) as u64);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(begin)).map_err(|error| unreadable(&error))?;
    file.take((END + MOST_COMMENT) as u64).read_to_end(&mut tail).map_err(|error| unreadable(&error))?;
    file.rewind().map_err(|error| unreadable(&error))?;
    // Readers look for the last one, so it must be the only one that they can find there.
    let Some(at) = tail.windows(4).rposition(|window| window == END_MAGIC) else {
        return refuse("it is damaged: it has no end of a central directory");
    };
    let Some(end) = tail.get(at..at + END) else { return refuse("it is damaged: it ends too early") };
    let short = |from: usize| u16::from_le_bytes([end[from], end[from + 1]]);
    let long = |from: usize| u32::from_le_bytes([end[from], end[from + 1], end[from + 2], end[from + 3]]);
    let (disk, first_disk, here, entries) = (short(4), short(6), short(8), short(10));
    let (bytes, offset, comment) = (u64::from(long(12)), u64::from(long(16)), usize::from(short(20)));
    if at + END + comment != tail.len() {
        return refuse("it is damaged: the comment at its end has another size");
    }
    if disk != 0 || first_disk != 0 || here != entries {
        return refuse("it is one part of several");
    }
    if entries == u16::MAX || bytes == u64::from(u32::MAX) || offset == u64::from(u32::MAX) {
        return refuse("it has the 64-bit format for very large archives");
    }
    if usize::from(entries) > caps.entries {
        return refuse(format!("it has more than {} entries", caps.entries));
    }
    if bytes > (u64::from(entries) * MOST_ENTRY) || offset + bytes > begin + at as u64 {
        return refuse("its central directory is too large");
    }
    Ok(())
}

/// A file with a limit on the bytes that are read of it: the second guard, if the reader finds another directory.
pub(super) struct Budget<F> {
    file: F,
    left: Rc<Cell<u64>>,
}

impl<F> Budget<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, left: Rc::new(Cell::new(MOST_READ)) }
    }

    /// The bytes that are left to read.
    pub(super) fn left(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.left)
    }
}

/// Most bytes that are read to open an archive: the directory once or twice, and the end.
const MOST_READ: u64 = 16 << 20;

impl<F: Read> Read for Budget<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64);
        self.left.set(left.ok_or_else(|| io::Error::other("its central directory is too large"))?);
        Ok(read)
    }
}

impl<F: Seek> Seek for Budget<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
