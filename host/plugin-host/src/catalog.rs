//! The catalog of plugins: the bundled ones, and those in folders below `$HERMES_HOME/plugins` with their entries in
//! `plugins.lock`.

mod folder;
mod found;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use hermes_diagnostic::Diagnose as _;

use crate::error::PluginsError;
use crate::lock::Lock;
use crate::manifest::Manifest;
use crate::origin::FirstSeen;
use crate::settings::{PluginSettings, PreferredSource};
use crate::ungranted::Ungranted;

use folder::{holds_files, is_hidden, is_left_without_manifest};
use found::CodeLocation;

pub(crate) use folder::is_held;
pub use folder::{CodeFiles, HELD, MANIFEST, SKILLS, SLOTS, code_in, manifest_in, skills_in};
pub(crate) use found::generation;
pub use found::{Bundled, Code, Found, GrantStatus, Origin};

/// Why a plugin cannot be used.
#[derive(Debug)]
pub struct Problem {
    /// Its name, from its manifest or the lock, or else from its folder. None if the problem concerns all plugins.
    pub name: Option<String>,
    /// Its folder.
    pub folder: Option<PathBuf>,
    /// The error.
    pub error: PluginsError,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Problem {
    /// The error and its remedy.
    pub fn sentence(&self) -> String {
        self.error.sentence()
    }

    fn of(name: &str, folder: &Path, error: PluginsError) -> Self {
        Self { name: Some(name.to_owned()), folder: Some(folder.to_owned()), error }
    }

    /// For a folder whose manifest gives no name.
    fn nameless(folder: &Path, plugins: &Path, lock: Option<&Lock>, error: PluginsError) -> Self {
        let entries = lock.into_iter().flat_map(|lock| &lock.plugins);
        let locked = entries.into_iter().find(|(_, entry)| plugins.join(&entry.pin.folder) == folder);
        let name = locked.map(|(name, _)| name.clone());
        let name = name.or_else(|| Some(folder.file_name()?.to_string_lossy().into_owned()));
        Self { name, folder: Some(folder.to_owned()), error }
    }

    fn of_all(error: PluginsError) -> Self {
        Self { name: None, folder: None, error }
    }
}

/// The plugins of a home, bundled ones first.
pub struct Catalog {
    found: Vec<Found>,
    problems: Vec<Problem>,
    folder: PathBuf,
    /// The bundled plugin that reads folders of skills.
    reader: Option<Bundled>,
}

/// The first line in the manifest of the bundled plugin that reads folders of skills.
const READER: &str = "name: local";

/// The bundled plugin that reads folders of skills.
pub fn skill_reader(bundled: &[Bundled]) -> Option<Bundled> {
    let reads = |plugin: &&Bundled| plugin.manifest.lines().any(|line| line == READER);
    bundled.iter().find(reads).copied()
}

/// Which source of a plugin has precedence, and what plugins may do.
struct Rules<'a> {
    /// None if the caller vouches for all plugins.
    lock: Option<&'a Lock>,
    settings: &'a HashMap<String, PluginSettings>,
}

impl Rules<'_> {
    fn prefer(&self, name: &str, source: PreferredSource) -> bool {
        self.settings.get(name).is_some_and(|settings| settings.source == Some(source))
    }
}

impl Catalog {
    /// Finds the bundled plugins and those below `folder`, at `<name>` and `<kind>/<name>`. The `plugins.lock` beside that
    /// folder says which of the latter may run. A bundled plugin has precedence over an installed one of the same name,
    /// unless the user's `settings` say otherwise.
    pub fn find(bundled: &[Bundled], folder: &Path, settings: &HashMap<String, PluginSettings>) -> Self {
        let mut catalog = Self::under_development(bundled, folder);
        let lock = Lock::read(&folder.with_file_name("plugins.lock")).unwrap_or_else(|error| {
            catalog.problems.push(Problem::of_all(error.into()));
            // An empty lock grants nothing.
            Lock::default()
        });
        catalog.look(bundled, &Rules { lock: Some(&lock), settings });
        catalog
    }

    /// Like [`Catalog::find`], for a folder that the caller vouches for: all plugins run with all permissions that they
    /// request.
    pub fn vouched(bundled: &[Bundled], folder: &Path) -> Self {
        let mut catalog = Self::under_development(bundled, folder);
        catalog.look(bundled, &Rules { lock: None, settings: &HashMap::new() });
        catalog
    }

    /// A catalog of one plugin, which the caller vouches for.
    pub fn alone(manifest: Manifest, code: Code) -> Self {
        let found = Found {
            manifest,
            origin: Origin::Bundled,
            status: GrantStatus::Trusted,
            location: CodeLocation::Memory(code),
            reader: None,
        };
        Self { found: vec![found], problems: Vec::new(), folder: PathBuf::new(), reader: None }
    }

    fn under_development(bundled: &[Bundled], folder: &Path) -> Self {
        let (found, problems, reader) = (Vec::new(), Vec::new(), skill_reader(bundled));
        let mut catalog = Self { found, problems, folder: folder.to_owned(), reader };
        catalog.look_into_slots(&folder.join(SLOTS));
        catalog
    }

    fn look(&mut self, bundled: &[Bundled], rules: &Rules<'_>) {
        for plugin in bundled {
            match plugin.read() {
                Ok(manifest) if self.is_developed(&manifest.name) => {}
                Ok(manifest) if rules.prefer(&manifest.name, PreferredSource::Installed) => {}
                Ok(manifest) => self.found.push(Found {
                    manifest,
                    origin: Origin::Bundled,
                    status: GrantStatus::Trusted,
                    location: CodeLocation::Bundled(*plugin),
                    reader: None,
                }),
                Err(source) => {
                    let path = "bundled plugin.yaml".into();
                    self.problems.push(Problem::of_all(PluginsError::Manifest { path, source }));
                }
            }
        }
        let folder = self.folder.clone();
        self.look_into(&folder, 2, rules);
        let mut wanted: Vec<_> =
            rules.settings.iter().filter_map(|(name, settings)| Some((name, settings.source?))).collect();
        wanted.sort();
        for (name, wanted) in wanted {
            if self.get(name).is_none() && self.problem_with(name).is_none() {
                let error = PluginsError::Source { name: name.clone(), wanted };
                self.problems.push(Problem { name: Some(name.clone()), folder: None, error });
            }
        }
    }

    /// Adds the plugins under development, which have precedence over all others of the same name.
    fn look_into_slots(&mut self, slots: &Path) {
        let mut slots: Vec<PathBuf> = fs::read_dir(slots).into_iter().flatten().flatten().map(|e| e.path()).collect();
        slots.sort();
        for slot in slots.into_iter().filter(|slot| is_held(slot) && slot.join(MANIFEST).exists()) {
            match self.read(&slot, None) {
                Ok(found) => self.found.push(Found { origin: Origin::Dev(slot), ..found }),
                Err(problem) => self.problems.push(*problem),
            }
        }
    }

    fn is_developed(&self, name: &str) -> bool {
        self.get(name).is_some_and(|found| matches!(found.origin, Origin::Dev(_)))
    }

    fn look_into(&mut self, folder: &Path, depth: usize, rules: &Rules<'_>) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(source) => {
                let path = folder.to_owned();
                return self.problems.push(Problem::of_all(PluginsError::Read { path, source }));
            }
        };
        let mut folders: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir() && !is_hidden(path)).collect();
        folders.sort();
        for folder in folders {
            if folder.join(MANIFEST).exists() {
                match self.read(&folder, rules.lock) {
                    Ok(found) => self.admit(found, &folder, rules),
                    Err(problem) => self.problems.push(*problem),
                }
            } else if depth > 1 && !is_left_without_manifest(&folder) {
                self.look_into(&folder, depth - 1, rules);
            } else if holds_files(&folder) {
                let error = PluginsError::NoManifest { folder: folder.clone() };
                self.problems.push(Problem::nameless(&folder, &self.folder, rules.lock, error));
            }
        }
    }

    /// Adds an installed plugin, unless another one of the same name has precedence.
    fn admit(&mut self, found: Found, folder: &Path, rules: &Rules<'_>) {
        let name = &found.manifest.name;
        if self.is_developed(name) || rules.prefer(name, PreferredSource::Bundled) {
            return;
        }
        match self.get(name) {
            None => self.found.push(found),
            Some(other) => {
                let error = PluginsError::Twice {
                    path: folder.join(MANIFEST),
                    name: name.clone(),
                    other: other.origin.to_string(),
                    is_bundled: other.origin == Origin::Bundled,
                };
                self.problems.push(Problem::of(name, folder, error));
            }
        }
    }

    fn read(&self, folder: &Path, lock: Option<&Lock>) -> Result<Found, Box<Problem>> {
        let nameless = |error| Box::new(Problem::nameless(folder, &self.folder, lock, error));
        let manifest = manifest_in(folder).map_err(nameless)?;
        let files = code_in(folder, &manifest).map_err(|error| Box::new(Problem::of(&manifest.name, folder, error)))?;
        Ok(Found {
            status: lock.map_or(GrantStatus::Trusted, |lock| status(&manifest.name, folder, &self.folder, lock)),
            manifest,
            origin: Origin::Installed(folder.to_owned()),
            location: CodeLocation::Folder(folder.to_owned(), files),
            reader: self.reader,
        })
    }

    /// Withholds the plugins that replaced another one from elsewhere while this process runs.
    pub(crate) fn withhold_replaced(&mut self, first_seen: &FirstSeen) {
        for found in &mut self.found {
            if let GrantStatus::Granted(entry) = &found.status
                && !first_seen.admits(&found.manifest.name, &entry.pin)
            {
                let now = entry.pin.origin().to_string();
                found.status = GrantStatus::Ungranted(Ungranted::Replaced { now });
            }
        }
    }

    /// A plugin by its name.
    pub fn get(&self, name: &str) -> Option<&Found> {
        self.found.iter().find(|found| found.manifest.name == name)
    }

    /// All plugins, bundled ones first.
    pub fn all(&self) -> &[Found] {
        &self.found
    }

    /// Why installed or configured plugins cannot be used.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Why the plugin of this name cannot be used.
    pub fn problem_with(&self, name: &str) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.name.as_deref() == Some(name))
    }

    /// Why no installed plugin can be used.
    pub(crate) fn problem_with_all(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.name.is_none() && problem.folder.is_none())
    }

    /// Why the plugin in this folder cannot be used.
    pub(crate) fn problem_in(&self, folder: &Path) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.folder.as_deref() == Some(folder))
    }

    /// The folder of installed plugins.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn status(name: &str, folder: &Path, plugins: &Path, lock: &Lock) -> GrantStatus {
    let Some(entry) = lock.plugins.get(name) else {
        return GrantStatus::Ungranted(Ungranted::Unknown(name.to_owned()));
    };
    if plugins.join(&entry.pin.folder) != folder {
        return GrantStatus::Ungranted(Ungranted::Elsewhere {
            found: folder.strip_prefix(plugins).unwrap_or(folder).display().to_string(),
            granted: entry.pin.folder.clone(),
        });
    }
    match entry.pin.granted {
        None => GrantStatus::Ungranted(Ungranted::Revoked(name.to_owned())),
        Some(_) if !entry.is_ours() => GrantStatus::Ungranted(Ungranted::Foreign(name.to_owned())),
        Some(_) => GrantStatus::Granted(Box::new(entry.clone())),
    }
}

#[cfg(test)]
mod tests;
