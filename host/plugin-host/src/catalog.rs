//! Which plugins there are: the bundled set, and folders below `$HERMES_HOME/plugins`, with what `plugins.lock` says
//! of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_runtime::{CompileProgress, LimitSet, Loaded, Runtime};

use crate::digest::Contents;
use crate::error::PluginsError;
use crate::lock::{Entry, Lock};
use crate::manifest::Manifest;
use crate::permission::Permissions;
use crate::settings::{PluginSettings, PreferredSource};
use hermes_diagnostic::Diagnose as _;

/// A plugin inside the binary.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// Its `plugin.yaml`.
    pub manifest: &'static str,
    /// Its component.
    pub component: &'static [u8],
}

/// Where a plugin lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In the binary.
    Bundled,
    /// In a folder.
    Installed(PathBuf),
    /// In the slot that `hermes plugins dev` keeps for it, as long as that runs: whoever runs it grants by the path given
    /// there.
    Dev(PathBuf),
}

impl Origin {
    /// The folder that it lies in.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Bundled => None,
            Self::Installed(folder) | Self::Dev(folder) => Some(folder),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bundled => f.write_str("bundled"),
            Self::Installed(folder) => folder.display().fmt(f),
            Self::Dev(folder) => write!(f, "{} (under development)", folder.display()),
        }
    }
}

/// Whether a plugin may run, and with which rights.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Part of the program, or vouched for by whoever looks: it has what it asks for.
    Trusted,
    /// The user granted it, as it was then.
    Granted(Box<Entry>),
    /// It may not run.
    Ungranted(Ungranted),
}

/// Why an installed plugin may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ungranted {
    /// Somebody put the folder there by hand.
    #[error("it was not granted")]
    Unknown(String),
    /// The grant was taken back.
    #[error("its grant was revoked")]
    Revoked(String),
    /// It is a native library only, and not granted as such.
    #[error("it is a native library, which the sandbox cannot contain: it can do everything that you can do")]
    Native(String),
    /// The lock speaks of another folder.
    #[error("plugins.lock grants `{name}` in the folder `{folder}`")]
    Elsewhere {
        /// Its name.
        name: String,
        /// The folder of the lock, below that of the plugins.
        folder: String,
    },
    /// What is on disk is not what was granted.
    #[error("it was changed since it was granted")]
    Altered(String),
}

/// A plugin that was found; nothing of it has run.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its manifest.
    pub manifest: Manifest,
    /// Where it lies.
    pub origin: Origin,
    /// Whether it may run.
    pub standing: Standing,
    place: Place,
}

/// Where its code is.
#[derive(Debug, Clone)]
enum Place {
    Held(Code),
    Folder(PathBuf, CodeFiles),
}

/// Which files of a folder hold code that can run here: one of the two at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFiles {
    /// The component.
    pub component: Option<String>,
    /// The native library for this machine.
    pub native: Option<String>,
}

/// What of a plugin runs: a component or, where the user granted just that, a native library.
#[derive(Debug, Clone)]
pub enum Code {
    /// Contained.
    Component(Cow<'static, [u8]>),
    /// Trusted.
    Native(Vec<u8>),
}

impl Code {
    /// What it consists of.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Component(bytes) => bytes,
            Self::Native(bytes) => bytes,
        }
    }
}

impl Found {
    /// A digest of what it is in a session: of its code, of what its manifest says, and of what it was granted.
    pub(crate) fn made(&self) -> Result<[u8; 32], PluginsError> {
        Ok(made(self, blake3::hash(self.code()?.bytes()).as_bytes()))
    }

    /// Its code, where it may run. What is checked against the grant is what is handed out.
    pub fn code(&self) -> Result<Code, PluginsError> {
        let (folder, files) = match &self.place {
            Place::Held(code) => return Ok(code.clone()),
            Place::Folder(folder, files) => (folder, files),
        };
        let name = &self.manifest.name;
        let ungranted = |why| PluginsError::Ungranted { name: name.clone(), why };
        let (pin, is_native) = match &self.standing {
            Standing::Trusted => (None, files.component.is_none()),
            Standing::Granted(entry) => (Some(&entry.pin), entry.pin.native && files.native.is_some()),
            Standing::Ungranted(why) => return Err(ungranted(why.clone())),
        };
        let file = if is_native { &files.native } else { &files.component };
        let file = file.as_ref().ok_or_else(|| ungranted(Ungranted::Native(name.clone())))?;
        let bytes = match pin {
            None => {
                let path = folder.join(file);
                fs::read(&path).map_err(|source| PluginsError::Read { path, source })?
            }
            Some(pin) => {
                let read = |source| PluginsError::Read { path: folder.clone(), source };
                let mut contents = Contents::read(folder).map_err(read)?;
                let whole = if contents.digest() == pin.digest { contents.take(file) } else { None };
                whole.ok_or_else(|| ungranted(Ungranted::Altered(name.clone())))?
            }
        };
        Ok(if is_native { Code::Native(bytes) } else { Code::Component(Cow::Owned(bytes)) })
    }

    /// Makes its code ready for instances; `compiling` is told where it has to be compiled first.
    pub fn load(&self, runtime: &Runtime, compiling: CompileProgress<'_>) -> Result<Arc<Loaded>, PluginsError> {
        let loaded = match self.code()? {
            Code::Component(bytes) => runtime.load_watched(&bytes, compiling),
            Code::Native(bytes) => runtime.load_native(&bytes),
        };
        let (name, place) = (&self.manifest.name, &self.origin);
        loaded.map_err(|source| PluginsError::Load { name: name.clone(), place: place.to_string(), source })
    }

    /// What it may do: what it asks for, as far as it was granted.
    pub fn permissions(&self) -> Permissions {
        match &self.standing {
            Standing::Trusted => self.manifest.permissions.clone(),
            Standing::Granted(entry) => match &entry.pin.granted {
                Some(granted) => self.manifest.permissions.within(granted),
                None => Permissions::default(),
            },
            Standing::Ungranted(_) => Permissions::default(),
        }
    }

    /// Limits that its manifest asks to have raised, where the user agreed to just these.
    pub fn limits(&self) -> LimitSet {
        match &self.standing {
            Standing::Trusted => self.manifest.limits.clone(),
            Standing::Granted(entry) => self.manifest.limits.within(&entry.pin.limits),
            Standing::Ungranted(_) => LimitSet::default(),
        }
    }

    /// The folder that it lies in, where it is none of the bundled ones.
    pub fn folder(&self) -> Option<&Path> {
        self.origin.folder()
    }
}

/// As [`Found::made`], where the digest of the code is known.
pub(crate) fn made(found: &Found, code: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(code);
    hasher.update(format!("{:?}{:?}{:?}", found.manifest, found.permissions(), found.limits()).as_bytes());
    *hasher.finalize().as_bytes()
}

/// Why a plugin is not to be had.
#[derive(Debug)]
pub struct Problem {
    /// Its name, by its manifest or the lock where they tell it, else that of its folder; none where it is about all of
    /// them.
    pub name: Option<String>,
    /// The folder that it lies in.
    pub folder: Option<PathBuf>,
    /// What is wrong.
    pub error: PluginsError,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Problem {
    /// What is wrong, and what to do.
    pub fn sentence(&self) -> String {
        self.error.sentence()
    }

    fn of(name: &str, folder: &Path, error: PluginsError) -> Self {
        Self { name: Some(name.to_owned()), folder: Some(folder.to_owned()), error }
    }

    /// In a folder whose manifest does not tell a name.
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

/// All plugins that were found, bundled ones first.
pub struct Catalog {
    found: Vec<Found>,
    problems: Vec<Problem>,
    folder: PathBuf,
}

/// What tells where plugins are taken from and what they may do.
struct Rules<'a> {
    /// None where the caller vouches for all of them.
    lock: Option<&'a Lock>,
    settings: &'a HashMap<String, PluginSettings>,
}

impl Rules<'_> {
    fn prefer(&self, name: &str, source: PreferredSource) -> bool {
        self.settings.get(name).is_some_and(|settings| settings.source == Some(source))
    }
}

impl Catalog {
    /// Looks into the bundled set and below `folder`, at `<name>` and `<kind>/<name>`. What may run of the latter, the
    /// `plugins.lock` beside that folder tells. A bundled one stands before an installed one of its name, unless the
    /// user's `settings` say otherwise.
    pub fn find(bundled: &[Bundled], folder: &Path, settings: &HashMap<String, PluginSettings>) -> Self {
        let mut catalog = Self::under_development(folder);
        let lock = Lock::read(&folder.with_file_name("plugins.lock")).unwrap_or_else(|error| {
            catalog.problems.push(Problem::of_all(error.into()));
            // Without it nothing is granted.
            Lock::default()
        });
        catalog.look(bundled, &Rules { lock: Some(&lock), settings });
        catalog
    }

    /// As [`Catalog::find`], for a folder whose plugins the caller vouches for: all may run, with all they ask for.
    pub fn vouched(bundled: &[Bundled], folder: &Path) -> Self {
        let mut catalog = Self::under_development(folder);
        catalog.look(bundled, &Rules { lock: None, settings: &HashMap::new() });
        catalog
    }

    /// One plugin and no other, as if it were bundled: the caller vouches for it.
    pub fn alone(manifest: Manifest, code: Code) -> Self {
        let found = Found { manifest, origin: Origin::Bundled, standing: Standing::Trusted, place: Place::Held(code) };
        Self { found: vec![found], problems: Vec::new(), folder: PathBuf::new() }
    }

    fn under_development(folder: &Path) -> Self {
        let mut catalog = Self { found: Vec::new(), problems: Vec::new(), folder: folder.to_owned() };
        catalog.look_into_slots(&folder.join(SLOTS));
        catalog
    }

    fn look(&mut self, bundled: &[Bundled], rules: &Rules<'_>) {
        for plugin in bundled {
            match Manifest::parse(plugin.manifest) {
                Ok(manifest) if self.is_developed(&manifest.name) => {}
                Ok(manifest) if rules.prefer(&manifest.name, PreferredSource::Installed) => {}
                Ok(manifest) => self.found.push(Found {
                    manifest,
                    origin: Origin::Bundled,
                    standing: Standing::Trusted,
                    place: Place::Held(Code::Component(Cow::Borrowed(plugin.component))),
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

    /// Those under development stand before all others of their names.
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

    /// Takes up an installed one, unless another of its name goes before it.
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
            standing: lock.map_or(Standing::Trusted, |lock| standing(&manifest.name, folder, &self.folder, lock)),
            manifest,
            origin: Origin::Installed(folder.to_owned()),
            place: Place::Folder(folder.to_owned(), files),
        })
    }

    /// A plugin by its name.
    pub fn get(&self, name: &str) -> Option<&Found> {
        self.found.iter().find(|found| found.manifest.name == name)
    }

    /// All of them, bundled ones first.
    pub fn all(&self) -> &[Found] {
        &self.found
    }

    /// Why plugins are not to be had that somebody put there or wants.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Why the plugin of this name is not to be had.
    pub fn problem_with(&self, name: &str) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.name.as_deref() == Some(name))
    }

    /// What is wrong with what lies in a folder.
    pub(crate) fn problem_in(&self, folder: &Path) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.folder.as_deref() == Some(folder))
    }

    /// Where installed plugins lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Where plugins under development lie, below the folder of plugins, by name.
pub const SLOTS: &str = ".dev";
/// The file of a slot that is locked as long as somebody develops there.
pub const HELD: &str = "held";

/// Whether somebody develops there at this moment: what one who was killed left behind does not run.
fn is_held(slot: &Path) -> bool {
    fs::File::open(slot.join(HELD))
        .is_ok_and(|held| matches!(held.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// What a manifest is called.
pub const MANIFEST: &str = "plugin.yaml";

/// Reads the manifest of a folder.
pub fn manifest_in(folder: &Path) -> Result<Manifest, PluginsError> {
    let path = folder.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(|source| PluginsError::Read { path: path.clone(), source })?;
    Manifest::parse(&text).map_err(|source| PluginsError::Manifest { path, source })
}

/// The files of a folder that hold code: the component that the manifest names, else the only one, and the library that it
/// names for this machine.
pub fn code_in(folder: &Path, manifest: &Manifest) -> Result<CodeFiles, PluginsError> {
    let unbuilt = |file: Option<&String>| PluginsError::Unbuilt { folder: folder.to_owned(), file: file.cloned() };
    let native = manifest.library().filter(|name| folder.join(name).is_file()).map(str::to_owned);
    if let Some(name) = &manifest.component {
        let component = folder.join(name).is_file().then(|| name.clone());
        if component.is_none() && native.is_none() {
            return Err(unbuilt(Some(name)));
        }
        return Ok(CodeFiles { component, native });
    }
    let entries = fs::read_dir(folder).map_err(|source| PluginsError::Read { path: folder.to_owned(), source })?;
    let mut components: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".wasm"))
        .collect();
    match components.len() {
        1 => Ok(CodeFiles { component: Some(components.remove(0)), native }),
        0 if native.is_some() => Ok(CodeFiles { component: None, native }),
        0 if !manifest.native.is_empty() && manifest.library().is_none() => Err(PluginsError::OtherMachine {
            name: manifest.name.clone(),
            targets: manifest.native.keys().cloned().collect(),
        }),
        0 => Err(unbuilt(manifest.library().map(str::to_owned).as_ref())),
        found => Err(PluginsError::Component { folder: folder.to_owned(), found }),
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// What lies in a folder, but for what is hidden.
fn content(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| !is_hidden(path))
}

fn holds_files(folder: &Path) -> bool {
    content(folder).any(|path| path.is_file())
}

/// Whether it is a plugin's folder that lacks a manifest, and not one in which plugins of a kind lie.
fn is_left_without_manifest(folder: &Path) -> bool {
    holds_files(folder) && !content(folder).any(|path| path.join(MANIFEST).exists())
}

fn standing(name: &str, folder: &Path, plugins: &Path, lock: &Lock) -> Standing {
    let Some(entry) = lock.plugins.get(name) else {
        return Standing::Ungranted(Ungranted::Unknown(name.to_owned()));
    };
    if plugins.join(&entry.pin.folder) != folder {
        return Standing::Ungranted(Ungranted::Elsewhere { name: name.to_owned(), folder: entry.pin.folder.clone() });
    }
    match entry.pin.granted {
        None => Standing::Ungranted(Ungranted::Revoked(name.to_owned())),
        Some(_) => Standing::Granted(Box::new(entry.clone())),
    }
}

#[cfg(test)]
mod tests;
