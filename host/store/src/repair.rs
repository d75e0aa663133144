//! Repairing a damaged store: first a copy of it, then all work on another copy, and only what is sound takes its place.

mod salvage;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hermes_conversation::SessionId;
use jiff::Zoned;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde::Serialize;

use crate::blobs::references;
use crate::database::{CREATION_LOCK, LOCKS, NAME, connect, take_turn};
use crate::header::{self, beside};
use crate::{Depth, SessionError, Store, StoreError, lease};
use hermes_private_files as private;

/// All that SQLite keeps beside a database, the database first.
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// Holds the copy that is worked on; what a killed repair left in there is of no use.
const WORKSHOP: &str = "state.repair";

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing was wrong and nothing was changed.
    Sound,
    /// Indexes, counts and references were made anew; all rows are there, but for damaged pictures.
    Rebuilt,
    /// What could be read was put into a new database.
    Salvaged,
}

/// What a repair did and what it could not save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// What was done.
    pub outcome: Outcome,
    /// What was wrong, a line each.
    pub problems: Vec<String>,
    /// The copy of the store as it was; none where it was sound.
    pub backup: Option<PathBuf>,
    /// Copies that earlier repairs left, by name; nothing removes them.
    pub older_backups: Vec<PathBuf>,
    /// Rows that were saved, by table; only where it was salvaged.
    pub saved: Vec<(String, u64)>,
    /// What could not be saved, a line each.
    pub lost: Vec<String>,
}

impl Repair {
    fn sound() -> Self {
        Self {
            outcome: Outcome::Sound,
            problems: Vec::new(),
            backup: None,
            older_backups: Vec::new(),
            saved: Vec::new(),
            lost: Vec::new(),
        }
    }
}

/// Repairs the store of a home folder where it is damaged.
///
/// Nobody may be at work in it. The damaged files are copied first; they are replaced, in the end, by a database that was
/// checked, or left as they are.
pub fn repair(home: &Path) -> Result<Repair, StoreError> {
    let path = home.join(NAME);
    let failed = |error: io::Error| StoreError::file(&path, error);
    if FILES.iter().all(|suffix| !beside(&path, suffix).exists()) {
        return Ok(Repair::sound());
    }
    if let Err(error @ (StoreError::Foreign { .. } | StoreError::NewerSchema { .. })) = header::inspect(&path) {
        return Err(error);
    }
    let locks = home.join(LOCKS);
    private::create_folder(&locks).map_err(failed)?;
    let _turn = take_turn(&locks.join(CREATION_LOCK))?;
    nobody_at_work(&locks)?;
    alone(&path)?;
    let before = stamps(&path).map_err(failed)?;
    let older_backups = backups(home).map_err(failed)?;
    let backup = back_up(&path).map_err(failed)?;
    let workshop = home.join(WORKSHOP);
    let done = work(&backup, &workshop).and_then(|(mut repair, sound)| {
        match &sound {
            Some(sound) => {
                alone(&path)?;
                put_in_place(&path, sound, &before)?;
                repair.backup = Some(backup.clone());
                repair.older_backups = older_backups;
            }
            // It was our copy, and there is nothing in it that is not in the store.
            None => FILES.iter().for_each(|suffix| drop(fs::remove_file(beside(&backup, suffix)))),
        }
        Ok(repair)
    });
    let _ = fs::remove_dir_all(&workshop);
    done.map_err(|error| match error {
        StoreError::Busy { .. } | StoreError::Session(SessionError::InUse { .. }) => error,
        other => StoreError::BeyondRepair { path, backup, detail: other.to_string() },
    })
}

/// Refuses while a lease is held: replacing the file under a session would lose what it writes.
fn nobody_at_work(locks: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::file(locks, error);
    for entry in fs::read_dir(locks).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(session) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else { continue };
        let session = SessionId(session.to_owned());
        if lease::is_file_name(&session)
            && let Some(pid) = lease::holder(locks, &session)?
        {
            return Err(SessionError::InUse { session, pid }.into());
        }
    }
    Ok(())
}

/// Refuses while any other connection is open. Nothing is written for that, and no log is moved.
fn alone(path: &Path) -> Result<(), StoreError> {
    if beside(path, "-journal").exists() {
        // Opening would play it back.
        return Ok(());
    }
    let tried = (|| {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let log = fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0);
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, log)?;
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK;")
    })();
    match tried {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
            Err(StoreError::Busy { path: path.to_owned() })
        }
        // Whether it is damaged is found on the copy.
        _ => Ok(()),
    }
}

type Stamp = Option<(u64, Option<SystemTime>)>;

/// Whether the files are still the same can be told from these.
fn stamps(path: &Path) -> io::Result<[Stamp; 2]> {
    let stamp = |suffix: &str| match fs::metadata(beside(path, suffix)) {
        Ok(metadata) => Ok(Some((metadata.len(), metadata.modified().ok()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    Ok([stamp("")?, stamp("-wal")?])
}

/// The copies that there are, without what belongs to one.
fn backups(home: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = format!("{NAME}.backup-");
    let mut found = Vec::new();
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        let is_copy = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(&prefix) && !FILES[1..].iter().any(|suffix| name.ends_with(suffix)));
        if is_copy {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Copies under a name that nothing has yet, so that the copy can be opened as a store is.
fn back_up(path: &Path) -> io::Result<PathBuf> {
    let time = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let names = (1..).map(|number: u32| {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        beside(path, &format!(".backup-{time}{more}"))
    });
    let backup = names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| beside(path, ".backup"));
    let copied = FILES.iter().try_for_each(|suffix| copy(&beside(path, suffix), &beside(&backup, suffix)));
    if copied.is_err() {
        // A part of a copy looks like one.
        FILES.iter().for_each(|suffix| drop(fs::remove_file(beside(&backup, suffix))));
    }
    copied.map(|()| backup)
}

/// Where there is something to copy.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(from, to) {
        Ok(_) => fs::File::open(to)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// What was found, and the file to put in its place; none where nothing is to be put there.
fn work(backup: &Path, workshop: &Path) -> Result<(Repair, Option<PathBuf>), StoreError> {
    let failed = |error: io::Error| StoreError::file(workshop, error);
    let _ = fs::remove_dir_all(workshop);
    let (first, second) = (workshop.join("rebuilt"), workshop.join("salvaged"));
    for folder in [&first, &second] {
        private::create_folder(folder).map_err(failed)?;
    }
    let damaged = first.join(NAME);
    for suffix in ["", "-wal", "-journal"] {
        copy(&beside(backup, suffix), &beside(&damaged, suffix)).map_err(failed)?;
    }
    let mut repair = Repair { problems: look(&first)?, ..Repair::sound() };
    if repair.problems.is_empty() {
        return Ok((repair, None));
    }
    if let Ok(lost) = rebuild(&first)
        && look(&first)?.is_empty()
    {
        repair.outcome = Outcome::Rebuilt;
        repair.lost = lost;
        return Ok((repair, Some(damaged)));
    }
    let salvaged = salvage::salvage(&damaged, &second)?;
    let problems = look(&second)?;
    if let Some(problem) = problems.first() {
        return Err(StoreError::Corrupt { path: second.join(NAME), detail: problem.clone() });
    }
    Ok((
        Repair { outcome: Outcome::Salvaged, saved: salvaged.saved, lost: salvaged.lost, ..repair },
        Some(second.join(NAME)),
    ))
}

/// What is wrong with the store in a folder. One that cannot even be opened has that as its problem.
fn look(folder: &Path) -> Result<Vec<String>, StoreError> {
    match Store::open(folder).and_then(|store| store.check(Depth::Full)) {
        Ok(health) => Ok(health.problems),
        // Of the copy, whose path says nothing to anybody.
        Err(StoreError::Corrupt { detail, .. }) => Ok(vec![detail]),
        Err(error @ (StoreError::NotADatabase { .. } | StoreError::Sqlite { .. } | StoreError::CannotOpen { .. })) => {
            Ok(vec![error.to_string()])
        }
        Err(error) => Err(error),
    }
}

/// Makes anew what follows from the rows: indexes, those of the search, counts, and which message holds which picture. Returns
/// what was lost.
fn rebuild(folder: &Path) -> Result<Vec<String>, StoreError> {
    let path = folder.join(NAME);
    let connection = connect(&path)?;
    connection.execute_batch(&format!("REINDEX; {COUNTS};")).map_err(|error| StoreError::sqlite(&path, error))?;
    let mut lost = Vec::new();
    references::mend(&connection, &mut lost).map_err(|fault| fault.at(&path))?;
    drop(connection);
    Store::open(folder)?.rebuild_search()?;
    Ok(lost)
}

/// Counts of messages, as `rewind` keeps them.
const COUNTS: &str = "UPDATE sessions SET message_count = (SELECT count(*) FROM messages WHERE session_id = sessions.id) \
     - (SELECT count(*) FROM rewound JOIN messages ON messages.id = message_id \
     WHERE rewound.session_id = sessions.id AND messages.session_id = sessions.id)";

/// The log of the old database must be gone before the new one has its name: it would be played into it.
fn put_in_place(path: &Path, sound: &Path, before: &[Stamp; 2]) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::file(path, error);
    if stamps(path).map_err(failed)? != *before {
        return Err(StoreError::Busy { path: path.to_owned() });
    }
    fs::File::open(sound).and_then(|file| file.sync_all()).map_err(failed)?;
    for suffix in ["-wal", "-shm", "-journal"] {
        match fs::remove_file(beside(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    fs::rename(sound, path).map_err(failed)?;
    path.parent().map_or(Ok(()), private::sync_folder).map_err(failed)
}
