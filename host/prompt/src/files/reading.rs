//! Reading a file that anyone may have put there: only regular ones, of a bounded size, and none that a link
//! leads to outside its folder.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::notice::Notice;
use crate::wording::shown;

/// Bytes that are read of a file at most: more than any limit in characters would let into the prompt.
pub(crate) const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// A folder that reading does not leave.
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

    /// Without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The text of a file of the folder, without a byte order mark; none where there is no such file.
    pub(crate) fn text(&self, file: &Path, source: &str) -> Result<Option<String>, Notice> {
        let real = match file.canonicalize() {
            Ok(real) => real,
            Err(error) if is_missing(&error) && file.symlink_metadata().is_err() => return Ok(None),
            Err(error) => return Err(unreadable(source, &error)),
        };
        let Ok(inside) = real.strip_prefix(&self.path) else {
            return Err(Notice::Outside { source_name: source.to_owned(), root: shown(&self.path) });
        };
        // Opened below the folder, so that what is swapped for a link meanwhile does not lead out either.
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            // A pipe must not make us wait for its writer.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let opened = self.dir.open_with(inside, &options).map_err(|error| unreadable(source, &error))?;
        text_of(opened.into_std(), source).map(Some)
    }
}

/// The text of a file in a place of the user's own, where links may lead anywhere.
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
