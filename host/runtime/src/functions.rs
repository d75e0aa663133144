//! Compiled functions of components under development. A new build of a component differs from the one before in few functions: the
//! interpreter of a language is most of it, and stays. So a compiler takes from a file what it compiled before.
//!
//! The file is code: the cache of compiled code hands it to a compiler only if this installation wrote it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::CacheStore;

/// The bytes that a file of functions may have before those that were not used last are dropped: twice the largest components.
const MOST_BYTES: usize = 192 << 20;
const KEY: usize = 32;

/// The files of a compilation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionFiles {
    /// The file of functions that were compiled before, and how many of its bytes count. The rest of the file is not read.
    pub known: Option<(PathBuf, u64)>,
    /// The file for the functions that this compilation used or added.
    pub next: Option<PathBuf>,
}

/// The functions of a file, and those that were compiled since.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    bytes: Vec<u8>,
    known: HashMap<[u8; KEY], (Range<usize>, AtomicBool)>,
    fresh: Mutex<HashMap<[u8; KEY], Vec<u8>>>,
}

impl Functions {
    /// The functions in these bytes, without damaged ones.
    fn of(bytes: Vec<u8>) -> Self {
        let mut known = HashMap::new();
        let mut at = 0;
        while let Some((key, rest)) = bytes[at..].split_first_chunk::<KEY>()
            && let Some((length, _)) = rest.split_first_chunk::<4>()
        {
            let start = at + KEY + 4;
            let end = start.saturating_add(u32::from_le_bytes(*length) as usize);
            if end > bytes.len() {
                break;
            }
            known.insert(*key, (start..end, AtomicBool::new(false)));
            at = end;
        }
        Self { bytes, known, fresh: Mutex::default() }
    }

    /// Reads a file. Without it, everything is compiled.
    pub(crate) fn read(files: &FunctionFiles) -> Arc<Self> {
        let read = |(path, length): &(PathBuf, u64)| {
            let mut bytes = Vec::new();
            File::open(path)?.take(*length).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        Arc::new(files.known.as_ref().and_then(|known| read(known).ok()).map(Self::of).unwrap_or_default())
    }

    /// Writes the functions that were used or added, and the others as long as there is room.
    pub(crate) fn write(&self, path: &Path, most: usize) -> io::Result<()> {
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        let size = self.bytes.len() + fresh.values().map(|bytes| KEY + 4 + bytes.len()).sum::<usize>();
        let all = size <= most;
        let mut file = BufWriter::new(File::options().write(true).truncate(true).open(path)?);
        let known = self.known.iter().filter(|(_, (_, used))| all || used.load(Ordering::Relaxed));
        let known = known.map(|(key, (range, _))| (key, &self.bytes[range.clone()]));
        for (key, bytes) in known.chain(fresh.iter().map(|(key, bytes)| (key, bytes.as_slice()))) {
            let Ok(length) = u32::try_from(bytes.len()) else { continue };
            file.write_all(key)?;
            file.write_all(&length.to_le_bytes())?;
            file.write_all(bytes)?;
        }
        file.flush()
    }

    /// [`Functions::write`] to the file of a compilation, within the usual room.
    pub(crate) fn keep(&self, files: &FunctionFiles) -> io::Result<()> {
        files.next.as_ref().map_or(Ok(()), |path| self.write(path, MOST_BYTES))
    }
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let key: [u8; KEY] = key.try_into().ok()?;
        if let Some((range, used)) = self.known.get(&key) {
            used.store(true, Ordering::Relaxed);
            return Some(Cow::Borrowed(&self.bytes[range.clone()]));
        }
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.get(&key).map(|bytes| Cow::Owned(bytes.clone()))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let Ok(key) = key.try_into() else { return false };
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(number: u8) -> [u8; KEY] {
        [number; KEY]
    }

    #[test]
    fn functions_are_kept_over_files_and_the_unused_ones_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        std::fs::write(&path, "").unwrap();
        let first = Functions::default();
        for number in 0..4 {
            assert!(first.insert(&key(number), vec![number; 1_000]));
        }
        assert!(!first.insert(b"short", Vec::new()));
        first.write(&path, MOST_BYTES).unwrap();
        let files = |length| FunctionFiles { known: Some((path.clone(), length)), next: Some(path.clone()) };
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!(length, 4 * 1_036);

        let second = Functions::read(&files(length));
        assert_eq!(second.get(&key(2)).unwrap().as_ref(), vec![2; 1_000]);
        assert!(second.insert(&key(9), vec![9; 10]));
        assert_eq!(second.get(&key(9)).unwrap().as_ref(), vec![9; 10]);
        assert!(second.get(&key(7)).is_none());
        second.write(&path, 4_000).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_036 + 46);
        second.keep(&files(0)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * 1_036 + 46);
    }

    #[test]
    fn a_file_that_is_cut_short_or_missing_gives_what_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        std::fs::write(&path, "").unwrap();
        let whole = Functions::default();
        whole.insert(&key(1), vec![1; 100]);
        whole.write(&path, MOST_BYTES).unwrap();
        for length in 0..136 {
            let cut = Functions::read(&FunctionFiles { known: Some((path.clone(), length)), next: None });
            assert!(cut.known.is_empty(), "{length}");
        }
        let missing = FunctionFiles { known: Some((folder.path().join("nothing"), 9)), next: None };
        assert!(Functions::read(&missing).known.is_empty());
    }
}
