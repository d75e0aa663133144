//! What the installer does with the data of plugins: to whom it belongs, and how it changes hands.

use std::fs;
use std::io;
use std::path::PathBuf;

use hermes_plugin_host::{Entry, Lock, PluginOrigin, digest, is_plugin_name};

use crate::data::{
    ASIDE, DataAside, DataChanges, DataHandover, OWNER, all_aside, aside_of, data_of, free_place, origin_in, owner_in,
    write_owner,
};
use crate::error::InstallError;
use crate::installer::Installer;
use crate::stage::{Stage, Steps, Turn};
use crate::transaction::{Transaction, commit};

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
