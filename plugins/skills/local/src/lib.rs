//! Skills from the user's own folders: `skills/NAME/SKILL.md` and `skills/CATEGORY/NAME/SKILL.md`.
//!
//! The folders are read again for each call, so an edited skill takes effect at once. The index in the system prompt is
//! frozen by the host.

mod catalog;

use std::collections::BTreeSet;

use hermes_plugin::files::{self, Entry};
use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, Plugin, Skills, log};

use catalog::{Catalog, Folder};

/// The root that this plugin requests in its manifest.
const ROOT: &str = "skills";
/// Larger files are not shown to the model.
const BYTES: u64 = 1 << 20;

#[derive(Default)]
struct Local {
    /// Warnings already logged.
    logged: BTreeSet<String>,
}

impl Plugin for Local {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self::default())
    }
}

impl Skills for Local {
    fn index(&mut self) -> Result<Vec<Skill>, Error> {
        let root = files::roots()?.into_iter().find(|root| root.name == ROOT).map(|root| root.path);
        Ok(self.catalog()?.index(&root.unwrap_or_default()))
    }

    fn view(&mut self, name: &str, path: Option<&str>) -> Result<Document, Error> {
        self.catalog()?.view(&Disk, name, path)
    }
}

hermes_plugin::export!(Local: Skills);

impl Local {
    fn catalog(&mut self) -> Result<Catalog, Error> {
        let catalog = Catalog::read(&Disk)?;
        for warning in &catalog.warnings {
            if self.logged.insert(warning.clone()) {
                log::warn(warning);
            }
        }
        Ok(catalog)
    }
}

struct Disk;

impl Folder for Disk {
    fn entries(&self, path: &str) -> Result<Vec<Entry>, Error> {
        files::entries(ROOT, path)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        files::read_all(ROOT, path, BYTES)
    }
}
