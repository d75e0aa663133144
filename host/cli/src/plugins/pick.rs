//! `hermes plugins` on a terminal: the context engine, the memory provider and the other plugins, to choose from.

use std::process::ExitCode;

use dialoguer::{MultiSelect, Select};
use hermes_app::Role;
use hermes_plugin_host::Selection;

use super::switch::Changes;
use super::{Known, Listed};
use crate::console::{Console, print};
use crate::failure::Failure;
use crate::text;
use hermes_config::Edit;

/// What stands in a list for no provider beside the built-in one.
const NONE: &str = "none";

pub(crate) fn run(console: Console) -> Result<ExitCode, Failure> {
    let known = Known::read(console)?;
    let listed = known.look();
    let of = |role: Role| -> Vec<&Listed> {
        listed.iter().filter(|plugin| plugin.why.is_none() && Role::of(&plugin.kinds) == role).collect()
    };
    let selection = &known.selection;
    print("Arrows move, space ticks, Enter goes on, Esc leaves everything as it is.\n")?;
    let mut changes = Changes::new(selection, Edit::of(&known.setup.home.config())?);

    let engines = of(Role::Engine);
    let current = engines.iter().position(|plugin| plugin.name == selection.engine);
    let items: Vec<String> = engines.iter().map(|plugin| item(plugin)).collect();
    let Some(chosen) = one("Context engine", &items, current)? else { return left() };
    changes.enable(&engines[chosen].name, Role::Engine)?;

    let memories: Vec<&Listed> =
        of(Role::Memory).into_iter().filter(|plugin| plugin.name != Selection::MEMORY).collect();
    if !memories.is_empty() {
        let current =
            selection.memory.as_ref().and_then(|name| memories.iter().position(|plugin| plugin.name == *name));
        let mut items = vec![format!("{NONE}  beside the built-in one")];
        items.extend(memories.iter().map(|plugin| item(plugin)));
        let Some(chosen) = one("Memory provider", &items, Some(current.map_or(0, |at| at + 1)))? else { return left() };
        match (chosen.checked_sub(1), &selection.memory) {
            (Some(at), _) => changes.enable(&memories[at].name, Role::Memory)?,
            (None, Some(name)) => changes.disable(name, Role::Memory)?,
            (None, None) => {}
        }
    }

    let others: Vec<&Listed> = listed
        .iter()
        .filter(|plugin| plugin.why.is_none())
        .filter(|plugin| Role::of(&plugin.kinds) == Role::Other || plugin.name == Selection::MEMORY)
        .collect();
    let ticked: Vec<bool> = others.iter().map(|plugin| known.is_on(&plugin.name)).collect();
    let items: Vec<String> = others.iter().map(|plugin| item(plugin)).collect();
    let chosen = MultiSelect::new()
        .with_prompt("Plugins")
        .items(&items)
        .defaults(&ticked)
        .interact_opt()
        .map_err(|error| Failure::from(std::io::Error::other(error)))?;
    let Some(chosen) = chosen else { return left() };
    for (at, plugin) in others.iter().enumerate() {
        match (ticked[at], chosen.contains(&at)) {
            (false, true) => changes.enable(&plugin.name, Role::of(&plugin.kinds))?,
            (true, false) => changes.disable(&plugin.name, Role::of(&plugin.kinds))?,
            _ => {}
        }
    }
    changes.save()
}

fn item(plugin: &Listed) -> String {
    format!("{:<14} {}", plugin.name, text::line(&plugin.description))
}

fn one(title: &str, items: &[String], current: Option<usize>) -> Result<Option<usize>, Failure> {
    let asked = Select::new().with_prompt(title).items(items).default(current.unwrap_or_default()).interact_opt();
    asked.map_err(|error| Failure::from(std::io::Error::other(error)))
}

fn left() -> Result<ExitCode, Failure> {
    print("Everything was left as it is.\n")?;
    Ok(ExitCode::SUCCESS)
}
