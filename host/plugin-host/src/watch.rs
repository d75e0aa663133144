//! Watches the folder of plugins, once for all sessions of a process, and builds newer generations beside the running ones.
//!
//! Every session subscribes with the plugins that it runs, and collects its changes between two turns. A plugin that
//! several sessions select alike is read, compiled and rehearsed once for all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hermes_diagnostic::Notice;
use hermes_runtime::{Runtime, executor};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};

use crate::catalog::{Bundled, Catalog};
use crate::change::{Change, ChangeKind};
use crate::chosen::{QUIETLY, Select};
use crate::error::PluginsError;
use crate::lock::Lock;
use crate::origin::FirstSeen;
use crate::rehearsal::Shown;
use crate::selected::Selected;
use crate::selection::Selection;
use crate::trial;
use crate::ungranted::Ungranted;

/// Files are written in pieces: a change is examined after this long without another one.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// A change is examined after this long at the latest.
const MAX_DEBOUNCE: Duration = Duration::from_secs(2);

/// Where plugins are found, and what loads them.
#[derive(Clone)]
pub(crate) struct Source {
    /// Compiles and loads plugins.
    pub(crate) runtime: Arc<Runtime>,
    /// The plugins of the program.
    pub(crate) bundled: &'static [Bundled],
    /// The folder of installed plugins. `plugins.lock` lies beside it.
    pub(crate) folder: PathBuf,
    /// The origins of the installed plugins when this process saw them first.
    pub(crate) first_seen: Arc<FirstSeen>,
}

impl Source {
    pub(crate) fn catalog(&self, selection: &Selection) -> Catalog {
        let mut catalog = Catalog::find(self.bundled, &self.folder, &selection.settings);
        catalog.withhold_replaced(&self.first_seen);
        catalog
    }
}

/// The digest of everything that determines a plugin in a session; see [`Found::generation`](crate::catalog::Found::generation).
type Generation = [u8; 32];

/// The file watcher of a process. It ends when the last session drops its subscription.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    worker: tokio::task::JoinHandle<()>,
    _watcher: RecommendedWatcher,
}

struct Shared {
    source: Source,
    /// The number of changes on disk so far.
    noticed: AtomicU64,
    stir: Notify,
    /// The number of changes on disk that were examined.
    handled: watch::Sender<u64>,
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
}

/// A session's part in the watch.
pub(crate) struct Subscription {
    watch: Arc<Watch>,
    subscriber: Arc<Subscriber>,
}

struct Subscriber {
    selection: Arc<Selection>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<String, Known>,
    /// Changes that the session has not collected yet.
    pending: BTreeMap<String, ChangeKind>,
}

/// The state of a plugin that the session selects.
#[derive(Clone, Default)]
struct Known {
    /// The running generation; none if the plugin does not run.
    running: Option<Generation>,
    /// The generation that was examined last.
    seen: Option<Generation>,
    /// The folder where it was last.
    folder: Option<PathBuf>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl Watch {
    /// Starts the watcher. Must be called in a Tokio runtime.
    pub(crate) fn start(source: Source) -> Result<Self, PluginsError> {
        let plugins = source.folder.clone();
        let unwatched = |why: String| PluginsError::Watch { folder: plugins.clone(), why };
        let failed = |error: notify::Error| unwatched(error.to_string());
        // The system reports changes under canonical paths.
        let folder = source.folder.canonicalize().map_err(|error| unwatched(error.to_string()))?;
        let home = folder.parent().map(std::path::Path::to_owned);
        let home = home.ok_or_else(|| unwatched("it has no parent folder".into()))?;
        let shared = Arc::new(Shared {
            source,
            noticed: AtomicU64::new(0),
            stir: Notify::new(),
            handled: watch::Sender::new(0),
            subscribers: Mutex::default(),
        });
        let (weak, lock) = (Arc::downgrade(&shared), Lock::path(&home));
        let beside = home.clone();
        // A watcher without its thread would panic at the first folder.
        executor::starts(1).map_err(|error| unwatched(format!("the system starts no thread: {error}")))?;
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Some(shared) = weak.upgrade() else { return };
            // Beside the folder of plugins only the lock matters. An error may stand for lost events.
            let about = |path: &PathBuf| path.parent() != Some(beside.as_path()) || *path == lock;
            if event.map_or(true, |event| matters(&event.kind) && event.paths.iter().any(about)) {
                shared.notice();
            }
        })
        .map_err(&failed)?;
        watcher.watch(&folder, RecursiveMode::Recursive).map_err(&failed)?;
        watcher.watch(&home, RecursiveMode::NonRecursive).map_err(&failed)?;
        let worker = tokio::spawn(Arc::clone(&shared).work());
        Ok(Self { shared, worker, _watcher: watcher })
    }

    /// Adds a session that selects these plugins and runs those of them that were found.
    pub(crate) fn subscribe<'a>(
        self: Arc<Self>,
        selection: Arc<Selection>,
        running: impl Iterator<Item = &'a Selected>,
    ) -> Subscription {
        let mut known: HashMap<String, Known> =
            selection.names().map(|name| (name.to_owned(), Known::default())).collect();
        for selected in running {
            let generation = Some(selected.generation());
            let folder = selected.found.origin.folder().map(std::path::Path::to_owned);
            known.insert(selected.name().to_owned(), Known { running: generation, seen: generation, folder });
        }
        let state = State { known, pending: BTreeMap::new() };
        let subscriber = Arc::new(Subscriber { selection, state: Mutex::new(state) });
        let mut subscribers = lock(&self.shared.subscribers);
        subscribers.retain(|subscriber| subscriber.strong_count() > 0);
        subscribers.push(Arc::downgrade(&subscriber));
        drop(subscribers);
        Subscription { watch: self, subscriber }
    }
}

impl Subscription {
    /// Examines the folder as if a file had changed.
    pub(crate) fn examine(&self) {
        self.watch.shared.notice();
    }

    /// The changes since the last call. Waits for changes that are being examined, but no longer than `patience`.
    pub(crate) async fn changes(&self, patience: Duration) -> Vec<Change> {
        let shared = &self.watch.shared;
        let noticed = shared.noticed.load(Ordering::Acquire);
        let mut handled = shared.handled.subscribe();
        // A later call collects changes that are not ready in time.
        let _ = tokio::time::timeout(patience, handled.wait_for(|handled| *handled >= noticed)).await;
        self.subscriber.collect()
    }
}

impl Subscriber {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn collect(&self) -> Vec<Change> {
        let mut state = self.state();
        let pending = std::mem::take(&mut state.pending);
        pending
            .into_iter()
            .map(|(name, kind)| {
                match (&kind, state.known.get_mut(&name)) {
                    (ChangeKind::Ready(selected), Some(known)) => known.running = Some(selected.generation()),
                    // A revoked plugin runs like nothing on disk.
                    (ChangeKind::Revoked(_), Some(known)) => known.running = Some(Generation::default()),
                    _ => {}
                }
                Change { name, kind }
            })
            .collect()
    }
}

/// Whether an event is a change: reading a file is not.
fn matters(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change for one session, before its rehearsal.
struct Finding {
    subscriber: Arc<Subscriber>,
    name: String,
    kind: ChangeKind,
}

impl Shared {
    fn notice(&self) {
        self.noticed.fetch_add(1, Ordering::AcqRel);
        self.stir.notify_one();
    }

    async fn work(self: Arc<Self>) {
        loop {
            self.stir.notified().await;
            let begun = Instant::now();
            let noticed = loop {
                let noticed = self.noticed.load(Ordering::Acquire);
                tokio::time::sleep(DEBOUNCE).await;
                if self.noticed.load(Ordering::Acquire) == noticed || begun.elapsed() > MAX_DEBOUNCE {
                    break noticed;
                }
            };
            let looking = Arc::clone(&self);
            // Reading, compiling and mapping block.
            let findings = tokio::task::spawn_blocking(move || looking.look()).await.unwrap_or_default();
            let mut rehearsed = Rehearsed::default();
            let mut logged = BTreeSet::new();
            for Finding { subscriber, name, kind } in findings {
                let kind = match kind {
                    ChangeKind::Ready(selected) => rehearsed.kind(selected).await,
                    other => other,
                };
                if logged.insert((name.clone(), kind.word())) {
                    tracing::info!(plugin = name, change = kind.word(), "a plugin has changed on disk");
                }
                subscriber.state().pending.insert(name, kind);
            }
            self.handled.send_replace(noticed);
        }
    }

    /// The plugins that differ from the last examination, by session.
    fn look(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        // A session that subscribes after this line selected its plugins from a later state of the disk, or asks for
        // another examination.
        for (selection, subscribers) in self.by_selection() {
            let catalog = self.source.catalog(&selection);
            let (runtime, selection, catalog) = (&*self.source.runtime, &*selection, &catalog);
            // The session goes on with what it has.
            let select = Select { runtime, catalog, selection, compiling: QUIETLY, background: true };
            for name in selection.names().collect::<BTreeSet<_>>() {
                let sighting = Sighting::of(catalog, name);
                let mut built: Option<ChangeKind> = None;
                for subscriber in &subscribers {
                    let Some(step) = subscriber.state().compare(name, &sighting, catalog) else { continue };
                    let kind = match step {
                        Step::Build => built.get_or_insert_with(|| build(&select, name)).clone(),
                        Step::Report(kind) => kind,
                    };
                    findings.push(Finding { subscriber: Arc::clone(subscriber), name: name.to_owned(), kind });
                }
            }
        }
        findings
    }

    /// The living subscribers, grouped by equal selections.
    fn by_selection(&self) -> Vec<(Arc<Selection>, Vec<Arc<Subscriber>>)> {
        let mut groups: Vec<(Arc<Selection>, Vec<Arc<Subscriber>>)> = Vec::new();
        for subscriber in lock(&self.subscribers).iter().filter_map(Weak::upgrade) {
            match groups.iter_mut().find(|(selection, _)| *selection == subscriber.selection) {
                Some((_, members)) => members.push(subscriber),
                None => groups.push((Arc::clone(&subscriber.selection), vec![subscriber])),
            }
        }
        groups
    }
}

fn build(select: &Select<'_>, name: &str) -> ChangeKind {
    let Some(found) = select.catalog.get(name) else { return ChangeKind::Removed };
    match select.load(found).and_then(|selected| select.fits(selected)) {
        Ok(selected) => ChangeKind::Ready(Arc::new(selected)),
        Err(error) => ChangeKind::Broken(Notice::of(&error)),
    }
}

/// The generations of one examination that were rehearsed, each with its complaint.
#[derive(Default)]
struct Rehearsed(Vec<(Arc<Selected>, Option<Notice>)>);

impl Rehearsed {
    /// Rehearses a generation, once for all sessions.
    async fn kind(&mut self, selected: Arc<Selected>) -> ChangeKind {
        let complaint = match self.0.iter().find(|(known, _)| Arc::ptr_eq(known, &selected)) {
            Some((_, complaint)) => complaint.clone(),
            None => {
                let complaint = match trial::rehearse(&selected).await {
                    Ok(Shown { complaint, .. }) => complaint.map(Notice::from),
                    Err(error) => Some(error.to_string().into()),
                };
                self.0.push((Arc::clone(&selected), complaint.clone()));
                complaint
            }
        };
        complaint.map_or(ChangeKind::Ready(selected), ChangeKind::Broken)
    }
}

/// A plugin as it is on disk.
enum Sighting {
    /// There is no plugin of this name.
    Absent,
    /// Its files cannot be read, probably because they are being written. The end of the writing is another event of the watch.
    Unreadable { folder: Option<PathBuf> },
    /// It may not run.
    Ungranted { folder: Option<PathBuf>, why: Ungranted },
    /// It may run.
    Usable { folder: Option<PathBuf>, generation: Generation },
}

impl Sighting {
    fn of(catalog: &Catalog, name: &str) -> Self {
        let Some(found) = catalog.get(name) else { return Self::Absent };
        let folder = found.origin.folder().map(std::path::Path::to_owned);
        match found.generation() {
            Ok(generation) => Self::Usable { folder, generation },
            Err(PluginsError::Ungranted { why, .. }) => Self::Ungranted { folder, why },
            Err(_) => Self::Unreadable { folder },
        }
    }
}

/// What a session needs after a change.
enum Step {
    /// A newer generation.
    Build,
    /// This report.
    Report(ChangeKind),
}

impl State {
    /// Compares a plugin on disk with what the session knows of it. None if nothing is new.
    fn compare(&mut self, name: &str, sighting: &Sighting, catalog: &Catalog) -> Option<Step> {
        let known = self.known.get_mut(name)?;
        match sighting {
            Sighting::Absent => {
                known.seen.take()?;
                self.pending.remove(name);
                let problem = known.folder.as_ref().and_then(|folder| catalog.problem_in(folder));
                known.running?;
                let broken = problem.map(|problem| ChangeKind::Broken(Notice::of(&problem.error)));
                Some(Step::Report(broken.unwrap_or(ChangeKind::Removed)))
            }
            Sighting::Unreadable { folder } => {
                known.folder.clone_from(folder);
                None
            }
            Sighting::Ungranted { folder, why } => {
                known.folder.clone_from(folder);
                let generation = *blake3::hash(why.to_string().as_bytes()).as_bytes();
                if known.seen.replace(generation) == Some(generation) {
                    return None;
                }
                self.pending.remove(name);
                Some(Step::Report(match why {
                    // The running code is still the granted code.
                    Ungranted::Altered { .. } => ChangeKind::Broken(Notice::of(why)),
                    _ => ChangeKind::Revoked(Notice::of(why)),
                }))
            }
            Sighting::Usable { folder, generation } => {
                known.folder.clone_from(folder);
                if known.seen.replace(*generation) == Some(*generation) {
                    return None;
                }
                // A pending change is out of date.
                self.pending.remove(name);
                (known.running != Some(*generation)).then_some(Step::Build)
            }
        }
    }
}

#[cfg(test)]
mod tests;
