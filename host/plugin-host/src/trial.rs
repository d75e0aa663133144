//! A plugin tried out beside any session: loaded and held to its manifest and its section as for one, and started once
//! without any right.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_runtime::{CallError, Exports, LimitSet, Limits, Runtime};

use crate::catalog::{Catalog, Found};
use crate::error::PluginsError;
use crate::rehearsal::{self, Shown};
use crate::selected::Selected;
use crate::selection::{Select, Selection};
use crate::variables::Unexpanded;

/// What came of it.
#[derive(Debug)]
pub struct Trial {
    /// What it exports.
    pub exports: Exports,
    /// What it may use in a session.
    pub limits: Limits,
    /// Variables in its section that stay as they are, and why.
    pub unexpanded: Vec<Unexpanded>,
    /// Whether it had to be compiled first.
    pub was_compiled: bool,
    /// How long its code took to be there.
    pub loading: Duration,
    /// How long it took from there to its first answers.
    pub starting: Duration,
    /// What it answered, or what ended it.
    pub shown: Result<Shown, CallError>,
}

/// Tries a plugin out. Nothing of one runs that was not granted.
///
/// # Errors
///
/// Why a session cannot have it.
pub async fn try_out(
    runtime: &Runtime,
    catalog: &Catalog,
    selection: &Selection,
    found: &Found,
) -> Result<Trial, PluginsError> {
    let begun = Instant::now();
    let (selected, was_compiled) = {
        let compiled = Cell::new(false);
        let compiling = |_: &str, _| {
            compiled.set(true);
            ControlFlow::Continue(())
        };
        let selected = Select { runtime, catalog, selection, compiling: &compiling }.load(found)?;
        (selected, compiled.get())
    };
    let loading = begun.elapsed();
    let started = Instant::now();
    let shown = rehearse(&selected).await;
    Ok(Trial {
        exports: selected.loaded.exports(),
        limits: selected.limits(&LimitSet::default()),
        was_compiled,
        loading,
        starting: started.elapsed(),
        shown,
        unexpanded: selected.unexpanded,
    })
}

/// Starts it once as it is configured.
pub(crate) async fn rehearse(selected: &Selected) -> Result<Shown, CallError> {
    let version = selected.found.manifest.version.to_string();
    let (loaded, limits) = (Arc::clone(&selected.loaded), selected.limits(&LimitSet::default()));
    rehearsal::rehearse(selected.name(), &version, loaded, selected.config.clone(), limits).await
}
