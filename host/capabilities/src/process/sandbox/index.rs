//! Reads the index of a repository as git does, also one that a program forged, to find the files that git would write.
//!
//! git writes every entry of its index at a checkout, without a look at its path. The format is that of `gitformat-index(5)`: versions 2 to
//! 4, SHA-1 and SHA-256. The file is read as a stream, so that its size costs no memory.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::path::Path;

/// A larger index is not read. Two million files need about this much.
const LARGEST: u64 = 256 << 20;
/// No system has longer paths.
const LONGEST: usize = 4096;
/// The paths of an index of version 4 may be much larger than the file.
const MOST_PATHS: u64 = 128 << 20;
/// The fields of an entry before its hash.
const FIELDS: usize = 40;
const HEADER: u64 = 12;
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
const FOLDER: u32 = 0o040_000;

/// Why an index does not stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// git would write this path outside of the work tree, or into a folder of git.
    Path(String),
    /// The file is not an index, or not in a form that git writes.
    Unreadable,
    /// It is too large to be read.
    TooLarge,
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Self {
        Self::Unreadable
    }
}

/// An entry of an index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) path: &'a [u8],
    pub(super) mode: u32,
    pub(super) hash: &'a [u8],
}

/// Reads an index with hashes of this length, and hands over each entry. Returns the hash of the index that it shares entries with, if there is
/// one: git finds that at `sharedindex.HASH`.
pub(super) fn read(file: &Path, hash: usize, each: impl FnMut(&Entry<'_>)) -> Result<Option<String>, Fault> {
    let file = hermes_private_files::open_regular(file)?;
    let length = file.metadata()?.len();
    if length > LARGEST {
        return Err(Fault::TooLarge);
    }
    read_from(BufReader::with_capacity(1 << 16, file), length, hash, each)
}

fn read_from<R: BufRead + Seek>(
    source: R,
    length: u64,
    hash: usize,
    mut each: impl FnMut(&Entry<'_>),
) -> Result<Option<String>, Fault> {
    let end = length.checked_sub(hash as u64).ok_or(Fault::Unreadable)?;
    let mut source = Source { inner: source, at: 0, end };
    if source.array()? != *b"DIRC" {
        return Err(Fault::Unreadable);
    }
    let version = source.number()?;
    if !(2..=4).contains(&version) {
        return Err(Fault::Unreadable);
    }
    let count = source.number()?;
    let mut starts = Starts::default();
    let (mut path, mut fields, mut paths) = (Vec::new(), vec![0; FIELDS + hash], 0);
    let mut has_nameless = false;
    for _ in 0..count {
        let start = source.at;
        source.fill(&mut fields)?;
        let kept = source.path(version, &mut path, start)?;
        starts.add(start, kept == 0);
        paths += path.len() as u64;
        if paths > MOST_PATHS {
            return Err(Fault::TooLarge);
        }
        let mode = u32::from_be_bytes([fields[24], fields[25], fields[26], fields[27]]);
        if path.is_empty() {
            // The entry of a shared index, without its name.
            has_nameless = true;
        } else if !is_safe(&path, kept, mode) {
            return Err(Fault::Path(String::from_utf8_lossy(&path).into_owned()));
        }
        each(&Entry { path: &path, mode, hash: &fields[FIELDS..] });
    }
    let base = source.extensions(&starts, hash)?;
    if has_nameless && base.is_none() { Err(Fault::Unreadable) } else { Ok(base) }
}

/// Where the entries start, and whether the path of each is written in full.
#[derive(Default)]
struct Starts(Vec<(u32, bool)>);

impl Starts {
    fn add(&mut self, start: u64, is_whole: bool) {
        self.0.push((u32::try_from(start).unwrap_or(u32::MAX), is_whole));
    }

    /// Whether threads that begin at these blocks (an offset and a number of entries) read the same entries.
    fn has(&self, blocks: &[u8]) -> bool {
        let mut first = 0;
        for block in blocks.chunks_exact(8) {
            let (offset, count) = (number(&block[..4]), number(&block[4..]) as usize);
            if count > 0 && self.0.get(first) != Some(&(offset, true)) {
                return false;
            }
            first = first.saturating_add(count);
        }
        first == self.0.len()
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// The bytes before the last hash.
struct Source<R> {
    inner: R,
    at: u64,
    end: u64,
}

impl<R: BufRead + Seek> Source<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        self.at += bytes.len() as u64;
        if self.at > self.end {
            return Err(Fault::Unreadable);
        }
        Ok(self.inner.read_exact(bytes)?)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn skip(&mut self, count: u64) -> Result<(), Fault> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.end).ok_or(Fault::Unreadable)?;
        Ok(self.inner.seek_relative(i64::try_from(count).map_err(|_| Fault::Unreadable)?)?)
    }

    /// Reads the flags and the path of an entry. Returns how much of the path before is kept.
    fn path(&mut self, version: u32, path: &mut Vec<u8>, start: u64) -> Result<usize, Fault> {
        /// Two more bytes of flags follow.
        const EXTENDED: u16 = 0x4000;
        /// The flags of an extended entry that git knows.
        const KNOWN: u16 = 0x6000;
        const LENGTH: u16 = 0x0fff;
        let flags = u16::from_be_bytes(self.array()?);
        if flags & EXTENDED != 0 && u16::from_be_bytes(self.array()?) & !KNOWN != 0 {
            return Err(Fault::Unreadable);
        }
        let kept = if version == 4 {
            let removed = self.variable()?;
            // git ignores this number for the first entry.
            if start == HEADER { 0 } else { path.len().checked_sub(removed).ok_or(Fault::Unreadable)? }
        } else {
            0
        };
        path.truncate(kept);
        let length = usize::from(flags & LENGTH);
        if length < usize::from(LENGTH) {
            path.resize(length.max(kept), 0);
            self.fill(&mut path[kept..])?;
            if length < kept || self.array()? != [0] {
                return Err(Fault::Unreadable);
            }
        } else {
            // The zero behind it ends a long path.
            let before = path.len();
            (&mut self.inner).take((LONGEST - kept) as u64 + 1).read_until(0, path)?;
            self.at += (path.len() - before) as u64;
            if self.at > self.end || path.pop() != Some(0) || path.len() < length {
                return Err(Fault::Unreadable);
            }
        }
        if path.contains(&0) {
            return Err(Fault::Unreadable);
        }
        if version < 4 {
            // One to eight zeros make the size a multiple of eight.
            self.skip((self.at - start).next_multiple_of(8) - (self.at - start))?;
        }
        Ok(kept)
    }

    /// A number as `varint.c` of git writes it.
    fn variable(&mut self) -> Result<usize, Fault> {
        let mut value = 0_usize;
        loop {
            let [byte] = self.array()?;
            value |= usize::from(byte & 127);
            if byte & 128 == 0 {
                return Ok(value);
            }
            if value > LONGEST {
                return Err(Fault::Unreadable);
            }
            value = (value + 1) << 7;
        }
    }

    /// Reads what follows the entries.
    fn extensions(&mut self, starts: &Starts, hash: usize) -> Result<Option<String>, Fault> {
        let entries = self.at;
        // git looks for an extension at this place, whatever extensions are before it.
        let last = (self.end).checked_sub(12 + hash as u64);
        let (mut base, mut has_last) = (None, false);
        while self.end - self.at >= 8 {
            let start = self.at;
            let (name, size) = (self.array::<4>()?, u64::from(self.number()?));
            match &name {
                b"link" => {
                    let mut shared = vec![0; hash];
                    self.fill(&mut shared)?;
                    self.skip(size.checked_sub(hash as u64).ok_or(Fault::Unreadable)?)?;
                    let hex = shared.iter().map(|byte| format!("{byte:02x}")).collect();
                    base = Some(hex).filter(|_| shared.iter().any(|byte| *byte != 0));
                }
                b"EOIE" if Some(start) == last => {
                    has_last = true;
                    // It names the end of the entries, where git would look for other extensions.
                    if size != 4 + hash as u64 || u64::from(self.number()?) != entries {
                        return Err(Fault::Unreadable);
                    }
                    self.skip(hash as u64)?;
                }
                b"IEOT" => {
                    // At most one block for each entry, so the size of the file bounds it.
                    let mut blocks = vec![0; usize::try_from(size.min(self.end)).map_err(|_| Fault::Unreadable)?];
                    self.fill(&mut blocks)?;
                    // Threads of git begin at the blocks that it names.
                    if blocks.get(..4) != Some(&[0, 0, 0, 1]) || !starts.has(&blocks[4..]) {
                        return Err(Fault::Unreadable);
                    }
                }
                b"sdir" => self.skip(size)?,
                // git cannot read an index with others.
                [first, ..] if !first.is_ascii_uppercase() => return Err(Fault::Unreadable),
                _ => self.skip(size)?,
            }
        }
        if let Some(last) = last.filter(|last| *last >= HEADER && !has_last) {
            let mut name = [0; 4];
            self.inner.seek(SeekFrom::Start(last))?;
            self.inner.read_exact(&mut name)?;
            if &name == b"EOIE" {
                return Err(Fault::Unreadable);
            }
        }
        Ok(base)
    }
}

/// Whether git takes a path into its index, as `verify_path` decides for all file systems. The first `kept` bytes were checked
/// with the path before.
fn is_safe(path: &[u8], kept: usize, mode: u32) -> bool {
    let kind = mode & KIND;
    // The folder of a sparse index ends with a slash.
    let path = if kind == FOLDER { path.strip_suffix(b"/").unwrap_or(path) } else { path };
    let kept =
        path.get(..kept).and_then(|kept| kept.iter().rposition(|byte| *byte == b'/')).map_or(0, |slash| slash + 1);
    path.len() <= LONGEST && path[kept..].split(|byte| *byte == b'/').all(|name| is_safe_name(name, kind))
}

fn is_safe_name(name: &[u8], kind: u32) -> bool {
    let is_modules = kind == LINK && name.eq_ignore_ascii_case(b".gitmodules");
    !matches!(name, b"" | b"." | b"..") && !is_modules && !is_git(name)
}

/// Whether some file system takes a name for `.git`.
fn is_git(name: &[u8]) -> bool {
    if !name.is_ascii() {
        return name.len() >= b".git".len() && crate::files::is_git(&readable(name));
    }
    // As there, but most names are quick to tell.
    let name = name.split(|byte| *byte == b':').next().unwrap_or_default();
    let last = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    name[..last].eq_ignore_ascii_case(b".git") || name[..last].eq_ignore_ascii_case(b"git~1")
}

#[cfg(unix)]
pub(super) fn readable(name: &[u8]) -> std::borrow::Cow<'_, OsStr> {
    let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
    name.into()
}

#[cfg(not(unix))]
pub(super) fn readable(name: &[u8]) -> std::borrow::Cow<'_, OsStr> {
    std::ffi::OsString::from(String::from_utf8_lossy(name).into_owned()).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    const PLAIN: u32 = 0o100_644;

    fn header(version: u32, count: u32) -> Vec<u8> {
        [b"DIRC", &version.to_be_bytes()[..], &count.to_be_bytes()].concat()
    }

    /// An entry of version 2 or 3.
    fn entry(path: &[u8], mode: u32, hash: usize) -> Vec<u8> {
        let mut entry = [&[0; 24][..], &mode.to_be_bytes(), &[0; 12], &vec![7; hash]].concat();
        entry.extend((path.len().min(0xfff) as u16).to_be_bytes());
        entry.extend(path);
        entry.resize((entry.len() + 8) & !7, 0);
        entry
    }

    /// An entry of version 4 that removes `removed` bytes of the path before.
    fn short_entry(removed: u8, rest: &[u8], length: usize) -> Vec<u8> {
        let mut entry = [&[0; 24][..], &PLAIN.to_be_bytes(), &[0; 12], &[7; 20]].concat();
        entry.extend((length as u16).to_be_bytes());
        entry.push(removed);
        entry.extend(rest);
        entry.push(0);
        entry
    }

    fn extension(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        [&name[..], &(data.len() as u32).to_be_bytes(), data].concat()
    }

    fn paths(bytes: &[u8], hash: usize) -> Result<Vec<String>, Fault> {
        let mut all = Vec::new();
        read_from(Cursor::new(bytes), bytes.len() as u64, hash, |entry| {
            all.push(String::from_utf8_lossy(entry.path).into_owned());
        })?;
        Ok(all)
    }

    fn with_path(path: &[u8], mode: u32) -> Result<Vec<String>, Fault> {
        paths(&[header(2, 1), entry(path, mode, 20), vec![0; 20]].concat(), 20)
    }

    #[test]
    fn all_versions_and_both_hashes_are_read() {
        for hash in [20, 32] {
            let bytes = [
                header(2, 2),
                entry(b"a", PLAIN, hash),
                entry(b"src/main.rs", PLAIN, hash),
                extension(b"TREE", b"xy"),
                vec![0; hash],
            ];
            assert_eq!(paths(&bytes.concat(), hash).unwrap(), ["a", "src/main.rs"]);
        }
        let bytes = [
            header(4, 3),
            short_entry(0, b"src/a.rs", 8),
            short_entry(4, b"b.rs", 8),
            short_entry(8, b"z", 1),
            vec![0; 20],
        ];
        assert_eq!(paths(&bytes.concat(), 20).unwrap(), ["src/a.rs", "src/b.rs", "z"]);
        let long = vec![b'x'; 4095];
        assert_eq!(with_path(&long, PLAIN).unwrap()[0].len(), 4095);
    }

    #[test]
    fn paths_that_git_refuses_are_found() {
        for evil in [
            &b"../escape"[..],
            b"a/../b",
            b"/etc/passwd",
            b"a//b",
            b"a/",
            b"a/./b",
            b".git/hooks/post-checkout",
            b"sub/.GIT/config",
            b"git~1/config",
            b"a/.git. . /x",
            b".git::$INDEX_ALLOCATION/x",
            ".g\u{200c}it/config".as_bytes(),
        ] {
            let found = with_path(evil, PLAIN);
            assert!(matches!(found, Err(Fault::Path(_))), "{:?}: {found:?}", String::from_utf8_lossy(evil));
        }
        assert!(matches!(with_path(b".gitmodules", LINK), Err(Fault::Path(_))));
        for good in
            [&b".gitmodules"[..], b".github/x", b"a/.gitignore", b"git", b"..a/b...", "\u{e4}/\u{df}".as_bytes()]
        {
            assert!(with_path(good, PLAIN).is_ok(), "{:?}", String::from_utf8_lossy(good));
        }
        assert!(with_path(b"folder/", FOLDER).is_ok(), "a sparse index has folders");
        // A name whose beginning is kept from the path before.
        let bytes = [header(4, 2), short_entry(0, b".gitx", 5), short_entry(1, b"/x", 6), vec![0; 20]];
        assert_eq!(paths(&bytes.concat(), 20), Err(Fault::Path(".git/x".to_owned())));
    }

    /// With several threads, git begins to read at the places that two extensions name.
    #[test]
    fn threads_of_git_read_the_same_entries() {
        let start = |bytes: &[Vec<u8>]| bytes.concat().len() as u32;
        let entries = [header(2, 2), entry(b"a", PLAIN, 20), entry(b"b", PLAIN, 20)];
        let end = start(&entries);
        let table = |blocks: &[(u32, u32)]| {
            let blocks = blocks.iter().flat_map(|(offset, count)| [offset.to_be_bytes(), count.to_be_bytes()].concat());
            extension(b"IEOT", &[1_u32.to_be_bytes().to_vec(), blocks.collect()].concat())
        };
        let last = |end: u32| extension(b"EOIE", &[&end.to_be_bytes()[..], &[0; 20]].concat());
        let whole = |further: &[Vec<u8>]| paths(&[entries.concat(), further.concat(), vec![0; 20]].concat(), 20);
        let second = start(&entries[..2]);
        assert!(whole(&[table(&[(12, 1), (second, 1)]), last(end)]).is_ok());
        assert!(whole(&[table(&[(12, 2)]), last(end)]).is_ok());
        for evil in [
            vec![table(&[(12, 1), (end + 8, 1)]), last(end)],
            vec![table(&[(12, 1)]), last(end)],
            vec![table(&[(12, u32::MAX), (second, u32::MAX)]), last(end)],
            vec![last(end + 4)],
            // An extension that contains the other one.
            vec![extension(b"XXXX", &last(end + 4))],
            vec![extension(b"evil", b"")],
        ] {
            assert_eq!(whole(&evil), Err(Fault::Unreadable), "{evil:?}");
        }
        // In a block, the first path does not depend on the one before.
        let entries = [header(4, 2), short_entry(0, b"ax", 2), short_entry(1, b"b", 2)];
        let second = start(&entries[..2]);
        let bytes = [entries.concat(), table(&[(12, 1), (second, 1)]), vec![0; 20]].concat();
        assert_eq!(paths(&bytes, 20), Err(Fault::Unreadable));
    }

    #[test]
    fn what_is_no_index_is_unreadable() {
        let good = [header(2, 1), entry(b"a", PLAIN, 20), vec![0; 20]].concat();
        for length in 0..good.len() {
            assert_eq!(paths(&good[..length], 20), Err(Fault::Unreadable), "{length}");
        }
        let mut huge = good.clone();
        huge[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(paths(&huge, 20), Err(Fault::Unreadable));
        assert_eq!(with_path(b"", PLAIN), Err(Fault::Unreadable), "only entries of a shared index have no name");
        assert_eq!(with_path(b"a\0b", PLAIN), Err(Fault::Unreadable));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            version in 0_u32..6,
            count in 0_u32..5,
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            good in 0_usize..3,
        ) {
            let entries = vec![entry(b"a/b", PLAIN, 20); good].concat();
            let _ = paths(&[header(version, count), entries, bytes].concat(), 20);
        }
    }
}
