//! Repairs a damaged store. It makes a backup first, works on another copy, and replaces the store only by a database
//! that passed the check.

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
use crate::connection::connect;
use crate::database::{self, CREATION_LOCK, NAME, lock_creation};
use crate::header::{self, beside};
use crate::queue::LOCKS;
use crate::{Depth, SessionError, Store, StoreError, lease};
use hermes_private_files as private;

/// The suffixes of the database and of the files that SQLite keeps beside it.
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// The folder for the working copy. Files that a killed repair left in it are not used.
const WORK_FOLDER: &str = "state.repair";

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing was damaged, and nothing was changed.
    Sound,
    /// Indexes, counts and references were rebuilt. All rows are there, except damaged pictures.
    Rebuilt,
    /// All readable rows were copied into a new database.
    Salvaged,
}

/// What a repair did and what it could not save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// What was done.
    pub outcome: Outcome,
    /// The problems that were found, one per line.
    pub problems: Vec<String>,
    /// The backup; `None` if the store was sound.
    pub backup: Option<PathBuf>,
    /// Backups of earlier repairs, by name. Nothing removes them.
    pub older_backups: Vec<PathBuf>,
    /// The number of saved rows by table, if the store was salvaged.
    pub saved: Vec<(String, u64)>,
    /// What was lost, one line each.
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

/// Repairs the store of a home folder if it is damaged.
///
/// No other process may use the store. The damaged files are copied first. At the end they are replaced by a checked
/// database, or left unchanged.
pub fn repair(home: &Path) -> Result<Repair, StoreError> {
    let path = database::file(home);
    let failed = |error: io::Error| StoreError::file(&path, error);
    if FILES.iter().all(|suffix| !beside(&path, suffix).exists()) {
        return Ok(Repair::sound());
    }
    if let Err(error @ (StoreError::Foreign { .. } | StoreError::NewerSchema { .. })) = header::inspect(&path) {
        return Err(error);
    }
    let locks = home.join(LOCKS);
    private::create_folder(&locks).map_err(failed)?;
    let _lock = lock_creation(&locks.join(CREATION_LOCK))?;
    require_no_lease(&locks)?;
    require_exclusive_use(&path)?;
    let before = stamps(&path).map_err(failed)?;
    let older_backups = backups(&path).map_err(failed)?;
    let backup = back_up(&path).map_err(failed)?;
    let work_folder = path.with_file_name(WORK_FOLDER);
    let done = work(&backup, &work_folder).and_then(|(mut repair, sound)| {
        match &sound {
            Some(sound) => {
                require_exclusive_use(&path)?;
                put_in_place(&path, sound, &before)?;
                repair.backup = Some(backup.clone());
                repair.older_backups = older_backups;
            }
            // The backup is not needed: it contains the same as the store.
            None => FILES.iter().for_each(|suffix| drop(fs::remove_file(beside(&backup, suffix)))),
        }
        Ok(repair)
    });
    let _ = fs::remove_dir_all(&work_folder);
    done.map_err(|error| match error {
        StoreError::Busy { .. } | StoreError::Session(SessionError::InUse { .. }) => error,
        other => StoreError::BeyondRepair { path, backup, detail: other.to_string() },
    })
}

/// Refuses while a lease is held: replacing the file under a session would lose what it writes.
fn require_no_lease(locks: &Path) -> Result<(), StoreError> {
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

/// Refuses while any other connection is open. Writes nothing and moves no log.
fn require_exclusive_use(path: &Path) -> Result<(), StoreError> {
    if beside(path, "-journal").exists() {
        // Opening the database would replay it.
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
        // Damage is found on the copy.
        _ => Ok(()),
    }
}

type Stamp = Option<(u64, Option<SystemTime>)>;

/// Shows whether the files have changed.
fn stamps(path: &Path) -> io::Result<[Stamp; 2]> {
    let stamp = |suffix: &str| match fs::metadata(beside(path, suffix)) {
        Ok(metadata) => Ok(Some((metadata.len(), metadata.modified().ok()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    Ok([stamp("")?, stamp("-wal")?])
}

/// The backups of a database, without the files that belong to each.
fn backups(path: &Path) -> io::Result<Vec<PathBuf>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.backup-");
    let mut found = Vec::new();
    for entry in fs::read_dir(path.parent().unwrap_or(Path::new(".")))? {
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

/// Copies the store under an unused name, so that the copy can be opened like a store.
fn back_up(path: &Path) -> io::Result<PathBuf> {
    let time = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let names = (1..).map(|number: u32| {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        beside(path, &format!(".backup-{time}{more}"))
    });
    let backup = names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| beside(path, ".backup"));
    let copied = FILES.iter().try_for_each(|suffix| copy(&beside(path, suffix), &beside(&backup, suffix)));
    if copied.is_err() {
        // Part of a backup looks like a backup.
        FILES.iter().for_each(|suffix| drop(fs::remove_file(beside(&backup, suffix))));
    }
    copied.map(|()| backup)
}

/// Copies the file if it exists.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(from, to) {
        Ok(_) => fs::File::open(to)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The result, and the file that replaces the store; `None` if nothing has to be replaced.
fn work(backup: &Path, work_folder: &Path) -> Result<(Repair, Option<PathBuf>), StoreError> {
    let failed = |error: io::Error| StoreError::file(work_folder, error);
    let _ = fs::remove_dir_all(work_folder);
    let (first, second) = (work_folder.join("rebuilt"), work_folder.join("salvaged"));
    for folder in [&first, &second] {
        private::create_folder(folder).map_err(failed)?;
    }
    let damaged = first.join(NAME);
    for suffix in ["", "-wal", "-journal"] {
        copy(&beside(backup, suffix), &beside(&damaged, suffix)).map_err(failed)?;
    }
    let mut repair = Repair { problems: problems_in(&first)?, ..Repair::sound() };
    if repair.problems.is_empty() {
        return Ok((repair, None));
    }
    if let Ok(lost) = rebuild(&first)
        && problems_in(&first)?.is_empty()
    {
        repair.outcome = Outcome::Rebuilt;
        repair.lost = lost;
        return Ok((repair, Some(damaged)));
    }
    let salvaged = salvage::salvage(&damaged, &second)?;
    let problems = problems_in(&second)?;
    if let Some(problem) = problems.first() {
        return Err(StoreError::Corrupt { path: second.join(NAME), detail: problem.clone() });
    }
    Ok((
        Repair { outcome: Outcome::Salvaged, saved: salvaged.saved, lost: salvaged.lost, ..repair },
        Some(second.join(NAME)),
    ))
}

/// The problems of the store in a folder. If the store cannot be opened, that is the problem.
fn problems_in(folder: &Path) -> Result<Vec<String>, StoreError> {
    match Store::open(folder).and_then(|store| store.check(Depth::Full)) {
        Ok(health) => Ok(health.problems),
        // Without the path of the copy, which means nothing to the user.
        Err(StoreError::Corrupt { detail, .. }) => Ok(vec![detail]),
        Err(error @ (StoreError::NotADatabase { .. } | StoreError::Sqlite { .. } | StoreError::CannotOpen { .. })) => {
            Ok(vec![error.to_string()])
        }
        Err(error) => Err(error),
    }
}

/// Rebuilds derived data: indexes, search, counts, and references to pictures. Returns the losses.
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

/// Message counts as `rewind` keeps them.
const COUNTS: &str = "UPDATE sessions SET message_count = (SELECT count(*) FROM messages WHERE session_id = sessions.id) \
     - (SELECT count(*) FROM rewound JOIN messages ON messages.id = message_id \
     WHERE rewound.session_id = sessions.id AND messages.session_id = sessions.id)";

/// Removes the log of the old database first: SQLite would replay it into the new one.
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
