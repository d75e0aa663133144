//! Digests of files and folders, by which `plugins.lock` identifies plugins.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most files in a plugin's folder. More would make every start slow.
pub const MOST_FILES: usize = 2_000;
/// The most levels of folders below a plugin's folder.
pub const MOST_DEPTH: usize = 16;

/// A blake3 hash, written `blake3:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(blake3::Hash);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// The first 12 digits, enough to tell two digests apart in a listing.
    pub fn short(&self) -> String {
        self.0.to_hex()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", self.0.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hash = text.strip_prefix("blake3:").and_then(|hex| blake3::Hash::from_hex(hex).ok());
        hash.map(Self).ok_or_else(|| format!("`{text}` is not a digest such as blake3:… with 64 hexadecimal digits"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The most bytes of a plugin's folder: all of them are read at every start.
pub(crate) const LARGEST_FOLDER: u64 = 512 << 20;

/// The files of a folder, read once: the bytes that are checked are the bytes that are used.
pub(crate) struct Contents {
    /// Relative names with `/`, in order, each with the file's bytes.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Contents {
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut left = LARGEST_FOLDER;
        for (name, path) in walk(folder)? {
            let bytes = hermes_private_files::read_regular(&path, left).map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => {
                    odd(folder, &format!("has more than the {} MiB that a plugin may have", LARGEST_FOLDER >> 20))
                }
                _ => error,
            })?;
            left -= bytes.len() as u64;
            files.push((name, bytes));
        }
        Ok(Self { files })
    }

    pub(crate) fn digest(&self) -> Digest {
        sum(self.files.iter().map(|(name, bytes)| (name.as_str(), blake3::hash(bytes))))
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        self.files.iter_mut().find(|(own, _)| own == name).map(|(_, bytes)| std::mem::take(bytes))
    }
}

/// The digest of a folder: of the names and contents of all files below it. Empty folders, times and modes do not count. A
/// link or a device is an error, because its target could change without changing the digest.
pub fn of_folder(folder: &Path) -> io::Result<Digest> {
    Ok(Contents::read(folder)?.digest())
}

/// The digest that [`of_folder`] gives a folder with exactly these files. The names are relative, with `/`, and sorted.
pub fn of_files<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Digest {
    sum(files.map(|(name, bytes)| (name, blake3::hash(bytes))))
}

fn sum<'a>(files: impl Iterator<Item = (&'a str, blake3::Hash)>) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("hermes 2026 plugin folder");
    for (name, content) in files {
        // The length separates the name from the content.
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(content.as_bytes());
    }
    Digest(hasher.finalize())
}

/// All files below a folder, by name.
fn walk(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    let mut folders = vec![(String::new(), folder.to_owned(), 0usize)];
    while let Some((prefix, folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| odd(&entry.path(), "has a name that is not UTF-8"))?;
            let name = format!("{prefix}{name}");
            // This is the type of the entry itself: links are not followed.
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < MOST_DEPTH {
                folders.push((format!("{name}/"), entry.path(), depth + 1));
            } else if kind.is_file() && files.len() < MOST_FILES {
                files.push((name, entry.path()));
            } else {
                let why = match (kind.is_dir(), kind.is_file()) {
                    (true, _) => "is nested too deeply for a plugin",
                    (_, true) => "is one file more than a plugin may have",
                    _ => "is neither a file nor a folder; a plugin may not contain links or devices",
                };
                return Err(odd(&entry.path(), why));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn odd(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::folder;

    #[test]
    fn a_digest_covers_names_and_contents_only() {
        let digest = |files: &[(&str, &str)]| of_folder(folder(files).path()).unwrap();
        let one = digest(&[("a", "x"), ("b/c", "y")]);
        assert_eq!(one, digest(&[("b/c", "y"), ("a", "x")]));
        for other in [
            &[("a", "x")][..],
            &[("a", "x"), ("b/c", "z")],
            &[("a", "x"), ("b/d", "y")],
            &[("a", "x"), ("c", "y")],
            &[("a", "x"), ("b/c", "y"), ("d", "")],
        ] {
            assert_ne!(one, digest(other), "{other:?}");
        }
        let with_empty = folder(&[("a", "x"), ("b/c", "y")]);
        fs::create_dir(with_empty.path().join("empty")).unwrap();
        assert_eq!(of_folder(with_empty.path()).unwrap(), one);
        assert_eq!(of_files([("a", &b"x"[..]), ("b/c", b"y")].into_iter()), one);
    }

    #[test]
    fn a_folder_that_is_too_large_is_not_read() {
        let folder = folder(&[("a", "x")]);
        for name in ["b", "c"] {
            fs::File::create(folder.path().join(name)).unwrap().set_len(LARGEST_FOLDER / 2).unwrap();
        }
        assert!(of_folder(folder.path()).unwrap_err().to_string().contains("512 MiB"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_has_no_digest() {
        let folder = folder(&[("a", "x")]);
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("b")).unwrap();
        assert!(of_folder(folder.path()).unwrap_err().to_string().contains("links or devices"));
    }

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of(b"x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in ["", "blake3:", "sha256:00", "blake3:zz"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
