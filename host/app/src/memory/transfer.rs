//! Notes in files: exports, MEMORY.md, USER.md and FACTS.md, and folders with them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hermes_notes::{Notes, Target};
use hermes_prompt::scan::{self, Scope};
use serde::{Deserialize, Serialize};

use super::notebook::{Notebook, NotebookError};

/// The most bytes of a file.
const LARGEST: u64 = 4 << 20;
const FORMAT: &str = "hermes-memory";

/// The notes of a home, as an export has them.
#[derive(Debug, Serialize, Deserialize)]
pub struct NotesFile {
    format: String,
    version: u32,
    /// The entries of each document, by its name.
    notes: BTreeMap<String, Vec<String>>,
}

impl NotesFile {
    /// The notes of a notebook.
    ///
    /// # Errors
    ///
    /// When a document cannot be read.
    pub fn of(notebook: &Notebook) -> Result<Self, NotebookError> {
        let mut notes = BTreeMap::new();
        for target in Target::ALL {
            notes.insert(target.name().to_owned(), notebook.notes(target)?.entries().to_vec());
        }
        Ok(Self { format: FORMAT.to_owned(), version: 1, notes })
    }

    /// How many notes there are.
    pub fn count(&self) -> usize {
        self.notes.values().map(Vec::len).sum()
    }
}

/// Why notes cannot be taken from a file. `Display` gives the cause.
#[derive(Debug, thiserror::Error)]
pub enum NotesFileError {
    /// A folder has none of the documents.
    #[error("{} contains no MEMORY.md, USER.md or FACTS.md", .0.display())]
    NoDocuments(PathBuf),
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not an export of notes.
    #[error("{} is not an export of `hermes memory`: {source}", file.display())]
    NoExport {
        /// The file.
        file: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The export has another format, or a newer one.
    #[error("{} has the format {format} {version}", file.display())]
    OtherFormat {
        /// The file.
        file: PathBuf,
        /// The name of the format.
        format: String,
        /// Its version.
        version: u32,
    },
    /// The export has notes for a document that this version does not know.
    #[error("{} has notes for `{name}`, which do not exist here", file.display())]
    UnknownTarget {
        /// The file.
        file: PathBuf,
        /// The document.
        name: String,
    },
}

/// The entries of a file or folder, grouped by document. `chosen` is the document for the entries of a text file; by default the
/// file's name decides.
///
/// # Errors
///
/// When the file cannot be read or is nothing of these, or the folder has none of the documents.
pub fn read_notes(file: &Path, chosen: Option<Target>) -> Result<Vec<(Target, Vec<String>)>, NotesFileError> {
    if file.is_dir() {
        // A home, or its folder of memories.
        let inner = file.join("memories");
        let folder = if inner.is_dir() { inner } else { file.to_owned() };
        let files: Vec<PathBuf> =
            Target::ALL.iter().map(|target| folder.join(target.document())).filter(|file| file.is_file()).collect();
        if files.is_empty() {
            return Err(NotesFileError::NoDocuments(folder));
        }
        return Ok(files.iter().map(|file| read_notes(file, None)).collect::<Result<Vec<_>, _>>()?.concat());
    }
    let named = || file.to_owned();
    let content = hermes_private_files::read_text(file, LARGEST)
        .map_err(|source| NotesFileError::Unreadable { file: named(), source })?;
    let by_name = Target::ALL.into_iter().find(|target| file.file_name().is_some_and(|name| name == target.document()));
    if let Some(target) = chosen.or(by_name) {
        return Ok(vec![(target, Notes::parse(&content).entries().to_vec())]);
    }
    let NotesFile { format, version, notes } =
        serde_json::from_str(&content).map_err(|source| NotesFileError::NoExport { file: named(), source })?;
    if format != FORMAT || version != 1 {
        return Err(NotesFileError::OtherFormat { file: named(), format, version });
    }
    let known = notes.into_iter().map(|(name, entries)| match Target::named(&name) {
        Some(target) => Ok((target, entries)),
        None => Err(NotesFileError::UnknownTarget { file: named(), name }),
    });
    known.collect()
}

/// A note that the scan for injected instructions keeps out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its text.
    pub text: String,
    /// The rules that it violates, with commas between them.
    pub findings: String,
}

/// Divides notes into those that may be added, and those that the scan for injected instructions keeps out.
pub fn screened(notes: Vec<String>) -> (Vec<String>, Vec<LeftOut>) {
    let (mut sound, mut left_out) = (Vec::new(), Vec::new());
    for text in notes {
        let findings = scan::findings(&text, Scope::Strict);
        match findings.is_empty() {
            true => sound.push(text),
            false => {
                let findings = findings.into_iter().collect::<Vec<_>>().join(", ");
                left_out.push(LeftOut { text, findings });
            }
        }
    }
    (sound, left_out)
}
