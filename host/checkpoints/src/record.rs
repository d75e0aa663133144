//! What a turn changed, as it is kept for `/undo` and `/diff`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::UndoError;
use crate::git::Head;
use crate::path::RelPath;
use crate::state::State;
use crate::store::{MAX_JSON, Store};

/// The most programs that a record names.
const MAX_PROGRAMS: usize = 50;

/// The time now in Unix milliseconds.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// One change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path.
    pub path: RelPath,
    /// What was there.
    pub before: State,
    /// What was there then.
    pub after: State,
    /// Whether it happened while only a program in the background ran, so that the user may have made it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// An undo of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// When, in Unix milliseconds.
    pub at: u64,
    /// The paths that were restored.
    pub restored: Vec<RelPath>,
    /// Whether the model knows.
    #[serde(default)]
    pub told: bool,
    /// The message that told the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_in: Option<u64>,
    /// The paths that it could not restore, and that a later undo can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<RelPath>,
}

/// What a turn changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number among the changes of the session, from 1.
    pub number: u32,
    /// The message of the user that began the turn.
    pub message: u64,
    /// When the turn began, in Unix milliseconds.
    pub started_at: u64,
    /// The beginning of what the user wrote.
    pub words: String,
    /// The workspace.
    pub workspace: PathBuf,
    /// In the order in which they happened.
    pub changes: Vec<Change>,
    /// The programs that ran.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Further programs, which are not named.
    #[serde(default)]
    pub more_programs: u32,
    /// Why changes of programs were not recorded.
    #[serde(default)]
    pub unrecorded: Vec<String>,
    /// Files outside of the workspace that a tool changed.
    #[serde(default)]
    pub outside: Vec<PathBuf>,
    /// The head of git before and after.
    #[serde(default)]
    pub heads: Option<(Head, Head)>,
    /// The program that ran when Hermes was killed.
    #[serde(default)]
    pub running: Option<String>,
    /// If it was undone.
    #[serde(default)]
    pub undone: Option<Undone>,
}

impl Record {
    pub(crate) fn add_program(&mut self, program: &str) {
        if self.programs.iter().any(|known| known == program) {
            return;
        }
        match self.programs.len() < MAX_PROGRAMS {
            true => self.programs.push(program.to_owned()),
            false => self.more_programs += 1,
        }
    }

    /// Whether `/undo` has something to do or to say about it.
    pub fn is_open(&self) -> bool {
        self.undone.as_ref().is_none_or(|undone| !undone.left.is_empty()) && !self.changes.is_empty()
    }

    /// The changes that no undo has taken back.
    pub(crate) fn open_changes(&self) -> impl Iterator<Item = &Change> {
        let is_open = |change: &&Change| self.undone.as_ref().is_none_or(|undone| undone.left.contains(&change.path));
        self.changes.iter().filter(is_open)
    }
}

/// The records of a session.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(crate) fn of(store: &Store, session: &str) -> Option<Self> {
        store.session(session).map(|folder| Self { folder })
    }

    /// A file that exists while the model does not know of an undo, so that not every turn reads all records.
    fn untold(&self) -> PathBuf {
        self.folder.join("untold")
    }

    pub(crate) fn is_untold(&self) -> bool {
        self.untold().exists()
    }

    pub(crate) fn set_untold(&self, untold: bool) -> io::Result<()> {
        match untold {
            true => hermes_private_files::write_atomically(&self.untold(), b""),
            false => fs::remove_file(self.untold()),
        }
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number:06}.json"))
    }

    /// All records, the oldest first. A damaged one is left out.
    pub(crate) fn all(&self) -> Result<Vec<Record>, UndoError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(UndoError::store(&self.folder))?,
        };
        let mut records = BTreeMap::new();
        for entry in entries {
            let path = entry.map_err(UndoError::store(&self.folder))?.path();
            if let Some(record) = read(&path) {
                records.insert(record.number, record);
            }
        }
        Ok(records.into_values().collect())
    }

    pub(crate) fn next_number(&self) -> u32 {
        let numbers =
            fs::read_dir(&self.folder).into_iter().flatten().flatten().filter_map(|entry| number(&entry.path()));
        numbers.max().map_or(1, |last| last.saturating_add(1))
    }

    pub(crate) fn save(&self, record: &Record) -> io::Result<()> {
        hermes_private_files::create_folder(&self.folder)?;
        hermes_private_files::write_atomically(&self.path(record.number), &serde_json::to_vec(record)?)
    }
}

fn number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()
}

pub(crate) fn read(path: &Path) -> Option<Record> {
    let number = number(path)?;
    let text = hermes_private_files::read_regular(path, MAX_JSON).ok()?;
    serde_json::from_slice::<Record>(&text).ok().filter(|record| record.number == number)
}
