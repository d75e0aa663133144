//! `hermes plugins enable` and `disable`: changes the selection of plugins in `config.yaml`.

use std::process::ExitCode;

use hermes_app::Role;
use hermes_app::plugins::Selection;
use serde_json::json;

use super::Inventory;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use hermes_config::Edit;

const ENGINE: &str = "context.engine";
const MEMORY: &str = "memory.provider";
const ENABLED: &str = "plugins.enabled";
const DISABLED: &str = "plugins.disabled";

/// Changes to `config.yaml`, with a line for the user about each.
pub(crate) struct Changes<'a> {
    selection: &'a Selection,
    edit: Edit,
    lines: Vec<String>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(selection: &'a Selection, edit: Edit) -> Self {
        Self { selection, edit, lines: Vec::new() }
    }

    /// Enables a plugin in new sessions.
    pub(crate) fn enable(&mut self, name: &str, role: Role) -> Result<(), Failure> {
        self.edit.take(DISABLED, name)?;
        match role {
            Role::Engine => self.choose(ENGINE, &self.selection.engine, name, Selection::ENGINE)?,
            // The built-in memory works alongside any other provider.
            Role::Memory if name == Selection::MEMORY => {}
            Role::Memory => {
                let current = self.selection.memory.clone().unwrap_or_else(|| "none".to_owned());
                self.choose(MEMORY, &current, name, "")?;
            }
            Role::Other if Selection::ON.contains(&name) => {}
            Role::Other => self.edit.add(ENABLED, name)?,
        }
        if role == Role::Other || name == Selection::MEMORY {
            self.lines.push(format!("`{name}` is enabled"));
        }
        Ok(())
    }

    /// Disables a plugin in new sessions.
    pub(crate) fn disable(&mut self, name: &str, role: Role) -> Result<(), Failure> {
        self.edit.take(ENABLED, name)?;
        if self.selection.engine == name {
            if name == Selection::ENGINE {
                let why = format!("a session needs a context engine, and `{name}` is the default");
                let fix = "choose another engine with `hermes plugins enable NAME`";
                return Err(Failure::new(Kind::Usage, format!("`{name}` cannot be disabled"), why, fix));
            }
            self.choose(ENGINE, name, Selection::ENGINE, Selection::ENGINE)?;
        } else if self.selection.memory.as_deref() == Some(name) {
            self.edit.remove(MEMORY)?;
            self.lines.push(format!("{MEMORY}: none (was {name})"));
        } else if role != Role::Engine {
            if Selection::ON.contains(&name) || name == Selection::MEMORY {
                self.edit.add(DISABLED, name)?;
            }
            self.lines.push(format!("`{name}` is disabled"));
        }
        Ok(())
    }

    /// Sets a key, or removes it if the name is its default.
    fn choose(&mut self, key: &str, current: &str, name: &str, default: &str) -> Result<(), Failure> {
        if current == name {
            return Ok(());
        }
        match name == default {
            true => self.edit.remove(key)?,
            false => self.edit.set(key, &json!(name))?,
        }
        self.lines.push(format!("{key}: {name} (was {current})"));
        Ok(())
    }

    /// Writes the file. Returns a line about each change; none if nothing changed.
    pub(crate) fn store(self) -> Result<Vec<String>, Failure> {
        let changed = self.edit.is_changed();
        self.edit.save()?;
        Ok(if changed { self.lines } else { Vec::new() })
    }

    /// Writes the file and shows the changes.
    pub(crate) fn save(self) -> Result<ExitCode, Failure> {
        match &self.store()?[..] {
            [] => print("Nothing changed: config.yaml already has this selection.\n")?,
            lines => print(&format!("{}\nThe change applies to new sessions.\n", lines.join("\n")))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The change that enables a plugin.
pub(super) fn enabling<'a>(name: &str, inventory: &'a Inventory) -> Result<Changes<'a>, Failure> {
    let kinds = inventory.kinds(name)?;
    let mut changes = Changes::new(&inventory.selection, Edit::of(&inventory.setup.home.config())?);
    changes.enable(name, Role::of(&kinds))?;
    Ok(changes)
}

/// The change that disables a plugin.
pub(super) fn disabling<'a>(name: &str, inventory: &'a Inventory) -> Result<Changes<'a>, Failure> {
    // A broken or missing plugin can be disabled too.
    let kinds = inventory.kinds(name).unwrap_or_default();
    let mut changes = Changes::new(&inventory.selection, Edit::of(&inventory.setup.home.config())?);
    changes.disable(name, Role::of(&kinds))?;
    Ok(changes)
}

pub(crate) fn enable(name: &str, console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    let saved = enabling(name, &inventory)?.save()?;
    inventory.warn_of_lacks(name, console);
    Ok(saved)
}

pub(crate) fn disable(name: &str, console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    let changes = disabling(name, &inventory)?;
    if !changes.edit.is_changed() {
        // A name that the configuration does not have, and no plugin either.
        inventory.kinds(name)?;
    }
    changes.save()
}
