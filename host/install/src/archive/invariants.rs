//! The invariants of unpacking, used by property tests and by `fuzz/`.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::{Caps, Links, folded, unfit, unpack, unpack_tar};
use crate::error::InstallError;

/// Small limits, so that a fuzzer reaches them.
fn tight() -> Caps {
    Caps { entries: 12, file: 32 << 10, total: 64 << 10, ratio: 100, depth: 4, links: Links::Refuse }
}

/// Unpacks `bytes` as an archive file and checks the invariants.
pub fn archive(bytes: &[u8]) {
    let _ = unpacked(bytes, tight());
}

/// Unpacks `bytes` as a tar stream and checks the invariants. Wrong header checksums are corrected first, since such
/// headers would be refused unread.
pub fn tarball(bytes: &[u8]) {
    const BLOCK: usize = 512;
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while bytes.len().saturating_sub(at) >= BLOCK {
        let header = tar::Header::from_byte_slice(&bytes[at..at + BLOCK]);
        let size = usize::try_from(header.entry_size().unwrap_or(0)).unwrap_or(usize::MAX);
        let mut header = header.clone();
        header.set_cksum();
        bytes[at..at + BLOCK].copy_from_slice(header.as_bytes());
        at = at.saturating_add(BLOCK).saturating_add(size.div_ceil(BLOCK).saturating_mul(BLOCK));
    }
    let _ = held(tight(), bytes.len(), |_, into| unpack_tar(&bytes[..], bytes.len() as u64, into, tight()).map(drop));
}

/// Unpacks an archive. Returns the names of the unpacked files and the result.
pub(super) fn unpacked(bytes: &[u8], caps: Caps) -> (Vec<String>, Result<(), String>) {
    held(caps, bytes.len(), |archive, into| {
        fs::write(archive, bytes).unwrap();
        unpack(archive, into, caps).map(drop)
    })
}

/// Checks that nothing was written outside the folder. The folder may contain only files and folders with valid names,
/// and no more of them than the limits allow.
fn held(
    caps: Caps,
    packed: usize,
    unpack: impl FnOnce(&Path, &Path) -> Result<(), InstallError>,
) -> (Vec<String>, Result<(), String>) {
    let ground = tempfile::tempdir().unwrap();
    let (archive, into) = (ground.path().join("archive"), ground.path().join("in"));
    fs::write(&archive, "").unwrap();
    fs::create_dir(&into).unwrap();
    let answer = unpack(&archive, &into).map_err(|error| error.to_string());
    if let Err(why) = &answer {
        assert!(!why.is_empty() && why.len() < 4 << 10, "a reason of {} bytes", why.len());
    }
    let mut names: Vec<_> = fs::read_dir(ground.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["archive", "in"], "something was written beside the folder");

    let mut found = Vec::new();
    let mut total = 0;
    let mut folders = vec![into.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            assert!(about.is_dir() || about.is_file(), "{}", path.display());
            if about.is_dir() {
                folders.push(path.clone());
            } else {
                assert!(about.len() <= caps.file, "{} has {} bytes", path.display(), about.len());
                total += about.len();
            }
            let name = path.strip_prefix(&into).unwrap().to_str().unwrap().to_owned();
            assert!(
                name.split('/').count() <= caps.depth && name.split('/').all(|part| unfit(part).is_none()),
                "{name:?}"
            );
            found.push(name);
        }
    }
    let room = caps.total.min((packed as u64).saturating_mul(caps.ratio).max(Caps::FREE));
    assert!(total <= room, "{total} bytes");
    assert!(found.len() <= caps.entries * caps.depth, "{} files and folders", found.len());
    assert_eq!(found.iter().map(|name| folded(name)).collect::<HashSet<_>>().len(), found.len(), "{found:?}");
    found.sort();
    (found, answer)
}
