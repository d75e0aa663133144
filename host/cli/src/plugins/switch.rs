//! `hermes plugins enable` and `disable`: which plugins sessions have, written into `config.yaml`.

use std::process::ExitCode;

use hermes_app::Role;
use hermes_plugin_host::Selection;
use serde_json::json;

use super::Known;
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use hermes_config::Edit;

const ENGINE: &str = "context.engine";
const MEMORY: &str = "memory.provider";
const ENABLED: &str = "plugins.enabled";
const DISABLED: &str = "plugins.disabled";

/// Changes of the configuration, as the user is told of them.
pub(crate) struct Changes<'a> {
    selection: &'a Selection,
    edit: Edit,
    told: Vec<String>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(selection: &'a Selection, edit: Edit) -> Self {
        Self { selection, edit, told: Vec::new() }
    }

    /// Sessions have this plugin from now on.
    pub(crate) fn enable(&mut self, name: &str, role: Role) -> Result<(), Failure> {
        self.edit.take(DISABLED, name)?;
        match role {
            Role::Engine => self.choose(ENGINE, &self.selection.engine, name, Selection::ENGINE)?,
            // This one serves beside any other.
            Role::Memory if name == Selection::MEMORY => {}
            Role::Memory => {
                let known = self.selection.memory.clone().unwrap_or_else(|| "none".to_owned());
                self.choose(MEMORY, &known, name, "")?;
            }
            Role::Other if Selection::ON.contains(&name) => {}
            Role::Other => self.edit.add(ENABLED, name)?,
        }
        if role == Role::Other || name == Selection::MEMORY {
            self.told.push(format!("`{name}` is enabled"));
        }
        Ok(())
    }

    /// Sessions do without it from now on.
    pub(crate) fn disable(&mut self, name: &str, role: Role) -> Result<(), Failure> {
        self.edit.take(ENABLED, name)?;
        if self.selection.engine == name {
            if name == Selection::ENGINE {
                let why = format!("`{name}` is the engine that serves where no other one is chosen");
                let fix = "choose another one with `hermes plugins enable NAME`";
                return Err(Failure::new(Kind::Usage, format!("`{name}` stays on"), why, fix));
            }
            self.choose(ENGINE, name, Selection::ENGINE, Selection::ENGINE)?;
        } else if self.selection.memory.as_deref() == Some(name) {
            self.edit.remove(MEMORY)?;
            self.told.push(format!("{MEMORY}: none (was {name})"));
        } else if role != Role::Engine {
            if Selection::ON.contains(&name) || name == Selection::MEMORY {
                self.edit.add(DISABLED, name)?;
            }
            self.told.push(format!("`{name}` is disabled"));
        }
        Ok(())
    }

    fn choose(&mut self, key: &str, known: &str, name: &str, default: &str) -> Result<(), Failure> {
        if known == name {
            return Ok(());
        }
        match name == default {
            true => self.edit.remove(key)?,
            false => self.edit.set(key, &json!(name))?,
        }
        self.told.push(format!("{key}: {name} (was {known})"));
        Ok(())
    }

    /// Writes the file and says what is new.
    pub(crate) fn save(self) -> Result<ExitCode, Failure> {
        let changed = self.edit.is_changed();
        self.edit.save()?;
        match changed {
            true => print(&format!("{}\nSessions that begin from now on have it so.\n", self.told.join("\n")))?,
            false => print("Nothing changes: it is so already.\n")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(crate) fn enable(name: &str, console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    let kinds = known.kinds(name)?;
    let mut changes = Changes::new(&known.selection, Edit::of(&known.setup.home.config())?);
    changes.enable(name, Role::of(&kinds))?;
    changes.save()
}

pub(crate) fn disable(name: &str, console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    // One that is broken or gone can be turned off too.
    let kinds = known.kinds(name).unwrap_or_default();
    let mut changes = Changes::new(&known.selection, Edit::of(&known.setup.home.config())?);
    changes.disable(name, Role::of(&kinds))?;
    changes.save()
}
