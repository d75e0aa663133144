//! The place below the folder of plugins where one under development lies, as long as somebody is at it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_plugin_host::{HELD, Manifest, SLOTS};

use crate::failure::{Failure, Kind};
use hermes_private_files::{create_folder, lock_within};

/// How long `dev` waits for the lock. A session holds it for a moment when it checks whether the slot is in use.
const PATIENCE: Duration = Duration::from_millis(500);

/// Held by a lock that ends with the process, so that what a killed one leaves behind does not run.
pub(super) struct Slot {
    folder: PathBuf,
    _held: File,
}

impl Slot {
    pub(super) fn hold(plugins: &Path, name: &str) -> Result<Self, Failure> {
        let folder = plugins.join(SLOTS).join(name);
        let failed = |error: io::Error| {
            let fix = "check the permissions of the home folder";
            Failure::new(Kind::General, format!("{} cannot be used", folder.display()), error.to_string(), fix)
        };
        create_folder(&folder).map_err(failed)?;
        let held = File::options().create(true).append(true).open(folder.join(HELD)).map_err(failed)?;
        if !lock_within(&held, PATIENCE).map_err(failed)? {
            return Err(Failure::new(
                Kind::InUse,
                format!("`{name}` is under development already"),
                "another `hermes plugins dev` holds its place",
                "end that one with ctrl-c first",
            ));
        }
        let slot = Self { folder, _held: held };
        slot.clear();
        Ok(slot)
    }

    /// Puts a component and its manifest there, each whole or not at all.
    pub(super) fn place(&self, manifest: &Manifest, text: &str, component: &[u8]) -> Result<(), Failure> {
        let file = manifest.component.clone().unwrap_or_else(|| format!("{}.wasm", manifest.name));
        let put = |file: &str, bytes: &[u8]| {
            let mut written = tempfile::Builder::new().prefix(".").tempfile_in(&self.folder)?;
            written.write_all(bytes)?;
            written.persist(self.folder.join(file)).map(drop).map_err(|error| error.error)
        };
        put(&file, component).and_then(|()| put("plugin.yaml", text.as_bytes())).map_err(|error| {
            let fix = "check the disk and the permissions of the home folder";
            Failure::new(Kind::General, format!("{} cannot be written", self.folder.display()), error.to_string(), fix)
        })
    }

    /// Takes away all but the lock.
    fn clear(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name() != HELD {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The manifest goes first or last, it makes no difference: without the lock nothing there runs.
        self.clear();
        let _ = fs::remove_file(self.folder.join(HELD));
        let _ = fs::remove_dir(&self.folder);
    }
}
