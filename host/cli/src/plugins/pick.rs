//! `hermes plugins` on a terminal: a menu of the context engine, the memory provider and the other plugins.

use std::process::ExitCode;

use dialoguer::{MultiSelect, Select};
use hermes_app::Role;
use hermes_app::plugins::Selection;

use super::switch::Changes;
use super::{Inventory, Listed};
use crate::console::{Console, print};
use crate::failure::Failure;
use crate::text;
use hermes_config::Edit;

pub(crate) fn run(console: Console) -> Result<ExitCode, Failure> {
    let inventory = Inventory::read(console)?;
    let listed = inventory.list();
    let of = |role: Role| -> Vec<&Listed> {
        listed.iter().filter(|plugin| plugin.why.is_none() && Role::of(&plugin.kinds) == role).collect()
    };
    let selection = &inventory.selection;
    print("Arrow keys move, Space selects, Enter confirms, Esc cancels.\n")?;
    let mut changes = Changes::new(selection, Edit::of(&inventory.setup.home.config())?);

    let engines = of(Role::Engine);
    let current = engines.iter().position(|plugin| plugin.name == selection.engine);
    let items: Vec<String> = engines.iter().map(|plugin| item(plugin, console)).collect();
    let Some(chosen) = select("Context engine", &items, current)? else { return cancelled() };
    changes.enable(&engines[chosen].name, Role::Engine)?;
    let mut added = vec![engines[chosen].name.clone()];

    let memories: Vec<&Listed> =
        of(Role::Memory).into_iter().filter(|plugin| plugin.name != Selection::MEMORY).collect();
    if !memories.is_empty() {
        let current =
            selection.memory.as_ref().and_then(|name| memories.iter().position(|plugin| plugin.name == *name));
        let mut items = vec![format!("{:<14} only the built-in memory", "none")];
        items.extend(memories.iter().map(|plugin| item(plugin, console)));
        let current = Some(current.map_or(0, |at| at + 1));
        let Some(chosen) = select("Memory provider", &items, current)? else { return cancelled() };
        match (chosen.checked_sub(1), &selection.memory) {
            (Some(at), _) => {
                changes.enable(&memories[at].name, Role::Memory)?;
                added.push(memories[at].name.clone());
            }
            (None, Some(name)) => changes.disable(name, Role::Memory)?,
            (None, None) => {}
        }
    }

    let others: Vec<&Listed> = listed
        .iter()
        .filter(|plugin| plugin.why.is_none())
        .filter(|plugin| Role::of(&plugin.kinds) == Role::Other || plugin.name == Selection::MEMORY)
        .collect();
    let enabled: Vec<bool> = others.iter().map(|plugin| inventory.is_enabled(&plugin.name)).collect();
    let items: Vec<String> = others.iter().map(|plugin| item(plugin, console)).collect();
    let chosen = MultiSelect::new()
        .with_prompt("Plugins")
        .items(&items)
        .defaults(&enabled)
        .interact_opt()
        .map_err(|error| Failure::from(std::io::Error::other(error)))?;
    let Some(chosen) = chosen else { return cancelled() };
    for (at, plugin) in others.iter().enumerate() {
        match (enabled[at], chosen.contains(&at)) {
            (false, true) => {
                changes.enable(&plugin.name, Role::of(&plugin.kinds))?;
                added.push(plugin.name.clone());
            }
            (true, false) => changes.disable(&plugin.name, Role::of(&plugin.kinds))?,
            _ => {}
        }
    }
    let saved = changes.save()?;
    added.iter().for_each(|name| inventory.warn_of_lacks(name, console));
    Ok(saved)
}

fn item(plugin: &Listed, console: Console) -> String {
    console.item(&format!("{:<14} {}", plugin.name, text::exact(&plugin.description)))
}

/// Asks for one item. None if the user pressed Esc.
fn select(title: &str, items: &[String], current: Option<usize>) -> Result<Option<usize>, Failure> {
    let chosen = Select::new().with_prompt(title).items(items).default(current.unwrap_or_default()).interact_opt();
    chosen.map_err(|error| Failure::from(std::io::Error::other(error)))
}

fn cancelled() -> Result<ExitCode, Failure> {
    print("Cancelled: nothing was changed.\n")?;
    Ok(ExitCode::SUCCESS)
}
