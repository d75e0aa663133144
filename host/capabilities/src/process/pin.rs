//! Pins a program that plugins may change: the user approves its content, not its name.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::Folder;

/// The longest first line of a script.
const LINE: u64 = 512;

/// The hash of a program in one of these folders; none for a program elsewhere. Links in the path are resolved.
pub(super) fn of(real: &Path, folders: &[Folder]) -> io::Result<Option<String>> {
    let mut tops = folders.iter().filter_map(|folder| folder.path.canonicalize().ok());
    if tops.any(|top| real.starts_with(top)) { hash(real).map(Some) } else { Ok(None) }
}

/// Whether a program is still the one that was pinned.
pub(super) fn holds(real: &Path, pin: &str) -> bool {
    hash(real).is_ok_and(|now| now == pin)
}

/// The hash of a program, and of the interpreter that its first line names.
fn hash(real: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(real)?)?;
    if let Some(interpreter) = interpreter(real)? {
        // Its place counts as well: a link may lead elsewhere later.
        hasher.update(interpreter.as_os_str().as_encoded_bytes());
        hasher.update_reader(File::open(&interpreter)?)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// The interpreter of a script, with links resolved.
fn interpreter(script: &Path) -> io::Result<Option<PathBuf>> {
    let mut line = Vec::new();
    BufReader::new(File::open(script)?.take(LINE)).read_until(b'\n', &mut line)?;
    let Some(rest) = line.strip_prefix(b"#!") else { return Ok(None) };
    let rest = String::from_utf8_lossy(rest).into_owned();
    let path = rest.split_whitespace().next().map(PathBuf::from);
    Ok(path.and_then(|path| path.canonicalize().ok()))
}
