//! Grants of installed plugins: given, revoked, and compared with the files on disk.

use std::path::{Path, PathBuf};

use hermes_diagnostic::{Action, Diagnose as _, Fix};
use hermes_plugin_host::{
    Catalog, CodeFiles, Entry, Found, LimitSet, Manifest, Permissions, Pin, PluginsError, Ungranted, code_in, digest,
    manifest_in,
};
use serde::Serialize;

use crate::error::{At, InstallError, Reason};
use crate::installer::{Candidate, Installer, allow_drafts, drafts_in, exports_in};
use crate::stage::{Stage, has_leftovers};
use crate::transaction::{Rewrite, Transaction, commit, write_lock};

/// The name of the permission to run as a native library.
const NATIVE: &str = "native";

/// A plugin's folder that is about to be granted.
#[derive(Debug)]
pub struct Granting {
    folder: PathBuf,
    /// The manifest of the plugin.
    pub manifest: Manifest,
    /// Its entry in the lock, with nothing granted.
    pub pin: Pin,
    /// Its current entry in the lock.
    pub before: Option<Entry>,
    /// The change of the configuration that is made with the grant.
    pub rewrite: Option<Rewrite>,
}

impl Granting {
    /// The earlier entry, if its plugin has the same source and the entry was written here. Nothing is inherited from
    /// another one.
    pub fn known(&self) -> Option<&Entry> {
        self.before
            .as_ref()
            .filter(|before| before.is_ours() && before.pin.origin().has_same_source(&self.pin.origin()))
    }

    /// The earlier entry, if it was written here for the same files. Only its grant counts.
    pub fn kept(&self) -> Option<&Entry> {
        self.before.as_ref().filter(|before| before.is_ours() && before.pin.digest == self.pin.digest)
    }

    /// The plugin in its folder, for its first start.
    pub fn candidate(&self) -> Candidate<'_> {
        let (folder, from) = (self.folder.clone(), self.folder.display().to_string());
        Candidate { folder, from, manifest: &self.manifest, pin: &self.pin }
    }

    /// Refuses draft interfaces of the contract, unless the user allows them, or allowed them before.
    pub fn allow_drafts(&self, allowed: bool) -> Result<(), InstallError> {
        allow_drafts(&self.pin, self.known().map(|before| &before.pin), &self.manifest.name, allowed)
    }
}

/// How an installed plugin compares with the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The files are those that were granted.
    Ok,
    /// The files are as installed, and the grant was revoked.
    Revoked,
    /// The plugin exists and was never granted.
    Ungranted,
    /// The files are those of the entry, which was not written in this home, or was changed.
    Foreign,
    /// The files differ from those that were granted.
    Altered,
    /// The plugin is in the lock, and its folder is missing.
    Missing,
    /// Files of an interrupted command.
    Unfinished,
}

/// One line of `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The plugin.
    pub name: String,
    /// Its version in the lock, else in its manifest.
    pub version: String,
    /// Its state.
    pub state: State,
    /// What is wrong. It is empty if nothing is.
    pub detail: String,
    /// How to correct the problem.
    pub fix: Fix,
}

impl Installer {
    /// Prepares a grant for the folder of a plugin. `native` is the permission to run as a native library.
    pub fn granting(&self, name: &str, native: bool, catalog: &Catalog) -> Result<Granting, InstallError> {
        let lock = self.lock()?;
        let before = lock.plugins.get(name).cloned();
        let folder = match catalog.get(name).map(Found::folder) {
            Some(None) => return Err(InstallError::Bundled(name.to_owned())),
            Some(Some(folder)) => folder.to_owned(),
            None => {
                if let Some(problem) = catalog.problem_with(name) {
                    return Err(InstallError::Unusable {
                        name: name.to_owned(),
                        problem: Box::new(problem.error.diagnose()),
                    });
                }
                let installed = catalog.all().iter().filter(|found| found.folder().is_some());
                let there = installed.map(|found| found.manifest.name.clone()).collect();
                return Err(InstallError::Unknown { name: name.to_owned(), there });
            }
        };
        let manifest = manifest_in(&folder).map_err(|error| no_plugin(&folder, &error))?;
        let code = code_in(&folder, &manifest).map_err(|error| no_plugin(&folder, &error))?;
        let place = folder.strip_prefix(&self.places.folder).unwrap_or(&folder);
        let parts: Vec<_> = place.iter().map(|part| part.to_string_lossy()).collect();
        let now = digest::of_folder(&folder).at(&folder)?;
        // An entry that was changed by hand says nothing about the source.
        let ours = before.as_ref().filter(|entry| entry.is_ours()).map(|entry| &entry.pin);
        let unchanged = ours.filter(|pin| pin.digest == now);
        let pin = Pin {
            source: ours.map_or_else(|| folder.display().to_string(), |pin| pin.source.clone()),
            resolved: ours.and_then(|pin| pin.resolved.clone()),
            folder: parts.join("/"),
            version: manifest.version.clone(),
            digest: now,
            // The key stays pinned for later versions.
            signer: ours.and_then(|pin| pin.signer.clone()),
            exports: exports_in(&folder, &manifest),
            drafts: drafts_in(&folder, &manifest),
            granted: None,
            limits: LimitSet::default(),
            native: native || unchanged.is_some_and(|pin| pin.native),
            // Files whose only source is their own folder cannot count as edited.
            edited: ours.is_some_and(|pin| !pin.is_from(&folder) && (pin.edited || pin.digest != now)),
        };
        match (&code, pin.native) {
            (code, false) if code.is_empty() => Ok(Granting { folder, manifest, pin, before, rewrite: None }),
            (CodeFiles { native: None, .. }, true) => Err(InstallError::NoLibrary(name.to_owned())),
            (CodeFiles { component: None, .. }, false) => Err(InstallError::Native(name.to_owned())),
            _ => Ok(Granting { folder, manifest, pin, before, rewrite: None }),
        }
    }

    /// Stores a grant. The rest of the plugin's entry stays.
    pub fn grant(&self, granting: &Granting, granted: Permissions, limits: LimitSet) -> Result<(), InstallError> {
        let name = &granting.manifest.name;
        let turn = self.turn()?;
        let mut lock = self.lock()?;
        let folder = self.places.folder.join(&granting.pin.folder);
        let now = digest::of_folder(&folder).at(&folder)?;
        if lock.plugins.get(name) != granting.before.as_ref() || now != granting.pin.digest {
            return Err(InstallError::Raced(name.clone()));
        }
        let pin = Pin { granted: Some(granted), limits, ..granting.pin.clone() };
        let previous =
            granting.before.as_ref().filter(|entry| entry.is_ours()).and_then(|entry| entry.previous.clone());
        let data = self.data_changes(name, &lock, &pin.origin(), granting.known().is_some());
        let entry = Entry::new(pin, previous);
        if !data.moves_something() && granting.rewrite.is_none() {
            lock.plugins.insert(name.clone(), entry);
            write_lock(&lock, &self.places.lock())?;
            return data.carry_out(&self.places, &|_| ());
        }
        let stage = Stage::new(&self.places)?;
        let rewrite = granting.rewrite.clone();
        let transaction = Transaction { rewrite, data, ..Transaction::of_lock(stage.name(), name, Some(entry)) };
        commit(&transaction, &self.places, &turn, &|_| ())
    }

    /// Revokes permissions; `native` is one of them. Without names, revokes all: the plugin cannot run until it is granted
    /// again.
    pub fn revoke(&self, name: &str, permissions: &[String]) -> Result<Option<Permissions>, InstallError> {
        let _turn = self.turn()?;
        self.entry(name)?;
        let mut lock = self.lock()?;
        let Some(entry) = lock.plugins.get_mut(name) else { return Err(InstallError::Raced(name.to_owned())) };
        let (native, others): (Vec<String>, Vec<String>) =
            permissions.iter().cloned().partition(|permission| permission == NATIVE);
        let left = match &entry.pin.granted {
            Some(granted) if !permissions.is_empty() => Some(without(granted, &others, name)?),
            _ => None,
        };
        entry.pin.native &= native.is_empty() && left.is_some();
        if left.is_none() {
            entry.pin.limits = LimitSet::default();
        }
        entry.pin.granted.clone_from(&left);
        write_lock(&lock, &self.places.lock())?;
        Ok(left)
    }

    /// Compares the disk with the lock: one finding for each plugin, sorted by name.
    pub fn verify(&self, catalog: &Catalog) -> Result<Vec<Finding>, InstallError> {
        let lock = self.lock()?;
        let mut findings: Vec<Finding> = lock.plugins.iter().map(|(name, entry)| self.held(name, entry)).collect();
        for found in catalog.all() {
            let Some(folder) = found.folder() else { continue };
            let name = &found.manifest.name;
            let place = |entry: &Entry| self.places.folder.join(&entry.pin.folder);
            if lock.plugins.get(name).is_none_or(|entry| place(entry) != folder) {
                findings.push(Finding {
                    name: name.clone(),
                    version: found.manifest.version.to_string(),
                    state: State::Ungranted,
                    detail: format!("{} is not in plugins.lock", folder.display()),
                    fix: Action::GrantPlugin { plugin: name.clone() }.into(),
                });
            }
        }
        if has_leftovers(&self.places) {
            findings.push(Finding {
                name: "-".to_owned(),
                version: String::new(),
                state: State::Unfinished,
                detail: "another command on plugins is running or was interrupted".to_owned(),
                fix: Fix::words("wait until it ends; the next command finishes an interrupted one"),
            });
        }
        findings.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(findings)
    }

    fn held(&self, name: &str, entry: &Entry) -> Finding {
        let folder = self.places.folder.join(&entry.pin.folder);
        let (mut state, mut detail, mut fix) = disk(name, &folder, entry);
        if state == State::Ok && !entry.is_ours() {
            let why = Ungranted::Foreign(name.to_owned());
            (state, detail, fix) = (State::Foreign, why.to_string(), why.parts().2);
        }
        if let (State::Ok, Some(previous)) = (state, &entry.previous) {
            let kept = self.places.previous(name);
            if digest::of_folder(&kept).ok() != Some(previous.digest) {
                state = State::Altered;
                detail = format!(
                    "the files of the previous version {} were changed, so it cannot be restored",
                    previous.version
                );
                fix = Action::UpdatePlugin { plugin: name.to_owned() }.into();
            }
        }
        Finding { name: name.to_owned(), version: entry.pin.version.to_string(), state, detail, fix }
    }

    /// The folder of a plugin of the lock.
    pub fn folder(&self, entry: &Entry) -> PathBuf {
        self.places.folder.join(&entry.pin.folder)
    }
}

/// The state of a folder, the finding, and the fix.
fn disk(name: &str, folder: &Path, entry: &Entry) -> (State, String, Fix) {
    let (plugin, pin) = (name.to_owned(), &entry.pin);
    if !folder.is_dir() {
        let fix = if pin.is_from(folder) {
            // Nothing else has these files.
            let back = format!("put the folder back to {}, from where you copied it", folder.display());
            Fix::words(back).or(Action::RemovePlugin { plugin })
        } else if pin.edited && entry.is_ours() {
            // The changes are lost with the folder.
            Action::UpdatePlugin { plugin }.into()
        } else {
            Action::RestorePinned.into()
        };
        return (State::Missing, format!("{} does not exist", folder.display()), fix);
    }
    match digest::of_folder(folder) {
        Err(error) => (State::Altered, error.to_string(), Fix::words("check the permissions of its files")),
        Ok(found) if found != pin.digest => {
            let detail = format!(
                "the files in {} have changed since you allowed it to run (digest {} instead of {})",
                folder.display(),
                found.short(),
                pin.digest.short()
            );
            let grant = Action::GrantPlugin { plugin: plugin.clone() };
            let fix = match pin.is_from(folder) {
                true => grant.into(),
                false => Fix::from(Action::UpdatePlugin { plugin }).or(grant),
            };
            (State::Altered, detail, fix)
        }
        Ok(_) if pin.granted.is_none() => {
            (State::Revoked, "you revoked its permission to run".to_owned(), Action::GrantPlugin { plugin }.into())
        }
        Ok(_) => (State::Ok, String::new(), Fix::none()),
    }
}

fn no_plugin(folder: &Path, error: &PluginsError) -> InstallError {
    InstallError::NoPlugin { from: folder.display().to_string(), reason: reason(error) }
}

/// The cause and the remedy of an error of a plugin's files.
pub(crate) fn reason(error: &PluginsError) -> Reason {
    Reason::new(error.to_string(), error.parts().2)
}

/// The permissions with these names, out of all that the plugin requests.
pub fn only(asked: &Permissions, permissions: &[String], name: &str) -> Result<Permissions, InstallError> {
    filtered(asked, permissions, name, true)
}

fn without(granted: &Permissions, permissions: &[String], name: &str) -> Result<Permissions, InstallError> {
    filtered(granted, permissions, name, false)
}

/// A permission has the name of its member in the manifest, so that a new permission needs no change here.
fn filtered(of: &Permissions, permissions: &[String], name: &str, keep: bool) -> Result<Permissions, InstallError> {
    let value = serde_json::to_value(of).expect("permissions are JSON");
    let members = value.as_object().cloned().unwrap_or_default();
    if let Some(permission) = permissions.iter().find(|permission| !members.contains_key(*permission)) {
        let asked = members.keys().cloned().collect();
        return Err(InstallError::NotAsked { name: name.to_owned(), permission: permission.clone(), asked });
    }
    let kept = members.into_iter().filter(|(permission, _)| permissions.contains(permission) == keep).collect();
    Ok(serde_json::from_value(serde_json::Value::Object(kept)).expect("what was written is read"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_granted_and_revoked_by_name() {
        let asked: Permissions = serde_json::from_str(r#"{"sql": true, "history": true, "process": ["git"]}"#).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let some = only(&asked, &names(&["sql", "process"]), "a").unwrap();
        assert!(some.sql && !some.history && some.process == asked.process);
        let left = without(&asked, &names(&["process"]), "a").unwrap();
        assert!(left.sql && left.history && left.process.is_empty());
        let error = only(&asked, &names(&["llm"]), "a").unwrap_err().to_string();
        assert!(error.contains("`llm`") && error.contains("history"), "{error}");
    }
}
