//! The data of plugins belongs to their origins. A plugin of the same name from elsewhere does not get it: the data is set
//! aside, and comes back when a plugin of that origin is installed again.
//!
//! `data/NAME` is the data of the plugin that has the name now. A file in it names its origin. The data of other origins is
//! in `data/.origins/NAME`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use hermes_plugin_host::{Lock, PluginOrigin};
use hermes_private_files::{sync_folder, write_among_others};
use serde::{Deserialize, Serialize};

use crate::error::{At, InstallError};
use crate::stage::{Places, Steps, private_folder};

/// The file that names the origin of data.
pub(crate) const OWNER: &str = "origin.json";
const MOST_BYTES: u64 = 1 << 16;
/// The folder of data that was set aside, below `data`. A plugin's name cannot begin with a dot.
pub(crate) const ASIDE: &str = ".origins";
/// The name of a folder whose origin nobody knows.
const UNKNOWN: &str = "unknown";

/// Changes to data folders. All paths are relative to the home.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataChanges {
    /// Renames, in order. A rename is skipped if the first folder is missing or the second one exists.
    pub(crate) moves: Vec<(PathBuf, PathBuf)>,
    /// The origins of folders. A missing folder is skipped.
    pub(crate) owners: Vec<(PathBuf, PluginOrigin)>,
}

/// Data of a plugin's name that belongs to another origin than the plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataAside {
    /// Its folder.
    pub folder: PathBuf,
    /// The origin; none if it is not known.
    pub origin: Option<PluginOrigin>,
}

/// What an installation does with data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataHandover {
    /// The data of another origin, which is set aside.
    pub set_aside: Option<DataAside>,
    /// The folder with earlier data of this origin, which comes back.
    pub returned: Option<PathBuf>,
}

/// The origin in a folder of data. None if there is no such file, or it is damaged.
pub(crate) fn owner_in(folder: &Path) -> Option<PluginOrigin> {
    let mut text = String::new();
    hermes_private_files::open_regular(&folder.join(OWNER)).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The origin of an installed plugin whose entry was written here.
pub(crate) fn origin_in(name: &str, lock: &Lock) -> Option<PluginOrigin> {
    lock.plugins.get(name).filter(|entry| entry.is_ours()).map(|entry| entry.pin.origin())
}

pub(crate) fn write_owner(folder: &Path, origin: &PluginOrigin) -> Result<(), InstallError> {
    if !folder.is_dir() || owner_in(folder).as_ref() == Some(origin) {
        return Ok(());
    }
    let path = folder.join(OWNER);
    let text = serde_json::to_string_pretty(origin).expect("an origin is JSON") + "\n";
    // Programs of the plugin may write in its folder.
    write_among_others(&path, text.as_bytes()).at(&path)
}

/// `data/NAME` relative to the home.
pub(crate) fn data_of(name: &str) -> PathBuf {
    PathBuf::from("data").join(name)
}

pub(crate) fn aside_of(name: &str) -> PathBuf {
    PathBuf::from("data").join(ASIDE).join(name)
}

impl DataChanges {
    pub(crate) fn moves_something(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Nothing but a record of the origin of a plugin's data.
    pub(crate) fn owned(name: &str, origin: PluginOrigin) -> Self {
        Self { moves: Vec::new(), owners: vec![(data_of(name), origin)] }
    }

    /// Sets the data of another origin aside and brings back that of `new`. With `keep`, the data of the name stays.
    pub(crate) fn plan(
        places: &Places,
        name: &str,
        owner: Option<PluginOrigin>,
        new: &PluginOrigin,
        keep: bool,
    ) -> Self {
        let mut changes = Self::owned(name, new.clone());
        let data = data_of(name);
        if keep && places.home.join(&data).exists() {
            return changes;
        }
        if places.home.join(&data).exists() {
            let aside = free_place(places, name, owner.as_ref());
            changes.owners.extend(owner.map(|owner| (aside.clone(), owner)));
            changes.moves.push((data.clone(), aside));
        }
        let returned = all_aside(places, name)
            .into_iter()
            .find(|aside| aside.origin.as_ref().is_some_and(|origin| origin.is_continued_by(new)));
        if let Some(from) = returned.as_ref().and_then(|aside| aside.folder.strip_prefix(&places.home).ok()) {
            changes.moves.push((from.to_owned(), data));
        }
        changes
    }

    /// Carries the changes out. A change that is done already is skipped.
    pub(crate) fn carry_out(&self, places: &Places, steps: Steps<'_>) -> Result<(), InstallError> {
        for (from, to) in &self.moves {
            steps("move data");
            let (from, to) = (places.home.join(from), places.home.join(to));
            let (Some(before), Some(after)) = (from.parent(), to.parent()) else { continue };
            if from.exists() && !to.exists() {
                private_folder(after)?;
                fs::rename(&from, &to).at(&from)?;
                sync_folder(after).at(after)?;
            }
            // The folder of what was set aside goes with the last entry. It stays if it is not empty.
            if before.starts_with(places.home.join("data").join(ASIDE)) {
                let _ = fs::remove_dir(before);
                let _ = fs::remove_dir(places.home.join("data").join(ASIDE));
            }
        }
        for (folder, origin) in &self.owners {
            steps("own data");
            write_owner(&places.home.join(folder), origin)?;
        }
        Ok(())
    }
}

/// A folder for data that is set aside, which does not exist yet.
pub(crate) fn free_place(places: &Places, name: &str, origin: Option<&PluginOrigin>) -> PathBuf {
    let mark = origin.map_or_else(|| UNKNOWN.to_owned(), PluginOrigin::mark);
    let place = |number: u32| match number {
        1 => aside_of(name).join(&mark),
        number => aside_of(name).join(format!("{mark}-{number}")),
    };
    (1..).map(place).find(|place| !places.home.join(place).exists()).unwrap_or_else(|| place(1))
}

/// The data that was set aside for a name, sorted by folder.
pub(crate) fn all_aside(places: &Places, name: &str) -> Vec<DataAside> {
    let entries = fs::read_dir(places.home.join(aside_of(name))).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.into_iter().map(|folder| DataAside { origin: owner_in(&folder), folder }).collect()
}
