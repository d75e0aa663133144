//! Installs a plugin from a source. A prepared plugin can be shown, accepted or dropped before it is committed in one
//! step.

mod prepared;

use std::fs;
use std::path::{Path, PathBuf};

use hermes_diagnostic::Diagnose as _;
use hermes_plugin_host::artifact::Place;
use hermes_plugin_host::{
    Digest, Entry, LimitSet, Lock, Manifest, Permissions, Pin, PluginOrigin, Ungranted, digest, is_plugin_name,
    manifest_in,
};

use crate::archive::Caps;
use crate::data::DataChanges;
use crate::error::{At, InstallError};
use crate::fetch::{Fetching, Progress, fetch};
use crate::project::Project;
use crate::signature::{Evidence, check};
use crate::source::Source;
use crate::stage::{Places, Stage, Steps, Turn};
use crate::transaction::{Rewrite, Transaction, commit, finish_interrupted, take_turn};

pub use prepared::Candidate;
pub(crate) use prepared::{allow_drafts, drafts_in, exports_in};

/// Installs plugins into one home folder.
#[derive(Debug, Clone)]
pub struct Installer {
    pub(crate) places: Places,
    bundled: Vec<String>,
    /// Names of bundled plugins that an installed plugin can have.
    pub(crate) replaced: Vec<String>,
}

/// What to install.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The source.
    pub source: Source,
    /// A name for a component without a manifest.
    pub name: Option<String>,
    /// Whether connections may be unencrypted.
    pub insecure: bool,
    /// The publisher's key that the user gave.
    pub key: Option<String>,
}

/// A plugin on the stage: fetched, digested, its signature checked. None of its code has run. Dropping it removes its files.
#[derive(Debug)]
pub struct Prepared {
    stage: Stage,
    source: Source,
    /// The manifest of the plugin.
    pub manifest: Manifest,
    /// Its entry in the lock, with nothing granted.
    pub pin: Pin,
    /// The current entry of a plugin of this name.
    pub before: Option<Entry>,
    /// The manifest of that plugin, if its folder is as granted.
    asked_before: Option<Manifest>,
    /// The digest of that plugin's folder, if it can be read.
    on_disk: Option<Digest>,
    /// The exports of that plugin, if they are known.
    exported_before: Vec<String>,
    /// The change of the configuration that is made with the installation.
    rewrite: Option<Rewrite>,
    /// Whether a lock pins it, which can come from elsewhere.
    is_pinned: bool,
}

impl Installer {
    /// An installer for a home with bundled plugins of these names.
    pub fn new(home: &Path, bundled: impl IntoIterator<Item = String>) -> Self {
        Self { places: Places::of(home), bundled: bundled.into_iter().collect(), replaced: Vec::new() }
    }

    /// Names the bundled plugins in whose place the user wants installed ones.
    #[must_use]
    pub fn replacing(mut self, bundled: impl IntoIterator<Item = String>) -> Self {
        self.replaced = bundled.into_iter().collect();
        self
    }

    /// Fetches and checks a plugin. Only the stage changes.
    pub async fn prepare(&self, wanted: &Wanted, progress: &dyn Progress) -> Result<Prepared, InstallError> {
        let stage = Stage::new(&self.places)?;
        let work = stage.path().join("work");
        fs::create_dir(&work).at(&work)?;
        let how = Fetching { insecure: wanted.insecure, caps: Caps::standard(), progress };
        let fetched = fetch(&wanted.source, &work, &how).await?;
        let from = wanted.source.to_string();
        let place = if matches!(wanted.source, Source::Folder(_)) { Place::Local } else { Place::Fetched };
        let project = Project::find(&fetched.folder, place, &from, wanted.name.as_deref())?;
        if self.bundled.contains(&project.manifest.name) {
            return Err(InstallError::BundledName(project.manifest.name));
        }
        let folder = stage.plugin();
        fs::create_dir(&folder).at(&folder)?;
        let files = project.copy_to(&folder)?;
        let digest = digest::of_folder(&folder).at(&folder)?;

        let lock = Lock::read(&self.places.lock())?;
        let before = lock.plugins.get(&project.manifest.name).cloned();
        // A plugin from elsewhere inherits nothing, neither rights nor the pinned key.
        let of_source =
            before.as_ref().filter(|entry| entry.pin.origin().has_same_source(&PluginOrigin::of(&from, None)));
        // An entry that was not written in this home passes on only its pinned key, because the key can only restrict.
        let same = of_source.filter(|entry| entry.is_ours());
        let asked_before = same.and_then(|before| {
            let folder = self.folder(before);
            let intact = digest::of_folder(&folder).is_ok_and(|found| found == before.pin.digest);
            if intact { manifest_in(&folder).ok() } else { None }
        });
        let on_disk = before.as_ref().and_then(|before| digest::of_folder(&self.folder(before)).ok());
        let is_installed = |before: &Entry| asked_before.is_some() && before.pin.digest == digest;
        let signer = check(&Evidence {
            manifest: &project.manifest,
            files: &files,
            component: project.component_name(),
            archive: fetched.archive.as_deref(),
            given: wanted.key.as_deref(),
            pinned: of_source.and_then(pinned_key),
            unchanged: same.is_some_and(is_installed),
        })?;
        drop(files);
        let manifest = project.manifest;
        let pin = Pin {
            source: from,
            resolved: fetched.resolved,
            folder: before.as_ref().map_or_else(|| manifest.name.clone(), |entry| entry.pin.folder.clone()),
            version: manifest.version.clone(),
            digest,
            signer,
            exports: exports_in(&folder, &manifest),
            drafts: drafts_in(&folder, &manifest),
            granted: None,
            limits: LimitSet::default(),
            native: false,
            edited: false,
        };
        if before.is_none() {
            self.refuse_occupied(&pin.folder, &manifest.name)?;
        }
        // A lock of an older version does not have them, but the installed component does.
        let exported_before = same.and_then(|before| {
            let read = || exports_in(&self.folder(before), asked_before.as_ref()?);
            before.pin.exports.clone().or_else(read)
        });
        let exported_before = exported_before.unwrap_or_default();
        fs::remove_dir_all(&work).at(&work)?;
        let source = wanted.source.clone();
        Ok(Prepared {
            stage,
            source,
            manifest,
            pin,
            before,
            asked_before,
            on_disk,
            exported_before,
            rewrite: None,
            is_pinned: false,
        })
    }

    fn refuse_occupied(&self, folder: &str, name: &str) -> Result<(), InstallError> {
        let folder = self.places.folder.join(folder);
        match folder.exists() {
            true => Err(InstallError::Occupied { folder, name: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// Installs a prepared plugin with what the user grants. The version before is kept for a rollback.
    pub fn commit(
        &self,
        prepared: &Prepared,
        granted: Permissions,
        limits: LimitSet,
        steps: Steps<'_>,
    ) -> Result<Entry, InstallError> {
        let name = &prepared.manifest.name;
        let turn = self.turn()?;
        let lock = Lock::read(&self.places.lock())?;
        if lock.plugins.get(name) != prepared.before.as_ref() {
            return Err(InstallError::Raced(name.clone()));
        }
        let pin = Pin { granted: Some(granted), limits, ..prepared.pin.clone() };
        let place = PathBuf::from(&pin.folder);
        let kept = PathBuf::from(".previous").join(name);
        let is_there = self.places.folder.join(&place).exists();
        let (mut out, mut into) = (Vec::new(), vec![("plugin".to_owned(), place.clone())]);
        let mut previous = None;
        if is_there {
            let Some(before) = prepared.before.as_ref().filter(|before| self.holds(name, before)) else {
                return Err(InstallError::Occupied { folder: self.places.folder.join(place), name: name.clone() });
            };
            out.push((place, "before".to_owned()));
            out.push((kept.clone(), "older".to_owned()));
            // An altered folder is not kept as a version to go back to.
            let found = digest::of_folder(&self.places.folder.join(&before.pin.folder));
            let is_intact = found.is_ok_and(|found| found == before.pin.digest);
            // A rollback never leads to another origin.
            if is_intact && before.pin.digest != pin.digest && prepared.known().is_some() {
                into.push(("before".to_owned(), kept));
                previous = Some(before.pin.clone());
            }
        } else if self.places.previous(name).exists() {
            out.push((kept, "older".to_owned()));
        }
        let entry = Entry::new(pin, previous);
        let transaction = Transaction {
            stage: prepared.stage.name(),
            name: name.clone(),
            entry: Some(entry.clone()),
            out,
            into,
            rewrite: prepared.rewrite.clone(),
            purge: Vec::new(),
            data: match prepared.is_pinned {
                true => self.data_changes_of_pinned(name, &prepared.pin.origin()),
                false => self.data_changes(name, &lock, &prepared.pin.origin(), prepared.known().is_some()),
            },
            skill: None,
        };
        commit(&transaction, &self.places, &turn, steps)?;
        Ok(entry)
    }

    /// Restores the version before, and keeps the current one for the next rollback.
    pub fn roll_back(&self, name: &str, steps: Steps<'_>) -> Result<Entry, InstallError> {
        let turn = self.turn()?;
        let before = self.entry(name)?;
        refuse_foreign(name, &before)?;
        let kept = self.places.previous(name);
        // An older version of Hermes kept plugins from other sources too.
        let is_same = |previous: &Pin| previous.origin().has_same_source(&before.pin.origin());
        let previous = before
            .previous
            .filter(|previous| kept.is_dir() && is_same(previous))
            .ok_or_else(|| InstallError::NoPrevious(name.to_owned()))?;
        if digest::of_folder(&kept).at(&kept)? != previous.digest {
            return Err(InstallError::NoPrevious(name.to_owned()));
        }
        let stage = Stage::new(&self.places)?;
        let (place, kept) = (PathBuf::from(&before.pin.folder), PathBuf::from(".previous").join(name));
        let entry = Entry::new(previous, Some(before.pin));
        let transaction = Transaction {
            out: vec![(place.clone(), "now".to_owned()), (kept.clone(), "before".to_owned())],
            into: vec![("before".to_owned(), place), ("now".to_owned(), kept)],
            ..Transaction::of_lock(stage.name(), name, Some(entry.clone()))
        };
        commit(&transaction, &self.places, &turn, steps)?;
        Ok(entry)
    }

    /// Removes a plugin, rewrites the file that mentions it and, if the user wants that, removes its data.
    pub fn remove(
        &self,
        name: &str,
        rewrite: Option<Rewrite>,
        purge_data: bool,
        steps: Steps<'_>,
    ) -> Result<(), InstallError> {
        let turn = self.turn()?;
        let before = self.entry(name)?;
        let stage = Stage::new(&self.places)?;
        let data = match purge_data {
            true => DataChanges::default(),
            false => self.data_after_removal(name, &self.lock()?, before.pin.origin()),
        };
        let mut out = vec![(PathBuf::from(".previous").join(name), "before".to_owned())];
        // A lock from elsewhere can name any folder of the user's own plugins.
        if self.holds(name, &before) {
            out.push((PathBuf::from(&before.pin.folder), "now".to_owned()));
        }
        let transaction = Transaction {
            out,
            rewrite,
            purge: if purge_data { vec![PathBuf::from("data").join(name)] } else { Vec::new() },
            data,
            ..Transaction::of_lock(stage.name(), name, None)
        };
        commit(&transaction, &self.places, &turn, steps)?;
        drop(stage);
        turn.leave(&self.places);
        Ok(())
    }

    /// Whether the folder of an entry holds this plugin, and not another one or other files of the user.
    fn holds(&self, name: &str, entry: &Entry) -> bool {
        let folder = self.folder(entry);
        match manifest_in(&folder) {
            Ok(manifest) => manifest.name == name,
            // A damaged plugin can still be replaced and removed. The names must match, since the folder could contain several
            // plugins.
            Err(_) => entry.pin.folder.ends_with(name) && folder.file_name().is_some_and(|last| last == name),
        }
    }

    /// Whether a plugin stores data in the home folder.
    pub fn has_data(&self, name: &str) -> bool {
        self.places.data(name).exists()
    }

    /// Whether a plugin that is not installed any more left data.
    pub fn has_leftover_data(&self, name: &str) -> bool {
        // The name comes from the command line, and must not lead out of the folder.
        let has_some = |name| self.has_data(name) || !self.data_aside(name).is_empty();
        is_plugin_name(name) && has_some(name) && matches!(self.entry(name), Err(InstallError::Unknown { .. }))
    }

    /// The lock entry of an installed plugin.
    pub fn entry(&self, name: &str) -> Result<Entry, InstallError> {
        let mut lock = Lock::read(&self.places.lock())?;
        // A plugin that replaced a bundled one can be removed whichever of the two is in use.
        let entry = lock.plugins.remove(name);
        if entry.is_none() && self.bundled.iter().any(|bundled| bundled == name) {
            return Err(InstallError::Bundled(name.to_owned()));
        }
        entry.ok_or_else(|| InstallError::Unknown { name: name.to_owned(), there: lock.plugins.into_keys().collect() })
    }

    /// All entries of the lock.
    pub fn lock(&self) -> Result<Lock, InstallError> {
        Ok(Lock::read(&self.places.lock())?)
    }

    /// Finishes an interrupted command and removes its files. Returns the name of the plugin.
    pub fn recover(&self, steps: Steps<'_>) -> Result<Option<String>, InstallError> {
        finish_interrupted(&self.places, steps)
    }

    /// The exclusive lock for changes of plugins, after interrupted commands are finished.
    pub(crate) fn turn(&self) -> Result<Turn, InstallError> {
        take_turn(&self.places)
    }
}

/// Refuses an entry of the lock that was not written here: what it pins and grants is somebody else's word.
pub fn refuse_foreign(name: &str, entry: &Entry) -> Result<(), InstallError> {
    if entry.is_ours() {
        return Ok(());
    }
    let problem = Box::new(Ungranted::Foreign(name.to_owned()).diagnose());
    Err(InstallError::Unusable { name: name.to_owned(), problem })
}

/// The publisher's key of an installed plugin. It stays pinned after a rollback to a version without a signature.
pub(crate) fn pinned_key(entry: &Entry) -> Option<&str> {
    let previous = entry.previous.as_ref().and_then(|previous| previous.signer.as_deref());
    entry.pin.signer.as_deref().or(previous)
}
