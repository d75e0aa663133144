//! The data of plugins belongs to their origins. A plugin of the same name from elsewhere does not get it: the data is set
//! aside, and comes back when a plugin of that origin is installed again.
//!
//! `data/NAME` is the data of the plugin that has the name now. A file in it names its origin. The data of other origins is
//! in `data/.origins/NAME`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use hermes_plugin_host::{Entry, Lock, PluginOrigin, digest, is_plugin_name};
use hermes_private_files::{sync_folder, write_among_others};
use serde::{Deserialize, Serialize};

use crate::error::{At, InstallError};
use crate::installer::Installer;
use crate::stage::{Places, Stage, Turn, private_folder};
use crate::transaction::{Steps, Transaction, commit};

/// The file that names the origin of data.
const OWNER: &str = "origin.json";
const MOST_BYTES: u64 = 1 << 16;
/// The folder of data that was set aside, below `data`. A plugin's name cannot begin with a dot.
const ASIDE: &str = ".origins";
/// The name of a folder whose origin nobody knows.
const UNKNOWN: &str = "unknown";

/// Changes to data folders. All paths are relative to the home.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataChanges {
    /// Renames, in order. A rename is skipped if the first folder is missing or the second one exists.
    moves: Vec<(PathBuf, PathBuf)>,
    /// The origins of folders. A missing folder is skipped.
    owners: Vec<(PathBuf, PluginOrigin)>,
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
fn owner_in(folder: &Path) -> Option<PluginOrigin> {
    let mut text = String::new();
    hermes_private_files::open_regular(&folder.join(OWNER)).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The origin of an installed plugin whose entry was written here.
fn origin_in(name: &str, lock: &Lock) -> Option<PluginOrigin> {
    lock.plugins.get(name).filter(|entry| entry.is_ours()).map(|entry| entry.pin.origin())
}

fn write_owner(folder: &Path, origin: &PluginOrigin) -> Result<(), InstallError> {
    if !folder.is_dir() || owner_in(folder).as_ref() == Some(origin) {
        return Ok(());
    }
    let path = folder.join(OWNER);
    let text = serde_json::to_string_pretty(origin).expect("an origin is JSON") + "\n";
    // Programs of the plugin may write in its folder.
    write_among_others(&path, text.as_bytes()).at(&path)
}

/// `data/NAME` relative to the home.
fn data_of(name: &str) -> PathBuf {
    PathBuf::from("data").join(name)
}

fn aside_of(name: &str) -> PathBuf {
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
    fn plan(places: &Places, name: &str, owner: Option<PluginOrigin>, new: &PluginOrigin, keep: bool) -> Self {
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
fn free_place(places: &Places, name: &str, origin: Option<&PluginOrigin>) -> PathBuf {
    let mark = origin.map_or_else(|| UNKNOWN.to_owned(), PluginOrigin::mark);
    let place = |number: u32| match number {
        1 => aside_of(name).join(&mark),
        number => aside_of(name).join(format!("{mark}-{number}")),
    };
    (1..).map(place).find(|place| !places.home.join(place).exists()).unwrap_or_else(|| place(1))
}

/// The data that was set aside for a name, sorted by folder.
fn all_aside(places: &Places, name: &str) -> Vec<DataAside> {
    let entries = fs::read_dir(places.home.join(aside_of(name))).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.into_iter().map(|folder| DataAside { origin: owner_in(&folder), folder }).collect()
}

impl Installer {
    /// The origin of the plugin or of the data that has a name. None if nobody knows it.
    pub fn owner(&self, name: &str) -> Result<Option<PluginOrigin>, InstallError> {
        let lock = self.lock()?;
        Ok(self.owner_in(name, &lock))
    }

    /// The origin that is recorded in the data of a name. None if there is no such record.
    pub fn recorded_owner(&self, name: &str) -> Option<PluginOrigin> {
        is_plugin_name(name).then(|| owner_in(&self.places.data(name))).flatten()
    }

    /// An installed plugin owns its name, if its entry was written here. Its data may be older, and belong to another origin.
    fn owner_in(&self, name: &str, lock: &Lock) -> Option<PluginOrigin> {
        origin_in(name, lock).or_else(|| self.data_owner(name, lock))
    }

    fn data_owner(&self, name: &str, lock: &Lock) -> Option<PluginOrigin> {
        let is_replaced = self.replaced.iter().any(|bundled| bundled == name);
        owner_in(&self.places.data(name))
            .or_else(|| origin_in(name, lock))
            .or_else(|| is_replaced.then(PluginOrigin::bundled))
    }

    /// What happens to data when a plugin of this origin gets the name. `is_update` if the installed plugin has the same
    /// source: the user accepted a change of its key.
    pub(crate) fn data_changes(&self, name: &str, lock: &Lock, new: &PluginOrigin, is_update: bool) -> DataChanges {
        self.data_changes_of(name, self.data_owner(name, lock), new, is_update)
    }

    /// The same for a plugin that a lock pins. The lock can come from elsewhere, so only the record of the data counts.
    pub(crate) fn data_changes_of_pinned(&self, name: &str, new: &PluginOrigin) -> DataChanges {
        self.data_changes_of(name, self.recorded_owner(name), new, false)
    }

    fn data_changes_of(
        &self,
        name: &str,
        owner: Option<PluginOrigin>,
        new: &PluginOrigin,
        is_update: bool,
    ) -> DataChanges {
        let keep =
            owner.as_ref().is_some_and(|owner| owner.is_continued_by(new) || (is_update && owner.has_same_source(new)));
        DataChanges::plan(&self.places, name, owner, new, keep)
    }

    /// The same for people, before it happens.
    pub fn data_handover(&self, name: &str, new: &PluginOrigin, is_update: bool) -> Result<DataHandover, InstallError> {
        let lock = self.lock()?;
        Ok(self.handover(name, &self.data_changes(name, &lock, new, is_update), self.data_owner(name, &lock)))
    }

    /// The same for a plugin that a lock pins.
    pub fn data_handover_of_pinned(&self, name: &str, new: &PluginOrigin) -> DataHandover {
        self.handover(name, &self.data_changes_of_pinned(name, new), self.recorded_owner(name))
    }

    fn handover(&self, name: &str, changes: &DataChanges, owner: Option<PluginOrigin>) -> DataHandover {
        let mut handover = DataHandover::default();
        for (from, to) in &changes.moves {
            if *from == data_of(name) {
                let folder = self.places.home.join(to);
                handover.set_aside = Some(DataAside { folder, origin: owner.clone() });
            } else {
                handover.returned = Some(self.places.home.join(from));
            }
        }
        handover
    }

    /// After a removal of a plugin with the name of a bundled one, the bundled plugin gets its own data back.
    pub(crate) fn data_after_removal(&self, name: &str, lock: &Lock, removed: PluginOrigin) -> DataChanges {
        if self.replaced.iter().any(|bundled| bundled == name) {
            let owner = self.data_owner(name, lock);
            return DataChanges::plan(&self.places, name, owner, &PluginOrigin::bundled(), false);
        }
        // An older marker knows better, and an entry that was not written here knows nothing.
        let removed = origin_in(name, lock).map(|_| removed);
        let owner = owner_in(&self.places.data(name)).or(removed);
        owner.map_or_else(DataChanges::default, |owner| DataChanges::owned(name, owner))
    }

    /// The data of a name that belongs to other origins than the plugin that has the name now.
    pub fn data_aside(&self, name: &str) -> Vec<DataAside> {
        if is_plugin_name(name) { all_aside(&self.places, name) } else { Vec::new() }
    }

    /// Gives the entries of an earlier version of Hermes the seals of this home. From then on no other entry counts.
    pub fn seal(&self) -> Result<(), InstallError> {
        if !self.lock()?.is_of_earlier_version() {
            return Ok(());
        }
        let turn = self.turn()?;
        let sealed = self.lock().and_then(|lock| match lock.is_of_earlier_version() {
            true => Ok(lock.write(&self.places.lock())?),
            false => Ok(()),
        });
        turn.leave(&self.places);
        sealed
    }

    /// Records the origins of data that an earlier version of Hermes stored for installed plugins.
    pub fn claim_data(&self) -> Result<(), InstallError> {
        let unclaimed = |lock: &Lock| -> Vec<(PathBuf, PluginOrigin)> {
            let ours = lock.plugins.iter().filter(|(_, entry)| entry.is_ours());
            let entries = ours.map(|(name, entry)| (self.places.data(name), &entry.pin));
            entries
                .filter(|(data, _)| data.is_dir() && !data.join(OWNER).exists())
                // A lock from elsewhere can name a plugin that was never here.
                .filter(|(_, pin)| {
                    digest::of_folder(&self.places.folder.join(&pin.folder)).is_ok_and(|found| found == pin.digest)
                })
                .map(|(data, pin)| (data, pin.origin()))
                .collect()
        };
        if unclaimed(&self.lock()?).is_empty() {
            return Ok(());
        }
        let turn = self.turn()?;
        let claimed = unclaimed(&self.lock()?).iter().try_for_each(|(folder, origin)| write_owner(folder, origin));
        turn.leave(&self.places);
        claimed
    }

    /// Treats a source as the new place of a plugin: grants, configuration and data stay. The next update is fetched there.
    /// Fails if the plugin changed since `before` was read.
    pub fn adopt(
        &self,
        name: &str,
        before: Option<&PluginOrigin>,
        source: &str,
        steps: Steps<'_>,
    ) -> Result<(), InstallError> {
        let turn = self.turn()?;
        let mut lock = self.lock()?;
        if self.owner_in(name, &lock).as_ref() != before {
            return Err(InstallError::Raced(name.to_owned()));
        }
        let entry = lock.plugins.remove(name).map(|mut entry| {
            source.clone_into(&mut entry.pin.source);
            entry.pin.resolved = None;
            entry
        });
        // The key of the first installation stays pinned.
        let new = PluginOrigin::of(source, before.and_then(|before| before.signer.as_deref()));
        self.change_data(name, entry, DataChanges::owned(name, new), &turn, steps)?;
        turn.leave(&self.places);
        Ok(())
    }

    /// Gives data that was set aside to the installed plugin, and sets its own data aside.
    pub fn adopt_data(&self, name: &str, aside: &DataAside, steps: Steps<'_>) -> Result<(), InstallError> {
        let turn = self.turn()?;
        let lock = self.lock()?;
        let entry = self.entry(name)?;
        let Some(from) = self.data_aside(name).into_iter().find(|known| known == aside) else {
            return Err(InstallError::Raced(name.to_owned()));
        };
        let mut changes = DataChanges::owned(name, entry.pin.origin());
        let data = data_of(name);
        if self.has_data(name) {
            let owner = self.data_owner(name, &lock);
            let place = free_place(&self.places, name, owner.as_ref());
            changes.owners.extend(owner.map(|owner| (place.clone(), owner)));
            changes.moves.push((data.clone(), place));
        }
        if let Ok(from) = from.folder.strip_prefix(&self.places.home) {
            changes.moves.push((from.to_owned(), data));
        }
        self.change_data(name, Some(entry), changes, &turn, steps)?;
        turn.leave(&self.places);
        Ok(())
    }

    fn change_data(
        &self,
        name: &str,
        entry: Option<Entry>,
        data: DataChanges,
        turn: &Turn,
        steps: Steps<'_>,
    ) -> Result<(), InstallError> {
        let stage = Stage::new(&self.places)?;
        let transaction = Transaction { data, ..Transaction::of_lock(stage.name(), name, entry) };
        commit(&transaction, &self.places, turn, steps)
    }

    /// Deletes the data that a removed plugin left, also what was set aside for its name.
    pub fn delete_leftover_data(&self, name: &str) -> Result<(), InstallError> {
        let turn = self.turn()?;
        // Under the lock of the installation: the plugin may have been installed again.
        if self.has_leftover_data(name) {
            for folder in [self.places.data(name), self.places.home.join(aside_of(name))] {
                match fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(InstallError::File { path: folder, source: error });
                    }
                    _ => {}
                }
            }
            let _ = fs::remove_dir(self.places.home.join("data").join(ASIDE));
        }
        turn.leave(&self.places);
        Ok(())
    }
}
