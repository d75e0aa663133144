//! Skills from the user's own folders: `skills/NAME/SKILL.md` and `skills/CATEGORY/NAME/SKILL.md`.
//!
//! The folders are read anew for each call, so an edited skill counts at once; what stands in the prompt was frozen by
//! the host.

mod front_matter;
mod shelf;
mod yaml;

use std::collections::BTreeSet;

use hermes_plugin::files::{self, Entry};
use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, Plugin, Skills, log};

use shelf::{Folder, Shelf};

/// The root that this plugin asks for.
const ROOT: &str = "skills";
/// Bytes of a file that is worth showing to a model.
const BYTES: u64 = 1 << 20;

#[derive(Default)]
struct Local {
    /// What the log has been told of already.
    told: BTreeSet<String>,
}

impl Plugin for Local {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self::default())
    }
}

impl Skills for Local {
    fn index(&mut self) -> Result<Vec<Skill>, Error> {
        Ok(self.shelf()?.index())
    }

    fn view(&mut self, name: &str, path: Option<&str>) -> Result<Document, Error> {
        self.shelf()?.view(&Disk, name, path)
    }
}

hermes_plugin::export!(Local: Skills);

impl Local {
    fn shelf(&mut self) -> Result<Shelf, Error> {
        let shelf = Shelf::read(&Disk)?;
        for complaint in &shelf.complaints {
            if self.told.insert(complaint.clone()) {
                log::warn(complaint);
            }
        }
        Ok(shelf)
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
