//! A plugin's folder: its manifest, the files with code, and the folders of plugins under development.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::PluginsError;
use crate::manifest::Manifest;

/// The folder of plugins under development, below the folder of plugins. Each has a slot with its name.
pub const SLOTS: &str = ".dev";
/// The file in a slot that `hermes plugins dev` keeps locked while it runs.
pub const HELD: &str = "held";

/// Whether `hermes plugins dev` uses the slot now. A slot that a killed process left behind does not run.
pub(crate) fn is_held(slot: &Path) -> bool {
    hermes_private_files::open_regular(&slot.join(HELD))
        .is_ok_and(|held| matches!(held.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// The most bytes of a manifest.
const LARGEST_MANIFEST: u64 = 1 << 20;
/// The file name of a manifest.
pub const MANIFEST: &str = "plugin.yaml";
/// The folder of a plugin with its skills, each in a folder of its own with the file `SKILL.md`.
pub const SKILLS: &str = "skills";
const SKILL: &str = "SKILL.md";

/// The files of a folder with code for this machine. Neither is there if the plugin has only skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFiles {
    /// The component.
    pub component: Option<String>,
    /// The native library for this machine.
    pub native: Option<String>,
}

impl CodeFiles {
    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.component.is_none() && self.native.is_none()
    }
}

/// The names of the skills in a plugin's folder, in order.
pub fn skills_in(folder: &Path) -> Vec<String> {
    let is_skill = |path: &PathBuf| path.join(SKILL).is_file();
    let folders = |folder: &Path| -> Vec<PathBuf> { content(folder).filter(|path| path.is_dir()).collect() };
    let mut found = Vec::new();
    for outer in folders(&folder.join(SKILLS)) {
        if is_skill(&outer) {
            found.push(outer);
        } else {
            // A category.
            found.extend(folders(&outer).into_iter().filter(is_skill));
        }
    }
    let mut names: Vec<String> =
        found.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Reads the manifest of a folder.
pub fn manifest_in(folder: &Path) -> Result<Manifest, PluginsError> {
    let path = folder.join(MANIFEST);
    let text = hermes_private_files::read_text(&path, LARGEST_MANIFEST);
    let text = text.map_err(|source| PluginsError::Read { path: path.clone(), source })?;
    Manifest::parse(&text).map_err(|source| PluginsError::Manifest { path, source })
}

/// The files of a folder with code: the component that the manifest names, or else the only one, and the library that the
/// manifest names for this machine. A plugin that has only skills has none.
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
        0 if manifest.native.is_empty() && !skills_in(folder).is_empty() => {
            Ok(CodeFiles { component: None, native: None })
        }
        0 => Err(unbuilt(manifest.library().map(str::to_owned).as_ref())),
        found => Err(PluginsError::Component { folder: folder.to_owned(), found }),
    }
}

pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// The entries of a folder that are not hidden.
fn content(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| !is_hidden(path))
}

pub(super) fn holds_files(folder: &Path) -> bool {
    content(folder).any(|path| path.is_file())
}

/// Whether this is a plugin's folder without a manifest, not a folder of plugins of one kind.
pub(super) fn is_left_without_manifest(folder: &Path) -> bool {
    holds_files(folder) && !content(folder).any(|path| path.join(MANIFEST).exists())
}
