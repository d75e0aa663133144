//! A plugin that was found: its manifest, its origin, its grant, and its code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hermes_runtime::{CompileProgress, LimitSet, LoadError, Loaded, Manner, Packed, Runtime};

use super::folder::{CodeFiles, SKILLS, skills_in};
use crate::digest::{Contents, LARGEST_FOLDER};
use crate::error::PluginsError;
use crate::lock::{Entry, Pin};
use crate::manifest::{Manifest, ManifestError};
use crate::permission::Permissions;
use crate::ungranted::Ungranted;

/// A plugin inside the binary.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// The text of its `plugin.yaml`.
    pub manifest: &'static str,
    /// The bytes of its component.
    pub component: Packed<'static>,
    /// The BLAKE3 digest of these bytes. With it, a start reads none of them if the component was compiled before.
    pub digest: [u8; 32],
}

impl Bundled {
    /// A bundled plugin with the digest of its component.
    pub fn new(manifest: &'static str, component: &'static [u8]) -> Self {
        Self { manifest, component: Packed::Plain(component), digest: *blake3::hash(component).as_bytes() }
    }

    /// Its manifest. A start asks for it several times, so a process parses each text once.
    ///
    /// # Errors
    ///
    /// When the text is not a manifest.
    pub fn read(&self) -> Result<Manifest, ManifestError> {
        static PARSED: Mutex<BTreeMap<&str, Manifest>> = Mutex::new(BTreeMap::new());
        let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manifest) = parsed.get(self.manifest) {
            return Ok(manifest.clone());
        }
        let manifest = Manifest::parse_bundled(self.manifest)?;
        parsed.insert(self.manifest, manifest.clone());
        Ok(manifest)
    }
}

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// From the binary.
    Bundled,
    /// From a folder below `plugins`.
    Installed(PathBuf),
    /// From the slot that `hermes plugins dev` keeps while it runs. The developer grants everything by naming the path.
    Dev(PathBuf),
}

impl Origin {
    /// The plugin's folder; none for a bundled plugin.
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

/// Whether a plugin can run, and with which permissions.
#[derive(Debug, Clone, PartialEq)]
pub enum GrantStatus {
    /// It is part of the program, or the caller vouches for it: it has every permission that it requests.
    Trusted,
    /// The user granted it permissions, for the bytes that its folder had then.
    Granted(Box<Entry>),
    /// It may not run.
    Ungranted(Ungranted),
}

/// A plugin that was found. None of its code has run.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its manifest.
    pub manifest: Manifest,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether it may run.
    pub status: GrantStatus,
    pub(super) location: CodeLocation,
    /// The component that reads its folder of skills.
    pub(super) reader: Option<Bundled>,
}

/// Where its code is.
#[derive(Debug, Clone)]
pub(super) enum CodeLocation {
    Bundled(Bundled),
    Memory(Code),
    Folder(PathBuf, CodeFiles),
}

/// The code of a plugin: a component, or a native library if the user granted native code.
#[derive(Debug, Clone)]
pub enum Code {
    /// A component, which runs in the sandbox.
    Component(Cow<'static, [u8]>),
    /// A native library, which runs outside of it.
    Native(Vec<u8>),
}

impl Code {
    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Component(bytes) => bytes,
            Self::Native(bytes) => bytes,
        }
    }
}

impl Found {
    /// A digest of everything that determines the plugin in a session: code, manifest, permissions and limits.
    pub(crate) fn generation(&self) -> Result<[u8; 32], PluginsError> {
        let digest = match &self.location {
            CodeLocation::Bundled(plugin) => plugin.digest,
            _ => blake3::hash(self.code()?.bytes()).into(),
        };
        Ok(generation(self, &digest))
    }

    /// Its code, if it may run. The bytes that are compared with the grant are the bytes that are returned.
    pub fn code(&self) -> Result<Code, PluginsError> {
        let (folder, files) = match &self.location {
            CodeLocation::Bundled(plugin) => return self.unpacked(plugin),
            CodeLocation::Memory(code) => return Ok(code.clone()),
            CodeLocation::Folder(folder, files) => (folder, files),
        };
        let name = &self.manifest.name;
        let ungranted = |why| PluginsError::Ungranted { name: name.clone(), why };
        let (pin, is_native) = match &self.status {
            GrantStatus::Trusted => (None, files.component.is_none() && files.native.is_some()),
            GrantStatus::Granted(entry) => (Some(&entry.pin), entry.pin.native && files.native.is_some()),
            GrantStatus::Ungranted(why) => return Err(ungranted(why.clone())),
        };
        if files.is_empty() {
            return self.skill_reader(folder, pin);
        }
        let file = if is_native { &files.native } else { &files.component };
        let file = file.as_ref().ok_or_else(|| ungranted(Ungranted::Native(name.clone())))?;
        let bytes = match pin {
            None => {
                let path = folder.join(file);
                hermes_private_files::read_regular(&path, LARGEST_FOLDER)
                    .map_err(|source| PluginsError::Read { path, source })?
            }
            Some(pin) => {
                let read = |source| PluginsError::Read { path: folder.clone(), source };
                let mut contents = Contents::read(folder).map_err(read)?;
                let whole = if contents.digest() == pin.digest { contents.take(file) } else { None };
                let has_source = !pin.is_from(folder);
                whole.ok_or_else(|| ungranted(Ungranted::Altered { name: name.clone(), has_source }))?
            }
        };
        Ok(if is_native { Code::Native(bytes) } else { Code::Component(Cow::Owned(bytes)) })
    }

    /// The code that reads the skills of a plugin without code. The files in its folder are those that were granted.
    fn skill_reader(&self, folder: &Path, pin: Option<&Pin>) -> Result<Code, PluginsError> {
        if let Some(pin) = pin {
            let read = |source| PluginsError::Read { path: folder.to_owned(), source };
            if Contents::read(folder).map_err(read)?.digest() != pin.digest {
                let name = self.manifest.name.clone();
                let why = Ungranted::Altered { name: name.clone(), has_source: !pin.is_from(folder) };
                return Err(PluginsError::Ungranted { name, why });
            }
        }
        let unbuilt = || PluginsError::Unbuilt { folder: folder.to_owned(), file: None };
        self.unpacked(&self.reader.ok_or_else(unbuilt)?)
    }

    fn unpacked(&self, plugin: &Bundled) -> Result<Code, PluginsError> {
        plugin.component.unpack().map(Code::Component).map_err(|error| PluginsError::Load {
            name: self.manifest.name.clone(),
            place: self.origin.to_string(),
            source: LoadError::Compile { why: error.to_string() },
        })
    }

    /// Whether its code is in the binary.
    pub(crate) fn is_in_program(&self) -> bool {
        matches!(self.location, CodeLocation::Bundled(_))
    }

    /// Whether it has skills in its folder, and no code.
    pub fn is_only_skills(&self) -> bool {
        matches!(&self.location, CodeLocation::Folder(_, files) if files.is_empty())
    }

    /// The folder of its skills, if it has any.
    pub(crate) fn skills(&self) -> Option<PathBuf> {
        let folder = self.folder()?;
        (!skills_in(folder).is_empty()).then(|| folder.join(SKILLS))
    }

    /// The part of a plugin with code that reads the skills in its folder.
    pub(crate) fn beside_code(&self) -> Option<Self> {
        let CodeLocation::Folder(folder, files) = &self.location else { return None };
        if files.is_empty() || self.reader.is_none() || skills_in(folder).is_empty() {
            return None;
        }
        let location = CodeLocation::Folder(folder.clone(), CodeFiles { component: None, native: None });
        Some(Self { location, ..self.clone() })
    }

    /// Prepares its code for instances. `compiling` is called while the code is compiled.
    pub fn load(&self, runtime: &Runtime, compiling: CompileProgress<'_>) -> Result<Arc<Loaded>, PluginsError> {
        self.load_in(runtime, false, compiling)
    }

    /// Like [`Found::load`]; in the background, its code is compiled at low priority.
    pub(crate) fn load_in(
        &self,
        runtime: &Runtime,
        background: bool,
        compiling: CompileProgress<'_>,
    ) -> Result<Arc<Loaded>, PluginsError> {
        let manner = Manner { background, draft: matches!(self.origin, Origin::Dev(_)) };
        let later = self.manifest.later_versions();
        let loaded = if let CodeLocation::Bundled(plugin) = &self.location {
            runtime.load_known(plugin.component, plugin.digest, later, compiling)
        } else {
            match self.code()? {
                Code::Component(bytes) => runtime.load_in(&bytes, later, manner, compiling),
                Code::Native(bytes) => runtime.load_native(&bytes, later),
            }
        };
        let (name, place) = (&self.manifest.name, &self.origin);
        loaded.map_err(|source| PluginsError::Load { name: name.clone(), place: place.to_string(), source })
    }

    /// The permissions that it requests and was granted, without addresses of the configuration.
    pub fn permissions(&self) -> Permissions {
        self.granted_of(&self.manifest.permissions)
    }

    /// The part of a request that was granted.
    pub(crate) fn granted_of(&self, requested: &Permissions) -> Permissions {
        match &self.status {
            GrantStatus::Trusted => requested.clone(),
            GrantStatus::Granted(entry) => match &entry.pin.granted {
                Some(granted) => requested.within(granted),
                None => Permissions::default(),
            },
            GrantStatus::Ungranted(_) => Permissions::default(),
        }
    }

    /// Whether its hooks run: with the permission, or if the plugin was granted before hooks needed one. A hook that
    /// protects the user must not stop working because of an update of Hermes.
    pub fn may_hook(&self) -> bool {
        let before = |entry: &Entry| entry.pin.exports.is_none() && entry.pin.granted.is_some();
        self.permissions().hooks || matches!(&self.status, GrantStatus::Granted(entry) if before(entry))
    }

    /// What was granted; none for a plugin that needs no grant or has none.
    pub(crate) fn grant(&self) -> Option<&Permissions> {
        match &self.status {
            GrantStatus::Granted(entry) => entry.pin.granted.as_ref(),
            GrantStatus::Trusted | GrantStatus::Ungranted(_) => None,
        }
    }

    /// The raised limits that its manifest requests and the user granted.
    pub fn limits(&self) -> LimitSet {
        match &self.status {
            GrantStatus::Trusted => self.manifest.limits.clone(),
            GrantStatus::Granted(entry) => self.manifest.limits.within(&entry.pin.limits),
            GrantStatus::Ungranted(_) => LimitSet::default(),
        }
    }

    /// Its folder; none for a bundled plugin.
    pub fn folder(&self) -> Option<&Path> {
        self.origin.folder()
    }
}

/// [`Found::generation`] for a known digest of the code.
pub(crate) fn generation(found: &Found, code: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(code);
    // The grant itself counts: an address of the configuration is in effect only there.
    let granted = (found.permissions(), found.grant(), found.may_hook());
    hasher.update(format!("{:?}{granted:?}{:?}", found.manifest, found.limits()).as_bytes());
    // The skills are not part of the code that reads them.
    if let (true, GrantStatus::Granted(entry)) = (found.is_only_skills(), &found.status) {
        hasher.update(entry.pin.digest.to_string().as_bytes());
    }
    *hasher.finalize().as_bytes()
}
