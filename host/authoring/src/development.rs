//! A plugin under development: changes of its sources, and what a session would say about a build.

use std::ops::ControlFlow;
use std::time::Duration;

use hermes_app::{ModelChoice, Setup};
use hermes_diagnostic::{Category, Diagnostic, Notice};
use hermes_plugin_host::{Manifest, Trial, try_out};
use hermes_runtime::{Manner, Runtime, executor};
use notify::Watcher as _;

use crate::{Project, failure};

/// Watches the sources of a project until it is dropped.
#[derive(Debug)]
pub struct Watch(#[expect(dead_code, reason = "dropping it ends the watch")] notify::RecommendedWatcher);

impl Watch {
    /// Calls a function at every change, and at some moments without a change.
    ///
    /// # Errors
    ///
    /// When the system refuses to watch the folders.
    pub fn begin(project: &Project, changed: impl Fn() + Send + 'static) -> Result<Self, Diagnostic> {
        let unwatched =
            |why: String, fix: &str| failure(Category::General, "the project cannot be watched for changes", why, fix);
        let failed = |error: notify::Error| {
            let fix =
                "raise the limit of file watches (fs.inotify.max_user_watches), or move the project to a local disk";
            unwatched(error.to_string(), fix)
        };
        // A watcher without its thread would panic at the first folder.
        executor::starts(1).map_err(|error| {
            let fix = "end other programs, or raise the limits of threads and memory";
            unwatched(format!("the system starts no thread: {error}"), fix)
        })?;
        let notify = move |event: notify::Result<notify::Event>| {
            // Looking for changes reads the folder, which is an event too.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                changed();
            }
        };
        let mut watcher = notify::recommended_watcher(notify).map_err(failed)?;
        for (folder, mode) in project.watched() {
            watcher.watch(&folder, mode).map_err(failed)?;
        }
        Ok(Self(watcher))
    }
}

/// Compiles a component fast, to slower code, and returns its exports. Sessions find the code in the cache of the runtime.
///
/// # Errors
///
/// Why the component cannot be used.
pub fn draft_exports(
    runtime: &Runtime,
    manifest: &Manifest,
    component: &[u8],
    compiling: &dyn Fn(Duration) -> ControlFlow<()>,
) -> Result<Vec<&'static str>, String> {
    let manner = Manner { draft: true, ..Manner::default() };
    let loaded = runtime.load_in(component, manifest.later_versions(), manner, compiling);
    Ok(loaded.map_err(|error| error.to_string())?.exports().names())
}

/// Why sessions cannot start a plugin with the configuration that they would give it.
pub async fn complaint(setup: &Setup, runtime: &Runtime, name: &str) -> Option<Notice> {
    let (catalog, selection) = (setup.catalog(), setup.selection(&ModelChoice::default()));
    let found = catalog.get(name)?;
    match try_out(runtime, &catalog, &selection, found).await {
        Ok(Trial { shown: Ok(shown), .. }) => Some(shown.complaint?.into()),
        Ok(Trial { shown: Err(error), .. }) => Some(error.to_string().into()),
        Err(error) => Some(Notice::of(&error)),
    }
}
