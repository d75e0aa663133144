//! Changes of `config.yaml` that keep everything else: comments, order, quotes.
//!
//! A changed text is read again before it is saved. If anything but the change differs, nothing is written, and the error
//! says what to write by hand.

mod assign;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod tests;
mod text;

use std::path::{Path, PathBuf};

use serde_json::Value;

use self::text::Refused;
use hermes_diagnostic::Diagnostic;

use crate::codes;

/// A file with unsaved changes. Nothing is written before [`Edit::save`].
#[derive(Debug, Clone)]
pub struct Edit {
    file: PathBuf,
    before: String,
    text: String,
}

impl Edit {
    /// Opens a file. A missing file is empty.
    pub fn of(file: &Path) -> Result<Self, Diagnostic> {
        // A symbolic link stays a link: its target is changed.
        let file = hermes_private_files::target(file).unwrap_or_else(|_| file.to_owned());
        let text = match hermes_private_files::read_text(&file, crate::config::LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                let what = format!("{} cannot be changed", file.display());
                return Err(Diagnostic::new(
                    codes::UNREADABLE,
                    what,
                    error.to_string(),
                    "make it a file that you can read",
                ));
            }
        };
        Ok(Self { file, before: text.clone(), text })
    }

    /// Sets a key, such as `plugins.entries.mine`, to a value.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), Diagnostic> {
        let changed = text::set(&self.text, &names(key), value);
        self.text = changed.map_err(|refused| self.refusal(refused, key, Some(value)))?;
        Ok(())
    }

    /// Removes a key, and the sections that would be empty without it.
    pub fn remove(&mut self, key: &str) -> Result<(), Diagnostic> {
        let changed = text::remove(&self.text, &names(key));
        self.text = changed.map_err(|refused| self.refusal(refused, key, None))?;
        Ok(())
    }

    /// Adds a text to a list, unless the list has it.
    pub fn add(&mut self, key: &str, item: &str) -> Result<(), Diagnostic> {
        let path = names(key);
        self.text = text::add(&self.text, &path, item).map_err(|refused| {
            let mut wanted = text::list(&self.text, &path);
            wanted.push(item.into());
            self.refusal(refused, key, Some(&wanted.into()))
        })?;
        Ok(())
    }

    /// Removes a text from a list, and the list if it would be empty.
    pub fn take(&mut self, key: &str, item: &str) -> Result<(), Diagnostic> {
        let path = names(key);
        self.text = text::take(&self.text, &path, item).map_err(|refused| {
            let mut wanted = text::list(&self.text, &path);
            wanted.retain(|known| known != item);
            self.refusal(refused, key, Some(&wanted.into()))
        })?;
        Ok(())
    }

    /// Whether there is something to save.
    pub fn is_changed(&self) -> bool {
        self.text != self.before
    }

    /// The file, and its text before and after, for a caller that saves it together with other files.
    pub fn parts(&self) -> (&Path, &str, &str) {
        (&self.file, &self.before, &self.text)
    }

    /// Replaces the file as a whole: readers see the old one or the new one.
    pub fn save(self) -> Result<(), Diagnostic> {
        if !self.is_changed() {
            return Ok(());
        }
        let write = || -> std::io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder)?;
            // The file may contain keys, so only its owner may read a new one.
            hermes_private_files::write_whole(&self.file, self.text.as_bytes())
        };
        write().map_err(|error| {
            let what = format!("{} cannot be written", self.file.display());
            Diagnostic::new(
                codes::NOT_SAVED,
                what,
                error.to_string(),
                "make sure that the folder is writable and has room",
            )
        })
    }

    fn refusal(&self, refused: Refused, key: &str, value: Option<&Value>) -> Diagnostic {
        let what = format!("{} was not changed", self.file.display());
        let by_hand = match value {
            Some(value) => format!("set `{key}` to `{value}` in the file by hand"),
            None => format!("remove `{key}` from the file by hand"),
        };
        Diagnostic::new(codes::NOT_EDITABLE, what, refused.why(key), by_hand)
    }
}

fn names(key: &str) -> Vec<&str> {
    key.split('.').collect()
}
