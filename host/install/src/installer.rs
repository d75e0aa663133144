//! Installs a plugin from a source. A prepared plugin can be shown, accepted or dropped before it is committed in one
//! step.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_plugin_host::artifact::Place;
use hermes_plugin_host::rehearsal::{Shown, rehearse};
use hermes_plugin_host::{
    CodeFiles, Entry, LimitSet, Lock, Manifest, Permissions, Pin, code_in, digest, is_plugin_name, manifest_in,
};
use hermes_runtime::{CompileProgress, Limits, Loaded, Runtime, exported_interfaces};

use crate::archive::Caps;
use crate::error::{At, InstallError};
use crate::fetch::{Fetching, Progress, fetch};
use crate::grants::reason;
use crate::project::Project;
use crate::signature::{Evidence, check};
use crate::source::Source;
use crate::stage::{Places, Stage, Turn};
use crate::transaction::{Rewrite, Steps, Transaction, commit, recover};

/// Installs plugins into one home folder.
#[derive(Debug, Clone)]
pub struct Installer {
    pub(crate) places: Places,
    bundled: Vec<String>,
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
    /// The manifest of that plugin, if its folder is as installed.
    asked_before: Option<Manifest>,
    /// The exports of that plugin, if they are known.
    exported_before: Vec<String>,
}

impl Installer {
    /// An installer for a home with bundled plugins of these names.
    pub fn new(home: &Path, bundled: impl IntoIterator<Item = String>) -> Self {
        Self { places: Places::of(home), bundled: bundled.into_iter().collect() }
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
        project.copy_to(&folder)?;

        let Project { manifest, code, .. } = project;
        let code: Vec<&str> = code.iter().map(|file| file.name.as_str()).collect();
        let lock = Lock::read(&self.places.lock())?;
        let before = lock.plugins.get(&manifest.name).cloned();
        let signer = check(&Evidence {
            folder: &folder,
            code: &code,
            archive: fetched.archive.as_deref(),
            named: manifest.publisher_key.as_deref(),
            given: wanted.key.as_deref(),
            pinned: before.as_ref().and_then(|entry| entry.pin.signer.as_deref()),
        })?;
        let pin = Pin {
            source: from,
            resolved: fetched.resolved,
            folder: before.as_ref().map_or_else(|| manifest.name.clone(), |entry| entry.pin.folder.clone()),
            version: manifest.version.clone(),
            digest: digest::of_folder(&folder).at(&folder)?,
            signer,
            exports: exports_in(&folder, &manifest),
            granted: None,
            limits: LimitSet::default(),
            native: false,
        };
        if before.is_none() {
            self.refuse_occupied(&pin.folder, &manifest.name)?;
        }
        let asked_before = before.as_ref().and_then(|before| {
            let folder = self.folder(before);
            let intact = digest::of_folder(&folder).is_ok_and(|found| found == before.pin.digest);
            if intact { manifest_in(&folder).ok() } else { None }
        });
        // A lock of an older version does not have them, but the installed component does.
        let exported_before = before.as_ref().and_then(|before| {
            let read = || exports_in(&self.folder(before), asked_before.as_ref()?);
            before.pin.exports.clone().or_else(read)
        });
        let exported_before = exported_before.unwrap_or_default();
        fs::remove_dir_all(&work).at(&work)?;
        Ok(Prepared { stage, source: wanted.source.clone(), manifest, pin, before, asked_before, exported_before })
    }

    fn refuse_occupied(&self, folder: &str, name: &str) -> Result<(), InstallError> {
        let folder = self.places.plugins.join(folder);
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
        let is_there = self.places.plugins.join(&place).exists();
        let (mut out, mut into) = (Vec::new(), vec![("plugin".to_owned(), place.clone())]);
        let mut previous = None;
        if is_there {
            let Some(before) = &prepared.before else {
                return Err(InstallError::Occupied { folder: self.places.plugins.join(place), name: name.clone() });
            };
            out.push((place, "before".to_owned()));
            out.push((kept.clone(), "older".to_owned()));
            // An altered folder is not kept as a version to go back to.
            let found = digest::of_folder(&self.places.plugins.join(&before.pin.folder));
            if found.is_ok_and(|found| found == before.pin.digest) && before.pin.digest != pin.digest {
                into.push(("before".to_owned(), kept));
                previous = Some(before.pin.clone());
            }
        } else if self.places.previous(name).exists() {
            out.push((kept, "older".to_owned()));
        }
        let entry = Entry { pin, previous };
        let transaction = Transaction {
            stage: prepared.stage.name(),
            name: name.clone(),
            entry: Some(entry.clone()),
            out,
            into,
            rewrite: None,
            purge: Vec::new(),
        };
        commit(&transaction, &self.places, &turn, steps)?;
        Ok(entry)
    }

    /// Restores the version before, and keeps the current one for the next rollback.
    pub fn roll_back(&self, name: &str, steps: Steps<'_>) -> Result<Entry, InstallError> {
        let turn = self.turn()?;
        let before = self.entry(name)?;
        let kept = self.places.previous(name);
        let previous =
            before.previous.filter(|_| kept.is_dir()).ok_or_else(|| InstallError::NoPrevious(name.to_owned()))?;
        if digest::of_folder(&kept).at(&kept)? != previous.digest {
            return Err(InstallError::NoPrevious(name.to_owned()));
        }
        let stage = Stage::new(&self.places)?;
        let (place, kept) = (PathBuf::from(&before.pin.folder), PathBuf::from(".previous").join(name));
        let entry = Entry { pin: previous, previous: Some(before.pin) };
        let transaction = Transaction {
            stage: stage.name(),
            name: name.to_owned(),
            entry: Some(entry.clone()),
            out: vec![(place.clone(), "now".to_owned()), (kept.clone(), "before".to_owned())],
            into: vec![("before".to_owned(), place), ("now".to_owned(), kept)],
            rewrite: None,
            purge: Vec::new(),
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
        let transaction = Transaction {
            stage: stage.name(),
            name: name.to_owned(),
            entry: None,
            out: vec![
                (PathBuf::from(&before.pin.folder), "now".to_owned()),
                (PathBuf::from(".previous").join(name), "before".to_owned()),
            ],
            into: Vec::new(),
            rewrite,
            purge: if purge_data { vec![PathBuf::from("data").join(name)] } else { Vec::new() },
        };
        commit(&transaction, &self.places, &turn, steps)?;
        drop(stage);
        turn.leave(&self.places);
        Ok(())
    }

    /// Whether a plugin stores data in the home folder.
    pub fn has_data(&self, name: &str) -> bool {
        self.places.data(name).exists()
    }

    /// Whether a plugin that is not installed any more left data.
    pub fn has_leftover_data(&self, name: &str) -> bool {
        // The name comes from the command line, and must not lead out of the folder.
        is_plugin_name(name) && self.has_data(name) && matches!(self.entry(name), Err(InstallError::Unknown { .. }))
    }

    /// Deletes the data that a removed plugin left.
    pub fn delete_leftover_data(&self, name: &str) -> Result<(), InstallError> {
        let turn = self.turn()?;
        // Under the lock of the installation: the plugin may have been installed again.
        if self.has_leftover_data(name) {
            let data = self.places.data(name);
            fs::remove_dir_all(&data).at(&data)?;
        }
        turn.leave(&self.places);
        Ok(())
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
        if !crate::stage::has_leftovers(&self.places) {
            return Ok(None);
        }
        let turn = Turn::take(&self.places)?;
        let about = recover(&self.places, &turn, steps)?;
        turn.leave(&self.places);
        Ok(about)
    }

    /// The exclusive lock for changes of plugins, after interrupted commands are finished.
    pub(crate) fn turn(&self) -> Result<Turn, InstallError> {
        let turn = Turn::take(&self.places)?;
        recover(&self.places, &turn, &|_| ())?;
        Ok(turn)
    }
}

/// What a component exports; none if it cannot be read, or there is only a native library.
pub(crate) fn exports_in(folder: &Path, manifest: &Manifest) -> Option<Vec<String>> {
    let file = code_in(folder, manifest).ok()?.component?;
    exported_interfaces(&fs::read(folder.join(file)).ok()?).ok()
}

impl Prepared {
    /// Its folder until it is committed.
    pub fn folder(&self) -> PathBuf {
        self.stage.plugin()
    }

    /// Whether exactly this plugin is installed already, with unchanged files.
    pub fn is_installed(&self) -> bool {
        let same = |before: &Pin| {
            before.digest == self.pin.digest
                && before.source == self.pin.source
                && before.signer == self.pin.signer
                && before.native >= self.pin.native
        };
        self.asked_before.is_some() && self.before.as_ref().is_some_and(|before| same(&before.pin))
    }

    /// Lets the plugin run as a native library, which the user trusts with everything.
    pub fn as_native(&mut self) -> Result<(), InstallError> {
        if self.code()?.native.is_none() {
            return Err(InstallError::NoLibrary(self.manifest.name.clone()));
        }
        self.pin.native = true;
        Ok(())
    }

    /// Refuses a plugin that can run only as a native library, if the user has not agreed to that.
    pub fn can_run(&self) -> Result<(), InstallError> {
        if self.pin.native || self.code()?.component.is_some() {
            return Ok(());
        }
        Err(InstallError::Native(self.manifest.name.clone()))
    }

    /// Whether the installed version runs as a native library and this one does not.
    pub fn leaves_native(&self) -> bool {
        !self.pin.native && self.before.as_ref().is_some_and(|before| before.pin.native)
    }

    fn code(&self) -> Result<CodeFiles, InstallError> {
        code_in(&self.folder(), &self.manifest)
            .map_err(|error| InstallError::NoPlugin { from: self.source.to_string(), reason: reason(&error) })
    }

    /// Permissions that the user was not asked about before. For a new plugin these are all.
    pub fn widening(&self) -> Permissions {
        let Some(granted) = self.granted_before() else { return self.manifest.permissions.clone() };
        let answered = self.asked_before.as_ref().map(|manifest| manifest.permissions.clone()).unwrap_or_default();
        // An address that the user declined stays declined, whatever the configuration says now.
        let declined = answered.declined_templates(granted);
        self.manifest
            .permissions
            .clone()
            .without_templates(&declined)
            .widening(&answered.without_templates(&declined).and(granted))
    }

    /// Replaces the requested permissions by those with the addresses of the user's configuration.
    pub fn resolve(&mut self, resolved: Permissions) {
        self.manifest.permissions = resolved;
    }

    /// Exports that the user did not see before. For a new plugin these are all.
    pub fn new_exports(&self) -> Vec<String> {
        let before: &[String] = if self.granted_before().is_some() { &self.exported_before } else { &[] };
        self.pin.exports.iter().flatten().filter(|export| !before.contains(export)).cloned().collect()
    }

    /// Raised limits that the user was not asked about before.
    pub fn wider_limits(&self) -> LimitSet {
        if self.granted_before().is_none() {
            return self.manifest.limits.clone();
        }
        let answered = self.asked_before.as_ref().map(|manifest| manifest.limits.clone()).unwrap_or_default();
        self.manifest.limits.widening(&self.limits_before()).widening(&answered)
    }

    /// The new grant: earlier permissions that the plugin still requests, and new ones if the user agreed.
    pub fn granted(&self, with_more: bool) -> (Permissions, LimitSet) {
        let mut granted =
            self.granted_before().map(|granted| self.manifest.permissions.within(granted)).unwrap_or_default();
        let mut limits = self.manifest.limits.within(&self.limits_before());
        if with_more {
            granted = granted.and(&self.widening());
            limits = self.wider_limits().iter().fold(limits, |limits, (limit, value)| limits.and(limit, value));
        }
        (granted, limits)
    }

    fn limits_before(&self) -> LimitSet {
        self.before.as_ref().map(|before| before.pin.limits.clone()).unwrap_or_default()
    }

    fn granted_before(&self) -> Option<&Permissions> {
        self.before.as_ref().and_then(|before| before.pin.granted.as_ref())
    }

    /// Refuses a key that differs from the pinned one.
    pub fn same_key(&self) -> Result<(), InstallError> {
        match self.before.as_ref().and_then(|before| before.pin.signer.as_ref()) {
            Some(pinned) if self.pin.signer.as_ref() != Some(pinned) => Err(InstallError::Key {
                name: self.manifest.name.clone(),
                pinned: pinned.clone(),
                now: self.pin.signer.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Refuses to replace a plugin from another source.
    pub fn same_source(&self) -> Result<(), InstallError> {
        match &self.before {
            Some(before) if before.pin.source != self.pin.source => Err(InstallError::Installed {
                name: self.manifest.name.clone(),
                version: before.pin.version.to_string(),
                source_text: before.pin.source.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Refuses a plugin that differs from the one that a lock pins.
    pub fn is_pinned(&self, pin: &Pin) -> Result<(), InstallError> {
        if self.pin.digest == pin.digest {
            return Ok(());
        }
        Err(InstallError::NotPinned {
            name: self.manifest.name.clone(),
            from: self.source.to_string(),
            why: format!("the digest is {} instead of {}", self.pin.digest.short(), pin.digest.short()),
        })
    }

    fn broken(&self, why: String) -> InstallError {
        InstallError::Broken { name: self.manifest.name.clone(), version: self.manifest.version.to_string(), why }
    }

    /// Compiles the plugin if necessary; none of its code runs. A native library is opened, and runs.
    pub fn load(&self, runtime: &Runtime, progress: CompileProgress<'_>) -> Result<Arc<Loaded>, InstallError> {
        self.can_run()?;
        let CodeFiles { component, native } = self.code()?;
        let file = if self.pin.native { native } else { component };
        let path = self.folder().join(file.unwrap_or_default());
        let bytes = fs::read(&path).at(&path)?;
        let loaded = match self.pin.native {
            true => runtime.load_native(&bytes),
            false => runtime.load_watched(&bytes, progress),
        };
        let loaded = loaded.map_err(|error| self.broken(error.to_string()))?;
        let claims = self.manifest.claims_beyond(&loaded.exports().names());
        if !claims.is_empty() {
            return Err(self.broken(format!(
                "plugin.yaml says that it provides {}, which the component does not export",
                claims.join(", ")
            )));
        }
        Ok(loaded)
    }

    /// Starts the plugin once with its section of the configuration and its granted limits, but without permissions.
    pub async fn rehearse(
        &self,
        loaded: Arc<Loaded>,
        limits: &LimitSet,
        entry: &serde_json::Value,
    ) -> Result<Shown, InstallError> {
        let misfits = self.manifest.misfits(entry);
        let version = self.manifest.version.to_string();
        let limits = Limits::of(loaded.exports().tier()).with(limits);
        let shown = rehearse(&self.manifest.name, &version, loaded, entry.to_string(), limits).await;
        let mut shown = shown.map_err(|error| self.broken(error.to_string()))?;
        if !misfits.is_empty() {
            shown.complaint = Some(misfits.join("; "));
        }
        Ok(shown)
    }
}
