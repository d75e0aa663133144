//! Imports sessions: first checks the whole file, then stores each new session in short transactions. A session becomes
//! visible when it is complete.
//!
//! Both passes run the same code: in the first one messages keep the ids of the file, in the second one the store
//! assigns new ones. Besides ids, only the records of one transaction are in memory.

mod lines;
mod parts;
mod survey;

use std::io::{BufRead, Seek};

use hermes_conversation::SessionId;
use hermes_session_store::AdapterError;
use rusqlite::{Connection, params};

use self::lines::{Line, Lines};
use self::survey::{Survey, is_stored};
use super::record::{self, FORMAT, Record, VERSION, VERSION_OF_TEXT};
use super::seal::Sealer;
use crate::error::Fault;
use crate::session::{IMPORTED, UNFINISHED};
use crate::{ImportProblem, Imported, SessionError, Store, StoreError, TransferError, Trust, rewind, title};

/// More than anyone has. Memory use is proportional to this number.
const MOST_MESSAGES: u64 = 5_000_000;
/// The limit of times, which are used in calculations.
const PLAUSIBLE: u64 = 1 << 53;

/// The records of one transaction, and their bytes.
const MOST_OF_STEP: usize = 200;
const BYTES_OF_STEP: usize = 1 << 20;

impl Store {
    /// What [`Store::import`] would store, except titles. Changes nothing.
    pub fn examine_import(&self, file: &mut (impl BufRead + Seek)) -> Result<Imported, StoreError> {
        Ok(self.survey(file)?.imported())
    }

    /// Stores the sessions of an export that do not exist yet, under their ids and with new message ids.
    ///
    /// A file with an error is refused as a whole. Others may write between the transactions. Nobody sees a session
    /// before it is complete. A session that claims messages later than `now` (Unix milliseconds) gets that time
    /// instead: otherwise it would be listed first until that time has come.
    ///
    /// Folder and prompt of a session from a stranger's file wait for the user's decision, as `trust` says: see
    /// [`crate::Session::imported`].
    pub fn import(&self, file: &mut (impl BufRead + Seek), now: u64, trust: Trust) -> Result<Imported, StoreError> {
        self.clear_unfinished()?;
        let mut survey = self.survey(file)?;
        survey.waits = trust == Trust::OwnFiles && !survey.is_own;
        let mut renamed = Vec::new();
        for at in 0..survey.entries.len() {
            if survey.entries[at].stored || survey.entries[at].left_out {
                continue;
            }
            match self.import_session(&mut survey, file, at, now) {
                Ok(title) => renamed.extend(title.map(|title| (survey.entries[at].id.clone(), title))),
                Err(source) => {
                    let stored = survey.entries[..at].iter().filter(|entry| entry.is_new()).count() as u64;
                    if stored == 0 {
                        return Err(source);
                    }
                    let source = AdapterError::new(source);
                    return Err(TransferError::ImportStopped { stored, source }.into());
                }
            }
        }
        Ok(Imported { renamed, ..survey.imported() })
    }

    /// Stores a session in small transactions, between which others may write, and returns the title that it got
    /// instead of its own. The session is invisible until the last one; if one fails, the session is removed.
    fn import_session(
        &self,
        survey: &mut Survey,
        file: &mut (impl BufRead + Seek),
        at: usize,
        now: u64,
    ) -> Result<Option<String>, StoreError> {
        let id = survey.entries[at].id.clone();
        // Another import that finds an unfinished session learns from the lease whether it is still being imported.
        let lease = match self.lease_unseen(&id) {
            Err(StoreError::Session(SessionError::InUse { .. })) => None,
            lease => Some(lease?),
        };
        if lease.is_some()
            && let Some(done) = self.store_in_steps(survey, file, at, now)?
        {
            return Ok(done);
        }
        // Another import was faster: treat the session as one that existed before.
        survey.entries[at].stored = true;
        self.read(|connection| survey.compare(connection, file, at))?;
        Ok(None)
    }

    /// `None` if the session exists by now.
    fn store_in_steps(
        &self,
        survey: &mut Survey,
        file: &mut (impl BufRead + Seek),
        at: usize,
        now: u64,
    ) -> Result<Option<Option<String>>, StoreError> {
        survey.reopen(at);
        if !survey.is_tied(at) {
            survey.entries[at].left_out = true;
            return Ok(Some(None));
        }
        const CHANGED: &str = "the file was changed while it was imported";
        let mut lines = Lines::from(file, survey.entries[at].place)?;
        let mut read = blake3::Hasher::new();
        let first = lines.next()?;
        first.iter().for_each(|line| digest(&mut read, line));
        let Some(Record::Session(session)) = first.map(|line| line.record()).transpose()? else {
            return Err(lines.refused(CHANGED));
        };
        let waits = survey.waits;
        let begun = self.write(|connection| {
            if is_stored(connection, &session.id)? {
                return Ok(false);
            }
            survey.put(connection, &session, at, now)?;
            Ok(true)
        })?;
        if !begun {
            return Ok(None);
        }
        let stored = (|| {
            while let Some(step) = next_step(&mut lines)? {
                step.iter().for_each(|(line, _)| digest(&mut read, line));
                let before = (survey.entries[at].clone(), survey.messages);
                self.write(|connection| {
                    (survey.entries[at], survey.messages) = before.clone();
                    step.iter().try_for_each(|(line, record)| survey.part(line, record, connection, true))
                })?;
            }
            // The first pass has checked other lines, also the seal.
            if read.finalize() != survey.entries[at].digest.finalize() {
                return Err(lines.refused(CHANGED));
            }
            self.write(|connection| finish(connection, &session, waits, &mut survey.titles))
        })();
        if stored.is_err() {
            // If this fails too, the next import removes it.
            let _ = self.write(|connection| drop_session(connection, &session.id));
        }
        stored.map(Some)
    }

    /// Removes sessions whose import was interrupted.
    fn clear_unfinished(&self) -> Result<(), StoreError> {
        let unfinished: Vec<SessionId> = self.read(|connection| {
            let mut statement = connection.prepare("SELECT id FROM sessions WHERE source = ?1 ORDER BY rowid DESC")?;
            let ids = statement.query_map([UNFINISHED], |row| row.get(0).map(SessionId))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })?;
        for id in unfinished {
            match self.lease_unseen(&id) {
                Ok(_lease) => self.write(|connection| drop_session(connection, &id))?,
                Err(StoreError::Session(SessionError::InUse { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn survey(&self, file: &mut (impl BufRead + Seek)) -> Result<Survey, StoreError> {
        self.read(|connection| {
            let mut lines = Lines::from_start(file)?;
            let mut survey = Survey::default();
            let mut sealer = Sealer::to_check(self.home());
            let header = lines.next()?;
            header.iter().for_each(|line| sealer.iter_mut().for_each(|sealer| sealer.line(line.text())));
            check_header(header)?;
            let mut ended = false;
            while let Some(line) = lines.next()? {
                if ended {
                    return Err(line.refused("the file continues after its end record").into());
                }
                match line.record()? {
                    Record::End(end) => {
                        survey.check_end(&line, &end)?;
                        let seal = end.seal.as_deref();
                        survey.is_own = seal.zip(sealer.as_ref()).is_some_and(|(seal, sealer)| sealer.fits(seal));
                        ended = true;
                        continue;
                    }
                    Record::Header(_) => return Err(line.refused("the file has a second header").into()),
                    Record::Session(session) => survey.session(&line, &session, connection)?,
                    part => survey.part(&line, &part, connection, false)?,
                }
                if let Some(sealer) = &mut sealer {
                    sealer.line(line.text());
                }
                if let Some(entry) = survey.entries.last_mut() {
                    digest(&mut entry.digest, &line);
                }
            }
            if ended { Ok(survey) } else { Err(lines.refused(ImportProblem::CutOff).into()) }
        })
    }
}

fn check_header(line: Option<Line>) -> Result<(), StoreError> {
    let Some(line) = line else {
        return Err(TransferError::Import { line: 1, problem: ImportProblem::Empty }.into());
    };
    match line.record() {
        Ok(Record::Header(header))
            if header.format == FORMAT && (VERSION_OF_TEXT..=VERSION).contains(&header.version) =>
        {
            Ok(())
        }
        Ok(Record::Header(header)) if header.format == FORMAT => {
            Err(line.refused(ImportProblem::Newer { found: header.version, known: VERSION }))
        }
        _ => Err(line.refused(ImportProblem::NoHeader)),
    }
}

/// The records of one transaction: few enough that other writers do not wait long.
fn next_step<R: BufRead + Seek>(lines: &mut Lines<'_, R>) -> Result<Option<Vec<(Line, Record)>>, StoreError> {
    let (mut step, mut bytes) = (Vec::new(), 0);
    while step.len() < MOST_OF_STEP && bytes < BYTES_OF_STEP {
        let place = lines.place();
        let Some(line) = lines.next()? else { break };
        let record = line.record()?;
        if matches!(record, Record::Session(_) | Record::End(_)) {
            // The next call reads the same line again.
            lines.back_to(place)?;
            break;
        }
        bytes += line.len();
        step.push((line, record));
    }
    Ok((!step.is_empty()).then_some(step))
}

/// Adds a line to the digest by which the second pass recognises the lines of the first one.
fn digest(hasher: &mut blake3::Hasher, line: &Line) {
    hasher.update(&(line.len() as u64).to_le_bytes());
    hasher.update(line.text());
}

/// Makes a complete session visible, and returns the title that it got instead of its own.
fn finish(
    connection: &Connection,
    session: &record::Session,
    waits: bool,
    titles: &mut title::Series,
) -> Result<Option<String>, Fault> {
    let own = hermes_session_store::title::clean(session.title.as_deref().unwrap_or_default())?;
    let title = match &own {
        Some(title) if title::holder(connection, title)?.is_some() => Some(titles.next(connection, title)?),
        free => free.clone(),
    };
    rewind::recount(connection, &session.id)?;
    connection.prepare_cached("UPDATE sessions SET source = ?2, title = ?3 WHERE id = ?1")?.execute(params![
        session.id.as_str(),
        if waits { format!("{IMPORTED}{}", session.source) } else { session.source.clone() },
        title
    ])?;
    Ok(title.filter(|title| own.as_ref() != Some(title)))
}

fn drop_session(connection: &Connection, id: &SessionId) -> Result<(), Fault> {
    let sql = "DELETE FROM sessions WHERE id = ?1 AND source = ?2";
    connection.prepare_cached(sql)?.execute([id.as_str(), UNFINISHED])?;
    Ok(())
}
