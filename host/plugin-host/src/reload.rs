//! Newer generations of plugins: noticed on disk, built and checked beside the running one, and handed over between two
//! turns.
//!
//! A [`Watch`] only builds. What becomes of a change is decided by [`Generations::take_over`], which whoever runs a
//! session calls when no turn is under way; what would change what the session's requests begin with waits.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermes_diagnostic::Notice;
use hermes_runtime::Runtime;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};

use crate::catalog::{Catalog, Ungranted};
use crate::error::PluginsError;
use crate::generations::Slot;
use crate::kinds::{Hooks, MemoryProvider, Skills, Tools};
use crate::lock::Lock;
use crate::rehearsal::Shown;
use crate::selected::{Identity, Role, Selected, SessionShared};
use crate::selection::{QUIETLY, Select, Selection};
use crate::session::Surroundings;
use crate::supervision::Halt;
use crate::trial;

/// Files are written in pieces: a change is examined after this long without another one.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// A change is examined after this long at the latest.
const MAX_DEBOUNCE: Duration = Duration::from_secs(2);

/// Where newer generations come from.
pub struct ReloadSource {
    /// Compiles and loads them.
    pub runtime: Arc<Runtime>,
    /// Looks which plugins there are.
    pub find: Box<dyn Fn() -> Catalog + Send + Sync>,
    /// The folder below which they lie; it is watched, and so is the `plugins.lock` beside it.
    pub folder: PathBuf,
    /// Those that matter.
    pub selection: Selection,
}

/// What became of a plugin on disk.
pub struct Change {
    pub(crate) name: String,
    pub(crate) kind: ChangeKind,
}

pub(crate) enum ChangeKind {
    /// Built, checked, ready to take over.
    Ready(Box<Selected>),
    /// It is there and cannot be used.
    Broken(Notice),
    /// It may not run any more.
    Revoked(Notice),
    /// It is gone.
    Removed,
}

/// A digest of what a plugin is made of.
type Made = [u8; 32];

/// Watches plugin folders as long as it lives.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    worker: tokio::task::JoinHandle<()>,
    _watcher: RecommendedWatcher,
}

struct Shared {
    source: ReloadSource,
    /// Changes on disk so far.
    noticed: AtomicU64,
    stir: Notify,
    /// Changes on disk that were looked at.
    handled: watch::Sender<u64>,
    pending: Mutex<BTreeMap<String, ChangeKind>>,
    known: Mutex<HashMap<String, Known>>,
}

/// What is known of a plugin that the session wants.
#[derive(Clone, Default)]
struct Known {
    /// What runs; none where it was not there.
    running: Option<Made>,
    /// What was looked at last.
    seen: Option<Made>,
    /// Where it lay.
    folder: Option<PathBuf>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl Watch {
    /// Must be called in a runtime.
    pub(crate) fn start(source: ReloadSource, running: &[&Selected]) -> Result<Self, PluginsError> {
        let plugins = source.folder.clone();
        let unwatched = |why: String| PluginsError::Watch { folder: plugins.clone(), why };
        let failed = |error: notify::Error| unwatched(error.to_string());
        // As the system tells of what lies in there.
        let folder = source.folder.canonicalize().map_err(|error| unwatched(error.to_string()))?;
        let home = folder.parent().map(Path::to_owned).ok_or_else(|| unwatched("it is no folder of a home".into()))?;
        let mut known: HashMap<String, Known> =
            source.selection.names().map(|name| (name.to_owned(), Known::default())).collect();
        for selected in running {
            let made = Some(selected.made());
            let folder = selected.found.origin.folder().map(Path::to_owned);
            known.insert(selected.name().to_owned(), Known { running: made, seen: made, folder });
        }
        let shared = Arc::new(Shared {
            source,
            noticed: AtomicU64::new(0),
            stir: Notify::new(),
            handled: watch::Sender::new(0),
            pending: Mutex::default(),
            known: Mutex::new(known),
        });
        let (told, lock) = (Arc::downgrade(&shared), Lock::path(&home));
        let beside = home.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Some(shared) = told.upgrade() else { return };
            // An error may stand for events that were lost. Beside the folder it is the lock alone that counts.
            let about = |path: &PathBuf| path.parent() != Some(beside.as_path()) || *path == lock;
            if event.map_or(true, |event| matters(&event.kind) && event.paths.iter().any(about)) {
                shared.noticed.fetch_add(1, Ordering::AcqRel);
                shared.stir.notify_one();
            }
        })
        .map_err(&failed)?;
        watcher.watch(&folder, RecursiveMode::Recursive).map_err(&failed)?;
        watcher.watch(&home, RecursiveMode::NonRecursive).map_err(&failed)?;
        let worker = tokio::spawn(Arc::clone(&shared).work());
        Ok(Self { shared, worker, _watcher: watcher })
    }

    /// What has changed since this was asked last. Where a change was noticed and is being looked at, it is waited for, but
    /// no longer than `patience`.
    pub(crate) async fn changes(&self, patience: Duration) -> Vec<Change> {
        let noticed = self.shared.noticed.load(Ordering::Acquire);
        let mut handled = self.shared.handled.subscribe();
        // What is not ready by then is taken up another time.
        let _ = tokio::time::timeout(patience, handled.wait_for(|handled| *handled >= noticed)).await;
        let pending = std::mem::take(&mut *lock(&self.shared.pending));
        let mut known = lock(&self.shared.known);
        pending
            .into_iter()
            .map(|(name, kind)| {
                match (&kind, known.get_mut(&name)) {
                    (ChangeKind::Ready(selected), Some(known)) => known.running = Some(selected.made()),
                    // It runs as nothing on disk does.
                    (ChangeKind::Revoked(_), Some(known)) => known.running = Some(Made::default()),
                    _ => {}
                }
                Change { name, kind }
            })
            .collect()
    }
}

/// Reading a file is no change.
fn matters(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
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
            let looked = tokio::task::spawn_blocking(move || looking.look()).await.unwrap_or_default();
            for (name, kind) in looked {
                let kind = match kind {
                    ChangeKind::Ready(selected) => match trial::rehearse(&selected).await {
                        Ok(Shown { complaint: None, .. }) => ChangeKind::Ready(selected),
                        Ok(Shown { complaint: Some(why), .. }) => ChangeKind::Broken(why.into()),
                        Err(error) => ChangeKind::Broken(error.to_string().into()),
                    },
                    other => other,
                };
                tracing::info!(plugin = name, change = kind.word(), "a plugin has changed on disk");
                lock(&self.pending).insert(name, kind);
            }
            self.handled.send_replace(noticed);
        }
    }

    /// What is another than it was when it was looked at last.
    fn look(&self) -> Vec<(String, ChangeKind)> {
        let catalog = (self.source.find)();
        let mut known = lock(&self.known).clone();
        let select = Select {
            runtime: &self.source.runtime,
            catalog: &catalog,
            selection: &self.source.selection,
            compiling: QUIETLY,
        };
        let mut changes = Vec::new();
        for (name, known) in &mut known {
            let Some(found) = catalog.get(name) else {
                if known.seen.is_some() {
                    known.seen = None;
                    lock(&self.pending).remove(name);
                    let problem = known.folder.as_ref().and_then(|folder| catalog.problem_in(folder));
                    if known.running.is_some() {
                        changes.push((
                            name.clone(),
                            problem
                                .map_or(ChangeKind::Removed, |problem| ChangeKind::Broken(Notice::of(&problem.error))),
                        ));
                    }
                }
                continue;
            };
            known.folder = found.origin.folder().map(Path::to_owned);
            let made = match found.made() {
                Ok(made) => made,
                Err(PluginsError::Ungranted { why, .. }) => {
                    let made = *blake3::hash(why.to_string().as_bytes()).as_bytes();
                    if known.seen != Some(made) {
                        known.seen = Some(made);
                        lock(&self.pending).remove(name);
                        let kind = match why {
                            // What runs is what was granted.
                            Ungranted::Altered(_) => ChangeKind::Broken(Notice::of(&why)),
                            _ => ChangeKind::Revoked(Notice::of(&why)),
                        };
                        changes.push((name.clone(), kind));
                    }
                    continue;
                }
                // It is being written; that stirs once more.
                Err(_) => continue,
            };
            if known.seen == Some(made) {
                continue;
            }
            known.seen = Some(made);
            // What was noticed before is overtaken.
            lock(&self.pending).remove(name);
            if known.running == Some(made) {
                continue;
            }
            let kind = match select.load(found).and_then(|selected| self.source.selection.fits(selected)) {
                Ok(selected) => ChangeKind::Ready(Box::new(selected)),
                Err(error) => ChangeKind::Broken(Notice::of(&error)),
            };
            changes.push((name.clone(), kind));
        }
        // Whoever asked for changes meanwhile has noted what runs.
        let mut kept = lock(&self.known);
        for (name, looked) in known {
            let kept = kept.entry(name).or_default();
            (kept.seen, kept.folder) = (looked.seen, looked.folder);
        }
        changes
    }
}

impl ChangeKind {
    fn word(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Broken(_) => "broken",
            Self::Revoked(_) => "revoked",
            Self::Removed => "removed",
        }
    }
}

impl Change {
    /// What the user should know where no session has begun yet.
    pub(crate) fn line(&self) -> Option<Notice> {
        match &self.kind {
            ChangeKind::Ready(_) => None,
            ChangeKind::Broken(why) => Some(broken(&self.name, why)),
            ChangeKind::Revoked(why) => Some(revoked(&self.name, why)),
            ChangeKind::Removed => Some(removed(&self.name).into()),
        }
    }
}

fn broken(name: &str, why: &Notice) -> Notice {
    let text = format!(
        "the plugin `{name}` was changed and cannot be used: {}; this session goes on with what it has",
        why.text
    );
    Notice { text, fix: why.fix.clone() }
}

fn revoked(name: &str, why: &Notice) -> Notice {
    let text = format!("the plugin `{name}` was revoked, for this session and later ones: {}", why.text);
    Notice { text, fix: why.fix.clone() }
}

fn removed(name: &str) -> String {
    format!("the plugin `{name}` was removed; this session keeps it until it ends")
}

/// The plugins of a session, each of which can give way to a newer generation.
pub struct Generations {
    pub(crate) slots: Vec<Arc<Slot>>,
    pub(crate) shared: SessionShared,
}

/// What a session has to know after some of its plugins gave way.
#[derive(Debug, Default)]
pub struct Taken {
    /// A line for the user about each change.
    pub lines: Vec<Notice>,
    /// Name and version of the context engine, where it is another one now.
    pub engine: Option<String>,
    /// Those that run another generation now, as approvals name them.
    pub identities: Vec<Identity>,
    /// Whether hooks are to be asked again what they want to be told of.
    pub hooks: bool,
}

impl Generations {
    /// For plugins that never change.
    pub fn fixed(halt: Halt) -> Self {
        Self { slots: Vec::new(), shared: SessionShared { halt, ..SessionShared::default() } }
    }

    /// Between two turns: lets newer generations take over. What would change the tools of the session waits for the next
    /// one, and so do texts for the system prompt.
    pub async fn take_over(&self, changes: Vec<Change>, around: &Surroundings) -> Taken {
        let mut taken = Taken::default();
        for Change { name, kind } in changes {
            let slot = self.slots.iter().find(|slot| slot.plugin() == name);
            let line = match (kind, slot) {
                (ChangeKind::Broken(why), _) => broken(&name, &why),
                (ChangeKind::Removed, _) => removed(&name).into(),
                (ChangeKind::Revoked(why), slot) => {
                    slot.inspect(|slot| slot.strip());
                    revoked(&name, &why)
                }
                (ChangeKind::Ready(_), None) => {
                    format!("the plugin `{name}` is there now; sessions that begin from now on have it").into()
                }
                (ChangeKind::Ready(selected), Some(slot)) => match take(slot, &selected, around, &self.shared).await {
                    Ok(told) => {
                        // The engine's is the first.
                        if self.slots.first().is_some_and(|first| Arc::ptr_eq(first, slot)) {
                            taken.engine = Some(format!("{name}@{}", slot.version()));
                        }
                        taken.hooks |= slot.exports.hooks;
                        taken.identities.push(selected.identity());
                        told.into()
                    }
                    Err(held) => held,
                },
            };
            taken.lines.push(line);
        }
        taken
    }
}

/// Puts a newer generation into its slot; what to say of it, or why it was left out.
async fn take(
    slot: &Slot,
    selected: &Selected,
    around: &Surroundings,
    shared: &SessionShared,
) -> Result<String, Notice> {
    let name = selected.name().to_owned();
    let version = selected.found.manifest.version.to_string();
    let waits = |what: &str| {
        let text =
            format!("the plugin `{name}` was changed: {what}, so it stays as it was until the next session begins");
        Notice::from(text)
    };
    let exports = selected.loaded.exports();
    if exports != slot.exports {
        return Err(waits(&format!(
            "it exports {} in place of {}",
            exports.names().join(", "),
            slot.exports.names().join(", ")
        )));
    }
    let cannot = |error: &dyn std::fmt::Display| broken(&name, &error.to_string().into());
    let component = Arc::new(selected.component(around, shared, slot.role).map_err(|error| cannot(&error))?);
    if let Some(before) = slot.offered() {
        let now = component.catalog().await.map_err(|error| cannot(&error))?;
        if let Some(differs) = difference(before, &now) {
            return Err(waits(&format!("{differs}, and the tools of a session are those that it began with")));
        }
    } else if exports.hooks {
        component.interests().await.map_err(|error| cannot(&error))?;
    }
    let old = slot.component();
    let mut later = Vec::new();
    if slot.role == Role::Serves
        && exports.memory_provider
        && let (Ok(before), now) = (old.system_prompt().await, component.system_prompt().await)
        && before != now.map_err(|error| cannot(&error))?
    {
        later.push("its part of the system prompt");
    }
    if exports.skills
        && let (Ok(before), now) = (old.index().await, component.index().await)
        && before != now.map_err(|error| cannot(&error))?
    {
        later.push("its index of skills");
    }
    let number = slot.take_over(component);
    let waiting = match later.is_empty() {
        true => String::new(),
        false => format!("; {} is taken up by the next session, or by a compaction", later.join(" and ")),
    };
    Ok(format!(
        "the plugin `{name}` was changed: its generation {number} ({version}) serves this session from here on{waiting}"
    ))
}

/// What differs between two lists of tools, in words.
fn difference(before: &[hermes_runtime::Tool], now: &[hermes_runtime::Tool]) -> Option<String> {
    let names = |tools: &[hermes_runtime::Tool], of: &[hermes_runtime::Tool]| -> Vec<String> {
        let missing = tools.iter().filter(|tool| !of.iter().any(|other| other.schema.name == tool.schema.name));
        missing.map(|tool| format!("`{}`", tool.schema.name)).collect()
    };
    let (gone, new) = (names(before, now), names(now, before));
    let changed: Vec<String> = before
        .iter()
        .filter(|tool| now.iter().any(|other| other.schema.name == tool.schema.name && other != *tool))
        .map(|tool| format!("`{}`", tool.schema.name))
        .collect();
    let parts = [("new", new), ("gone", gone), ("changed", changed)];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("{word}: {}", names.join(", ")))
        .collect();
    (!told.is_empty()).then(|| format!("its tools are others ({})", told.join("; ")))
}
