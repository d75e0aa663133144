//! A trial of a plugin without a session: loaded, checked against its manifest and its section, and started once without
//! permissions.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermes_capabilities::files::{Guard, Root, Roots};
use hermes_runtime::services::{Level, Reporter};
use hermes_runtime::{CallError, Exports, Instance, LimitSet, Limits, Recipe, Runtime, Services, Skill};

use crate::catalog::{Catalog, Found, SKILLS, skills_in};
use crate::chosen::Select;
use crate::error::PluginsError;
use crate::rehearsal::{self, Shown};
use crate::selected::Selected;
use crate::selection::Selection;
use crate::variables::Unexpanded;

/// The result of a trial.
#[derive(Debug)]
pub struct Trial {
    /// The plugin's exports.
    pub exports: Exports,
    /// Its limits in a session.
    pub limits: Limits,
    /// The variables in its section that were not replaced, and why.
    pub unexpanded: Vec<Unexpanded>,
    /// Whether the code had to be compiled.
    pub was_compiled: bool,
    /// How long loading took, with compilation.
    pub loading: Duration,
    /// How long the start and the first answers took.
    pub starting: Duration,
    /// Its answers, or the error that ended it.
    pub shown: Result<Shown, CallError>,
}

/// Tries a plugin out. The code of a plugin without a grant does not run.
///
/// # Errors
///
/// When a session could not use the plugin either.
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
        let selected = Select { runtime, catalog, selection, compiling: &compiling, background: false }.load(found)?;
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

/// Starts a plugin once with its configuration.
pub(crate) async fn rehearse(selected: &Selected) -> Result<Shown, CallError> {
    // The code is part of Hermes, and has no folder in a rehearsal.
    if let (Some(_), Some(folder)) = (&selected.skills, selected.found.folder()) {
        return Ok(Shown::of_skills(skills_in(folder)));
    }
    let version = selected.found.manifest.version.to_string();
    let (loaded, limits) = (Arc::clone(&selected.loaded), selected.limits(&LimitSet::default()));
    let may_sql = selected.permissions.sql;
    rehearsal::rehearse(selected.name(), &version, loaded, selected.config.clone(), limits, may_sql).await
}

/// The skills of a plugin.
#[derive(Debug, Default)]
pub struct SkillReport {
    /// Those that it lists.
    pub skills: Vec<Skill>,
    /// Its warnings and errors: the skills that no session gets, and why.
    pub warnings: Vec<String>,
}

/// Lets a plugin with skills list them, with its right to read their folder and nothing else.
///
/// # Errors
///
/// When a session could not use the plugin.
pub async fn skill_report(
    runtime: &Runtime,
    catalog: &Catalog,
    selection: &Selection,
    found: &Found,
    home: &Path,
) -> Result<SkillReport, PluginsError> {
    let compiling = |_: &str, _| ControlFlow::Continue(());
    let selected = Select { runtime, catalog, selection, compiling: &compiling, background: false }.load(found)?;
    let may_read = selected.permissions.files.iter().any(|asked| asked.root == SKILLS);
    let folder = selected.skills.clone().or_else(|| may_read.then(|| home.join(SKILLS)));
    // Without a folder there are no skills to warn of.
    let Some(root) = folder.and_then(|folder| Root::open(SKILLS, &folder, false, Vec::new()).ok()) else {
        return Ok(SkillReport::default());
    };
    if !selected.loaded.exports().skills {
        return Ok(SkillReport::default());
    }
    let heard = Arc::new(Heard::default());
    let recipe = Recipe {
        version: found.manifest.version.to_string(),
        config: selected.config.clone(),
        services: Services {
            reporter: heard.clone(),
            files: Arc::new(Roots::new(vec![root], Guard::default())),
            ..Services::nothing()
        },
        ..Recipe::alone(selected.name(), Arc::clone(&selected.loaded), selected.limits(&LimitSet::default()))
    };
    let listed = Instance::new(Arc::new(recipe)).skills().await;
    let mut warnings = std::mem::take(&mut *heard.0.lock().unwrap_or_else(PoisonError::into_inner));
    let skills = listed.unwrap_or_else(|error| {
        warnings.push(error.to_string());
        Vec::new()
    });
    Ok(SkillReport { skills: crate::flood::skills(skills).0, warnings })
}

/// The warnings of a plugin.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Reporter for Heard {
    fn log(&self, level: Level, text: &str) {
        if matches!(level, Level::Warn | Level::Error) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }
    }

    fn progress(&self, _: &str) {}
}
