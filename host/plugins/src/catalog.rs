//! Which plugins there are: the bundled set, and folders below `$HERMES_HOME/plugins`.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::PluginsError;
use crate::manifest::Manifest;

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
    /// In the slot that `hermes plugins dev` keeps for it, as long as that runs: whoever runs it grants by the path given there.
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

/// A plugin that was found; nothing of it has run.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its manifest.
    pub manifest: Manifest,
    /// Where it lies.
    pub origin: Origin,
    component: Component,
}

#[derive(Debug, Clone)]
enum Component {
    Bytes(&'static [u8]),
    File(PathBuf),
}

impl Found {
    /// A digest of all that it is made of: of its component, and of what its manifest says.
    pub(crate) fn made(&self) -> Result<[u8; 32], PluginsError> {
        Ok(made(&self.manifest, blake3::hash(&self.component()?).as_bytes()))
    }

    /// The bytes of its component.
    pub fn component(&self) -> Result<Cow<'static, [u8]>, PluginsError> {
        match &self.component {
            Component::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            Component::File(path) => {
                fs::read(path).map(Cow::Owned).map_err(|source| PluginsError::Read { path: path.clone(), source })
            }
        }
    }
}

/// As [`Found::made`], where the digest of the component is known.
pub(crate) fn made(manifest: &Manifest, component: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(component);
    hasher.update(format!("{manifest:?}").as_bytes());
    *hasher.finalize().as_bytes()
}

/// A folder that holds no usable plugin, and why.
pub type Problem = PluginsError;

/// All plugins that were found, bundled ones first.
pub struct Catalog {
    found: Vec<Found>,
    problems: Vec<Problem>,
    folder: PathBuf,
}

impl Catalog {
    /// Looks into the bundled set and below `folder`, at `<name>` and `<kind>/<name>`.
    pub fn find(bundled: &[Bundled], folder: &Path) -> Self {
        let mut catalog = Self { found: Vec::new(), problems: Vec::new(), folder: folder.to_owned() };
        catalog.look_into_slots(&folder.join(SLOTS));
        for plugin in bundled {
            match Manifest::parse(plugin.manifest) {
                Ok(manifest) if catalog.is_developed(&manifest.name) => {}
                Ok(manifest) => catalog.found.push(Found {
                    manifest,
                    origin: Origin::Bundled,
                    component: Component::Bytes(plugin.component),
                }),
                Err(source) => {
                    catalog.problems.push(PluginsError::Manifest { path: "bundled plugin.yaml".into(), source })
                }
            }
        }
        catalog.look_into(folder, 2);
        catalog
    }

    /// Those under development stand before all others of their names.
    fn look_into_slots(&mut self, slots: &Path) {
        let mut slots: Vec<PathBuf> = fs::read_dir(slots).into_iter().flatten().flatten().map(|e| e.path()).collect();
        slots.sort();
        for slot in slots.into_iter().filter(|slot| is_held(slot) && slot.join("plugin.yaml").exists()) {
            match self.read(&slot) {
                Ok(found) => self.found.push(Found { origin: Origin::Dev(slot), ..found }),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn is_developed(&self, name: &str) -> bool {
        self.get(name).is_some_and(|found| matches!(found.origin, Origin::Dev(_)))
    }

    fn look_into(&mut self, folder: &Path, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(source) => return self.problems.push(PluginsError::Read { path: folder.to_owned(), source }),
        };
        let mut folders: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                path.is_dir() && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
            })
            .collect();
        folders.sort();
        for folder in folders {
            if folder.join("plugin.yaml").exists() {
                match self.read(&folder) {
                    Ok(found) => self.found.push(found),
                    Err(problem) => self.problems.push(problem),
                }
            } else if depth > 1 {
                self.look_into(&folder, depth - 1);
            }
        }
    }

    fn read(&self, folder: &Path) -> Result<Found, PluginsError> {
        let path = folder.join("plugin.yaml");
        let text = fs::read_to_string(&path).map_err(|source| PluginsError::Read { path: path.clone(), source })?;
        let manifest =
            Manifest::parse(&text).map_err(|source| PluginsError::Manifest { path: path.clone(), source })?;
        if let Some(other) = self.get(&manifest.name).filter(|other| !matches!(other.origin, Origin::Dev(_))) {
            return Err(PluginsError::Twice { path, name: manifest.name, other: other.origin.to_string() });
        }
        let component = match &manifest.component {
            Some(file) => folder.join(file),
            None => only_component(folder)?,
        };
        Ok(Found { manifest, origin: Origin::Installed(folder.to_owned()), component: Component::File(component) })
    }

    /// A plugin by its name.
    pub fn get(&self, name: &str) -> Option<&Found> {
        self.found.iter().find(|found| found.manifest.name == name)
    }

    /// All of them, bundled ones first.
    pub fn all(&self) -> &[Found] {
        &self.found
    }

    /// Folders that hold no usable plugin.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What is wrong with what lies in a folder.
    pub(crate) fn problem_in(&self, folder: &Path) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.place().is_some_and(|place| place.starts_with(folder)))
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

fn only_component(folder: &Path) -> Result<PathBuf, PluginsError> {
    let entries = fs::read_dir(folder).map_err(|source| PluginsError::Read { path: folder.to_owned(), source })?;
    let mut components: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "wasm"))
        .collect();
    match components.len() {
        1 => Ok(components.remove(0)),
        found => Err(PluginsError::Component { folder: folder.to_owned(), found }),
    }
}
