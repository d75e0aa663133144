//! SOUL.md: the model's identity in the user's words. It is read only from the home: a project that could set the identity could
//! make the model say anything.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::fitted;
use super::reading::text_at;
use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::wording;

/// The identity that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Soul {
    /// `None` if the file is blank or unusable; the built-in identity applies then.
    pub text: Option<String>,
    /// Notices about the file.
    pub notices: Vec<Notice>,
}

/// Reads SOUL.md in a home, up to `limit` characters. If it does not exist, writes one with the built-in identity for the user to
/// edit. An existing file is never changed.
pub fn soul(home: &Path, limit: usize) -> Soul {
    let path = home.join("SOUL.md");
    let source = wording::shown(&path);
    let mut notices = Vec::new();
    match created(&path) {
        Ok(()) => return Soul { text: Some(wording::IDENTITY.to_owned()), notices },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // A read-only home can still contain the file.
        Err(error) if path.symlink_metadata().is_err() => {
            notices.push(Notice::NotCreated { source_name: source, reason: error.to_string() });
            return Soul { text: None, notices };
        }
        Err(_) => {}
    }
    let text = match text_at(&path, &source) {
        Ok(text) => text.unwrap_or_default(),
        Err(notice) => {
            notices.push(notice);
            return Soul { text: None, notices };
        }
    };
    let cleaned = scan::cleaned("SOUL.md", &text, Scope::Context, 1);
    notices.extend(cleaned.notice);
    if !cleaned.says_something {
        return Soul { text: None, notices };
    }
    let text = fitted("SOUL.md", cleaned.text, limit, "make it shorter", &mut notices);
    Soul { text: Some(text.trim().to_owned()), notices }
}

fn created(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let written = writeln!(options.open(path)?, "{}", wording::IDENTITY);
    // Remove the file after a failed write: an empty one would count as the user's choice from then on.
    written.inspect_err(|_| drop(std::fs::remove_file(path)))
}
