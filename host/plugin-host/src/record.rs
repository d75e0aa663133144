//! The record of a plugin in `$HERMES_HOME/data/<plugin>/record.json`: its usage, its failures, and whether it is suspended.
//!
//! A session collects in memory, and adds to the file after failures and at its end, under a lock. `hermes plugins info` and
//! `stats` show the record. No decision depends on it, so a damaged record is replaced by an empty one.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_runtime::services::Clock;
use hermes_runtime::{CallError, Cause, Fault, Figures, Tally};
use serde::{Deserialize, Serialize};

/// The most failures in the record; older ones are dropped.
const REMEMBERED: usize = 10;
/// The most different kinds of returned errors that are counted apart: plugins choose their codes.
const KINDS: usize = 32;
/// The most bytes of a kind.
const KIND: usize = 64;
/// The kinds beyond those.
const OTHERS: &str = "other";
/// The most bytes of a failure's cause.
const CAUSE: usize = 1 << 10;
/// A larger file is damaged.
const MOST_BYTES: u64 = 1 << 20;
/// How long to wait for another process, which holds the lock only while it writes a small file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Usage and failures of a plugin, over all sessions and processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Its usage.
    pub figures: Figures,
    /// How often it crashed, ran into a limit or did not start.
    pub failures: u64,
    /// The last failures, the newest at the end.
    pub errors: Vec<Failure>,
    /// The errors of the contract that it returned, such as one for a service that does not answer.
    pub returned: Returned,
    /// Its suspension, until it works again in another session.
    pub suspended: Option<Suspension>,
    /// The session that wrote last.
    pub latest: Option<Latest>,
}

/// Errors of the contract that a plugin returned. They are answers, and no failures of the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Returned {
    /// How many calls it answered with an error.
    pub calls: u64,
    /// How many by kind, with the code if there is one, as in `unavailable (http-503)`.
    pub kinds: BTreeMap<String, u64>,
    /// The last of them.
    pub last: Option<Failure>,
}

impl Returned {
    fn add(&mut self, kind: &str, calls: u64) {
        self.calls = self.calls.saturating_add(calls);
        let kind = if self.kinds.contains_key(kind) || self.kinds.len() < KINDS { kind } else { OTHERS };
        let known = self.kinds.entry(kind.to_owned()).or_default();
        *known = known.saturating_add(calls);
    }

    fn merge(&mut self, more: Self) {
        for (kind, calls) in more.kinds {
            self.add(&kind, calls);
        }
        self.last = more.last.or(self.last.take());
    }
}

/// The kind of a fault, with its code.
fn kind_of(fault: &Fault) -> String {
    let name = fault.kind.name();
    let mut kind = if fault.code.is_empty() { name.to_owned() } else { format!("{name} ({})", fault.code) };
    kind.truncate(kind.floor_char_boundary(KIND));
    kind
}

/// Failures of a plugin in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latest {
    /// The session.
    pub session: String,
    /// How often the plugin failed in it.
    pub failures: u64,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Unix time in milliseconds.
    pub at: u64,
    /// The session.
    pub session: String,
    /// The plugin's version.
    pub version: String,
    /// The function of the contract.
    pub call: String,
    /// The cause.
    pub cause: String,
}

/// The suspension of a plugin for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// The number of failures in a row.
    pub failures: u32,
    /// The last of these failures.
    pub last: Failure,
}

impl Record {
    /// Reads the record of a plugin. A missing or damaged record is empty.
    ///
    /// # Errors
    ///
    /// When the file exists and cannot be read.
    pub fn read(home: &Path, plugin: &str) -> io::Result<Self> {
        read(&file(home, plugin))
    }

    fn add(&mut self, figures: &Figures, unwritten: &mut Unwritten, session: &str) {
        self.figures = self.figures.plus(figures);
        let failures = std::mem::take(&mut unwritten.failures);
        self.failures = self.failures.saturating_add(failures);
        let before = self.latest.take().filter(|latest| latest.session == session);
        let before = before.map_or(0, |latest| latest.failures);
        self.latest = Some(Latest { session: session.to_owned(), failures: before.saturating_add(failures) });
        self.errors.append(&mut unwritten.errors);
        self.returned.merge(std::mem::take(&mut unwritten.returned));
        let excess = self.errors.len().saturating_sub(REMEMBERED);
        self.errors.drain(..excess);
        if let Some(suspension) = unwritten.suspension.take() {
            self.suspended = Some(suspension);
        } else if unwritten.answered && self.suspended.as_ref().is_some_and(|before| before.last.session != session) {
            self.suspended = None;
        }
    }
}

fn file(home: &Path, plugin: &str) -> PathBuf {
    home.join("data").join(plugin).join("record.json")
}

fn read(path: &Path) -> io::Result<Record> {
    let mut text = String::new();
    match hermes_private_files::open_regular(path) {
        Ok(file) => match file.take(MOST_BYTES).read_to_string(&mut text) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Record::default()),
            Err(error) => return Err(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Record::default()),
        Err(error) => return Err(error),
    }
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Keeps the record of a plugin in one session.
pub(crate) struct Recorder {
    /// None if nothing may be written.
    path: Option<PathBuf>,
    tally: Arc<Tally>,
    clock: Arc<dyn Clock>,
    session: String,
    unwritten: Mutex<Unwritten>,
}

/// The figures and failures that are not in the file yet.
#[derive(Default)]
struct Unwritten {
    written: Figures,
    failures: u64,
    errors: Vec<Failure>,
    returned: Returned,
    suspension: Option<Suspension>,
    /// Whether the plugin has answered since its last failure.
    answered: bool,
}

impl Recorder {
    /// A recorder for a session. Without a home nothing is written.
    pub(crate) fn new(
        home: Option<&Path>,
        plugin: &str,
        session: &str,
        tally: Arc<Tally>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let path = home.map(|home| file(home, plugin));
        Self { path, tally, clock, session: session.to_owned(), unwritten: Mutex::default() }
    }

    fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answered(&self) {
        self.unwritten().answered = true;
    }

    fn failure(&self, error: &CallError) -> Failure {
        let cause = error.cause.to_string();
        Failure {
            at: self.clock.now(),
            session: self.session.clone(),
            version: error.version.clone(),
            call: error.call.to_owned(),
            cause: cause[..cause.floor_char_boundary(CAUSE)].to_owned(),
        }
    }

    /// Counts an error that the plugin returned.
    pub(crate) fn returned(&self, error: &CallError) {
        let Cause::Fault(fault) = &error.cause else { return };
        let mut unwritten = self.unwritten();
        unwritten.returned.add(&kind_of(fault), 1);
        unwritten.returned.last = Some(self.failure(error));
    }

    pub(crate) fn failed(&self, error: &CallError) -> Failure {
        let failure = self.failure(error);
        let mut unwritten = self.unwritten();
        unwritten.answered = false;
        unwritten.failures += 1;
        if unwritten.errors.len() >= REMEMBERED {
            unwritten.errors.remove(0);
        }
        unwritten.errors.push(failure.clone());
        failure
    }

    pub(crate) fn suspended(&self, suspension: Suspension) {
        self.unwritten().suspension = Some(suspension);
    }

    /// Adds to the file what it does not have yet. If that fails, the next call tries again.
    pub(crate) fn write(&self) {
        let Some(path) = &self.path else { return };
        let mut unwritten = self.unwritten();
        let figures = self.tally.figures();
        let fresh = figures.since(&unwritten.written);
        if fresh.calls == 0
            && unwritten.failures == 0
            && unwritten.returned.calls == 0
            && unwritten.suspension.is_none()
        {
            return;
        }
        match self.add_to(path, &fresh, &mut unwritten) {
            Ok(()) => unwritten.written = figures,
            Err(error) => tracing::debug!(path = %path.display(), %error, "the record of a plugin was not written"),
        }
    }

    fn add_to(&self, path: &Path, fresh: &Figures, unwritten: &mut Unwritten) -> io::Result<()> {
        let Some(folder) = path.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
        hermes_private_files::create_folder(folder)?;
        let lock = hermes_private_files::open_file(&folder.join("record.lock"))?;
        if !hermes_private_files::lock_within(&lock, PATIENCE)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut record = read(path)?;
        // Add a copy, because the file may not be writable.
        let mut adding = Unwritten {
            suspension: unwritten.suspension.clone(),
            errors: unwritten.errors.clone(),
            returned: unwritten.returned.clone(),
            ..*unwritten
        };
        record.add(fresh, &mut adding, &self.session);
        let text = serde_json::to_string_pretty(&record)? + "\n";
        hermes_private_files::write_atomically(path, text.as_bytes())?;
        *unwritten = adding;
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.write();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_runtime::FaultKind;

    use super::*;

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> u64 {
            12
        }

        fn utc_offset(&self) -> i32 {
            0
        }
    }

    fn recorder(home: &Path, session: &str) -> Recorder {
        Recorder::new(Some(home), "mine", session, Arc::default(), Arc::new(Noon))
    }

    fn crash(number: usize) -> CallError {
        CallError {
            plugin: "mine".to_owned(),
            version: "1.0.0".to_owned(),
            call: "recall",
            cause: Cause::Trap(Box::new(format!("crash {number}").into())),
        }
    }

    fn suspend(recorder: &Recorder) {
        let last = recorder.failed(&crash(0));
        recorder.suspended(Suspension { failures: 3, last });
    }

    #[test]
    fn several_sessions_add_to_one_record_and_only_the_newest_failures_stay() {
        let home = tempfile::tempdir().unwrap();
        let recorders: Vec<Recorder> = (0..4).map(|session| recorder(home.path(), &session.to_string())).collect();
        std::thread::scope(|scope| {
            for recorder in &recorders {
                scope.spawn(move || {
                    for number in 0..6 {
                        recorder.failed(&crash(number));
                        recorder.tally.sent(100 * (number as u64 + 1));
                        recorder.write();
                    }
                });
            }
        });
        drop(recorders);
        let record = Record::read(home.path(), "mine").unwrap();
        assert_eq!((record.failures, record.figures.bytes_out, record.errors.len()), (24, 2_400, REMEMBERED));
        assert!(record.errors.iter().all(|failure| failure.at == 12 && failure.call == "recall"), "{record:?}");
    }

    #[test]
    fn returned_errors_are_counted_by_kind_beside_failures() {
        let home = tempfile::tempdir().unwrap();
        let fault = |kind, code: &str| CallError {
            call: "sync-turn",
            cause: Cause::Fault(Box::new(Fault::new(kind, code, format!("status {code}")))),
            ..crash(0)
        };
        for session in ["one", "two"] {
            let recorder = recorder(home.path(), session);
            recorder.returned(&fault(FaultKind::Unavailable, "500"));
            recorder.returned(&fault(FaultKind::Timeout, ""));
            recorder.returned(&fault(FaultKind::Unavailable, "500"));
            recorder.returned(&crash(1));
        }
        let record = Record::read(home.path(), "mine").unwrap();
        let kinds: Vec<(&str, u64)> =
            record.returned.kinds.iter().map(|(kind, calls)| (kind.as_str(), *calls)).collect();
        assert_eq!(kinds, [("timeout", 2), ("unavailable (500)", 4)]);
        assert_eq!((record.returned.calls, record.failures, record.errors.len()), (6, 0, 0));
        let last = record.returned.last.unwrap();
        assert_eq!(
            (last.session.as_str(), last.call.as_str(), last.cause.as_str()),
            ("two", "sync-turn", "status 500")
        );

        let many = recorder(home.path(), "three");
        (0..100).for_each(|number| many.returned(&fault(FaultKind::Failed, &format!("{number}-{}", "é".repeat(100)))));
        drop(many);
        let record = Record::read(home.path(), "mine").unwrap();
        assert_eq!((record.returned.calls, record.returned.kinds.len()), (106, KINDS + 1));
        assert!(record.returned.kinds.keys().all(|kind| kind.len() <= KIND));
    }

    #[test]
    fn a_suspension_is_told_until_the_plugin_works_in_another_session() {
        let home = tempfile::tempdir().unwrap();
        let suspended = || Record::read(home.path(), "mine").unwrap().suspended;
        let first = recorder(home.path(), "first");
        suspend(&first);
        first.write();
        assert!(suspended().unwrap().last.cause.contains("crash 0"));
        drop(first);
        let latest = || Record::read(home.path(), "mine").unwrap().latest.unwrap();
        assert_eq!(latest(), Latest { session: "first".to_owned(), failures: 1 });
        let second = recorder(home.path(), "second");
        second.failed(&crash(1));
        second.write();
        assert!(suspended().is_some());
        second.answered();
        second.tally.sent(1);
        second.failed(&crash(2));
        second.answered();
        drop(second);
        assert_eq!(suspended(), None);
        assert_eq!(latest(), Latest { session: "second".to_owned(), failures: 2 });
        let third = recorder(home.path(), "third");
        third.tally.sent(1);
        third.suspended(Suspension { failures: 3, last: third.failed(&crash(3)) });
        third.write();
        assert_eq!(latest().failures, 1);
    }

    #[test]
    fn a_damaged_record_begins_anew() {
        let home = tempfile::tempdir().unwrap();
        let path = file(home.path(), "mine");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for damage in [&b"{\"figures\": 3"[..], b"\xff\xfe", b"[]", b""] {
            fs::write(&path, damage).unwrap();
            assert_eq!(Record::read(home.path(), "mine").unwrap(), Record::default());
        }
        drop({
            let recorder = recorder(home.path(), "s");
            recorder.failed(&crash(1));
            recorder
        });
        assert_eq!(Record::read(home.path(), "mine").unwrap().failures, 1);
    }

    #[test]
    fn nothing_is_written_where_nothing_happened() {
        let home = tempfile::tempdir().unwrap();
        drop(recorder(home.path(), "s"));
        assert!(!home.path().join("data").exists());
    }
}
