//! What the sessions of a process share of their plugins: selections, the watch on the folder of plugins, and connections.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hermes_runtime::Runtime;

use crate::catalog::Bundled;
use crate::chosen::{Chosen, Compiling};
use crate::error::PluginsError;
use crate::fingerprint::Fingerprint;
use crate::selection::Selection;
use crate::session::Plugins;
use crate::watch::{Source, Watch};
use crate::web::ConnectionPool;

/// The plugins of a process. A process has one value for each home; its sessions get their plugins from it.
///
/// Selecting reads manifests, the lock and every plugin's code. The result serves later sessions with an equal selection
/// until a file changes. `plugins.lock` itself is read for every session, so a revoked grant takes effect at once.
pub struct PluginHost {
    source: Source,
    selections: Mutex<Selections>,
    watch: Mutex<Weak<Watch>>,
    connections: Arc<ConnectionPool>,
}

/// More selections than the front ends of a process usually alternate between.
const MOST_KEPT: usize = 16;

/// The selections that were made in one state of the disk.
#[derive(Default)]
struct Selections {
    /// None if no selection is kept.
    state: Option<Fingerprint>,
    made: Vec<Made>,
}

type Made = (Arc<Selection>, Chosen);

impl PluginHost {
    /// The plugins of the program and those in a folder, with `plugins.lock` beside it. Reads nothing yet.
    pub fn new(runtime: Arc<Runtime>, bundled: &'static [Bundled], folder: PathBuf) -> Self {
        Self {
            source: Source { runtime, bundled, folder, first_seen: Arc::default() },
            selections: Mutex::default(),
            watch: Mutex::default(),
            connections: Arc::default(),
        }
    }

    /// The plugins of a new session. A missing engine or memory provider is an error; any other unusable plugin is left
    /// out with a notice. `compiling` is called several times a second while a plugin is compiled.
    ///
    /// Sessions with equal selections share their plugins' code, but not their instances.
    ///
    /// # Errors
    ///
    /// When the engine or the memory provider is missing or cannot be used.
    pub fn select(&self, selection: &Selection, compiling: Compiling<'_>) -> Result<Plugins, PluginsError> {
        // Taken before anything is read: a change during the selection gives another fingerprint later.
        let state = Fingerprint::of(&self.source.folder);
        let kept = lock(&self.selections).find(state.as_ref(), selection);
        let (selection, chosen) = match kept {
            Some(kept) => kept,
            // Without the lock, because a plugin may have to be compiled: no other session waits for that.
            None => {
                let catalog = self.source.catalog(selection);
                let chosen = Chosen::select(&self.source.runtime, &catalog, selection, compiling)?;
                lock(&self.selections).keep(state, (Arc::new(selection.clone()), chosen))
            }
        };
        Ok(Plugins::new(selection, chosen, state, Arc::clone(&self.connections)))
    }

    /// Watches for newer versions until these plugins are dropped. All sessions use one file watcher. Must be called in a
    /// Tokio runtime.
    ///
    /// # Errors
    ///
    /// When the folder of plugins cannot be watched.
    pub fn watch(&self, plugins: &mut Plugins) -> Result<(), PluginsError> {
        let watch = {
            let mut kept = lock(&self.watch);
            match kept.upgrade() {
                Some(watch) => watch,
                None => {
                    let started = Arc::new(Watch::start(self.source.clone())?);
                    *kept = Arc::downgrade(&started);
                    started
                }
            }
        };
        let subscription = watch.subscribe(Arc::clone(&plugins.selection), plugins.chosen.all());
        // A change between the selection and the subscription may have gone unseen.
        if let (Some(before), Some(now)) = (plugins.state, Fingerprint::of(&self.source.folder))
            && !before.is_same(&now)
        {
            subscription.examine();
        }
        plugins.subscription = Some(subscription);
        Ok(())
    }
}

impl Selections {
    fn find(&self, state: Option<&Fingerprint>, selection: &Selection) -> Option<Made> {
        if !self.state.as_ref()?.is_same(state?) {
            return None;
        }
        self.made.iter().find(|(kept, _)| **kept == *selection).cloned()
    }

    /// Keeps a selection, unless a later change of the disk could go unnoticed. Returns the selection to use, because another
    /// session may have made an equal one meanwhile.
    fn keep(&mut self, state: Option<Fingerprint>, made: Made) -> Made {
        if let Some(kept) = self.find(state.as_ref(), &made.0) {
            return kept;
        }
        let Some(state) = state.filter(Fingerprint::is_settled) else { return made };
        if !self.state.is_some_and(|kept| kept.is_same(&state)) {
            self.made.clear();
        }
        self.state = Some(state);
        if self.made.len() == MOST_KEPT {
            self.made.remove(0);
        }
        self.made.push(made.clone());
        made
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
