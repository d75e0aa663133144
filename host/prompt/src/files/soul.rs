//! SOUL.md: who the model is to be, in the user's words. It is read from the home and from nowhere else, since a
//! project that could say who the model is could say anything.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::fitted;
use super::reading::text_at;
use crate::notice::Notice;
use crate::scan::{self, Scope};
use crate::wording;

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Soul {
    /// None for a blank or unusable file, which leaves the built-in identity in force.
    pub text: Option<String>,
    /// What is to be told about it.
    pub notices: Vec<Notice>,
}

/// Reads SOUL.md of that home, within a limit of characters. Where there is none, one with the built-in identity is
/// written, to be edited; one that is there is never touched.
pub fn soul(home: &Path, limit: usize) -> Soul {
    let path = home.join("SOUL.md");
    let source = wording::shown(&path);
    let mut notices = Vec::new();
    match created(&path) {
        Ok(()) => return Soul { text: Some(wording::IDENTITY.to_owned()), notices },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // A home that cannot be written to may still hold one.
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
    // An empty file would be taken for the user's wish from now on; a full disk is no wish.
    written.inspect_err(|_| drop(std::fs::remove_file(path)))
}
