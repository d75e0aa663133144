//! Rules for files of compiled code that hold for any bytes, checked by property tests and by `fuzz/`.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::Path;

use super::artifact::{self, Origin};
use super::key::Key;

const ORIGIN: Origin = Origin { source: [1; 32], fingerprint: [2; 32] };

fn key() -> Key {
    Key::of(&[3; 32])
}

/// Writes code as the compiler does, with its tag.
pub(super) fn write(path: &Path, code: &[u8]) {
    fs::write(path, code).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    artifact::tag(&file, &key(), ORIGIN).unwrap();
}

/// Whether the file would be mapped.
pub(super) fn is_mapped(path: &Path) -> bool {
    is_mapped_by(path, &key(), ORIGIN)
}

fn is_mapped_by(path: &Path, key: &Key, origin: Origin) -> bool {
    let Ok(file) = artifact::open(path) else { return false };
    artifact::check(&file, path, key, origin).is_ok()
}

/// Only code with its tag is mapped. It is refused without the tag, with a bit altered, truncated or lengthened, and for
/// another component, compiler or installation.
pub fn compiled_code(code: &[u8], at: usize, altered: u8) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.cwasm");
    fs::write(&path, code).unwrap();
    assert!(!is_mapped(&path), "bytes without a tag are mapped");

    write(&path, code);
    assert!(is_mapped(&path), "the compiler's output is not mapped");
    let other = [4; 32];
    assert!(!is_mapped_by(&path, &Key::of(&other), ORIGIN), "the code of another installation is mapped");
    assert!(
        !is_mapped_by(&path, &key(), Origin { source: other, ..ORIGIN }),
        "the code of another component is mapped"
    );
    assert!(
        !is_mapped_by(&path, &key(), Origin { fingerprint: other, ..ORIGIN }),
        "the code of another compiler is mapped"
    );

    let whole = fs::read(&path).unwrap();
    let at = at % whole.len();
    let mut bytes = whole.clone();
    bytes[at] ^= altered;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(is_mapped(&path), altered == 0, "byte {at} of {} altered by {altered}", whole.len());
    for (bytes, change) in [
        (&whole[..at], "cut"),
        (&[&whole[..], &[altered]].concat()[..], "lengthened"),
        (&[&[altered], &whole[..]].concat()[..], "lengthened in front"),
        (&[&whole[..at], &whole[..]].concat()[..], "doubled"),
    ] {
        if bytes != whole {
            fs::write(&path, bytes).unwrap();
            assert!(!is_mapped(&path), "{change} at {at} of {}", whole.len());
        }
    }
}
