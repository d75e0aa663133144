//! Unpacks untrusted archives: only regular files and folders, below one folder, with limits on every count.
//!
//! All formats share one set of rules ([`Unpacker`]) and pass it only names and bytes. Sizes that an archive claims are not
//! trusted: bytes are counted as they arrive.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use icu_normalizer::ComposingNormalizerBorrowed;

use crate::error::InstallError;

mod directory;

/// The limits of an archive.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// The number of files and folders.
    pub entries: usize,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files.
    pub total: u64,
    /// How many times larger than the archive its contents may be, beyond a first [`Caps::FREE`] bytes.
    pub ratio: u64,
    /// The nesting depth of folders.
    pub depth: usize,
    /// What happens to links.
    pub links: Links,
}

/// What happens to the links of an archive. None is ever written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// An archive with a link is refused.
    Refuse,
    /// Links are left out, and their names returned: an archive can hold more than what is used of it.
    LeaveOut,
}

impl Caps {
    /// Bytes that any archive may have unpacked, whatever its ratio of compression.
    pub const FREE: u64 = 8 << 20;

    /// The standard limits. A component of an interpreted language has 35 MiB; the limits leave room for several.
    pub fn standard() -> Self {
        Self { entries: 2_000, file: 128 << 20, total: 256 << 20, ratio: 100, depth: 16, links: Links::Refuse }
    }
}

/// Most bytes of a name, with its folders.
const MOST_NAME: usize = 1_024;
/// Most bytes of a tar header that extends the next entry.
const MOST_EXTENSION: u64 = 64 << 10;
/// Most bytes that are read behind the end of a tar stream. Archives end at a multiple of a block, of 10 KiB by default.
const MOST_PADDING: u64 = 1 << 20;

/// Unpacks a `.tar.gz` or `.zip` into an existing, empty folder. The first bytes decide the format. Returns the names of the
/// links that were left out.
pub fn unpack(archive: &Path, into: &Path, caps: Caps) -> Result<Vec<String>, InstallError> {
    let failed = |source| InstallError::File { path: archive.to_owned(), source };
    let mut file = fs::File::open(archive).map_err(failed)?;
    let packed = file.metadata().map_err(failed)?.len();
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic).map_err(failed)?;
    io::Seek::rewind(&mut file).map_err(failed)?;
    let unpacker = Unpacker::new(into, packed, caps);
    match magic.as_slice() {
        [0x1f, 0x8b, ..] => tarball(GzDecoder::new(io::BufReader::new(file)), unpacker),
        [b'P', b'K', ..] => zipped(io::BufReader::new(file), unpacker),
        _ => Err(InstallError::NotAnArchive { from: archive.display().to_string() }),
    }
}

/// Unpacks a tar stream; `packed` is its size, compressed or not.
///
/// Returns the names of the links that were left out. It also reads the padding behind the archive: a program that still writes it would fail at a closed stream.
pub(crate) fn unpack_tar(
    mut stream: impl Read,
    packed: u64,
    into: &Path,
    caps: Caps,
) -> Result<Vec<String>, InstallError> {
    let links = tarball(&mut stream, Unpacker::new(into, packed, caps))?;
    io::copy(&mut stream.take(MOST_PADDING), &mut io::sink()).map_err(|error| unreadable(&error))?;
    Ok(links)
}

/// Why an archive with a link is refused, if the header in front of the link gives it away.
const LINK: &str = "it contains a link, and links are not allowed";

fn refuse<T>(why: impl Into<String>) -> Result<T, InstallError> {
    Err(InstallError::Archive(why.into()))
}

fn unreadable(error: &io::Error) -> InstallError {
    InstallError::Archive(format!("it is damaged: {error}"))
}

/// Checks every entry against the rules, and writes it.
struct Unpacker<'a> {
    into: &'a Path,
    caps: Caps,
    /// Most bytes of all entries.
    room: u64,
    entries: usize,
    /// Each name, folded as on a file system that ignores case and composition, with its spelling and whether it is a folder.
    seen: HashMap<String, (String, bool)>,
    /// The links that were left out.
    links: Vec<String>,
}

impl<'a> Unpacker<'a> {
    fn new(into: &'a Path, packed: u64, caps: Caps) -> Self {
        let room = caps.total.min(packed.saturating_mul(caps.ratio).max(Caps::FREE));
        Self { into, caps, room, entries: 0, seen: HashMap::new(), links: Vec::new() }
    }

    fn count(&mut self) -> Result<(), InstallError> {
        self.entries += 1;
        if self.entries > self.caps.entries {
            return refuse(format!("it has more than {} entries", self.caps.entries));
        }
        Ok(())
    }

    fn folder(&mut self, name: &[u8]) -> Result<(), InstallError> {
        self.count()?;
        let name = self.admitted(name, true)?;
        if name.is_empty() {
            return Ok(());
        }
        let path = self.place(&name);
        fs::create_dir_all(&path).map_err(|source| InstallError::File { path, source })
    }

    fn file(&mut self, name: &[u8], content: &mut dyn Read) -> Result<(), InstallError> {
        self.count()?;
        let name = self.admitted(name, false)?;
        let path = self.place(&name);
        let failed = |source| InstallError::File { path: path.clone(), source };
        fs::create_dir_all(path.parent().unwrap_or(self.into)).map_err(failed)?;
        // Never overwrite: the file on disk is the file that was checked.
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let mut buffer = vec![0; 64 << 10];
        let mut size = 0u64;
        loop {
            let read = match content.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(&error)),
            };
            size += read as u64;
            self.room = self.spend(read as u64)?;
            if size > self.caps.file {
                return refuse(format!("`{name}` is larger than {} MiB", self.caps.file >> 20));
            }
            file.write_all(&buffer[..read]).map_err(failed)?;
        }
    }

    /// Refuses a link, or notes its name and leaves it out.
    fn link(&mut self, name: &[u8]) -> Result<(), InstallError> {
        self.count()?;
        if self.caps.links == Links::Refuse {
            return refuse(format!("`{}` is a link, and links are not allowed", name.escape_ascii()));
        }
        let name = self.admitted(name, false)?;
        self.links.push(name);
        Ok(())
    }

    /// The header in front of a link with a long target.
    fn long_link(&self) -> Result<(), InstallError> {
        if self.caps.links == Links::Refuse { refuse(LINK) } else { Ok(()) }
    }

    fn spend(&self, bytes: u64) -> Result<u64, InstallError> {
        self.room.checked_sub(bytes).ok_or_else(|| {
            InstallError::Archive(format!(
                "its content is larger than {} MiB, or more than {} times as large as the archive",
                self.caps.total >> 20,
                self.caps.ratio
            ))
        })
    }

    fn place(&self, name: &str) -> PathBuf {
        self.into.join(name)
    }

    /// The checked name of an entry, without a slash at its end. It is empty for the folder itself.
    fn admitted(&mut self, name: &[u8], is_folder: bool) -> Result<String, InstallError> {
        let shown = || String::from_utf8_lossy(&name[..name.len().min(200)]).escape_debug().to_string();
        let Ok(text) = std::str::from_utf8(name) else { return refuse(format!("the name `{}` is not UTF-8", shown())) };
        if text.len() > MOST_NAME {
            return refuse(format!("the name `{}…` is longer than {MOST_NAME} bytes", shown()));
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        let text = if is_folder { text.trim_end_matches('/') } else { text };
        if is_folder && matches!(text, "" | ".") {
            return Ok(String::new());
        }
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() > self.caps.depth {
            return refuse(format!("`{}` is more than {} folders deep", shown(), self.caps.depth));
        }
        for part in &parts {
            if let Some(why) = unfit(part) {
                return refuse(format!("the name `{}` {why}", shown()));
            }
        }
        self.note(&parts, is_folder)?;
        Ok(parts.join("/"))
    }

    /// Refuses two names that are one name on some file system, where the second would replace the first.
    fn note(&mut self, parts: &[&str], is_folder: bool) -> Result<(), InstallError> {
        for end in 1..=parts.len() {
            let spelt = parts[..end].join("/");
            let folder = end < parts.len() || is_folder;
            match self.seen.get(&folded(&spelt)) {
                None => {
                    self.seen.insert(folded(&spelt), (spelt, folder));
                    if end < parts.len() {
                        // A folder without an entry of its own.
                        self.count()?;
                    }
                }
                Some((before, _)) if *before != spelt => {
                    return refuse(format!("`{spelt}` and `{before}` are the same name on systems that ignore case"));
                }
                Some((_, true)) if folder => {}
                Some(_) => return refuse(format!("it contains `{spelt}` twice")),
            }
        }
        Ok(())
    }
}

fn folded(name: &str) -> String {
    // Lower-casing may decompose characters, so composition comes last.
    ComposingNormalizerBorrowed::new_nfc().normalize(&name.to_lowercase()).into_owned()
}

/// Why a part of a path is not a valid file name on every system.
pub(crate) fn unfit(part: &str) -> Option<&'static str> {
    const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_lowercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix).is_some_and(|rest| rest.chars().count() == 1 && rest.chars().all(char::is_numeric))
    };
    match part {
        "" => Some("is absolute or has an empty part"),
        "." | ".." => Some("leads out of its folder"),
        _ if part.len() > 255 => Some("has a part that is too long"),
        _ if part.contains(['\\', ':', '<', '>', '"', '|', '?', '*']) => {
            Some("contains a character that is not allowed in file names")
        }
        _ if part.chars().any(char::is_control) => Some("contains a control character"),
        _ if part.ends_with(['.', ' ']) || part.starts_with(' ') => {
            Some("has a part that begins or ends with a space or a dot")
        }
        _ if DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt") => {
            Some("is reserved for a device on Windows")
        }
        _ => None,
    }
}

/// Reads entries without the crate's own handling of extensions, which reads a name of any length into memory.
fn tarball(stream: impl Read, mut unpacker: Unpacker<'_>) -> Result<Vec<String>, InstallError> {
    use tar::EntryType;

    let mut archive = tar::Archive::new(stream);
    let mut long_name: Option<Vec<u8>> = None;
    for entry in archive.entries().map_err(|error| unreadable(&error))?.raw(true) {
        let mut entry = entry.map_err(|error| unreadable(&error))?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::XGlobalHeader | EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink => {
                unpacker.count()?;
                let size = entry.header().entry_size().map_err(|error| unreadable(&error))?;
                if size > MOST_EXTENSION {
                    return refuse("a header is too long");
                }
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
                unpacker.room = unpacker.spend(bytes.len() as u64)?;
                match kind {
                    EntryType::GNULongName => {
                        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                        long_name = Some(bytes[..end].to_vec());
                    }
                    EntryType::XHeader => long_name = pax_name(&bytes, unpacker.caps.links)?.or(long_name),
                    EntryType::GNULongLink => unpacker.long_link()?,
                    _ => {}
                }
            }
            EntryType::Regular | EntryType::Continuous | EntryType::Directory => {
                let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                // An old tar marks a folder only by the slash.
                match kind == EntryType::Directory || name.ends_with(b"/") {
                    true => unpacker.folder(&name)?,
                    false => unpacker.file(&name, &mut entry)?,
                }
            }
            EntryType::Symlink | EntryType::Link => {
                let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                unpacker.link(&name)?;
            }
            _ => {
                return refuse(format!("`{}` is neither a file nor a folder", entry.path_bytes().escape_ascii()));
            }
        }
    }
    Ok(unpacker.links)
}

/// The name that an extended header gives the next entry. A header that changes the entry's size is refused: programs
/// would disagree about where the next entry begins.
fn pax_name(bytes: &[u8], links: Links) -> Result<Option<Vec<u8>>, InstallError> {
    let mut name = None;
    for extension in tar::PaxExtensions::new(bytes) {
        let extension = extension.map_err(|error| unreadable(&error))?;
        match extension.key_bytes() {
            b"path" => name = Some(extension.value_bytes().to_vec()),
            b"size" => return refuse("an extended header changes the size of a file"),
            b"linkpath" if links == Links::Refuse => return refuse(LINK),
            key if key.starts_with(b"GNU.sparse") => return refuse("it contains a sparse file"),
            _ => {}
        }
    }
    Ok(name)
}

fn zipped(mut file: impl Read + io::Seek, mut unpacker: Unpacker<'_>) -> Result<Vec<String>, InstallError> {
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    const FOLDER: u32 = 0o040_000;

    let damaged = |error: zip::result::ZipError| InstallError::Archive(format!("it is damaged: {error}"));
    directory::check(&mut file, unpacker.caps)?;
    let budget = directory::Budget::new(file);
    let left = budget.left();
    let mut archive = zip::ZipArchive::new(budget).map_err(damaged)?;
    left.set(u64::MAX);
    if archive.len() > unpacker.caps.entries {
        return refuse(format!("it has more than {} entries", unpacker.caps.entries));
    }
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(damaged)?;
        let name = entry.name_raw().to_vec();
        let kind = entry.unix_mode().map_or(0, |mode| mode & KIND);
        if entry.is_symlink() {
            unpacker.link(&name)?;
            continue;
        }
        if !matches!(kind, 0 | REGULAR | FOLDER) {
            return refuse(format!("`{}` is neither a file nor a folder", name.escape_ascii()));
        }
        if entry.encrypted() {
            return refuse(format!("`{}` is encrypted", name.escape_ascii()));
        }
        match name.ends_with(b"/") {
            true => unpacker.folder(&name)?,
            false => unpacker.file(&name, &mut entry)?,
        }
    }
    Ok(unpacker.links)
}

#[cfg(test)]
mod attack;
#[cfg(any(test, fuzzing))]
pub(crate) mod invariants;
#[cfg(test)]
mod tests;
