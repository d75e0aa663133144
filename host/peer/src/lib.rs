//! Moving in: reads the home of Hermes Agent, the Python program that this one succeeds, and takes over what it can use.
//!
//! The peer's home is never written, and no file of SQLite appears in it: its database is read from a private copy. Every
//! part can be imported again: sessions are recognised by ids that follow from the peer's ids, everything else by content.
//! An import that is killed leaves whole parts, and the next one completes them.

#![forbid(unsafe_code)]

mod agents;
mod database;
mod diagnosis;
mod error;
mod folding;
mod home;
mod keys;
mod lineage;
mod notes;
mod others;
mod report;
mod sessions;
mod settings;
mod skills;
mod soul;
mod translation;

use std::sync::Arc;

use hermes_app::Setup;
use hermes_private_files::TemporaryFolder;

pub use agents::{Agent, Usable};
pub use error::PeerError;
pub use home::PeerHome;
pub use report::{PartReport, Report};

use database::Database;

hermes_diagnostic::codes! {
    /// The codes of moving in.
    pub mod codes {
        SAME_HOME = "peer.same-home", Category::Usage, "the home of Hermes Agent and the own home are the same folder";
        NOT_WRITTEN = "peer.not-written", Category::General, "a file of the own home cannot be written";
        NO_PEER = "peer.no-home", Category::General, "the folder is not a home of Hermes Agent";
        OTHER_AGENT = "peer.other-agent", Category::Usage, "the folder is the home of an agent that cannot be imported";
        UNREADABLE = "peer.unreadable", Category::General, "the home of Hermes Agent cannot be read";
        TEMPORARY = "peer.temporary", Category::General, "no temporary copy can be made";
    }
}

/// What an import works with: a copy of the peer's database as it was when the import began, so that the report before
/// the question and the import after it are about the same sessions.
#[derive(Debug)]
pub struct Import {
    database: Option<Result<Database, String>>,
    with_keys: bool,
}

/// Whether anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only report what would be imported.
    DryRun,
    /// Import. The time, in Unix milliseconds, bounds the times of imported messages.
    Write {
        /// The time.
        now: u64,
    },
}

impl Import {
    /// Copies the peer's database. `with_keys` says whether the user wants the keys of models and services, too.
    ///
    /// # Errors
    ///
    /// When no temporary folder can be created.
    pub fn of(peer: &PeerHome, with_keys: bool) -> Result<Self, PeerError> {
        let database = Database::copied(peer).map_err(|source| PeerError::Temporary { source })?;
        Ok(Self { database, with_keys })
    }

    /// Imports everything that is new, or reports what would be imported.
    ///
    /// # Errors
    ///
    /// When the own store cannot be read or written. What was imported until then stays, and the next import continues.
    pub async fn run(&self, peer: &PeerHome, setup: &Setup, mode: Mode) -> Result<Report, PeerError> {
        let plan = settings::plan(peer, setup, self.with_keys)?;
        let (variables, keys) = keys::plan(peer, setup, plan.edit.parts().2, self.with_keys);
        // The limits of the notes are those of the configuration after the import.
        let after = setup.with_changes(&plan.edit, &variables)?;
        if let Mode::Write { .. } = mode {
            // Makes sure that the home is this program's own.
            setup.own()?;
            hermes_app::operations::keep_variables(&setup.home.dotenv(), &variables)?;
            for (path, text) in &plan.files {
                hermes_private_files::write_whole(path, text.as_bytes())
                    .map_err(|source| PeerError::NotWritten { path: path.clone(), source })?;
            }
            plan.edit.save().map_err(hermes_app::AppError::from)?;
        }
        let mut report = Report::default();
        report.add(plan.report);
        report.add(keys);
        let part = |name, fill: &dyn Fn(&mut PartReport)| {
            let mut part = PartReport::of(name);
            fill(&mut part);
            part
        };
        report.add(part("SOUL.md", &|part| soul::import(peer, setup, mode, part)));
        report.add(part("memories", &|part| notes::import(peer, &after, mode, part)));
        report.add(part("skills", &|part| skills::import(peer, setup, mode, part)));
        report.add(self.sessions(peer, &after, mode).await?);
        report.add(part("others", &|part| others::report(peer, part)));
        Ok(report)
    }

    async fn sessions(&self, peer: &PeerHome, setup: &Setup, mode: Mode) -> Result<PartReport, PeerError> {
        let mut sessions = PartReport::of("sessions");
        match &self.database {
            None => {}
            Some(Err(why)) => sessions.left(why.clone()),
            Some(Ok(database)) => {
                let engine = &setup.config.settings().context.engine;
                // A dry run creates neither a home nor a store.
                let trial = match mode {
                    Mode::DryRun => Some(setup.store_to_try()?),
                    Mode::Write { .. } => None,
                };
                let store = match &trial {
                    Some(trial) => Arc::clone(&trial.store),
                    None => setup.store()?,
                };
                sessions::import(database, peer, &*store, engine, mode, &mut sessions).await?;
            }
        }
        Ok(sessions)
    }
}

/// Makes a folder for copies of conversations.
fn temporary_folder() -> std::io::Result<TemporaryFolder> {
    TemporaryFolder::new("hermes-import-")
}
