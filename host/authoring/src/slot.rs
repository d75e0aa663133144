//! The slot of a plugin under development: a folder below the plugins, reserved by a lock while `dev` runs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_diagnostic::{Category, Diagnostic};
use hermes_plugin_host::{HELD, Manifest, SKILLS, SLOTS, USED_AS, UsedAs};
use hermes_private_files::{create_folder, lock_within};

use crate::failure;

/// How long `dev` waits for the lock. A session holds it for a moment when it checks whether the slot is in use.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// A reserved slot. The lock ends with the process, so sessions ignore the files of a killed `dev`.
pub struct Slot {
    folder: PathBuf,
    _lock: File,
}

impl Slot {
    /// Reserves the slot of a plugin below the folder of plugins.
    ///
    /// # Errors
    ///
    /// When another process holds it, or the folder cannot be used.
    pub fn hold(plugins: &Path, name: &str) -> Result<Self, Diagnostic> {
        let folder = plugins.join(SLOTS).join(name);
        let failed = |error: io::Error| {
            let fix = "check the permissions of the home folder";
            failure(Category::General, format!("{} cannot be used", folder.display()), error.to_string(), fix)
        };
        create_folder(&folder).map_err(failed)?;
        let lock = File::options().create(true).append(true).open(folder.join(HELD)).map_err(failed)?;
        if !lock_within(&lock, LOCK_TIMEOUT).map_err(failed)? {
            return Err(failure(
                Category::InUse,
                format!("`{name}` is already under development"),
                "another `hermes plugins dev` runs for this plugin",
                "stop it with ctrl-c first",
            ));
        }
        let slot = Self { folder, _lock: lock };
        slot.clear();
        Ok(slot)
    }

    /// Writes the skills, the component, its use and then the manifest. Each file is replaced in one step.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn place(
        &self,
        manifest: &Manifest,
        text: &str,
        component: Option<&[u8]>,
        exports: &[&str],
        skills: &[(String, PathBuf)],
    ) -> Result<UsedAs, Diagnostic> {
        let used_as = UsedAs::of(exports);
        let file = manifest.component.clone().unwrap_or_else(|| format!("{}.wasm", manifest.name));
        let put = |file: &str, bytes: &[u8]| {
            let mut written = tempfile::Builder::new().prefix(".").tempfile_in(&self.folder)?;
            written.write_all(bytes)?;
            written.persist(self.folder.join(file)).map(drop).map_err(|error| error.error)
        };
        let placed = self
            .put_skills(skills)
            .and_then(|()| component.map_or(Ok(()), |component| put(&file, component)))
            .and_then(|()| put(USED_AS, used_as.word().as_bytes()));
        let placed = placed.and_then(|()| put("plugin.yaml", text.as_bytes()));
        placed.map(|()| used_as).map_err(|error| {
            let fix = "check the disk and the permissions of the home folder";
            failure(Category::General, format!("{} cannot be written", self.folder.display()), error.to_string(), fix)
        })
    }

    /// Replaces the folder of skills.
    fn put_skills(&self, files: &[(String, PathBuf)]) -> io::Result<()> {
        let next = tempfile::Builder::new().prefix(".").tempdir_in(&self.folder)?;
        for (name, path) in files {
            let to = next.path().join(name);
            fs::create_dir_all(to.parent().unwrap_or(next.path()))?;
            fs::copy(path, to)?;
        }
        let (skills, next) = (self.folder.join(SKILLS), next.path().join(SKILLS));
        if skills.exists() {
            fs::remove_dir_all(&skills)?;
        }
        if next.exists() { fs::rename(next, skills) } else { Ok(()) }
    }

    /// Removes everything but the lock.
    fn clear(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name() != HELD {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let _ = if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.clear();
        let _ = fs::remove_file(self.folder.join(HELD));
        let _ = fs::remove_dir(&self.folder);
        // The folder of all slots goes with the last one.
        let _ = self.folder.parent().map(fs::remove_dir);
    }
}
