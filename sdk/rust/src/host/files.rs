//! Files below granted roots. Paths are relative to a root and cannot leave it. Needs the permission `files`.

use crate::Error;
use crate::imports::files as wit;

pub use wit::{Entry, Findings, Found, Kind, Pattern, Root, Slice};

/// Bytes per read: the host's maximum, because it may look at the whole file each time.
const SLICE: u32 = 8 << 20;

/// The granted roots.
pub fn roots() -> Result<Vec<Root>, Error> {
    wit::roots()
}

/// A root by name.
pub fn root(name: &str) -> Result<Root, Error> {
    roots()?
        .into_iter()
        .find(|root| root.name == name)
        .ok_or_else(|| Error::denied(format!("there is no root named {name} for this plugin")))
}

/// Metadata of a path.
pub fn stat(root: &str, path: &str) -> Result<Entry, Error> {
    wit::stat(root, path)
}

/// The entries of a directory, at most 10,000.
pub fn entries(root: &str, path: &str) -> Result<Vec<Entry>, Error> {
    wit::entries(root, path)
}

/// Part of a file.
pub fn read(root: &str, path: &str, offset: u64, limit: u32) -> Result<Slice, Error> {
    wit::read(root, path, offset, limit)
}

/// Reads a whole file. Fails with `exhausted` if it has more bytes than `limit`.
pub fn read_all(root: &str, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
    collect(path, limit, |offset| read(root, path, offset, SLICE))
}

/// Writes a file atomically and creates missing directories. With `version`, only if the file is at that version. Returns the
/// new version.
pub fn write(root: &str, path: &str, content: &[u8], version: Option<&str>) -> Result<String, Error> {
    wit::write(root, path, content, version)
}

/// Moves a file.
pub fn rename(root: &str, path: &str, to: &str) -> Result<(), Error> {
    wit::rename(root, path, to)
}

/// Deletes a file.
pub fn remove(root: &str, path: &str) -> Result<(), Error> {
    wit::remove(root, path)
}

/// Finds files by glob and, with a pattern, lines in them. Ignored files are skipped.
pub fn search(root: &str, glob: &str, pattern: Option<&Pattern>, offset: u32, limit: u32) -> Result<Findings, Error> {
    wit::search(root, glob, pattern, offset, limit)
}

fn collect(path: &str, limit: u64, read: impl Fn(u64) -> Result<Slice, Error>) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    let mut version = None;
    loop {
        let slice = read(content.len() as u64)?;
        if slice.total > limit {
            return Err(
                Error::exhausted(format!("{path} has {} bytes, more than {limit}", slice.total)).with_code("too-long")
            );
        }
        // The file changed between two slices; mixing them would be wrong.
        if version.get_or_insert_with(|| slice.version.clone()) != &slice.version {
            return Err(Error::conflict(format!("{path} changed while it was read; try again")));
        }
        content.extend_from_slice(&slice.content);
        if slice.content.is_empty() || content.len() as u64 >= slice.total {
            return Ok(content);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn slices(text: &str, versions: [&str; 2]) -> impl Fn(u64) -> Result<Slice, Error> {
        move |offset| {
            let from = usize::try_from(offset).unwrap();
            let to = (from + 4).min(text.len());
            Ok(Slice {
                content: text.as_bytes()[from..to].to_vec(),
                total: text.len() as u64,
                version: versions[usize::from(from > 0)].to_owned(),
            })
        }
    }

    #[test]
    fn a_file_is_read_slice_by_slice() {
        assert_eq!(collect("a", 100, slices("0123456789", ["1", "1"])).unwrap(), b"0123456789");
        assert_eq!(collect("a", 100, slices("", ["1", "1"])).unwrap(), b"");
    }

    #[test]
    fn a_file_that_is_too_long_or_changes_during_reading_is_refused() {
        let long = collect("a", 9, slices("0123456789", ["1", "1"])).unwrap_err();
        assert!(long.is(crate::ErrorKind::Exhausted));
        let changed = collect("a", 100, slices("0123456789", ["1", "2"])).unwrap_err();
        assert!(changed.is(crate::ErrorKind::Conflict));
    }
}
