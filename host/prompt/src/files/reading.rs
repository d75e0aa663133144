//! Reads files that anyone may have placed: only regular files of limited size, and no links that leave their folder.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::notice::Notice;
use crate::wording::shown;

/// Most bytes read of a file: more than any character limit lets into the prompt.
pub(crate) const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// A folder that file access cannot leave.
pub(crate) struct Folder {
    path: PathBuf,
    dir: Dir,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { path, dir })
    }

    /// The canonical path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The text of a file in the folder, without a byte order mark. `None` if the file does not exist.
    pub(crate) fn text(&self, file: &Path, source: &str) -> Result<Option<String>, Notice> {
        let real = match file.canonicalize() {
            Ok(real) => real,
            Err(error) if is_missing(&error) && file.symlink_metadata().is_err() => return Ok(None),
            Err(error) => return Err(unreadable(source, &error)),
        };
        let Ok(inside) = real.strip_prefix(&self.path) else {
            return Err(Notice::Outside { source_name: source.to_owned(), root: shown(&self.path) });
        };
        // A file that is no link has the name of a context file, which is none of a secret.
        let is_link = file.strip_prefix(&self.path) != Ok(inside);
        if is_link && hermes_private_files::is_secret(&self.path, inside) {
            return Err(Notice::Secret { source_name: source.to_owned(), leads_to: shown(inside) });
        }
        // Open relative to the folder handle, so that a file swapped for a link in between cannot lead outside.
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            // Do not block on a pipe without a writer.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let opened = self.dir.open_with(inside, &options).map_err(|error| unreadable(source, &error))?;
        let opened = opened.into_std();
        if opened.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(Notice::Folder { source_name: source.to_owned() });
        }
        text_of(opened, source).map(Some)
    }
}

/// The text of a file in one of the user's own folders, where links may lead anywhere.
pub(crate) fn text_at(file: &Path, source: &str) -> Result<Option<String>, Notice> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(libc::O_NONBLOCK);
    }
    match options.open(file) {
        Ok(opened) => text_of(opened, source).map(Some),
        Err(error) if is_missing(&error) && file.symlink_metadata().is_err() => Ok(None),
        Err(error) => Err(unreadable(source, &error)),
    }
}

fn text_of(file: File, source: &str) -> Result<String, Notice> {
    let metadata = file.metadata().map_err(|error| unreadable(source, &error))?;
    let source_name = source.to_owned();
    if !metadata.is_file() {
        return Err(Notice::NotAFile { source_name });
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(source, &error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Notice::TooLarge { source_name, limit: MOST_BYTES });
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        _ => Err(Notice::NotText { source_name }),
    }
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn unreadable(source: &str, error: &io::Error) -> Notice {
    Notice::Unreadable { source_name: source.to_owned(), reason: error.to_string() }
}
